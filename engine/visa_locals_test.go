// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/gen/genasm"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/sdk"
)

// A genPlace executes the operations that Intel's compiler describes variables by, over a
// register file.
type genPlace struct {
	file    []byte // the general registers
	scratch []byte
	size    int // of one, in bytes
	lane    uint64
	stack   []uint64
	bytes   []byte // what the expression gives
	value   bool   // it ends in DW_OP_stack_value
	pieces  []byte
}

// run executes an expression. Its operations that this test does not know are errNoTruth.
func (g *genPlace) run(expr []byte) error {
	var ops []locexpr.Instruction
	at := map[int]int{}
	for in, err := range locexpr.Decode(expr, locexpr.Intel, 8, locexpr.LittleEndian) {
		if err != nil {
			return err
		}
		at[in.Offset] = len(ops)
		ops = append(ops, in)
	}
	at[len(expr)] = len(ops)
	for i := 0; i < len(ops); i++ {
		jump, err := g.execute(&ops[i])
		if err != nil {
			return err
		}
		if jump != 0 {
			i = at[ops[i].Offset+ops[i].Size+jump] - 1
		}
	}
	switch {
	case g.pieces != nil:
		g.bytes = g.pieces
	case g.bytes != nil:
	case len(g.stack) != 1:
		return errNoTruth
	case g.value:
		g.bytes = binary.LittleEndian.AppendUint64(nil, g.stack[0])
	default: // an address
		if at := g.stack[0] - genScratch; at < uint64(len(g.scratch)) {
			g.bytes = g.scratch[at:]
			break
		}
		for i := range 256 {
			g.bytes = append(g.bytes, genPattern(int(g.stack[0])+i)) //nolint:gosec // any number
		}
	}
	return nil
}

func (g *genPlace) pop() uint64 {
	if len(g.stack) == 0 {
		return 0
	}
	v := g.stack[len(g.stack)-1]
	g.stack = g.stack[:len(g.stack)-1]
	return v
}

// register is where a register begins in the file.
func (g *genPlace) register(number uint64) []byte {
	first := (int(number) - 16) * g.size //nolint:gosec // small
	if first < 0 || first >= len(g.file) {
		return nil
	}
	return g.file[first:]
}

func (g *genPlace) execute(instruction *locexpr.Instruction) (jump int, err error) {
	push := func(v uint64) { g.stack = append(g.stack, v) }
	var small uint64
	name := instruction.Op.Name
	for _, kind := range []string{"DW_OP_lit", "DW_OP_reg"} {
		if n, err := fmt.Sscanf(name, kind+"%d", &small); n == 1 && err == nil {
			if kind == "DW_OP_lit" {
				push(small)
				return 0, nil
			}
			g.bytes = g.register(small)
			push(small)
			return 0, nil
		}
	}
	switch name {
	case "DW_OP_INTEL_push_simd_lane":
		push(g.lane)
	case "DW_OP_regx":
		g.bytes = g.register(instruction.Operands[0])
		push(instruction.Operands[0])
	case "DW_OP_bit_piece":
		if g.value {
			g.bytes = binary.LittleEndian.AppendUint64(nil, g.pop())
		}
		bits, offset := instruction.Operands[0], instruction.Operands[1]
		if bits%8 != 0 || offset%8 != 0 || (bits+offset)/8 > uint64(len(g.bytes)) {
			return 0, errNoTruth
		}
		g.pieces = append(g.pieces, g.bytes[offset/8:][:bits/8]...)
		g.bytes, g.stack, g.value = nil, nil, false
	case "DW_OP_plus_uconst":
		push(g.pop() + instruction.Operands[0])
	case "DW_OP_const1u", "DW_OP_const2u", "DW_OP_const4u", "DW_OP_constu":
		push(instruction.Operands[0])
	case "DW_OP_INTEL_regs": // the number stands for the register
	case "DW_OP_stack_value":
		g.value = true
	case "DW_OP_shr", "DW_OP_and", "DW_OP_mul", "DW_OP_minus", "DW_OP_plus", "DW_OP_ge":
		b, a := g.pop(), g.pop()
		push(map[string]uint64{"DW_OP_shr": a >> (b & 63), "DW_OP_and": a & b, "DW_OP_mul": a * b, "DW_OP_minus": a - b, "DW_OP_plus": a + b, "DW_OP_ge": truth(a >= b)}[name])
	case "DW_OP_bra":
		if g.pop() != 0 {
			return int(int64(instruction.Operands[0])), nil //nolint:gosec // a distance
		}
	case "DW_OP_skip":
		return int(int64(instruction.Operands[0])), nil //nolint:gosec // a distance
	case "DW_OP_INTEL_push_bit_piece_stack":
		bits, offset := g.pop(), g.pop()
		r := g.register(g.pop())
		if bits%8 != 0 || offset%8 != 0 || r == nil || bits > 64 {
			return 0, errNoTruth
		}
		push(integerOf(r[offset/8:][:bits/8]))
		g.bytes = nil
	case "DW_OP_implicit_value":
		g.bytes = instruction.Block
	default:
		return 0, errNoTruth
	}
	return 0, nil
}

