// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
)

// mode reads the code of x86-64. It is read only.
var mode *x86code.Mode

func init() { mode = x86code.NewMode(convention()) } // its tables have functions that use it

// convention is the calling convention of the psABI, on Linux.
func convention() x86code.Convention {
	c := x86code.Convention64()
	c.Stubs, c.Signals, c.Kinds, c.Special = stubs, trampolines, functionKinds, special
	c.Syscall, c.Exits, c.Clones = bytesSyscall, []int64{sysExit, sysExitGroup}, clones
	return c
}

// The system calls of Linux that end a thread and a process, and that make threads.
const (
	sysExit      = 60
	sysExitGroup = 231
	sysClone     = 56
	sysClone3    = 435
)

// clones are the system calls that make threads. clone is given the new stack in rsi; as
// fork it gets none, and the stack is a copy of the old one. The result of clone3 is 0.
var clones = []x86code.Clone{
	{Code: movEAXImm(sysClone) + bytesSyscall, IsParent: x86code.RegisterText(rsp, 0) + "; " + x86code.RegisterText(rsi, 0) + "; minus"},
	{Code: movEAXImm(sysClone3) + bytesSyscall, IsParent: x86code.RegisterText(rax, 0)},
}

// FrameRules finds the rows of functions by reading their code.
func (architecture) FrameRules(ctx context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return mode.FrameRules(ctx, req)
}

// ClassifyReturn finds for each PC the call that ends right before it, if any.
func (architecture) ClassifyReturn(_ context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return mode.ClassifyReturn(req)
}

// Disassemble writes instructions as GNU tools do (AT&T syntax).
func (architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	return mode.Disassemble(ctx, req)
}

// special finds the rows of the interpreter of Java, and of the functions by which Go
// changes stacks, and names code of Haskell.
func special(r *sdk.CodeRange, offset int) (rules sdk.FrameRules, ok bool) {
	if row, ok := interpreterRow(r, offset); ok {
		return sdk.FrameRules{Rows: []cfi.Row{row}}, true
	}
	if isUncalled(r, offset) {
		return sdk.FrameRules{Reason: "the code is not entered by calls: it goes on through a stack of its own", Uncalled: true}, true
	}
	if kind, _ := functionKinds.Kind(r.Name); kind == sdk.StackSwitchFunction && r.Bounded && len(r.Code) <= x86code.MaxCode {
		if row, ok := switchRow(r, offset); ok {
			return sdk.FrameRules{Rows: []cfi.Row{row}}, true
		}
	}
	return rules, false
}
