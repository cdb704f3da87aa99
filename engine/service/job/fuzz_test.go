// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"errors"
	"io"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// FuzzEvaluate evaluates whatever somebody sends: it is refused, or its result can be
// written.
func FuzzEvaluate(f *testing.F) {
	f.Add("x86_64", "bregx rbp, -8; deref", "RBP=1008", "global:0x1000=2a00000000000000", "none:7000", "addr 0x400", "7", uint16(64), int64(-1))
	f.Add("amdgpu", "regx v3; LLVM_offset_uconst 20", "EXEC=0x5", "private_wave:0x20c=78563412", "5:10", "lit1", "0x10", uint16(8), int64(3))
	f.Add("amdgpu", "regx SGPR3; LLVM_extend 32, 1000; LLVM_extend 32, 1000", "1=", "=", ":", "", "-1", uint16(0), int64(1<<40))
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}, NoSymbols: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close() })
	f.Fuzz(func(t *testing.T, arch, expr, register, memory, cfa, object, stack string, read uint16, lane int64) {
		j := job.NewEvaluate()
		j.Arch, j.Expr, j.Reg, j.Mem, j.Cfa, j.Object = arch, &expr, []string{register}, []string{memory}, cfa, object
		j.Read, j.Trace, j.Stack = uint32(read), true, []string{stack}
		if lane != -1 {
			number := uint32(lane) //nolint:gosec // any number does
			j.Lane = &number
		}
		if err := j.Check(false); err != nil {
			if !errors.Is(err, job.ErrUsage) {
				t.Errorf("%v: expected an error of usage", err)
			}
			return
		}
		x, err := j.Expression(e)
		if err != nil {
			return
		}
		found, err := x.Evaluate(t.Context(), nil)
		if err != nil {
			if !errors.Is(err, job.ErrUsage) {
				t.Errorf("%v: expected an error of usage", err)
			}
			return
		}
		if err := errors.Join(found.WriteJSON(io.Discard), found.WriteText(io.Discard, report.TextOptions{})); err != nil {
			t.Error(err)
		}
	})
}
