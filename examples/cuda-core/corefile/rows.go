// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"encoding/binary"
	"slices"
)

// The types of sections (CUDBG_SHT_*), less 0x80000000.
const (
	managed = iota + 1
	global
	local
	shared
	registers
	original
	relocated
	frames
	devices
	contexts
	sms
	grids
	blocks
	warps
	lanes
	modules
	predicates
	parameters
	uniform
	uniformPredicates
	banks
	meta
	barriers
)

// growth is the size of a table's rows from a driver on.
type growth struct{ driver, size int }

// rowSizes are the sizes of the rows of each table, as the members that the header marks
// "Since CUDA Driver" make them.
var rowSizes = map[int][]growth{
	devices:  {{346, 72}, {400, 80}, {575, 88}},
	contexts: {{346, 40}},
	modules:  {{346, 8}},
	grids:    {{346, 104}, {525, 120}, {565, 136}},
	banks:    {{550, 16}},
	sms:      {{346, 8}, {555, 24}, {565, 40}, {580, 48}},
	blocks:   {{346, 24}, {525, 40}, {565, 56}},
	warps:    {{346, 32}, {525, 40}, {570, 48}, {575, 64}, {590, 80}},
	lanes:    {{346, 48}, {575, 56}, {615, 64}},
	frames:   {{346, 24}},
	meta:     {{565, 32}},
}

// since has the driver from which on sections of a kind are written, where not all drivers do.
var since = map[int]int{uniform: 400, uniformPredicates: 400, banks: 550, meta: 565, barriers: 575}

// Drivers are the releases that changed something.
var Drivers = []int{346, 400, 525, 550, 555, 565, 570, 575, 580, 590, 615}

// rowSize returns the size of a table's rows; 0 where the driver has no such table.
func rowSize(kind, driver int) (size int) {
	for _, g := range rowSizes[kind] {
		if driver >= g.driver {
			size = g.size
		}
	}
	return size
}

// A row is put together member by member.
type row []byte

func (r *row) quads(values ...uint64) *row {
	for _, v := range values {
		*r = binary.LittleEndian.AppendUint64(*r, v)
	}
	return r
}

func (r *row) words(values ...uint32) *row {
	for _, v := range values {
		*r = binary.LittleEndian.AppendUint32(*r, v)
	}
	return r
}

// cut returns the row as the driver writes it.
func (r *row) cut(kind, driver int) []byte { return slices.Clip((*r)[:rowSize(kind, driver)]) }

func word(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// padding stands for members that are to be ignored.
const padding = 0xdeadbeef

func (m *Meta) row(s *texts) *row {
	return new(row).quads(s.add(m.Generator)).words(m.Driver[0], m.Driver[1], m.CUDA[0], m.CUDA[1], m.Flags, m.SecondsOfEpoch)
}

func (d *Device) row(s *texts) *row {
	r := new(row).quads(s.add(d.Name), s.add(d.Type), s.add(d.SM))
	r.words(d.ID, d.PCIBus, d.PCIDevice, d.SMCount, d.WarpsPerSM, d.Lanes, d.Registers, d.Predicates, d.Major, d.Minor, d.InstructionSize, d.Status)
	return r.words(d.UniformRegisters, d.UniformPredicates, d.Barriers, padding)
}

func (c *Context) row() *row {
	return new(row).quads(c.ID, c.Shared, c.Local, c.GlobalStart).words(c.Device, c.HostThread)
}

func (g *Grid) row() *row {
	r := new(row).quads(g.ID, g.Context, g.Function, g.Entry, g.Module, g.Parent, g.ParametersAt).words(g.Kind, g.Origin, g.Status, g.Registers)
	r.words(g.Blocks[:]...).words(g.Block[:]...).words(word(g.IsBlocking), g.HostThread)
	return r.words(g.Cluster[:]...).words(padding).words(g.PreferredCluster[:]...).words(padding)
}

func (m *SM) row(s *texts) *row {
	r := new(row).words(m.ID, padding, m.Exception, word(m.HasErrorPC)).quads(m.ErrorPC)
	target := [3]uint32{}
	if m.Target != nil {
		target = *m.Target
	}
	return r.words(word(m.Target != nil)).words(target[:]...).quads(s.add(m.Text))
}

func (b *Block) row() *row {
	r := new(row).quads(b.Grid).words(b.Index[:]...).words(padding)
	return r.words(b.Cluster[:]...).words(padding).words(b.ClusterDim[:]...).words(padding)
}

func (w *Warp) row(s *texts) *row {
	r := new(row).quads(w.ErrorPC).words(w.ID, w.Valid, w.Active, word(w.IsBroken), word(w.HasErrorPC), padding)
	r.words(w.Registers, padding, w.SharedSize, padding, w.InSyscall, w.CBUActive, w.CBUExited, w.CBUCollective)
	return r.words(w.BarrierScope, padding).quads(s.add(w.BarrierText))
}

func (l *Lane) row() *row {
	r := new(row).quads(l.PC, l.Offset).words(l.Number).words(l.Thread[:]...)
	return r.words(l.Exception, l.Depth, l.SyscallDepth, l.CC, l.State, padding, l.RPC[0], l.RPC[1])
}

func (f *Frame) row() *row { return new(row).quads(f.Offset, f.Address).words(f.Level, padding) }
