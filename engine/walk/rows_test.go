// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sort"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// hashed is a target whose memory is a hash of the address, and not there where
// the hash says so.
type hashed struct{ thread *trace.Thread }

func (h *hashed) Info() trace.Target          { return trace.Target{Kind: "hashed"} }
func (h *hashed) Modules() []*target.Module   { return nil }
func (h *hashed) Threads() []*trace.Thread    { return []*trace.Thread{h.thread} }
func (h *hashed) Mapped(uint64) (m, x bool)   { return true, true }
func (h *hashed) Close() error                { return nil }
func hashOf(address uint64) (v uint64)        { return (address ^ address>>29) * 0x9e3779b97f4a7c15 }
func (h *hashed) set(registers sdk.Registers) { h.thread.Registers = registers }

func (h *hashed) ReadMemory(_ locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	for i := range buf {
		place := address + uint64(i)
		if hashOf(place>>12)%64 == 0 {
			return i, fmt.Errorf("%#x: %w", place, target.ErrNoMemory)
		}
		buf[i] = byte(hashOf(place) >> 40)
	}
	return len(buf), nil
}

// reference is the context of a frame by the methods of package cfi alone: its
// registers are where the rules of the rows below say, evaluated each time.
type reference struct {
	locexpr.NoContext
	state    *hashed
	desc     *sdk.Description
	ev       *locexpr.Evaluator
	defaults *code.RuleSet
	callee   *reference // nil in the top frame
	row      *cfi.Row
	cfa      locexpr.Location
}

var noLane = locexpr.Scope{Lane: -1}

func (r *reference) Register(ctx context.Context, reg uint64) (locexpr.Location, error) {
	if r.callee == nil {
		return locexpr.RegisterLocation(reg, noLane), nil
	}
	return r.callee.saved(ctx, reg)
}

func (r *reference) saved(ctx context.Context, reg uint64) (locexpr.Location, error) {
	rule, ok := r.row.Rule(reg)
	if !ok || rule.Kind == cfi.Unspecified {
		rule = r.defaults.Column(reg)
	}
	return rule.Location(ctx, r.ev, r, reg, r.cfa)
}

func (r *reference) RegisterValue(ctx context.Context, reg uint64) (uint64, error) {
	l, err := r.Register(ctx, reg)
	if err != nil {
		return 0, err
	}
	var b [8]byte
	err = l.Read(ctx, r, b[:], 64)
	return binary.LittleEndian.Uint64(b[:]), err
}

func (r *reference) Scope() locexpr.Scope                          { return noLane }
func (r *reference) CFA() (locexpr.Location, error)                { return r.cfa, nil }
func (r *reference) SpaceBits(locexpr.AddressSpace) (uint32, bool) { return 64, true }

func (r *reference) RegisterBits(reg uint64) (uint32, bool) {
	info, ok := r.desc.Register(uint32(reg))
	return info.Bits, ok
}

func (r *reference) ReadMemory(_ context.Context, space locexpr.AddressSpace, _ locexpr.Scope, address uint64, dst []byte) error {
	_, err := r.state.ReadMemory(space, address, dst)
	return err
}

func (r *reference) ReadRegister(_ context.Context, reg uint64, _ locexpr.Scope, dst []byte, bitOffset, bits uint64) error {
	b, ok := r.state.thread.Registers.Get(uint32(reg))
	if !ok || bitOffset%8 != 0 || (bitOffset+bits)/8 > uint64(len(b)) {
		return target.ErrNoMemory
	}
	copy(dst, b[bitOffset/8:])
	return nil
}

