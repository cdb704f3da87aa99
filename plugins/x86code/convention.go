// SPDX-License-Identifier: Apache-2.0

package x86code

// Convention64 is the calling convention of the System V psABI of x86-64. The longest
// unchanged registers are searched first.
func Convention64() Convention {
	return Convention{
		Word:    8,
		Numbers: [GPRCount]uint32{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15},
		PC:      16, FSBase: 58, GSBase: 59, // figure 3.36
		Saved:   []uint32{3, 6, 12, 13, 14, 15}, // 3.2.1
		RedZone: 128,                            // 3.2.2
		// The CFA and the stack pointer of a call are on 16 bytes (3.2.2): the return address
		// and a word lie between.
		CallSpace: 16, Alignment: 16,
		Search: []uint8{BP, SP, BX, R12, R13, R14, R15, R10, R11, AX, CX, DX, SI, DI, R8, R9},
	}
}

// Convention32 is the calling convention of the System V psABI of i386. Functions of
// Windows have the same, except for the registers of arguments, and who removes arguments from
// the stack.
func Convention32() Convention {
	const none = ^uint32(0)
	return Convention{
		Word:    4,
		Numbers: [GPRCount]uint32{0, 1, 2, 3, 4, 5, 6, 7, none, none, none, none, none, none, none, none},
		PC:      8, FSBase: 93, GSBase: 94, // table 2.14
		Saved: []uint32{3, 5, 6, 7}, // 2.2.1
		// The psABI has the stack on 16 bytes at calls (2.2.2); Windows and older programs have
		// it on 4. A function that calls with nothing but its return address on the stack is
		// rare; code behind a call that does not return looks like one.
		CallSpace: 8, Alignment: 4,
		Search: []uint8{BP, SP, BX, SI, DI, CX, AX, DX},
	}
}
