// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/plugins/visa/stream"
)

// function is a kernel or a stack-call function, with the known facts about
// its frame. All offsets are in bytes from its first instruction.
type function struct {
	name      string
	isUnnamed bool // its name was invented for messages
	isKernel  bool
	start     uint64 // address of its first instruction
	size      uint64 // bytes

	abi    *abi   // nil: the function has no frame
	unit   uint64 // bytes that stack and frame pointers count; 0: unknown
	isTorn bool   // sources differ about unit
	grf    uint64 // bytes of a general register; 0: unknown

	// The frame is in use from set on; the instruction that takes it down is at
	// down or behind it, and ends at restored (0: unknown). A kernel's is never
	// taken down.
	set, down, restored uint64
	// The frame's descriptor is saved at this byte of it.
	descriptor uint64

	maskStored uint64 // where the channel-enable mask has been stored; 0: it is not
	maskAt     uint64 // byte of the frame where it is

	calleeSaves, callerSaves []saves      // sorted by their offset
	subroutines              []subroutine // in order of their code
	// There are subroutines whose code is not known: it may be anywhere that is not
	// another one's.
	hasUnfound bool
}

// saves are the registers that are saved from an offset on until the next saves.
type saves struct {
	start     uint64
	registers []saved // sorted
}

// saved is a register with the byte of the frame where it is saved.
type saved struct {
	register uint32 // as DWARF numbers it
	offset   uint64
	isKnown  bool // at is known
}

// subroutine is a part of a function that is called without a frame.
type subroutine struct {
	name       string
	start, end uint64
	register   uint32 // with the return address, as DWARF numbers it
	offset     uint64 // byte of the register

	first, last uint32          // vISA instructions
	live        stream.Interval // of the return address, in vISA instructions
}

// end returns the address behind the function.
func (f *function) end() uint64 { return f.start + f.size }

// maxSaves bounds the registers that the saves of a function list: a save lists
// all registers that are saved then, so the rows of all saves have quadratic
// size.
const maxSaves = 1 << 16

// fromFrame takes the facts of a stream's frame. An impossible one is an error:
// then nothing is known of the frame.
func (f *function) fromFrame(frame *stream.Frame) error {
	if frame.BEFP == nil {
		switch {
		case frame.ReturnAddress != nil || frame.CallerBEFP != nil:
			return fmt.Errorf("the frame has the caller's frame pointer or the return address, but no frame pointer")
		case len(frame.CalleeSaves)+len(frame.CallerSaves) > 0:
			return fmt.Errorf("the frame has saves, but no frame pointer")
		}
		return nil
	}
	pointer, err := oneInterval(frame.BEFP, "the frame pointer")
	if err != nil {
		return err
	}
	if f.abi, err = abiOf(pointer.Location); err != nil {
		return err
	}
	f.set, f.down = uint64(pointer.Start), uint64(pointer.End)
	if !f.isKernel {
		if err := f.descriptorOf(frame); err != nil {
			f.abi = nil
			return err
		}
	}
	if f.set > f.down || f.down > f.size {
		f.abi = nil
		return fmt.Errorf("the frame pointer is live from %#x to %#x, expected to be within the function's %#x bytes", f.set, f.down, f.size)
	}
	if err := f.savesOf(frame); err != nil {
		f.abi, f.calleeSaves, f.callerSaves = nil, nil, nil
		return err
	}
	if ce := frame.CE; ce != nil && ce.StoreIP != 0 && ce.Offset != noMask && uint64(ce.StoreIP) >= f.set && uint64(ce.StoreIP) <= f.down {
		f.maskStored, f.maskAt = uint64(ce.StoreIP), uint64(ce.Offset)
	}
	return nil
}

// noMask is the offset of an absent channel-enable mask in a stream.
const noMask = 0xffff

// oneInterval returns the interval of something that is in one place. Compilers
// write one interval, or several with the same place, which are joined.
func oneInterval(list []stream.Interval, what string) (stream.Interval, error) {
	if len(list) == 0 {
		return stream.Interval{}, fmt.Errorf("%s is nowhere", what)
	}
	all := list[0]
	for _, i := range list {
		if i.Location != all.Location {
			return all, fmt.Errorf("%s is in several places", what)
		}
		all.Start, all.End = min(all.Start, i.Start), max(all.End, i.End)
	}
	return all, nil
}

