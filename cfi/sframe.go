// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
)

// The problems that only .sframe sections have.
var (
	ErrSFrame        = errors.New("malformed SFrame section")
	ErrSFrameVersion = errors.New("SFrame version is not supported")
	ErrSFrameABI     = errors.New("unusable SFrame ABI")
)

// The SFrame format (The SFrame Format, version 3, chapter 2; version 2 with errata 1
// where that differs).
const (
	sframeMagic  = 0xdee2
	sframeHeader = 28 // bytes, without the auxiliary header

	sframeSorted = 0x1 // SFRAME_F_FDE_SORTED
	sframePCRel  = 0x4 // SFRAME_F_FDE_FUNC_START_PCREL
)

// sframeVersion is the differences between versions (1.2, Changes from Version 2 to Version
// 3; 1.3, Changes from Version 1 to Version 2).
type sframeVersion struct {
	size      int  // bytes of an entry of the sub-section of FDEs
	flags     byte // the defined flags; the others must be zero (2.1.3)
	block     bool // an FDE has the size of repeated blocks
	end       bool // an FRE without data words is an outermost frame
	attribute bool // FREs begin with the rest of their FDE, which may be flexible or a signal frame's
	registers bool // on s390x an odd offset is a register number
}

// sframeVersions are the versions that are read.
var sframeVersions = map[uint8]*sframeVersion{
	1: {size: 17, flags: 0x3, registers: true},
	2: {size: 20, flags: 0x7, block: true, end: true, registers: true},
	3: {size: 16, flags: 0x5, block: true, end: true, attribute: true},
}

// SFrame finds rows in an .sframe section (The SFrame Format, versions 1 to 3).
// It is safe for concurrent use.
//
// The format knows the CFA, the stack pointer, the frame pointer and the return
// address, and nothing else. A register that functions of the ABI preserve may
// have been saved and changed in the frame, and no row says where: such
// registers are Undefined in every row, because the architecture's default,
// same value, would be a guess. A frame pointer or return address that a row
// does not track is unchanged by definition of the format: SameValue.
type SFrame struct {
	section Section
	big     bool
	abi     *sframeABI
	version *sframeVersion
	sorted  bool // as the header says
	pcrel   bool
	// Offsets from the CFA, for all rows; 0: rows have their own.
	fixedFP, fixedRA int64

	fdes, size, count int // where FDEs begin, bytes of one, how many
	fres, fresEnd     int // where FREs are
	total             uint64

	orderOnce sync.Once
	inPlace   bool         // the FDEs are sorted and disjoint: they are searched as they are
	index     []indexEntry // else; offset is an FDE's number

	sectionProblems
}

// NewSFrame checks the header of an .sframe. Of s it uses Name, Data, Address,
// Order and AddressSize. ErrSFrameVersion and ErrSFrameABI when the section is
// of a kind that is not read.
func NewSFrame(s Section) (*SFrame, error) {
	t := &SFrame{section: s}
	switch s.Order {
	case binary.LittleEndian:
	case binary.BigEndian:
		t.big = true
	default:
		return nil, t.errorf(0, ErrSection, "byte order %v, expected little or big endian", s.Order)
	}
	r := t.reader(0)
	if magic := r.u16(); r.err == nil && magic != sframeMagic {
		return nil, t.errorf(0, ErrSFrame, "magic number %#x, expected %#x", magic, sframeMagic)
	}
	number := r.u8()
	t.version = sframeVersions[number]
	switch {
	case r.err != nil:
		return nil, t.readError(&r, "the SFrame header")
	case t.version == nil:
		return nil, t.errorf(2, ErrSFrameVersion, "%d, expected 1 to 3", number)
	}
	flags := r.u8()
	if unknown := flags &^ t.version.flags; unknown != 0 {
		return nil, t.errorf(3, ErrSFrame, "flags %#x, which version %d does not define", unknown, number)
	}
	t.sorted, t.pcrel = flags&sframeSorted != 0, flags&sframePCRel != 0
	abi := r.u8()
	t.fixedFP, t.fixedRA = int64(int8(r.u8())), int64(int8(r.u8()))
	auxiliary := r.u8()
	count := uint64(r.u32())
	t.total = uint64(r.u32())
	fresLen, fdesOff, fresOff := uint64(r.u32()), uint64(r.u32()), uint64(r.u32())
	if r.err != nil {
		return nil, t.readError(&r, "the SFrame header")
	}
	if err := t.setABI(abi); err != nil {
		return nil, err
	}
	// The sub-sections tile the section behind the header (2.2). 32-bit numbers
	// do not overflow here.
	start, size := sframeHeader+uint64(auxiliary), uint64(len(s.Data))
	fdes, fres := start+fdesOff, start+fresOff
	t.size = t.version.size
	if fdes+count*uint64(t.size) > fres {
		return nil, t.errorf(8, ErrSFrame, "%d FDEs of %d bytes at %#x, but FREs begin at %#x", count, t.size, fdes, fres)
	}
	if fres+fresLen > size {
		return nil, t.errorf(16, ErrTruncated, "%#x bytes of FREs at %#x, the section has %#x", fresLen, fres, size)
	}
	t.fdes, t.count = int(fdes), int(count)
	t.fres, t.fresEnd = int(fres), int(fres+fresLen)
	return t, nil
}

