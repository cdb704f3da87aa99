// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// functionKinds has the functions at which a stack differs from its call frame
// information, by symbol.
//
// Signal handlers of musl return to __restore_rt. Right before it another function ends,
// where a return address would be looked up as that of a call.
//
// Of Go (src/runtime/asm_arm64.s, sys_linux_arm64.s), runtime.goexit and rt0_go are
// called by nothing. The others call on another stack than they were called on, and in
// the child that runtime.clone makes the stack begins. A handler calls the injected ones.
// The last ones load or align the stack pointer, mostly to call C or the vDSO, which Go's
// call frame information does not know: its CFA is wrong from there on, and the code
// shows that x29 has it.
var functionKinds = codeflow.FunctionKinds{
	"_start":         sdk.OutermostFunction,
	"_dl_start_user": sdk.OutermostFunction,

	"_rt0_arm64_linux": sdk.OutermostFunction,
	"runtime.goexit":   sdk.OutermostFunction,
	"runtime.rt0_go":   sdk.OutermostFunction,

	"runtime.asmcgocall":  sdk.StackStartFunction,
	"runtime.cgocallback": sdk.StackStartFunction,
	"runtime.clone":       sdk.StackStartFunction,
	"runtime.mcall":       sdk.StackStartFunction,
	"runtime.morestack":   sdk.StackStartFunction,
	"runtime.systemstack": sdk.StackStartFunction,

	"__restore_rt": sdk.TrampolineFunction,

	"runtime.asyncPreempt": sdk.InjectedFunction,
	"runtime.debugCallV2":  sdk.InjectedFunction,
	"runtime.sigpanic":     sdk.InjectedFunction,
	"runtime.sigpanic0":    sdk.InjectedFunction,

	"runtime.asmcgocall_no_g":     sdk.TrampolineFunction,
	"runtime.nanotime1":           sdk.TrampolineFunction,
	"runtime.switchToCrashStack0": sdk.TrampolineFunction,
	"runtime.vgetrandom1":         sdk.TrampolineFunction,
	"runtime.walltime":            sdk.TrampolineFunction,
}

// OpenObject finds the functions of a code object that differ from their call frame
// information, and whether it is Go's: Go's functions preserve no register for their
// callers (Go internal ABI, "Architecture specifics, arm64").
func (architecture) OpenObject(_ context.Context, _ sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	answer := &sdk.OpenObjectAnswer{}
	if req.Machine != machine {
		return answer, nil
	}
	if codeflow.IsGo(req.Sections) {
		answer.DefaultRules = defaultRules(false)
	}
	answer.Functions = functionKinds.Functions(req)
	for i := range answer.Functions {
		if f := &answer.Functions[i]; f.Kind == sdk.InjectedFunction {
			f.DefaultRules = injectedRules()
		}
	}
	return answer, nil
}

// injectedRules are the default rules of a function that a handler of Go injects. Before
// the call it pushes x30, so that the interrupted function may be a leaf: the word lies
// at the CFA, and sp was 16 bytes above (sigctxt.preparePanic and pushCall in
// src/runtime/signal_arm64.go).
func injectedRules() []cfi.RegisterRule {
	rules := defaultRules(false)
	for i := range rules {
		switch uint32(rules[i].Column) { //nolint:gosec // one of our registers
		case x30:
			rules[i].Rule = cfi.Rule{Kind: cfi.Offset}
		case sp:
			rules[i].Rule = cfi.Rule{Kind: cfi.ValOffset, Offset: 16}
		}
	}
	return rules
}
