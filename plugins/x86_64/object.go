// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// functionKinds has the functions at which a stack differs from its call frame
// information, by symbol. The kernel and dynamic linkers begin at functions that nothing
// calls.
//
// Of Go, runtime.goexit and rt0_go are marked TOPFRAME by its assembler
// (src/runtime/asm_amd64.s). It marks runtime.mstart too, but that has a caller:
// runtime.clone, in whose child the new stack begins. The others call on another stack
// than they were called on, and the word above their frame is whatever an earlier call
// left there; the code of StackSwitchFunctions shows how to get back (stackswitch.go).
// Go's signal handlers return to runtime.sigreturn__sigaction; its call frame information
// describes a function that was called. A handler calls the injected ones by pushing the
// interrupted PC, as the runtime's own traceback knows (unwinder.next in
// src/runtime/traceback.go).
//
// The last ones load or align the stack pointer, mostly to call C or the vDSO, which Go's
// call frame information does not know: its CFA is wrong from there on. Their code shows
// that the frame pointer is right, or that nothing is. syscall.rawVforkSyscall keeps its
// return address in a register, from a child that has the same stack.
var functionKinds = codeflow.FunctionKinds{
	"_start":         sdk.OutermostFunction,
	"_dl_start_user": sdk.OutermostFunction,
	// glibc's makecontext has functions return there. Its row has a return address.
	"__start_context": sdk.OutermostFunction,

	"_rt0_amd64":       sdk.OutermostFunction,
	"_rt0_amd64_linux": sdk.OutermostFunction,
	"runtime.goexit":   sdk.OutermostFunction,
	"runtime.rt0_go":   sdk.OutermostFunction,

	"runtime.clone":     sdk.StackStartFunction,
	"runtime.morestack": sdk.StackStartFunction,

	"runtime.asmcgocall":  sdk.StackSwitchFunction,
	"runtime.cgocallback": sdk.StackSwitchFunction,
	"runtime.mcall":       sdk.StackSwitchFunction,
	"runtime.systemstack": sdk.StackSwitchFunction,

	"runtime.asyncPreempt": sdk.InjectedFunction,
	"runtime.debugCallV2":  sdk.InjectedFunction,
	"runtime.sigpanic":     sdk.InjectedFunction,
	"runtime.sigpanic0":    sdk.InjectedFunction,

	"runtime.sigreturn__sigaction": sdk.TrampolineFunction,

	"gogo":                        sdk.TrampolineFunction,
	"runtime.asmcgocall_no_g":     sdk.TrampolineFunction,
	"runtime.callCgoMmap":         sdk.TrampolineFunction,
	"runtime.callCgoMunmap":       sdk.TrampolineFunction,
	"runtime.callCgoSigaction":    sdk.TrampolineFunction,
	"runtime.nanotime1":           sdk.TrampolineFunction,
	"runtime.sigfwd":              sdk.TrampolineFunction,
	"runtime.switchToCrashStack0": sdk.TrampolineFunction,
	"runtime.vgetrandom1":         sdk.TrampolineFunction,
	"runtime.walltime":            sdk.TrampolineFunction,
	"syscall.rawVforkSyscall":     sdk.TrampolineFunction,
	"time.now":                    sdk.TrampolineFunction,
}

// OpenObject finds the functions of a code object that differ from their call frame
// information, and whether it is Go's: Go's functions preserve no register for their
// callers (Go internal ABI, "Architecture specifics, amd64").
func (architecture) OpenObject(_ context.Context, _ sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	answer := &sdk.OpenObjectAnswer{}
	if req.Machine != machine {
		return answer, nil
	}
	answer.Functions = functionKinds.Functions(req)
	if codeflow.IsGo(req.Sections) {
		answer.DefaultRules = defaultRules(false)
	} else {
		answer.Functions = slices.DeleteFunc(answer.Functions, func(f sdk.Function) bool { return f.Name == "gogo" })
	}
	return answer, nil
}