func truth(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

func integerOf(b []byte) uint64 {
	var word [8]byte
	copy(word[:], b)
	return binary.LittleEndian.Uint64(word[:])
}

// TestVariablesOfGenThreads holds the variables of every lane and frame against what a
// thread's registers have where the compiler's expressions say, at every instruction.
func TestVariablesOfGenThreads(t *testing.T) {
	files := oracle.Beside(t, "corpus/visa/*/*.asm")
	if testing.Short() {
		files = files[:1]
	}
	kernels := map[string]bool{}
	for _, path := range files {
		kernels[filepath.Dir(path)] = true
	}
	total := corpusVariables{causes: map[string]int{}}
	for _, dir := range slices.Sorted(maps.Keys(kernels)) {
		for _, c := range readGenCode(t, filepath.Base(dir), dir) {
			t.Run(c.name, func(t *testing.T) {
				w := newGenWalkWith(t, c, genBoth, Options{
					Plugins: plugin.Options{InProcess: []sdk.Architecture{visa.New()}}, Locals: &trace.ValueLimits{Elements: 64},
				})
				w.machine = genasm.New(c.assembly, genBase, genDepth, rand.New(rand.NewPCG(7, 3)))
				w.state.stack, w.state.filled = w.machine.Scratch, true
				if err := w.machine.Run(func() bool { w.variables(&total); return total.wrong < 20 }); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	t.Logf("%d values of lanes are equal, %d wrong, %d unknown, %d not held against anything", total.equal, total.wrong, total.unknown, total.elsewhere)
	for _, cause := range slices.Sorted(maps.Keys(total.causes)) {
		t.Logf("%9d × %s", total.causes[cause], cause)
	}
	if total.equal == 0 {
		t.Error("none was compared")
	}
}

// variables holds those of all frames against the registers of the thread, of callers as
// they were when they called.
func (w *genWalk) variables(total *corpusVariables) {
	w.refresh()
	m := w.machine
	stack := w.target.Walk(context.Background(), w.state.thread)
	for i := range min(len(stack.Frames), len(m.Calls)+1) {
		f := &stack.Frames[i]
		file, lookup := m.GRF, f.ModuleOffset
		if i > 0 {
			file, lookup = m.Calls[len(m.Calls)-i].GRF, lookup-1
		}
		scope := w.target.process.Loaded()[0].Code.Variables(lookup)
		if scope == nil {
			continue
		}
		lists := slices.Clone(f.Locals())
		for k := range scope.List {
			s := &scope.List[k]
			var of []trace.FrameVariable
			of, lists[s.Level] = laneRest(lists[s.Level])
			for n := range of {
				for lane := range of[n].Lanes.All() {
					w.variable(&of[n], s, lookup, lane, file, total)
				}
			}
		}
	}
}

func (w *genWalk) variable(v *trace.FrameVariable, s *code.ScopedVariable, lookup uint64, lane uint32, file []byte, total *corpusVariables) {
	var exprs [][]byte
	if s.Location != nil {
		var err error
		if exprs, err = s.Location.At(lookup); err != nil {
			if v.Status != trace.ValueFailed {
				w.t.Errorf("%s is %s, its list: %v", v.Name, v.Status, err)
			}
			return
		}
	}
	if len(exprs) != 1 {
		return
	}
	g := genPlace{file: file, scratch: w.machine.Scratch, size: w.machine.RegisterSize, lane: uint64(lane)}
	err := g.run(exprs[0])
	switch size := s.Type.Size; {
	case errors.Is(err, errNoTruth) || err == nil && uint64(len(g.bytes)) < size:
		total.elsewhere++
		total.causes[fmt.Sprintf("not held: %x %v", exprs[0], err)]++
	case err != nil:
		w.t.Fatal(err)
	case v.Status != trace.ValueOK && v.Status != trace.ValuePartial:
		total.unknown++
		total.causes[genCause.ReplaceAllString(fmt.Sprint(v.Status, " ", v.Problem), "N")]++
	default:
		if why := sameBytes(&v.Value, g.bytes[:size]); why != "" {
			total.wrong++
			w.t.Errorf("%s+%#x, lane %d: %s %s: %s, by %x", w.machine.Next().Function, lookup, lane, v.Type, v.Name, why, exprs[0])
			return
		}
		total.equal++
	}
}

// TestVariablesOfGenStreams is about code without debug information: of the variables that
// the vISA stream has, their places are known, and the bytes there.
func TestVariablesOfGenStreams(t *testing.T) {
	dir := filepath.Dir(oracle.Beside(t, "corpus/visa/tgllp-rec-O2/*.asm")[0])
	c := readGenCode(t, filepath.Base(dir), dir)[0]
	w := newGenWalkWith(t, c, genStream, Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{visa.New()}}, Locals: &trace.ValueLimits{},
	})
	w.machine = genasm.New(c.assembly, genBase, genDepth, rand.New(rand.NewPCG(7, 3)))
	w.state.stack, w.state.filled = w.machine.Scratch, true
	equal := 0
	if err := w.machine.Run(func() bool {
		w.refresh()
		f := &w.target.Walk(context.Background(), w.state.thread).Frames[0]
		for _, list := range f.Locals() {
			for _, v := range list {
				p := v.Place.Place(0)
				if v.Status != trace.ValueOK || p.Storage != locexpr.Register && p.Storage != locexpr.Composite {
					continue
				}
				at := p.BitOffset / 8
				if p.Storage == locexpr.Composite {
					p = p.Parts()[0].Location.Place(0)
					at += p.BitOffset / 8
				}
				if p.Register < 16 || p.Register >= 16+128 {
					continue
				}
				first := (int(p.Register)-16)*w.machine.RegisterSize + int(at) //nolint:gosec // small
				want := fmt.Sprintf("%08x", binary.LittleEndian.Uint32(w.machine.GRF[first:]))
				if got, _, _ := strings.Cut(v.Text, " "); got != want || v.Type != "" {
					t.Errorf("%#x: %s %s = %s, expected %s", f.ModuleOffset, v.Type, v.Name, v.Text, want)
					return false
				}
				equal++
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	t.Log(equal, "values")
	if equal < 1000 {
		t.Errorf("%d values of variables in registers", equal)
	}
}
