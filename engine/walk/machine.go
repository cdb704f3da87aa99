// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// maxGeneral bounds the registers that are listed for a frame.
const maxGeneral = 1 << 12

// listedRegister is a register that is listed for frames: one of at most 64 bits for addresses
// and counts, or for one bit of each lane.
type listedRegister struct {
	number uint64
	bits   uint32
	lanes  uint32 // only threads with this many lanes have it; 0: all
}

// machine is an architecture with what walks derive from its description.
type machine struct {
	*code.Machine
	general []listedRegister
	// returnRow is the row of code of which only the place of its return address is known,
	// right below its CFA.
	returnRow *cfi.Row
	// recordRow is such a row for code that saves its caller's frame pointer in a frame record,
	// keptRow for code that leaves the frame pointer unchanged. Both are there where
	// hasRecords.
	recordRow, keptRow *cfi.Row
	record             recordShape
	recordSource       *code.Row // the frame-pointer rule; nil where there is none
	hasRecords         bool
	entrySource        *code.Row // of a function that has executed nothing; nil where it is not known
	// hasLink is true where a call leaves its return address in a register.
	hasLink bool
	// namedPC is the PC where the return address is another register: rows for that column do
	// not give the caller's PC. Otherwise it is no register.
	namedPC   uint64
	addresses uint64 // the last address of the default space

	isSlow atomic.Bool  // see Process.bind
	splits atomic.Int32 // see Process.bindSplit
}

func newMachine(architecture *code.Machine) *machine {
	m := &machine{Machine: architecture}
	d := architecture.Description
	for i := range d.Registers {
		r := &d.Registers[i]
		isMask := r.Class == sdk.Mask && r.Lanes > 0 && r.Bits <= 64
		if !code.IsGeneral(r.Class, r.Bits) && !isMask {
			continue
		}
		for n := uint32(0); n < r.Count && len(m.general) < maxGeneral; n++ {
			m.general = append(m.general, listedRegister{uint64(r.First) + uint64(n), r.Bits, r.Lanes})
		}
	}
	slices.SortFunc(m.general, func(a, b listedRegister) int { return cmp.Compare(a.number, b.number) })
	m.addresses = ^uint64(0) >> (64 - min(max(d.AddressBits, 1), 64))
	m.namedPC = uint64(sdk.NoRegister)
	if row := d.Entry; row != nil {
		m.entrySource = &code.Row{Rules: row, By: trace.ByScan, Defaults: code.AllColumns(cfi.SameValue)}
		back, _ := row.Rule(row.ReturnAddress)
		m.hasLink = back.Kind != cfi.Offset
		if d.PC != d.ReturnAddress {
			m.namedPC = uint64(d.PC)
		}
	}
	m.returnRow = m.newReturnRow()
	if row := d.FramePointer; row != nil {
		m.recordSource = &code.Row{Rules: row, By: trace.ByFramePointer, Defaults: architecture.Defaults}
	}
	if m.record, m.hasRecords = newRecordShape(d); m.hasRecords {
		saved := cfi.Rule{Kind: cfi.Offset, Offset: m.record.saved}
		m.recordRow = m.newReturnRow(cfi.RegisterRule{Column: uint64(d.FP), Rule: saved})
		m.keptRow = m.newReturnRow(cfi.RegisterRule{Column: uint64(d.FP), Rule: cfi.Rule{Kind: cfi.SameValue}})
	}
	return m
}

// newReturnRow returns the row of a frame whose return address is the word below an address,
// which is where a return leaves the stack pointer if a call pushed that word. Where a function
// stored it, it may be anywhere in the frame.
func (m *machine) newReturnRow(more ...cfi.RegisterRule) *cfi.Row {
	d := m.Description
	back := cfi.Rule{Kind: cfi.Offset, Offset: -int64(d.AddressBits+7) / 8}
	rules := append(more, cfi.RegisterRule{Column: uint64(d.PC), Rule: back})
	if d.ReturnAddress != d.PC {
		rules = append(rules, cfi.RegisterRule{Column: uint64(d.ReturnAddress), Rule: back})
	}
	sp := cfi.Rule{Kind: cfi.ValOffset}
	if m.hasLink {
		sp.Kind = cfi.Undefined
	}
	rules = append(rules, cfi.RegisterRule{Column: uint64(d.SP), Rule: sp})
	slices.SortFunc(rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
	return &cfi.Row{Rules: rules, ReturnAddress: uint64(d.ReturnAddress)}
}

// executionMask returns the register with a bit for each lane that executes, in threads with a
// number of lanes of at most 64.
func (m *machine) executionMask(lanes uint32) (reg uint64, ok bool) {
	for i := range m.Description.Registers {
		if r := &m.Description.Registers[i]; r.Class == sdk.Mask && r.Lanes == lanes && r.Bits == lanes && lanes <= 64 {
			return uint64(r.First), true
		}
	}
	return 0, false
}