// Machine is the ELF machine (e_machine) of the section's ABI.
func (t *SFrame) Machine() uint16 { return t.abi.machine }

// FDE returns the FDE that covers pc. Where FDEs overlap it is the one that
// starts last, of several the shortest, of equal ones the first in the section. An FDE
// of size zero covers nothing. ErrNoFDE when there is none.
func (t *SFrame) FDE(pc uint64) (*SFrameFDE, error) {
	t.orderOnce.Do(t.order)
	f := new(SFrameFDE)
	i, found := t.search(pc)
	if found {
		if err := t.parse(i, f); err != nil {
			return nil, err
		}
		if f.Start <= pc && pc < f.End {
			return f, nil
		}
	}
	return nil, t.errorf(0, ErrNoFDE, "%s", t.without(pc))
}

// search finds the one FDE that may cover pc.
func (t *SFrame) search(pc uint64) (i int, found bool) {
	lo, hi := 0, len(t.index)
	if t.inPlace {
		hi = t.count
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.startOf(mid) <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return 0, false
	}
	if t.inPlace {
		return lo - 1, true
	}
	return int(t.index[lo-1].offset), true
}

// startOf returns the start address of an entry to search for.
func (t *SFrame) startOf(i int) uint64 {
	if !t.inPlace {
		return t.index[i].start
	}
	r := t.reader(t.fdes + i*t.size)
	start, _ := t.start(&r)
	return start
}

// order decides how FDEs are searched. The order that the header claims is not trusted: an
// FDE out of its place would hide others.
func (t *SFrame) order() {
	t.inPlace = true
	sorted := true
	var start, end uint64 // of the FDE before
	t.scan(func(f *SFrameFDE, err error) bool {
		if err != nil {
			t.problem(err)
			t.inPlace = false
			return true
		}
		if f.Start < start && sorted {
			sorted = false
			if t.sorted {
				t.problem(t.errorf(f.Offset, ErrSFrame, "code at %#x after code at %#x, in FDEs that the header says are sorted", f.Start, start))
			}
		}
		if f.Start < end {
			t.inPlace = false
		}
		start, end = f.Start, f.End
		return true
	})
	if t.inPlace {
		return
	}
	var spans []span
	t.scan(func(f *SFrameFDE, err error) bool {
		if err == nil && f.Start < f.End {
			number := (int(f.Offset) - t.fdes) / t.size
			spans = append(spans, span{f.Start, f.End, uint32(number)})
		}
		return true
	})
	t.index = share(spans)
}

// scan goes through the FDEs in the order of the section. It reuses the FDE.
func (t *SFrame) scan(yield func(*SFrameFDE, error) bool) {
	var f SFrameFDE
	left := t.total
	for i := range t.count {
		err := t.parse(i, &f)
		if err == nil && uint64(f.rows) > left {
			// FDEs that share FREs would make a listing of the section take
			// time out of proportion.
			err = t.errorf(f.Offset, ErrSFrame, "%d FREs, %d are left of those in the header", f.rows, left)
		}
		if err == nil {
			left -= uint64(f.rows)
		}
		if !yield(&f, err) {
			return
		}
	}
}

// FDEs lists the FDEs in the order of the section. One that cannot be read gives
// a nil FDE and an error, and the list goes on behind it.
func (t *SFrame) FDEs() iter.Seq2[*SFrameFDE, error] {
	return func(yield func(*SFrameFDE, error) bool) {
		listed := new(atomic.Int64)
		t.scan(func(f *SFrameFDE, err error) bool {
			if err != nil {
				return yield(nil, err)
			}
			c := *f
			c.listed = listed
			return yield(&c, nil)
		})
	}
}

func (t *SFrame) errorf(offset uint64, err error, format string, args ...any) *Error {
	return &Error{Section: t.section.Name, Offset: offset, Err: err, Detail: fmt.Sprintf(format, args...)}
}

func (t *SFrame) readError(r *reader, what string) *Error {
	return t.errorf(uint64(r.errPos), r.err, "expected %s", what)
}

func (t *SFrame) reader(pos int) reader {
	return reader{data: t.section.Data, pos: pos, big: t.big}
}

