// SPDX-License-Identifier: Apache-2.0

package symbol

// FrameData describes the frames of 32-bit x86 code from Start to End: a record of frame data or
// FPO of a PDB file, or a STACK WIN record of Breakpad's. Sizes are in bytes.
type FrameData struct {
	IsFPO                                        bool   // of the older kind, without a program
	Start, End                                   uint64 // addresses as in Source
	Prologue, Epilogue                           uint64
	Parameters, SavedRegisters, Locals, MaxStack uint64
	// Program computes the caller's registers; "" where the record has none.
	Program string
	// AllocatesBasePointer is set where there is no program and the function uses ebp as a
	// general register.
	AllocatesBasePointer bool
}
