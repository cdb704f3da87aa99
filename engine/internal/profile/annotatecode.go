// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/selection"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// readCode disassembles a function: the blocks of code that its frames are in.
func (a *annotator) readCode(ctx context.Context, g *annotated) {
	if g.module == nil || a.recording.process == nil {
		return
	}
	var known []codeRange
	for _, f := range g.frames {
		if f.depth != len(a.out.Frames[f.frame].Symbols)-1 || f.kernel >= 0 {
			continue // the function that it is inlined in
		}
		address := a.address(f.frame)
		if slices.ContainsFunc(known, func(r codeRange) bool { return address-r.start < r.end-r.start }) {
			continue
		}
		r, problem := g.bounds(address)
		if problem != "" {
			g.problem("%s", problem)
			continue
		}
		known = append(known, r)
		a.readBlock(ctx, g, r, a.lanes(f.frame))
	}
	g.sortCode()
}

// codeRange is a range of addresses in a code object.
type codeRange struct{ start, end uint64 }

// bounds returns the bounds of the block of the function's code around an address.
func (g *annotated) bounds(address uint64) (r codeRange, problem string) {
	b := g.module.Code.BoundsAt(address)
	switch {
	case !b.IsKnown || address-b.Start >= b.End-b.Start:
		return r, fmt.Sprintf("where its code at %#x begins and ends is not known", g.module.Code.Offset(address))
	case b.End-b.Start > maxAnnotatedCode:
		return r, fmt.Sprintf("its code has %d KiB, expected at most %d", (b.End-b.Start)>>10, maxAnnotatedCode>>10)
	}
	return codeRange{b.Start, b.End}, ""
}

// lanes returns how many lanes the waves have that execute a frame; 0: not known.
func (a *annotator) lanes(frame int) uint32 {
	if k := a.out.Frames[frame].Dispatched; k >= 0 && int(k) < len(a.out.Kernels) {
		return a.out.Kernels[k].Lanes
	}
	return 0
}

// readBlock takes the instructions of a block that belong to the function: call frame
// information may cover several functions at once.
func (a *annotator) readBlock(ctx context.Context, g *annotated, r codeRange, lanes uint32) {
	lines, isNamed, err := a.recording.process.ModuleCode(ctx, g.module, r.start, r.end, lanes, a.recording.maker.Disassembler)
	switch {
	case errors.Is(err, sdk.ErrNotImplemented):
		g.problem("architecture %s shows no code", g.module.Arch)
		return
	case err != nil:
		g.problem("no code: %v", err)
		return
	}
	end := r.start
	for i := range lines {
		l := &lines[i]
		end = l.Address + uint64(len(l.Bytes))
		symbols := g.module.Names(l.Address, a.recording.maker.Shared.Options().NoInlines)
		if len(symbols) == 0 || selection.NameOf(&symbols[len(symbols)-1]) != g.name {
			continue
		}
		if len(g.Code) == maxAnnotatedInstructions {
			g.problem("it has more than %d instructions: the others are not shown", maxAnnotatedInstructions)
			return
		}
		g.takeLine(l, symbols)
	}
	if !isNamed {
		a.takeTexts(g)
	}
	if end < r.end {
		g.problem("code at %#x is no instruction: what follows is not shown", g.module.Code.Offset(end))
	}
}

// takeTexts takes the texts of instructions from a file of samples, where the architecture does
// not name them itself.
func (a *annotator) takeTexts(g *annotated) {
	texts := map[uint64]string{}
	for _, f := range g.frames {
		if text := a.out.Frames[f.frame].Instruction; text != "" && f.kernel < 0 {
			texts[a.address(f.frame)] = text
		}
	}
	for i := range g.Code {
		if text := texts[g.starts[i]]; text != "" {
			g.Code[i].Text = text
			g.problem("instructions that were sampled have the text that the file of samples has")
		}
	}
}

// takeLine adds an instruction.
func (g *annotated) takeLine(l *trace.Instruction, symbols []trace.Symbol) {
	own, inner := &symbols[len(symbols)-1], &symbols[0]
	g.needLine(own)
	instruction := trace.AnnotatedInstruction{Offset: g.module.Code.Offset(l.Address), Bytes: l.Bytes, Text: l.Text, File: inner.File, InlineLine: inner.Line}
	if len(symbols) > 1 {
		instruction.Inlined = inner.Function
	}
	if ptx, ok := g.module.Code.PTXAt(l.Address); ok {
		instruction.PTX, instruction.PTXLine = ptx.Text, ptx.Line
	}
	g.starts, g.ends = append(g.starts, l.Address), append(g.ends, l.Address+uint64(len(l.Bytes)))
	g.Code, g.ownLines = append(g.Code, instruction), append(g.ownLines, lineKey{own.File, own.Line})
}

// takeRecorded takes the sampled instructions of a function whose code is not known, with their
// texts from files of samples.
func (a *annotator) takeRecorded(g *annotated) {
	seen := map[uint64]bool{}
	for _, place := range g.frames {
		f := &a.out.Frames[place.frame]
		address := a.address(place.frame)
		isPhysical := place.depth == len(f.Symbols)-1
		if !isPhysical || a.samples[place.frame] == 0 || a.isEntry(place.frame) || seen[address] {
			continue
		}
		seen[address] = true
		g.IsRecorded = g.IsRecorded || f.Instruction != ""
		s := &f.Symbols[place.depth]
		g.needLine(s)
		g.starts, g.ends = append(g.starts, address), append(g.ends, address+1)
		g.Code = append(g.Code, trace.AnnotatedInstruction{Offset: f.ModuleOffset, Text: f.Instruction, File: s.File, InlineLine: s.Line})
		g.ownLines = append(g.ownLines, lineKey{s.File, s.Line})
	}
	if len(g.Code) > 0 && !g.IsRecorded {
		g.problem("its code is not known: there are the addresses that were sampled")
	}
	g.sortCode()
}

// sortCode puts the instructions in the order of their addresses.
func (g *annotated) sortCode() {
	sort.Sort((*byAddress)(g))
}

type byAddress annotated

func (g *byAddress) Len() int           { return len(g.Code) }
func (g *byAddress) Less(i, j int) bool { return g.starts[i] < g.starts[j] }
func (g *byAddress) Swap(i, j int) {
	g.Code[i], g.Code[j] = g.Code[j], g.Code[i]
	g.starts[i], g.starts[j] = g.starts[j], g.starts[i]
	g.ends[i], g.ends[j] = g.ends[j], g.ends[i]
	g.ownLines[i], g.ownLines[j] = g.ownLines[j], g.ownLines[i]
}

// instruction returns the index of the instruction at an address; -1: there is none.
func (g *annotated) instruction(address uint64) int32 {
	i := sort.Search(len(g.starts), func(i int) bool { return g.starts[i] > address }) - 1
	if i < 0 || address >= g.ends[i] {
		return -1
	}
	return int32(i) //nolint:gosec // at most maxAnnotatedInstructions
}

// problem adds a problem, once.
func (g *annotated) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(g.Problems, text) {
		g.Problems = append(g.Problems, text)
	}
}
