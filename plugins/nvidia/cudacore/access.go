// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// access is where an instruction accesses memory: at the sum of a register, or of a pair of
// them, and a number.
type access struct {
	verb     string
	register uint32
	offset   int64
	isWide   bool // a pair of registers
}

// accesses are the operations that access global, generic and local memory, by the low 12 bits
// of instructions of 16 bytes. What they are was found by nvdisasm (see TestAccesses).
var accesses = map[uint64]string{
	0x381: "loads from", 0x981: "loads from", // LDG
	0x386: "stores to", 0x986: "stores to", // STG
	0x380: "loads from", 0x980: "loads from", // LD
	0x385: "stores to", 0x985: "stores to", // ST
	0x38a: "updates", 0x98a: "updates", // ATOM
	0x3a8: "updates", 0x9a8: "updates", 0x3a9: "updates", 0x9a9: "updates", // ATOMG
	0x38e: "updates", 0x98e: "updates", // RED
	0x387: "stores to local", 0x983: "loads from local", // STL, LDL
}

const (
	instructionSize = 16
	firstWide       = 70 // the first processor with such instructions
	firstDescriptor = 80 // from which on a uniform register beside an address describes memory
	noRegister      = 255
)

// decodeAccess decodes an instruction of a processor by its halves. It is false where it
// accesses no such memory, or in a way that is not known.
func decodeAccess(low, high uint64, processor uint32) (access, bool) {
	operation := low & 0xfff
	verb, ok := accesses[operation]
	const isWide, hasUniform = 1 << 8, 3 << 26
	a := access{verb: verb, register: uint32(low >> 24 & 0xff), offset: int64(low) >> 40, isWide: high&isWide != 0} //nolint:gosec // its parts
	isUniform := high&hasUniform != 0
	switch {
	case !ok || processor < firstWide || a.register == noRegister:
		return access{}, false
	case isUniform && (processor < firstDescriptor || !a.isWide): // a register that is added
		return access{}, false
	case operation == exchange && int64(low) < 0: //nolint:gosec // its highest bit
		return access{}, false // it means something else than a sign
	case operation == loadGeneric && !isUniform:
		a.offset = int64(low) >> 32 //nolint:gosec // its upper half
	}
	return a, true
}

// Operations of accesses that have bits elsewhere.
const (
	loadGeneric = 0x980
	exchange    = 0x9a8
)

// codeRange is code or data of a module at the address where it is loaded.
type codeRange struct {
	start uint64
	part  // in the core
}

// addCode remembers the sections of code and of data of an image.
func (m *image) addCode(r *reader) {
	le := binary.LittleEndian
	const isLoaded, isExecutable, hasNoBytes = 2, 4, 8 // SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS
	for i := range len(m.sections) / headerSize {
		s := m.section(i)
		offset, size, start := le.Uint64(s[24:]), le.Uint64(s[32:]), le.Uint64(s[16:])
		flags := le.Uint64(s[8:])
		if start == 0 || le.Uint32(s[4:]) == hasNoBytes || offset > m.place.size || size > m.place.size-offset {
			continue
		}
		place := codeRange{start, part{m.place.offset + offset, size}}
		switch {
		case flags&isExecutable != 0:
			r.code = append(r.code, place)
		case flags&isLoaded != 0:
			r.data = append(r.data, place)
		}
	}
}

// maxAccesses bounds the exceptions whose instructions are read.
const maxAccesses = 256

// sayMore tells of the threads that have an exception which address their instruction
// accesses, as their registers are at the time of the dump, and which assertion failed.
func (r *reader) sayMore(ctx context.Context) error {
	slices.SortStableFunc(r.code, func(a, b codeRange) int { return cmp.Compare(a.start, b.start) })
	done := 0
	for i := range r.answer.Threads {
		t := &r.answer.Threads[i]
		say := moreOf[t.Stop.Reason]
		if !t.HasCrashed || say == nil {
			continue
		}
		if done++; done > maxAccesses {
			break
		}
		say(r, ctx, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// moreOf are the reasons of stops of which more can be told.
var moreOf = map[string]func(*reader, context.Context, *sdk.TargetThread){
	sdk.StopMemoryFault: (*reader).sayAccess, sdk.StopAddressError: (*reader).sayAccess, sdk.StopAssert: (*reader).sayAssert,
}

// sayAccess reads the instruction that a thread's exception was triggered at.
func (r *reader) sayAccess(ctx context.Context, t *sdk.TargetThread) {
	pc, ok := t.Registers.Uint64(r.machine.ErrorPC, sdk.LittleEndian)
	if !ok {
		if !t.Stop.IsPCExact {
			return
		}
		pc, _ = t.Registers.Uint64(r.machine.PC, sdk.LittleEndian)
	}
	a, ok := r.accessAt(ctx, pc, t.Processor)
	if !ok {
		return
	}
	address, name, ok := r.addressOf(ctx, t, a)
	if !ok || len(t.Stop.Details) >= maxDetails {
		return
	}
	t.Stop.Details = append(t.Stop.Details, fmt.Sprintf("it %s %s, now %#x", a.verb, name, address))
	if t.Stop.IsPCExact && a.isWide {
		t.Stop.Address, t.Stop.HasAddress = address, true
	}
}

// maxDetails bounds the details of a stop.
const maxDetails = 60

// accessAt decodes the instruction at an address.
func (r *reader) accessAt(ctx context.Context, pc uint64, processor string) (a access, ok bool) {
	i, found := slices.BinarySearchFunc(r.code, pc, func(c codeRange, pc uint64) int { return cmp.Compare(c.start, pc) })
	if !found {
		i--
	}
	if i < 0 || pc-r.code[i].start >= r.code[i].size || r.code[i].size-(pc-r.code[i].start) < instructionSize || pc%instructionSize != 0 {
		return access{}, false
	}
	var b [instructionSize]byte
	if r.file.read(ctx, r.code[i].offset+pc-r.code[i].start, b[:]) != nil {
		return access{}, false
	}
	var number uint32
	if _, err := fmt.Sscanf(processor, "sm_%d", &number); err != nil {
		return access{}, false
	}
	return decodeAccess(binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]), number)
}

// addressOf returns the address of an access by the registers of a thread, and how that is
// written.
func (r *reader) addressOf(ctx context.Context, t *sdk.TargetThread, a access) (address uint64, name string, ok bool) {
	words, name := uint32(1), fmt.Sprintf("R%d", a.register)
	if a.isWide {
		words, name = 2, fmt.Sprintf("R%d:R%d", a.register+1, a.register)
	}
	for _, s := range t.Saved {
		if s.First != r.machine.General.First || a.register+words > s.Count {
			continue
		}
		var b [8]byte
		if r.file.read(ctx, s.Address+uint64(a.register)*4, b[:words*4]) != nil {
			return 0, "", false
		}
		address = binary.LittleEndian.Uint64(b[:]) + uint64(a.offset) //nolint:gosec // modular
		if !a.isWide {
			address &= 1<<32 - 1
		}
		if a.offset != 0 {
			name += fmt.Sprintf("%+#x", a.offset)
		}
		return address, name, true
	}
	return 0, "", false
}