// descriptorOf finds where the descriptor is saved, with the caller's frame
// pointer and the return address in it.
func (f *function) descriptorOf(frame *stream.Frame) error {
	caller, err := oneInterval(frame.CallerBEFP, "the caller's frame pointer")
	if err != nil {
		return err
	}
	back, err := oneInterval(frame.ReturnAddress, "the return address")
	if err != nil {
		return err
	}
	for _, i := range [...]struct {
		what  string
		where stream.Interval
	}{{"the caller's frame pointer", caller}, {"the return address", back}} {
		if l := i.where.Location; l.Storage != stream.Memory || l.IsAbsolute || l.Offset < 0 {
			return fmt.Errorf("%s is not saved in the frame", i.what)
		}
		f.set, f.down = max(f.set, uint64(i.where.Start)), min(f.down, uint64(i.where.End))
	}
	offset := int64(caller.Location.Offset) - int64(f.abi.fp)
	if offset < 0 || offset != int64(back.Location.Offset)-int64(f.abi.ip) {
		return fmt.Errorf("the caller's frame pointer is saved at byte %d and the return address at %d, expected both in one copy of r%d",
			caller.Location.Offset, back.Location.Offset, f.abi.registers-f.abi.reserved)
	}
	f.descriptor = uint64(offset)
	return nil
}

// savesOf takes the saves of a frame.
func (f *function) savesOf(frame *stream.Frame) error {
	total := 0
	for _, list := range [...]struct {
		what string
		from []stream.Save
		to   *[]saves
	}{{"callee", frame.CalleeSaves, &f.calleeSaves}, {"caller", frame.CallerSaves, &f.callerSaves}} {
		for i := range list.from {
			s := &list.from[i]
			if total += len(s.Registers) + 1; total > maxSaves {
				return fmt.Errorf("more than %d registers in the lists of saves", maxSaves)
			}
			if uint64(s.GenOffset) > f.size || i > 0 && s.GenOffset < list.from[i-1].GenOffset {
				return fmt.Errorf("%s saves: offset %#x, expected ascending ones within the function's %#x bytes", list.what, s.GenOffset, f.size)
			}
			registers, err := f.registersOf(s)
			if err != nil {
				return fmt.Errorf("%s saves at offset %#x: %w", list.what, s.GenOffset, err)
			}
			*list.to = append(*list.to, saves{start: uint64(s.GenOffset), registers: registers})
		}
	}
	return nil
}

// registersOf returns the registers of a save.
func (f *function) registersOf(s *stream.Save) ([]saved, error) {
	var list []saved
	for i := range s.Registers {
		r := &s.Registers[i]
		if f.grf == 0 && (r.Bytes == grf32/8 || r.Bytes == grf64/8) {
			f.grf = uint64(r.Bytes)
		}
		if uint64(r.Bytes) != f.grf || uint64(r.Offset)%f.grf != 0 || uint64(r.Offset)/f.grf >= uint64(f.abi.registers) {
			return nil, fmt.Errorf("%d bytes at byte %d of the registers, expected one of %d of %d bytes", r.Bytes, r.Offset, f.abi.registers, f.grf)
		}
		v := saved{register: generalRegister(uint32(uint64(r.Offset) / f.grf))}
		if l := r.Location; l.Storage == stream.Memory && !l.IsAbsolute && l.Offset >= 0 {
			v.offset, v.isKnown = uint64(l.Offset), true
		}
		list = append(list, v)
	}
	slices.SortStableFunc(list, func(a, b saved) int { return cmp.Compare(a.register, b.register) })
	for i := 1; i < len(list); i++ {
		if list[i].register == list[i-1].register {
			return nil, fmt.Errorf("a register is saved twice")
		}
	}
	return list, nil
}

// readCode takes the facts of the function's code: how pointers count, and where
// the frame is taken down. size is the frame's size in bytes. A contradiction to
// earlier facts is an error, and makes the fact unknown.
func (f *function) readCode(code []byte, size uint64) error {
	if f.abi == nil || f.isKernel || f.set == f.down {
		return nil
	}
	facts := factsOf(code, f.abi, f.set, f.down)
	if f.grf == 0 {
		f.grf = facts.grf
	}
	if facts.restored != 0 && facts.restored <= f.size {
		f.restored = facts.restored
	}
	if facts.grow == 0 || size == 0 {
		return nil
	}
	var unit uint64
	for _, u := range [...]uint64{byteUnit, owordUnit} {
		if facts.grow*u == size {
			unit = u
		}
	}
	return f.countsBy(unit, "its code")
}

// The units of stack and frame pointers: bytes on DG2, PVC and later processors,
// OWORDs on earlier ones.
const (
	byteUnit  = 1
	owordUnit = 16
)

// countsBy records the unit that stack and frame pointers count, from one
// source; 0 is no unit. Where two sources differ, the unit is unknown from then
// on.
func (f *function) countsBy(unit uint64, who string) error {
	switch {
	case unit == 0 || unit == f.unit || f.isTorn:
	case f.unit == 0:
		f.unit = unit
	default:
		was := f.unit
		f.unit, f.isTorn = 0, true
		return fmt.Errorf("the frame pointer counts %d bytes by %s, elsewhere %d", unit, who, was)
	}
	return nil
}
