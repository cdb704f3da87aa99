// SPDX-License-Identifier: Apache-2.0

package dwarf

import "github.com/unwindd/unwindd/internal/dw"

// secondNumbers are the numbers that LLVM 22 gives to attributes of the heterogeneous
// extension, because it uses the extension's own numbers for other attributes. An entry
// that has an attribute under its second number is read as if it had the first. LLVM's
// attributes 0x3e08 to 0x3e0e are in entries of other tags than the extension's.
var secondNumbers = map[dw.Attr]dw.Attr{
	0x3e0f: dw.AttrLLVMMemorySpace,
	0x3e11: dw.AttrLLVMLanes,
	0x3e12: dw.AttrLLVMLanePC,
	0x3e13: dw.AttrLLVMVectorSize,
}

// leastSecondNumber is the least of secondNumbers.
const leastSecondNumber = 0x3e0f

// Unit types (DWARF 5, 7.5.1, table 7.2).
const (
	unitCompile      = 0x01
	unitType         = 0x02
	unitSkeleton     = 0x04
	unitSplitCompile = 0x05
	unitSplitType    = 0x06
)
