// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"github.com/unwindd/unwindd/locexpr"
)

// FoundBy is the method by which a frame was found. A guess is never presented as a fact:
// ByFunctionBody, ByFramePointer and ByScan are guesses.
type FoundBy string

// The methods to find a frame.
const (
	ByContext       FoundBy = "context"        // the thread's own registers
	ByCFI           FoundBy = "cfi"            // .eh_frame, .debug_frame, .sframe or .gopclntab of the callee
	ByBreakpad      FoundBy = "breakpad"       // STACK CFI of the callee's Breakpad symbol file
	ByFrameData     FoundBy = "frame-data"     // frame data of a PDB file, or STACK WIN of a Breakpad symbol file, of the callee
	ByPE            FoundBy = "pe"             // .pdata and .xdata of the callee, a PE file
	ByCompactUnwind FoundBy = "compact-unwind" // __unwind_info of the callee, a Mach-O file
	ByFunctionBody  FoundBy = "function-body"  // the same, where the callee may be in its prologue or an epilogue
	ByObject        FoundBy = "object"         // rows that the architecture's plugin read from the callee's code object
	ByRules         FoundBy = "rules"          // rows that the plugin found by reading the callee's code
	ByFramePointer  FoundBy = "frame-pointer"  // the architecture's frame-pointer convention
	ByBackChain     FoundBy = "back-chain"     // the chain of frames that the architecture's ABI prescribes
	ByScan          FoundBy = "scan"           // a word of the stack that follows a call
	ByCallChain     FoundBy = "callchain"      // recorded by the kernel when the sample was taken
	ByLaunch        FoundBy = "launch"         // recorded when its thread launched another
	ByCallSite      FoundBy = "call-site"      // left by a tail call; its caller's call site and its own say so
	ByProfiler      FoundBy = "profiler"       // as the file of another profiler has it
	ByReport        FoundBy = "report"         // as a report of a crash has it
	ByRuntime       FoundBy = "runtime"        // the plugin of a language runtime has the frame, or the row of the callee's code
)

// IsGuess reports whether the method is a guess.
func (b FoundBy) IsGuess() bool {
	return b == ByFramePointer || b == ByScan || b == ByFunctionBody
}

// IsDescribed reports whether a compiler's description of the callee's code was used.
func (b FoundBy) IsDescribed() bool {
	return b == ByCFI || b == ByBreakpad || b == ByPE || b == ByFrameData || b == ByCompactUnwind
}

// GlobalVariable is a variable that is in no frame, with the module that has it.
type GlobalVariable struct {
	Variable
	Module *Module
}

// Frame is one activation of a function: a physical frame. Calls that were inlined into it are
// in Symbols. It is small, since stacks may be kept by the hundred thousand.
type Frame struct {
	// PC is the address of the next instruction. In every frame but the top
	// one and those next to a signal it is a return address (design of the
	// walk: lookups use the byte before it).
	PC uint64
	// CFA is the canonical frame address, in CFASpace. HasCFA is false where no
	// row was found for the frame.
	CFA      uint64
	CFASpace locexpr.AddressSpace
	// Module is the module of the code; nil where PC is in none.
	Module *Module
	// ModuleOffset is PC as an ELF virtual address of Module.
	ModuleOffset uint64
	FoundBy      FoundBy
	// Symbols are the functions at PC, innermost first; the last one is the function that the
	// frame belongs to, the others were inlined. Empty where nothing is known. All frames at
	// one PC of a code object share them: they must not be changed.
	Symbols []Symbol
	// Details are nil where there are none. Frames may share them.
	Details *FrameDetails
	HasCFA  bool
	// Exact is true where PC is an instruction that was about to execute, not a return address.
	Exact bool
	// Imprecise is true where the thread did not stop at PC, but at an instruction that it
	// executed before: PC, and everything found by it, is where it would go on.
	Imprecise bool
	// RestsOnGuess is true where a frame further in is a guess: this one is right only if that
	// one is.
	RestsOnGuess bool
	// PassedOver is how many words of the stack that may be return addresses lie nearer than
	// the one that a scan took for this frame: there may be frames between it and the
	// one further in.
	PassedOver uint16
	// SignalFrame is true for a signal trampoline.
	SignalFrame bool
	// BehindManaged is true for a native frame that frames further in stand for: by it the
	// runtime executes their functions.
	BehindManaged bool
}

// Managed describes a frame of a function that a language runtime executes.
type Managed struct {
	Runtime string      // "cpython"
	Kind    ManagedKind // "" where it is unknown
	// IsNative is true for a native frame, of code that the runtime made. Other managed frames
	// are no activations of the machine: their PC and CFA are the ones of the native
	// frame that they stand for, or before.
	IsNative bool
}

// ManagedKind is the way in which a function of a language is executed.
type ManagedKind string

// The kinds of managed frames.
const (
	ManagedInterpreted ManagedKind = "interpreted"
	ManagedCompiled    ManagedKind = "compiled" // at run time
	ManagedBuiltin     ManagedKind = "builtin"  // of the runtime itself
	ManagedEntry       ManagedKind = "entry"    // where native code entered the runtime
)

// Managed returns the language runtime in the frame's details; nil where there is none.
func (f *Frame) Managed() *Managed {
	if f.Details == nil {
		return nil
	}
	return f.Details.Managed
}

// IsNative reports whether the frame is an activation of the machine, with registers and a row.
func (f *Frame) IsNative() bool {
	m := f.Managed()
	return m == nil || m.IsNative
}

// FrameDetails are details of a frame that Options ask for, or that few frames have.
type FrameDetails struct {
	// Managed is the language runtime of the frame; nil for a frame of code that a compiler
	// made before the program ran.
	Managed *Managed
	// Registers are the frame's general registers that could be recovered, by
	// number (engine.Options.Registers).
	Registers []RegisterValue
	// Lanes are the states of a wave's lanes in the frame: the groups in the order of their
	// first lanes (engine.Options.Lanes). A CPU thread has none.
	Lanes []LaneGroup
	// Locals are the variables in scope, by the function in Symbols that has them
	// (engine.Options.Locals). A function that is not described has none.
	Locals [][]FrameVariable
	// TailCallers are the functions that called the frame's by tail calls, innermost first,
	// where call sites leave only one path from its caller to it. They have no physical frame
	// any more: PC is the address after the tail call, FoundBy is ByCallSite, and there is no
	// CFA.
	TailCallers []Frame
}

// FrameVariable is a variable of a frame with its value.
type FrameVariable struct {
	Variable
	// Lanes are the lanes of a wave that have this value; nil for a CPU thread, and where no
	// lane is known to be there.
	Lanes LaneSet
}

// Locals returns the variables in the frame's details.
func (f *Frame) Locals() [][]FrameVariable {
	if f.Details == nil {
		return nil
	}
	return f.Details.Locals
}

// Registers returns the registers in the frame's details.
func (f *Frame) Registers() []RegisterValue {
	if f.Details == nil {
		return nil
	}
	return f.Details.Registers
}

// TailCallers returns the frames in the frame's details.
func (f *Frame) TailCallers() []Frame {
	if f.Details == nil {
		return nil
	}
	return f.Details.TailCallers
}

// Lanes returns the groups of lanes in the frame's details.
func (f *Frame) Lanes() []LaneGroup {
	if f.Details == nil {
		return nil
	}
	return f.Details.Lanes
}

// RegisterValue is a general register of a frame.
type RegisterValue struct {
	Name   string
	Number uint64
	Bits   uint32
	Value  uint64
}
