// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
)

// RuntimeCode knows the code that the language runtimes of a process made while it ran. It may
// be used concurrently.
type RuntimeCode interface {
	// HasCode reports whether a runtime made code.
	HasCode(ctx context.Context) bool
	// HasCodeIn reports whether a runtime made code in the segments of a module.
	HasCodeIn(ctx context.Context, m *code.Module) bool
	// Function returns the function at an address to look up, in the stack of a thread; nil
	// where no runtime knows one.
	Function(ctx context.Context, th *trace.Thread, address uint64) *RuntimeFunction
}

// RuntimeFunction is a function that a language runtime made. It does not change.
type RuntimeFunction struct {
	Machine    *code.Machine
	Start, End uint64
	Rows       code.GeneratedRows // none where the architecture finds them by the code
	Managed    *trace.Managed     // of its frames
	// Symbols are the calls that were inlined at the address of the look-up, innermost first,
	// and last the function.
	Symbols []trace.Symbol
}

// SetRuntimeCode sets the code that runtimes made. No walk may have begun.
func (p *Process) SetRuntimeCode(c RuntimeCode) { p.generated = c }

// mayBeGenerated reports whether a runtime may have made the code at an address of a module; nil: of
// no module.
func (p *Process) mayBeGenerated(ctx context.Context, m *code.Module) bool {
	return p.generated != nil && p.generated.HasCode(ctx) && (m == nil || m.Code.IsUnmapped() || p.generated.HasCodeIn(ctx, m))
}

// runtimeRows are the rows of code that language runtimes made.
type runtimeRows struct{}

func (runtimeRows) row(ctx context.Context, w *walker, f *frame, _ bool) (*code.Row, error) {
	generated := w.generatedAt(ctx, f)
	if generated == nil || !w.isCode(f.pc) {
		return nil, nil //nolint:nilnil // the next source is asked
	}
	return generated.Rows.At(w.callOf(f)), nil
}

// notGenerated stands for code that no runtime made.
var notGenerated = &RuntimeFunction{}

// generatedAt returns the function that a runtime made at the PC of a frame; nil where none did.
func (w *walker) generatedAt(ctx context.Context, f *frame) *RuntimeFunction {
	if f.generated == nil && !w.sampling && w.process.mayBeGenerated(ctx, f.module) {
		f.generated = w.process.generated.Function(ctx, w.thread.Thread, w.callOf(f))
		if f.generated == nil || f.generated.Machine != w.machine.Machine {
			f.generated = notGenerated
		}
	}
	if f.generated == notGenerated {
		return nil
	}
	return f.generated
}
