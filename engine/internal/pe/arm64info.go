// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// ARM64Info describes how a range of code of arm64 sets up its frame and takes it down ("ARM64 exception
// handling", .xdata records, Packed unwind data).
type ARM64Info struct {
	// Address is the virtual address of the .xdata record, or of the entry of .pdata that has all, packed.
	Address uint64
	Packed  *ARM64Packed // nil where there is a record
	// IsFragment: the range is a part of a function, and has no prologue.
	IsFragment bool
	// Prolog are the codes in the order in which they are undone. Behind an end_c comes the prologue of
	// the function that a fragment is of.
	Prolog  []ARM64Code
	Epilogs []ARM64Epilog // by address
	Handler uint64        // the language's handler of exceptions; 0 where there is none
}

// ARM64Packed are the members of an entry of .pdata without a record.
type ARM64Packed struct {
	RegF, RegI uint8  // how many floating-point registers, less one, and integer registers are saved
	H          bool   // x0 to x7 are stored too
	CR         uint8  // how x29 and lr are saved: not, lr alone, both with a signed lr, both
	FrameSize  uint32 // bytes
}

// An ARM64Epilog is an epilogue: a range of instructions, and the codes that they undo.
type ARM64Epilog struct {
	Start uint64 // virtual address
	Codes []ARM64Code
}

// isPacked is in the second word of an entry of .pdata what it is: the RVA of a record, or packed data
// of a function or of a fragment.
const (
	arm64Record         = 0
	arm64PackedFunction = 1
	arm64PackedFragment = 2
	arm64FlagMask       = 3

	arm64EntrySize   = 8
	arm64Instruction = 4 // bytes
)

// arm64Table makes a table of functions of one for arm64, whose entries have a start and a word.
func (f *File) arm64Table(b []byte) functionTable {
	t := make(functionTable, 0, len(b)/arm64EntrySize*runtimeFunctionSize)
	for ; len(b) >= arm64EntrySize; b = b[arm64EntrySize:] {
		e := runtimeFunction{begin: u32(b, 0), unwind: u32(b, 4)}
		length, err := f.arm64Length(e.unwind)
		if err != nil {
			f.problem(err)
			continue
		}
		e.end = uint32(min(uint64(e.begin)+uint64(length), 1<<32-1))
		t = e.append(t)
	}
	return t
}

// arm64Length returns how many bytes of code an entry has.
func (f *File) arm64Length(word uint32) (uint32, error) {
	switch word & arm64FlagMask {
	case arm64PackedFunction, arm64PackedFragment:
		return word >> 2 & 0x7ff * arm64Instruction, nil
	case arm64Record:
		if word == 0 {
			return 0, nil // the linker dropped the function
		}
		header, err := f.at(word, 4, ".xdata record")
		if err != nil {
			return 0, err
		}
		return u32(header, 0) & 0x3ffff * arm64Instruction, nil
	}
	return 0, fmt.Errorf("%s: entry of .pdata with word %#x: %w", f.name, word, errReservedCode)
}

// ARM64Info reads the unwind information of a function of a file for arm64.
func (f *File) ARM64Info(fn Function) (*ARM64Info, error) {
	if f.header.machine != MachineARM64 {
		return nil, fmt.Errorf("%s: machine %#x: %w", f.name, f.header.machine, ErrUnwindMachine)
	}
	switch flag := fn.entry.unwind & arm64FlagMask; flag {
	case arm64PackedFunction, arm64PackedFragment:
		return f.arm64Packed(fn, flag == arm64PackedFragment)
	}
	return f.arm64Record(fn)
}

// IsSignalFrame reports whether the code that the range returns to was interrupted, and called nothing.
func (u *ARM64Info) IsSignalFrame() bool {
	return slices.ContainsFunc(u.Prolog, func(c ARM64Code) bool { return arm64Operations[c.Operation].kind == pushes })
}

// End returns the end of an epilogue.
func (e *ARM64Epilog) End() uint64 { return e.Start + arm64EpilogSize(e.Codes) }

// Instructions returns how many instructions of a range codes have, up to the end of their scope.
func Instructions(codes []ARM64Code) int {
	n, _ := arm64Instructions(codes)
	return n
}