// rowsOf are all rows of an object's call frame information.
func rowsOf(t *testing.T, path string) []*cfi.Row {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	var rows []*cfi.Row
	for _, table := range code.FrameTables(o) {
		if table.Err != nil {
			t.Fatal(table.Err)
		}
		for fde, err := range table.FDEs() {
			if err == nil {
				err = fde.Rows(func(row *cfi.Row) bool { rows = append(rows, row.Clone()); return true })
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(rows) < 100 {
		t.Fatalf("%s: %d rows", path, len(rows))
	}
	return rows
}

// TestWalkSaysWhatTheRulesSay puts every row of large programs in force in a
// random state, with two other rows of the program above it, and holds CFA,
// return address and the location and value of registers of every frame, as the
// walk finds them by compiled rows and chains, against package cfi's evaluation
// of the rules.
func TestWalkSaysWhatTheRulesSay(t *testing.T) {
	files := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}
	if testing.Short() {
		files = files[:1]
	}
	if proof.IsRequested() {
		large, err := filepath.Glob("/usr/lib/llvm-*/lib/libLLVM*.so*")
		if err != nil || len(large) == 0 {
			t.Fatalf("no libLLVM: %v", err)
		}
		golang := filepath.Join(t.TempDir(), "unwindd")
		if out, err := exec.Command("go", "build", "-o", golang, "../../cmd/unwindd").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		files = append(files, large[0], golang)
	}
	state := &hashed{thread: &trace.Thread{ID: "1", Arch: "x86_64"}}
	desc := x86_64.Description()
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			rows := rowsOf(t, path)
			tt := newX86Process(t, state)
			random := rand.New(rand.NewPCG(1, 2))
			state.set(randomRegisters(random))
			tt.Bind()
			w := newWalker(tt, tt.stateOf(t.Context(), state.thread))
			ev := &locexpr.Evaluator{Dialect: locexpr.DWARF5, AddressBits: 64, CFI: true}
			sources := make([]*code.Row, len(rows))
			reasons := map[string]int{}
			compiled := 0
			for i, row := range rows {
				s := &code.Row{Rules: row, By: trace.ByCFI, Defaults: w.machine.Defaults}
				s.Compile(w.machine.Machine)
				if sources[i] = s; s.IsCompiled {
					compiled++
				} else {
					_, err := w.machine.Compiler.Compile(row, s.Defaults.Column)
					reasons[err.Error()]++
				}
			}
			t.Logf("%d rows, %d compiled (%.3f%%)", len(rows), compiled, 100*float64(compiled)/float64(len(rows)))
			for reason, n := range reasons {
				t.Logf("%d not compiled: %s", n, reason)
			}
			c := comparer{t: t, values: map[string]int{}}
			// from walks a state with a row in force, and depth-1 others above it.
			from := func(first, depth int, next func() int) {
				state.set(randomRegisters(random))
				w.startThread(tt, tt.stateOf(t.Context(), state.thread), &trace.Stack{})
				f := w.frame(0)
				ref := &reference{state: state, desc: desc, ev: ev, defaults: w.machine.Defaults}
				for row := first; f != nil && depth > 0; depth-- {
					f, ref = c.step(t.Context(), w, f, ref, sources[row])
					if t.Failed() {
						t.Fatalf("row %d: %+v, above %+v", row, rows[row], rows[first])
					}
					row = next()
				}
			}
			var leaves []int // rows that leave all as it is
			for i, row := range rows {
				if leftOut(i) {
					continue
				}
				from(i, 3, func() int { return random.IntN(len(rows)) })
				if len(row.Rules) == 1 && sources[i].IsCompiled {
					leaves = append(leaves, i)
				}
			}
			for i := range 300 {
				if leftOut(i) {
					continue
				}
				pick := func() int {
					if random.IntN(16) == 0 {
						return random.IntN(len(rows))
					}
					return leaves[random.IntN(len(leaves))]
				}
				from(pick(), 70, pick)
			}
			var kinds []string
			for kind := range c.values {
				kinds = append(kinds, kind)
			}
			sort.Strings(kinds)
			for _, kind := range kinds {
				t.Logf("%d %s", c.values[kind], kind)
			}
			if compiled*100 < len(rows)*95 {
				t.Errorf("%d of %d rows are compiled, expected nearly all", compiled, len(rows))
			}
		})
	}
}

// randomRegisters are some that addresses may wrap at, some that are small, and
// some that are not there.
func randomRegisters(random *rand.Rand) sdk.Registers {
	var r sdk.Registers
	for reg := range uint32(17) {
		v := random.Uint64()
		switch random.IntN(16) {
		case 0:
			v = uint64(random.IntN(64))
		case 1:
			v = -uint64(random.IntN(64))
		case 2:
			continue
		}
		r.Set(reg, binary.LittleEndian.AppendUint64(nil, v))
	}
	return r
}

