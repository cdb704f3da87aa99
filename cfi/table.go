// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
)

// Section is a section of call frame information, as a file holds it or as
// it lies in memory.
type Section struct {
	Name string // for errors, ".eh_frame"
	Data []byte // decompressed and relocated; used as long as the Table, and never written to
	// Address is the virtual address of Data[0].
	Address uint64
	// EH means that Data has the conventions of .eh_frame (LSB 5.0, 10.6), else
	// it has the conventions of .debug_frame (DWARF 5, 6.4.1).
	EH          bool
	Order       binary.ByteOrder // binary.LittleEndian or binary.BigEndian
	AddressSize int              // bytes of an address where the CIE does not say: 4 or 8
	// Text and DataBase are the bases of DW_EH_PE_textrel and DW_EH_PE_datarel; 0
	// where they are not known. For .eh_frame the data is the global offset
	// table, for .eh_frame_hdr that section itself.
	Text, DataBase uint64
	// Memory reads the bytes at a virtual address: an FDE whose initial location
	// is DW_EH_PE_indirect needs it. It may be nil, and must be safe for
	// concurrent use.
	Memory func(dst []byte, address uint64) (int, error)
	// Open means that Data may go on behind the section, as it does where only
	// .eh_frame_hdr has the start of the section. It then ends at its first
	// terminator, or at the first bytes that are no entry.
	Open bool
	// Code is set for a relocatable object, whose code sections all begin at address 0: it
	// returns the number, never 0, of the code section that the address stored at an offset
	// of Data is in. ok is false where no relocation stands there: then the FDE is for no
	// code. It must be safe for concurrent use.
	Code func(offset uint64) (section uint32, ok bool)
}

// Table finds the FDEs of a section. It is safe for concurrent use.
type Table struct {
	section Section
	big     bool
	header  atomic.Pointer[header]
	cies    [cieSlots]atomic.Pointer[CIE]

	indexOnce sync.Once
	indexes   []index // by code section; a single one for one address space

	sectionProblems
}

// cieSlots bounds the memory for CIEs that were read; which slot a CIE has
// depends on its offset. Large programs have one CIE for thousands of FDEs.
const cieSlots = 256

// NewTable checks the description of a section: the error wraps ErrSection or ErrAddressSize.
// The section itself is read when the Table is used.
func NewTable(s Section) (*Table, error) {
	t := &Table{section: s}
	switch s.Order {
	case binary.LittleEndian:
	case binary.BigEndian:
		t.big = true
	default:
		return nil, t.errorf(0, ErrSection, "byte order %v, expected little or big endian", s.Order)
	}
	if s.AddressSize != 4 && s.AddressSize != 8 {
		return nil, t.errorf(0, ErrAddressSize, "%d bytes, expected 4 or 8", s.AddressSize)
	}
	return t, nil
}

// FDE returns the FDE that covers pc. Where FDEs overlap it is the one that
// starts last, of several the shortest, of equal ones the first in the section. FDEs
// of size zero, FDEs of code that the linker dropped, and FDEs with a segment
// selector other than zero are not looked at. ErrNoFDE when there is none;
// ErrAmbiguous when FDEs of several code sections of a relocatable object cover
// pc, which FDEIn tells apart.
func (t *Table) FDE(pc uint64) (*FDE, error) {
	f := new(FDE)
	if err := t.find(pc, f); err != nil {
		return nil, err
	}
	return f, nil
}

// FDEIn is FDE in one code section of a relocatable object, as Section.Code
// numbers them. ErrNoFDE when none of that section covers pc.
func (t *Table) FDEIn(code uint32, pc uint64) (*FDE, error) {
	f := new(FDE)
	t.indexOnce.Do(t.buildIndex)
	for i := range t.indexes {
		if x := &t.indexes[i]; x.code == code {
			if found, err := t.findIn(x, pc, f); found || err != nil {
				return f, err
			}
		}
	}
	return nil, t.noFDE(pc)
}

// find fills f, so that FDE is small enough to be inlined and its result may stay on the
// caller's stack.
func (t *Table) find(pc uint64, f *FDE) error {
	h := t.header.Load()
	if h != nil {
		found, err := t.findByHeader(h, pc, f)
		if found {
			return nil
		}
		if err != nil {
			t.giveUp(h, err)
			h = nil
		}
	}
	err := t.findByIndex(pc, f)
	if err == nil && h != nil && !h.has(f.Start) {
		// Not found because it is not there, or not where it should be.
		t.giveUp(h, h.error(h.table, ErrHeaderMismatch, fmt.Sprintf("the FDE at %#x, of code at %#x, is not in the search table, or that is not in order", f.Offset, f.Start)))
	}
	return err
}

func (t *Table) giveUp(h *header, err error) {
	if t.header.CompareAndSwap(h, nil) {
		t.problem(err)
	}
}

// Listing all rows of a section may copy, move and yield this many rules: a fixed number,
// plus a number for every byte of the section.
const (
	listBase    = 1 << 25
	listPerByte = 128
)

func (t *Table) listWork() int { return listBase + listPerByte*len(t.section.Data) }

// FDEs lists the FDEs in the order of the section, including FDEs that FDE ignores. An entry
// that cannot be read gives a nil FDE and an error; the list goes on behind it unless its
// length is the problem.
//
// The cost of the rows of all FDEs of one list is bounded in proportion to the section: from
// some FDE on, the FDEs of a hostile section give ErrLimit. FDEAt gives the same FDE outside
// of the list. The rows of the FDEs of one list must not be read concurrently.
func (t *Table) FDEs() iter.Seq2[*FDE, error] {
	return func(yield func(*FDE, error) bool) {
		work := t.listWork()
		t.scan(func(e entry, err error) bool {
			if err != nil {
				return yield(nil, err)
			}
			if e.cie {
				return true
			}
			f := new(FDE)
			if err := t.parseFDE(e, f); err != nil {
				return yield(nil, err)
			}
			f.listing = &work
			return yield(f, nil)
		})
	}
}

// CIEs lists the CIEs in the order of the section, errors as with FDEs.
func (t *Table) CIEs() iter.Seq2[*CIE, error] {
	return func(yield func(*CIE, error) bool) {
		t.scan(func(e entry, err error) bool {
			if err != nil {
				return yield(nil, err)
			}
			if !e.cie {
				return true
			}
			c, err := t.cie(e.offset)
			return yield(c, err)
		})
	}
}

func (t *Table) errorf(offset uint64, err error, format string, args ...any) *Error {
	return &Error{Section: t.section.Name, Offset: offset, Err: err, Detail: fmt.Sprintf(format, args...)}
}

// readError is the error of a reader that failed while it read the named thing.
func (t *Table) readError(r *reader, what string) *Error {
	return t.errorf(uint64(r.errPos), r.err, "expected %s", what)
}

func (t *Table) reader(pos, end int) reader {
	return reader{data: t.section.Data[:end:end], pos: pos, big: t.big}
}
