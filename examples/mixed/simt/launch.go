// SPDX-License-Identifier: Apache-2.0

package simt

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// Dispatch has the parameters that the waves of a launch of a kernel share.
type Dispatch struct {
	Program *Program
	Lanes   int
	// Items is the number of work-items, Group the number in a work-group.
	Items, Group int
	// Arguments is the address of the kernel's arguments, Private the address of the
	// private memory of the waves, PrivateSize its bytes for each wave.
	Arguments, Private, PrivateSize uint64
	// FirstSlot is the number of other waves in front of these in the private memory.
	FirstSlot int

	properties uint16 // of the kernel's descriptor: the contents of registers
	resources  uint32
}

// Bits of the kernel descriptor, by the LLVM project's "User Guide for AMDGPU
// Backend", Kernel Descriptor.
const (
	descriptorSize  = 64
	resourcesAt     = 52 // compute_pgm_rsrc2
	propertiesAt    = 56 // kernel_code_properties
	privateBuffer   = 1 << 0
	kernargPointer  = 1 << 3
	otherRegisters  = 0x76
	privateOffset   = 1 << 0
	groupX          = 1 << 7
	groupYZAndSizes = 7 << 8
)

// Kernel reads the descriptor of a kernel in a code object, which has the initial
// registers of a wave.
func (d *Dispatch) Kernel(file, kernel string) error {
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, s := range symbols {
		if s.Name != kernel+".kd" || int(s.Section) >= len(f.Sections) {
			continue
		}
		section := f.Sections[s.Section]
		var b [descriptorSize]byte
		if _, err := section.ReadAt(b[:], int64(s.Value-section.Addr)); err != nil {
			return fmt.Errorf("%s: %s: %w", file, s.Name, err)
		}
		d.properties = binary.LittleEndian.Uint16(b[propertiesAt:])
		d.resources = binary.LittleEndian.Uint32(b[resourcesAt:])
		if d.properties&otherRegisters != 0 || d.resources&groupYZAndSizes != 0 {
			return fmt.Errorf("%s: %s: %#x, %#x: registers that are not known here", file, s.Name, d.properties, d.resources)
		}
		return nil
	}
	return fmt.Errorf("%s has no kernel %s", file, kernel)
}

// Wave is a wave of a work-group before its first instruction, and the number of the
// work-item in its lane 0. Registers without an initial value are zero.
func (d *Dispatch) Wave(group, inGroup int) (w *Wave, first int) {
	inFront := d.FirstSlot + group*((d.Group+d.Lanes-1)/d.Lanes) + inGroup
	begin := inGroup * d.Lanes
	first = group*d.Group + begin
	count := min(d.Items-first, d.Group-begin, d.Lanes)
	w = NewWave(d.Program, d.Lanes, ^uint64(0)>>(64-count))
	next := 0
	pair := func(v uint64) {
		w.SGPR[next], w.SGPR[next+1] = uint32(v), uint32(v>>32)
		next += 2
	}
	if d.properties&privateBuffer != 0 {
		pair(d.Private)
		next += 2 // the size and kind of the buffer are not read
	}
	if d.properties&kernargPointer != 0 {
		pair(d.Arguments)
	}
	next = int(d.resources >> 1 & 31)
	if d.resources&groupX != 0 {
		w.SGPR[next] = uint32(group)
		next++
	}
	if d.resources&privateOffset != 0 {
		w.SGPR[next] = uint32(uint64(inFront) * d.PrivateSize)
	}
	w.PrivateAt = d.Private + uint64(inFront)*d.PrivateSize
	for lane := range count {
		w.VGPR[0][lane] = uint32(begin + lane)
	}
	return w, first
}
