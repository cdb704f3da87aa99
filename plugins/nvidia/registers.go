// SPDX-License-Identifier: Apache-2.0

package nvidia

import "github.com/unwindd/unwindd/sdk"

// class is the upper byte of a DWARF register number; the number within the class is in
// the lower three.
type class uint32

// The classes that compilers write (enum CUDBGRegClass of cudadebugger.h). Numbers of
// classPseudo are this project's: compilers leave the class to invalid registers.
const (
	classPseudo           class = 0
	classConditionCode    class = 1
	classPredicate        class = 2
	classAddress          class = 3
	classHalf             class = 4 // twice the register's number, plus 1 for the high half
	classFull             class = 5
	classLocal            class = 6 // an address of local memory
	classLocalByRegister  class = 7 // one relative to a register
	classUniformPredicate class = 9
	classUniformHalf      class = 10
	classUniformFull      class = 11
	classTemporary        class = 12
)

// classBits is how far the class is above the number in a class.
const classBits = 24

// number returns the DWARF number of a register of a class.
func (c class) number(n uint32) uint32 { return uint32(c)<<classBits | n }

// split returns the class and the number in it of a DWARF register number.
func split(number uint32) (class, uint32) {
	return class(number >> classBits), number & (1<<classBits - 1)
}

// DWARF register numbers.
const (
	errorPC   = uint32(classPseudo)<<classBits | 1    // where an exception was found
	active    = uint32(classPseudo)<<classBits | 2    // the lanes of the thread
	barrier0  = uint32(classPseudo)<<classBits | 0x10 // to B15: lanes that take part in a barrier
	predicate = uint32(classPredicate) << classBits   // to P6, and PT, which is true
	r0        = uint32(classFull) << classBits        // to R254
	r1        = r0 + 1                                // the stack pointer
	rz        = r0 + 255                              // zero
	pc        = r0 + 256                              // the return-address column, of 64 bits
	up0       = uint32(classUniformPredicate) << classBits
	ur0       = uint32(classUniformFull) << classBits
	urz       = ur0 + 255
	rpc0      = uint32(classTemporary) << classBits // the halves of the return PC
	cc        = uint32(classConditionCode) << classBits
)

// noColumn is the return-address column of functions that nothing calls.
const noColumn = uint64(sdk.NoRegister)

// registerRanges lists every register in the order of their numbers.
//
// Registers are a lane's, and not as wide as the warp: a thread has the state of one lane.
// Predicates have 32 bits, as in cores. The PC has the number that compilers give the
// return address of a function.
func registerRanges() []sdk.RegisterRange {
	files := [...]struct {
		first, count uint32
		name         string
		class        sdk.RegisterClass
		bits         uint32
		lanes        uint32
	}{
		{errorPC, 1, "errorPC", sdk.Control, 64, 0},
		{active, 1, "ACTIVE", sdk.Mask, 32, warpLanes},
		{barrier0, 16, "B%d", sdk.Control, 32, 0},
		{cc, 1, "CC", sdk.Flags, 32, 0},
		{predicate, 7, "P%d", sdk.Flags, 32, 0},
		{predicate + 7, 1, "PT", sdk.Flags, 32, 0},
		{r0, 255, "R%d", sdk.General, 32, 0},
		{rz, 1, "RZ", sdk.General, 32, 0},
		{pc, 1, "PC", sdk.ProgramCounter, 64, 0},
		{up0, 7, "UP%d", sdk.Flags, 32, 0},
		{up0 + 7, 1, "UPT", sdk.Flags, 32, 0},
		{ur0, 255, "UR%d", sdk.General, 32, 0},
		{urz, 1, "URZ", sdk.General, 32, 0},
		{rpc0, 1, "RPC.LO", sdk.Control, 32, 0},
		{rpc0 + 1, 1, "RPC.HI", sdk.Control, 32, 0},
	}
	ranges := make([]sdk.RegisterRange, len(files))
	for i, f := range files {
		ranges[i] = sdk.RegisterRange{
			First: f.first, Count: f.count, Names: []string{f.name}, Class: f.class, Bits: f.bits, Lanes: f.lanes,
		}
	}
	return ranges
}

// isPreserved reports whether functions leave R<n> as it was for their callers. Above
// R60 every other group of four is preserved.
func isPreserved(n uint32) bool {
	switch {
	case n < 16:
		return n == 2
	case n < 32:
		return true
	case n == 63 || n >= 255:
		return false
	}
	return n&4 != 0
}
