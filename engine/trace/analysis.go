// SPDX-License-Identifier: Apache-2.0

package trace

// Analysis lists the accesses of the failed instruction, and the addresses that may have been
// meant, as in rust-minidump's minidump-processor (op_analysis.rs, process_state.rs).
type Analysis struct {
	// IsDecoded is true where the architecture decoded the instruction's accesses.
	IsDecoded bool
	Accesses  []MemoryAccess
	// BitFlips are addresses that differ from the failed one in one bit.
	BitFlips []BitFlip
}

// MemoryAccess is memory that the instruction reads or writes.
type MemoryAccess struct {
	Address         uint64
	Size            uint32 // 0: not known
	IsRead, IsWrite bool
	// IsGuardPage is true for memory without rights, of at most 64 KiB, next to memory with
	// some.
	IsGuardPage bool
}

// BitFlip is an address that may have been meant: a guess. Confidence is from 0 to 1.
type BitFlip struct {
	Address         uint64
	WasNonCanonical bool
	IsNull          bool
	WasLow          bool // the failed address is low, and Address is null
	NearbyRegisters int  // how many registers point near Address
	PoisonRegisters bool // a register has a pattern of freed memory
	Confidence      float64
}

// CaughtCrash is the crash that a signal handler caught, with its place in the stack. The kernel
// left on the handler's stack why it called the handler.
type CaughtCrash struct {
	FirstCrash
	// Frame is the index of the interrupted frame among the physical ones of the stack, and
	// Inside are the frames further in: the handler's. The index is 0 where the stack does not
	// show it.
	Frame  int
	Inside []Frame
}