// comparer compares frames of a walk with references.
type comparer struct {
	t      *testing.T
	values map[string]int // registers compared, by what they were
}

// comparedRegisters are the general ones, a vector register, flags and others.
var comparedRegisters = []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 49, 58, 64}

// step recovers the callers of f and of ref. It answers nil where there is none
// to go on with.
func (c *comparer) step(ctx context.Context, w *walker, f *frame, ref *reference, source *code.Row) (*frame, *reference) {
	ref.row, ref.cfa = source.Rules, locexpr.Location{}
	cfa, cfaErr := source.Rules.CFA.Location(ctx, ref.ev, ref)
	f.source = source
	caller, err := w.recover(ctx, f, source)
	if f.hasCFA != (cfaErr == nil) {
		c.t.Errorf("CFA: the walk has %v, %v, the rule says %v, %v", f.hasCFA, err, cfa, cfaErr)
	}
	if cfaErr != nil {
		c.values["CFAs with an error"]++
		return nil, nil
	}
	if f.compiled != source.IsCompiled {
		c.t.Errorf("the compiled row is in force: %v, there is one: %v", f.compiled, source.IsCompiled)
	}
	ref.cfa = cfa
	c.same("CFA", f.cfaLocation(), cfa)
	above := &reference{state: ref.state, desc: ref.desc, ev: ref.ev, defaults: ref.defaults, callee: ref}
	back, backErr := above.Register(ctx, source.Rules.ReturnAddress)
	switch pc, pcErr := above.RegisterValue(ctx, source.Rules.ReturnAddress); {
	case caller != nil:
		if backErr != nil || pcErr != nil || pc != caller.pc {
			c.t.Errorf("return address: the walk has %#x, the rule says %v, %#x, %v", caller.pc, back, pc, pcErr)
		}
	case err == nil:
		if backErr != nil || !back.IsUndefined() {
			c.t.Errorf("return address: the walk has none, the rule says %v, %v", back, backErr)
		}
	case pcErr == nil:
		c.t.Errorf("return address: the walk says %v, the rule %#x", err, pc)
	}
	if caller == nil {
		c.values["return addresses that are undefined or in no memory"]++
		caller = w.frame(f.index + 1)
		caller.callee = f
	}
	for _, reg := range comparedRegisters {
		want, wantErr := above.Register(ctx, reg)
		got, err := caller.location(ctx, reg)
		if (err != nil) != (wantErr != nil) {
			c.t.Errorf("register %d: the walk says %v, %v, the rule %v, %v", reg, got, err, want, wantErr)
		}
		if err != nil || wantErr != nil {
			c.values["registers with an error"]++
			continue
		}
		c.same(fmt.Sprintf("register %d", reg), got, want)
		if bits, _ := above.RegisterBits(reg); bits != 64 {
			continue
		}
		wantValue, wantErr := above.RegisterValue(ctx, reg)
		value, err := caller.value(ctx, reg)
		if (err != nil) != (wantErr != nil) || err == nil && value != wantValue {
			c.t.Errorf("register %d: the walk reads %#x, %v, the rule's is %#x, %v", reg, value, err, wantValue, wantErr)
		}
		switch {
		case err == nil:
			c.values["registers with a value"]++
		case errors.Is(wantErr, locexpr.ErrUndefined):
			c.values["registers that are undefined"]++
		default:
			c.values["registers that cannot be read"]++
		}
	}
	return caller, above
}

// same compares locations. Memory of the default space belongs to no thread.
func (c *comparer) same(what string, got, want locexpr.Location) {
	if !got.WithScope(noLane).Equal(want.WithScope(noLane)) {
		c.t.Errorf("%s: the walk says %v, the rule %v", what, got, want)
	}
}

// leftOut says that -short, which is how the race detector runs, leaves out the
// n-th of many cases in one goroutine. One in 32 stays.
func leftOut(n int) bool { return testing.Short() && n%32 != 0 }
