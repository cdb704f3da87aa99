// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// This file finds the rows and names of code that runtimes made. A plugin is asked about many
// PCs in one call: all words of a stack that lead into such code, as return addresses do.

const (
	// maxPCs bounds the PCs of one call.
	maxPCs = 1 << 14
	// stackAhead and batchAhead are how many bytes of a stack are searched for PCs when it
	// leads into code that is not known yet, and before many stacks are walked.
	stackAhead = 64 << 10
	batchAhead = 16 << 10
	// maxKnown bounds the PCs whose functions are remembered.
	maxKnown = 1 << 18
	// maxChain bounds the calls that are inlined at one PC.
	maxChain = 1 << 10
)

// generatedCode is the code that a runtime made.
type generatedCode struct {
	ranges  []sdk.RuntimeCode // by address, apart from each other
	modules []*code.Module    // of the runtime's file, which have some

	asking sync.Mutex // locked during a call: who comes next may find the answer
	mu     sync.Mutex
	known  map[uint64]*walk.RuntimeFunction  // by PC; nil: there is none
	rows   map[codeBounds]code.GeneratedRows // of functions
}

// codeBounds are the bounds of a function.
type codeBounds struct{ start, end uint64 }

// has reports whether an address is in the code.
func (c *generatedCode) has(address uint64) bool {
	i := sort.Search(len(c.ranges), func(i int) bool { return c.ranges[i].End > address })
	return i < len(c.ranges) && c.ranges[i].Start <= address
}

// find returns the function at a PC; isKnown is false for a PC that was not asked about.
func (c *generatedCode) find(pc uint64) (f *walk.RuntimeFunction, isKnown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, isKnown = c.known[pc]
	return f, isKnown
}

// HasCodeIn implements walk.RuntimeCode.
func (x *Process) HasCodeIn(ctx context.Context, m *code.Module) bool {
	for _, i := range x.all(ctx) {
		if slices.Contains(i.code.modules, m) {
			return true
		}
	}
	return false
}

// Function implements walk.RuntimeCode.
func (x *Process) Function(ctx context.Context, th *trace.Thread, address uint64) *walk.RuntimeFunction {
	for _, i := range x.all(ctx) {
		if !i.code.has(address) {
			continue
		}
		f, isKnown := i.code.find(address)
		if !isKnown {
			i.code.asking.Lock()
			if f, isKnown = i.code.find(address); !isKnown {
				i.ask(ctx, i.pcsOf([]uint64{address}, th, stackAhead))
				f, _ = i.code.find(address)
			}
			i.code.asking.Unlock()
		}
		if f != nil {
			return f
		}
	}
	return nil
}

// Symbols returns the functions of runtimes at an address to look up, innermost first; none where
// it is in no code of theirs.
func (x *Process) Symbols(ctx context.Context, address uint64) []trace.Symbol {
	if f := x.Function(ctx, nil, address); f != nil {
		return f.Symbols
	}
	return nil
}

// Prepare asks about the code that stacks of threads will lead to, in one call for each runtime.
func (x *Process) Prepare(ctx context.Context, threads []*trace.Thread) {
	for _, i := range x.all(ctx) {
		if len(i.code.ranges) == 0 || i.hasFailed() {
			continue
		}
		var pcs []uint64
		for _, th := range threads {
			if th.Arch == i.module.Arch && th.Wave == nil && len(pcs) < maxPCs {
				pcs = i.pcsOf(pcs, th, batchAhead)
			}
		}
		i.code.asking.Lock()
		i.ask(ctx, pcs)
		i.code.asking.Unlock()
	}
}

// pcsOf appends the addresses to look up that a thread's PC and the words of its stack lead to;
// none for no thread.
func (i *instance) pcsOf(pcs []uint64, th *trace.Thread, most uint64) []uint64 {
	d := i.machine.Description
	if th == nil {
		return pcs
	}
	if pc, ok := th.Registers.Uint64(d.PC, d.ByteOrder); ok && i.code.has(pc) {
		pcs = append(pcs, pc)
	}
	sp, ok := th.Registers.Uint64(d.SP, d.ByteOrder)
	size := uint64(d.AddressBits / 8)
	if !ok || size != 4 && size != 8 {
		return pcs
	}
	sp &^= size - 1
	buf := make([]byte, min(most, ^uint64(0)-sp))
	n := i.readAhead(sp, buf)
	for at := 0; at+int(size) <= n && len(pcs) < maxPCs; at += int(size) {
		word := i.word(buf[at : at+int(size)])
		if lookup := word - uint64(d.CallDistance); i.code.has(lookup) {
			pcs = append(pcs, lookup)
		}
	}
	return pcs
}