// arm64EntryAddress returns the virtual address of an entry of .pdata; 0 where it is not found.
func (f *File) arm64EntryAddress(e runtimeFunction) uint64 {
	rva, size := f.header.directory(directoryExcept)
	b := f.source.upTo(rva, uint64(min(size, maxTable)))
	count := len(b) / arm64EntrySize
	i := sort.Search(count, func(i int) bool { return u32(b, i*arm64EntrySize) >= e.begin })
	if i == count || u32(b, i*arm64EntrySize) != e.begin {
		return 0
	}
	return f.address(rva + uint32(i*arm64EntrySize))
}

// arm64Header is the header of an .xdata record.
type arm64Header struct {
	isSingle, hasHandler bool
	epilogs, words       uint32
	size                 uint32
}

func (f *File) arm64Header(rva uint32) (h arm64Header, err error) {
	b, err := f.at(rva, 4, ".xdata record")
	if err != nil {
		return h, err
	}
	word := u32(b, 0)
	if version := word >> 18 & 3; version != 0 {
		return h, f.errorf(rva, ".xdata record of version %d, expected 0", version)
	}
	h = arm64Header{hasHandler: word>>20&1 != 0, isSingle: word>>21&1 != 0, epilogs: word >> 22 & 31, words: word >> 27, size: 4}
	if h.epilogs == 0 && h.words == 0 {
		if b, err = f.at(rva, 8, ".xdata record with a second word"); err != nil {
			return h, err
		}
		h.epilogs, h.words, h.size = u32(b, 4)&0xffff, u32(b, 4)>>16&0xff, 8
	}
	return h, nil
}

// arm64Record reads an .xdata record.
func (f *File) arm64Record(fn Function) (*ARM64Info, error) {
	rva := fn.entry.unwind
	h, err := f.arm64Header(rva)
	if err != nil {
		return nil, err
	}
	scopes := uint64(h.epilogs) * 4
	if h.isSingle {
		scopes = 0
	}
	size := uint64(h.size) + scopes + 4*uint64(h.words)
	if h.hasHandler {
		size += 4
	}
	b, err := f.at(rva, size, ".xdata record")
	if err != nil {
		return nil, err
	}
	u := &ARM64Info{Address: f.address(rva)}
	codes := b[uint64(h.size)+scopes:][:4*h.words]
	if u.Prolog, err = arm64Codes(codes, 0); err != nil {
		return nil, f.errorf(rva, "unwind codes of the prologue: %w", err)
	}
	n, isWhole := arm64Instructions(u.Prolog)
	u.IsFragment = n == 0 && !isWhole
	if h.hasHandler {
		u.Handler = f.address(u32(b, len(b)-4))
	}
	if h.isSingle {
		err = u.addLast(fn, codes, int(h.epilogs))
	} else {
		err = u.addScopes(fn, b[h.size:][:scopes], codes)
	}
	if err != nil {
		return nil, f.errorf(rva, "%w", err)
	}
	return u, nil
}

// addLast adds the epilogue at the end of the function, whose codes begin at an index.
func (u *ARM64Info) addLast(fn Function, codes []byte, index int) error {
	list, err := arm64Codes(codes, index)
	if err != nil {
		return fmt.Errorf("unwind codes of the epilogue at index %d: %w", index, err)
	}
	if size := arm64EpilogSize(list); size <= fn.End-fn.Start {
		u.Epilogs = []ARM64Epilog{{fn.End - size, list}}
	}
	return nil
}

// addScopes adds the epilogues of scopes. Those that lie outside the function are left out.
func (u *ARM64Info) addScopes(fn Function, scopes, codes []byte) error {
	lists := map[int][]ARM64Code{} // by index: most epilogues are alike
	for ; len(scopes) > 0; scopes = scopes[4:] {
		word := u32(scopes, 0)
		index := int(word >> 22)
		list, ok := lists[index]
		if !ok {
			var err error
			if list, err = arm64Codes(codes, index); err != nil {
				return fmt.Errorf("unwind codes of the epilogue at index %d: %w", index, err)
			}
			lists[index] = list
		}
		if start := fn.Start + uint64(word&0x3ffff)*arm64Instruction; start < fn.End {
			u.Epilogs = append(u.Epilogs, ARM64Epilog{start, list})
		}
	}
	slices.SortStableFunc(u.Epilogs, func(a, b ARM64Epilog) int { return cmp.Compare(a.Start, b.Start) })
	return nil
}

// arm64EpilogSize returns the bytes of an epilogue: end is the instruction that leaves the function.
func arm64EpilogSize(list []ARM64Code) uint64 {
	n, isWhole := arm64Instructions(list)
	if isWhole {
		n++
	}
	return uint64(n) * arm64Instruction
}