// SFrameFDE is a function descriptor entry: the rows of the code in
// [Start, End) (The SFrame Format, 2.3).
type SFrameFDE struct {
	Offset     uint64 // of the entry in its section
	Start, End uint64 // virtual addresses
	// Repeats means that the code is a block of Block bytes again and again, as in a
	// procedure linkage table, and the rows cover a single block (SFRAME_FDE_TYPE_PCMASK).
	// Version 1 does not have the length of a block: then Block is 0 and nothing has a row.
	Repeats bool
	Block   uint64
	// BKey means that return addresses are signed with the B key (AArch64).
	BKey bool
	// SignalFrame means that a signal handler returns to the code. Only version 3
	// has it.
	SignalFrame bool

	table *SFrame
	pos   int // the first FRE
	rows  uint32
	wide  int // bytes of an FRE's start address
	// isFlexible means that data words are pairs of any base register and offset
	// (SFRAME_FDE_TYPE_FLEX).
	isFlexible bool
	// listed counts the rows of repeated blocks in a listing; nil where the FDE
	// was looked up.
	listed *atomic.Int64
}

// start reads the start address of an FDE that r is at. Without the flag
// SFRAME_F_FDE_FUNC_START_PCREL it is relative to the section, with it to the
// field itself (2.1.3).
func (t *SFrame) start(r *reader) (address uint64, ok bool) {
	base := t.section.Address
	if t.pcrel {
		base += uint64(r.pos)
	}
	var v int64
	if t.version.attribute {
		v = int64(r.u64())
	} else {
		v = int64(int32(r.u32()))
	}
	address = base + uint64(v)
	return address, (v < 0) == (address < base)
}

// The info bytes of an FDE (2.3.3).
const (
	fdeSize    = 0x0f // of the start of an FRE: 1, 2 or 4 bytes
	fdeRepeats = 0x10
	fdeBKey    = 0x20
	fdeSignal  = 0x80

	fdeFlexible = 1 // the FDE type in the second one
)

// fdeAttribute is the size of the attributes before FREs in version 3 (2.3.2).
const fdeAttribute = 5

// parse reads the FDE with a number below t.count.
func (t *SFrame) parse(i int, f *SFrameFDE) error {
	pos := t.fdes + i*t.size
	*f = SFrameFDE{Offset: uint64(pos), table: t}
	r := t.reader(pos)
	start, ok := t.start(&r)
	size := uint64(r.u32())
	offset := uint64(r.u32())
	f.Start, f.End = start, start+size
	if r.err == nil && (!ok || f.End < f.Start) {
		return t.errorf(f.Offset, ErrOverflow, "%#x bytes of code at %#x", size, start)
	}
	info, kind := uint64(r.pos)+4, byte(0) // where the info bytes are
	fres := uint64(t.fresEnd - t.fres)
	if !t.version.attribute {
		f.rows = r.u32()
	} else {
		if offset > fres || fres-offset < fdeAttribute {
			return t.errorf(f.Offset+12, ErrTruncated, "%d bytes of an FDE's attribute at %#x of %#x", fdeAttribute, offset, fres)
		}
		r = t.reader(t.fres + int(offset))
		info = uint64(r.pos) + 2
		f.rows = uint32(r.u16())
		offset += fdeAttribute
	}
	bits := r.u8()
	if t.version.attribute {
		kind = r.u8()
	}
	if t.version.block {
		f.Block = uint64(r.u8())
	}
	if r.err != nil {
		return t.readError(&r, "an FDE")
	}
	f.setInfo(bits, kind)
	switch {
	case !f.isInfo(bits, kind):
		return t.errorf(info, ErrSFrame, "info word %#x of an FDE", uint16(kind)<<8|uint16(bits))
	case f.Repeats && f.Block == 0 && t.version.block:
		return t.errorf(info+1, ErrSFrame, "repeated blocks of no size")
	case offset > fres || uint64(f.rows)*uint64(f.wide+1) > fres-offset:
		return t.errorf(f.Offset+8, ErrTruncated, "%d FREs at %#x of %#x", f.rows, offset, fres)
	}
	if !f.Repeats {
		f.Block = 0
	}
	f.pos = t.fres + int(offset)
	return nil
}

// setInfo takes the contents of the info bytes of an FDE.
func (f *SFrameFDE) setInfo(bits, kind byte) {
	f.Repeats, f.BKey, f.wide = bits&fdeRepeats != 0, bits&fdeBKey != 0, 1<<(bits&fdeSize)
	f.SignalFrame, f.isFlexible = bits&fdeSignal != 0, kind == fdeFlexible
}

// isInfo reports whether the version and ABI of an FDE define its info bytes.
func (f *SFrameFDE) isInfo(bits, kind byte) bool {
	defined := byte(fdeSize | fdeRepeats | fdeBKey)
	if f.table.version.attribute {
		defined |= fdeSignal
	}
	return bits&^defined == 0 && (!f.BKey || f.table.abi.signed) && bits&fdeSize <= 2 && kind <= fdeFlexible
}