// word returns the number in the bytes of an address.
func (i *instance) word(b []byte) (n uint64) {
	for k := range b {
		at := len(b) - 1 - k
		if i.machine.Description.ByteOrder == sdk.BigEndian {
			at = k
		}
		n = n<<8 | uint64(b[at])
	}
	return n
}

// readAhead reads memory in which PCs are guessed, and returns how many bytes are there.
func (i *instance) readAhead(address uint64, buf []byte) (n int) {
	read := i.owner.options.ReadAhead
	if read == nil {
		read = func(address uint64, buf []byte) (int, error) {
			return i.owner.process.State().ReadMemory(locexpr.DefaultSpace, address, buf)
		}
	}
	_ = object.Guard(func() error {
		n, _ = read(address, buf) // a part is enough
		return nil
	})
	return n
}

// ask asks about the PCs that are not known yet. Without an answer none of them is asked about
// again. The caller has locked asking.
func (i *instance) ask(ctx context.Context, pcs []uint64) {
	slices.Sort(pcs)
	pcs = slices.Compact(pcs)
	pcs = slices.DeleteFunc(pcs, func(pc uint64) bool {
		_, isKnown := i.code.find(pc)
		return isKnown
	})
	if len(pcs) == 0 || i.hasFailed() {
		return
	}
	req := &sdk.CodeRulesRequest{Runtime: i.request.Runtime, PCs: pcs}
	answer, err := call(ctx, i, "CodeRules", func() (*sdk.CodeRulesAnswer, error) {
		return i.runtime.CodeRules(ctx, i.owner.engine, req)
	})
	if ctx.Err() != nil {
		return
	}
	for k, pc := range pcs {
		var f *walk.RuntimeFunction
		if err == nil {
			var wrong error
			if f, wrong = i.function(pc, &answer.Code[k]); wrong != nil {
				i.problem("CodeRules: %v", wrong)
			}
		}
		i.code.keep(pc, f)
	}
}

// keep remembers the function at a PC. Where there are too many, the others are forgotten.
func (c *generatedCode) keep(pc uint64, f *walk.RuntimeFunction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxKnown {
		c.known, c.rows = map[uint64]*walk.RuntimeFunction{}, map[codeBounds]code.GeneratedRows{}
	}
	c.known[pc] = f
}

// function checks an answer about a PC, which is in the function, against the process; nil: there
// is no function.
func (i *instance) function(pc uint64, r *sdk.CodeRules) (*walk.RuntimeFunction, error) {
	switch {
	case r.Start == 0 && r.End == 0:
		return nil, nil //nolint:nilnil // there is none
	case !i.code.has(r.Start) || !i.code.has(r.End-1):
		return nil, fmt.Errorf("the function at %#x is from %#x to %#x: expected one in the code of OpenRuntime's answer", pc, r.Start, r.End)
	case len(r.Frames) > maxChain:
		return nil, fmt.Errorf("the function at %#x has %d inlined calls, expected at most %d", pc, len(r.Frames), maxChain)
	}
	if err := r.ValidateRows(i.machine.Description); err != nil {
		return nil, fmt.Errorf("the function at %#x: %w", pc, err)
	}
	f := &walk.RuntimeFunction{Machine: i.machine, Start: r.Start, End: r.End}
	i.code.mu.Lock()
	bounds := codeBounds{r.Start, r.End}
	rows, isKnown := i.code.rows[bounds]
	i.code.mu.Unlock()
	if !isKnown {
		rows = code.NewGeneratedRows(i.machine, r.Rows)
		i.code.mu.Lock()
		if i.code.rows != nil {
			i.code.rows[bounds] = rows
		}
		i.code.mu.Unlock()
	}
	f.Rows = rows
	kind := sdk.UnknownManaged
	for k := range r.Frames {
		s := symbolOf(&r.Frames[k])
		s.Inlined = k < len(r.Frames)-1
		f.Symbols = append(f.Symbols, s)
		kind = r.Frames[k].Kind
	}
	f.Managed = &trace.Managed{Runtime: i.about.Name, Kind: kindOf(kind), IsNative: true}
	return f, nil
}
