// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/fact"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/signature"
	"github.com/unwindd/unwindd/engine/source"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/engine/walk"
)

// A Target is an opened target: its threads, and its modules with their rows and
// symbols. It may be used concurrently.
type Target struct {
	*walk.Process
	engine *Engine
	input  input // what it came in
	// registered are the problems of lists of code that the program made.
	registered []string
	perfMap    *perfdata.PerfMap // of the code that the process made; nil: none

	maps    mapsModules // that LoadMaps made
	sources func() *source.Files
}

// Close closes the target and the files it mapped. The error is that of closing the file
// or process that the target is in.
func (t *Target) Close() error {
	t.engine.mu.Lock()
	delete(t.engine.targets, t)
	t.engine.mu.Unlock()
	t.Process.Close()
	t.maps.close()
	if t.perfMap != nil {
		_ = t.perfMap.Close() // which was only read
	}
	return t.State().Close()
}

// HasLocals says whether the variables of frames are read.
func (t *Target) HasLocals() bool { return t.engine.options.Locals != nil }

// HasSource says whether lines of source are asked for.
func (t *Target) HasSource() bool { return t.engine.options.SourceLines > 0 }

// Source gives the lines around that of a function at a frame, one of its Symbols: about
// Options.SourceLines of them. The error says why there are none.
func (t *Target) Source(f *Frame, s *symbol.Frame) (source.Lines, error) {
	p := source.PlaceOf(s)
	if f.Module != nil {
		p.BuildID, p.Object = f.Module.BuildID, f.Module.Path
		if o := t.CodeObject(f.Module); o != nil {
			p.Modified = o.ModTime()
			if len(p.BuildID) == 0 {
				p.BuildID = o.BuildID()
			}
		}
	}
	return t.sources().Lines(p, t.engine.options.SourceLines)
}

// Fact is one line that says what happened to the process; see fact.Of. What cannot be
// read is left out of it.
func (t *Target) Fact(ctx context.Context) string {
	text, _ := t.Happened(ctx)
	return text
}

// Happened is Fact, with the crash that a handler caught before the process ended.
func (t *Target) Happened(ctx context.Context) (text string, first *fact.FirstCrash) {
	err := object.Guard(func() error {
		text, first = fact.Of(ctx, t.Process)
		return nil
	})
	if err != nil {
		return "", nil
	}
	return text, first
}

// Crashed is the thread that Fact is about; nil where none crashed.
func (t *Target) Crashed() *target.Thread { return fact.Thread(t.Process) }

// Signature is what crashes are grouped by, of a walked stack with its inlined calls and
// at least DefaultMaxFrames frames, if it has so many; text is what Fact says.
func (t *Target) Signature(s *Stack, text string) Signature {
	return t.SignatureBy(context.Background(), SignatureVersion, s, text)
}

// SignatureBy is Signature by the rules of a version, 1 to SignatureVersion.
func (t *Target) SignatureBy(ctx context.Context, version int, s *Stack, text string) Signature {
	crash := signature.Crash{Stack: s, IsOverflow: fact.IsStackOverflow(text) && s.Thread == t.Crashed()}
	_ = object.Guard(func() error {
		if first := fact.FindFirst(ctx, t.Process, s); first != nil {
			crash.First = first.Frame
		}
		return nil
	})
	return signature.Of(version, &crash)
}

// Analysis is what the instruction that failed accesses; see fact.Analyze. What cannot be
// read is left out.
func (t *Target) Analysis(ctx context.Context) (a fact.Analysis) {
	if err := object.Guard(func() error { a = fact.Analyze(ctx, t.Process); return nil }); err != nil {
		return fact.Analysis{}
	}
	return a
}

// CodeReader makes a reader of the code of frames, count instructions of each, at most
// walk.MaxCode.
func (t *Target) CodeReader(count int) *CodeReader {
	return t.NewCodeReader(count, t.engine.program)
}

// Problems are what went wrong with the target, and with the plugins and the disassembler
// that it uses, each a sentence.
func (t *Target) Problems() []string {
	problems := slices.Concat(t.input.problems, t.Process.Problems(), t.registered)
	problems = append(problems, object.UnusedModules(t.engine.options.Modules, func(is func(name string) bool) bool {
		return slices.ContainsFunc(t.Modules(), func(m *target.Module) bool { return is(m.Path) })
	})...)
	if t.engine.program != nil {
		problems = append(problems, t.engine.program.Problems()...)
	}
	return problems
}

// Symbolize returns the functions at addresses of the target, innermost first, one
// list for each address: of a return address the caller passes one inside the call.
// A list is empty where nothing is known. The lists are shared: nobody changes
// them.
func (t *Target) Symbolize(ctx context.Context, addresses []uint64) [][]symbol.Frame {
	return t.AppendSymbols(ctx, make([][]symbol.Frame, 0, len(addresses)), addresses)
}

// AppendSymbols is Symbolize into memory of the caller. For addresses that were
// asked for before it allocates nothing.
func (t *Target) AppendSymbols(ctx context.Context, dst [][]symbol.Frame, addresses []uint64) [][]symbol.Frame {
	isPhysical := t.engine.options.NoInlines
	for _, a := range addresses {
		var frames []symbol.Frame
		if s := t.Segment(a); s != nil {
			frames = s.Module.AllNames(ctx, s.ObjectAddress(a), isPhysical)
		}
		dst = append(dst, frames)
	}
	return dst
}

// InputProblems are what went wrong with what the target came in, as it was unpacked.
func (t *Target) InputProblems() []string { return t.input.problems }

// SetInputProblems says them of a target that was attached.
func (t *Target) SetInputProblems(problems []string) { t.input.problems = problems }
