// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/wavecheck"
)

// A dumpedLocation is an expression as llvm-dwarfdump prints it, for addresses of the
// object.
type dumpedLocation struct {
	start, end uint64
	expr       string
}

var (
	dumpedEntry = regexp.MustCompile(`^0x([0-9a-f]+):\s+DW_TAG_(\w+)`)
	dumpedRange = regexp.MustCompile(`\[0x([0-9a-f]+), 0x([0-9a-f]+)\): (.*?)\)?$`)
	dumpedExpr  = regexp.MustCompile(`DW_AT_location\t\((DW_OP_.*)\)$`)
)

// dumpedLocations are the locations of variables by the offsets of their entries.
func dumpedLocations(t *testing.T, path string) map[uint64][]dumpedLocation {
	t.Helper()
	out, err := exec.Command("llvm-dwarfdump-22", "--debug-info", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint64][]dumpedLocation{}
	var at uint64
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := dumpedEntry.FindStringSubmatch(line); m != nil {
			at = number(m[1])
		} else if m := dumpedExpr.FindStringSubmatch(line); m != nil {
			all[at] = []dumpedLocation{{0, math.MaxUint64, m[1]}}
		} else if m := dumpedRange.FindStringSubmatch(line); m != nil && strings.HasPrefix(m[3], "DW_OP_") {
			all[at] = append(all[at], dumpedLocation{number(m[1]), number(m[2]), m[3]})
		}
	}
	return all
}

// A frameTruth is what a frame has: its registers, and where its part of a lane's private
// memory begins.
type frameTruth struct {
	*gcn.Tracker
	registers []byte
	base      uint64
}

// errNoTruth says that this test does not know what an expression means.
var errNoTruth = fmt.Errorf("an expression that is not held against the truth")

// bytes are those that a lane has of a variable; nil where it has none.
func (f *frameTruth) bytes(expr string, lane int, size uint64) ([]byte, error) {
	var all []byte
	var ops []string
	for op := range strings.SplitSeq(expr, ", ") {
		if !strings.HasPrefix(op, "DW_OP_piece") {
			ops = append(ops, op)
			continue
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(op, "DW_OP_piece "), 0, 64)
		if err != nil {
			return nil, err
		}
		if len(ops) == 0 {
			return nil, nil // a piece is nowhere
		}
		b, err := f.piece(ops, lane, n)
		if err != nil {
			return nil, err
		}
		all, ops = append(all, b...), nil
	}
	if all != nil {
		if uint64(len(all)) < size {
			return nil, nil
		}
		return all, nil
	}
	return f.piece(ops, lane, size)
}

// piece are the bytes of a piece.
func (f *frameTruth) piece(ops []string, lane int, size uint64) ([]byte, error) {
	tag := func(ops []string) bool {
		n := len(ops)
		return n == 4 && ops[n-1] == "DW_OP_xderef" && ops[n-2] == "DW_OP_swap" && strings.HasPrefix(ops[n-3], "DW_OP_lit")
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(ops[0], "DW_OP_"), " ")
	switch {
	case len(ops) == 5 && tag(ops[:4]) && ops[4] == "DW_OP_stack_value" && (first == "consts" || first == "constu" || first == "lit0"):
		if first == "lit0" {
			rest = "0"
		}
		n, err := strconv.ParseInt(strings.TrimPrefix(rest, "+"), 0, 64)
		return binary.LittleEndian.AppendUint64(nil, uint64(n))[:min(size, 8)], err //nolint:gosec // the bits
	case tag(ops) && first == "bregx" && size <= 4:
		name, add, _ := strings.Cut(strings.ReplaceAll(rest, " ", ""), "+")
		number, err := f.register(name)
		if add != "0" || err != nil {
			return nil, errNoTruth
		}
		for i := range f.Tracker.Registers {
			r := &f.Tracker.Registers[i]
			if r.Number == number && r.File == gcn.Vector {
				return f.registers[r.Offset+4*lane:][:size], nil
			} else if r.Number == number {
				return f.registers[r.Offset:][:size], nil
			}
		}
		return nil, errNoTruth
	case tag(ops) && first == "fbreg":
		n, err := strconv.ParseUint(strings.TrimPrefix(rest, "+"), 0, 64)
		var b []byte
		for i := range size {
			b = append(b, f.State.Scratch[f.State.PrivateByte(lane, f.base+n+i)])
		}
		return b, err
	}
	return nil, errNoTruth
}

// register is a register by the name that llvm-dwarfdump prints, which is its number where
// waves have 32 lanes.
func (f *frameTruth) register(name string) (uint64, error) {
	if n, ok := strings.CutPrefix(name, "VGPR"); ok {
		i, err := strconv.ParseUint(n, 10, 64)
		return 2560 + i, err
	}
	if n, ok := strings.CutPrefix(name, "SGPR"); ok {
		i, err := strconv.ParseUint(n, 10, 64)
		if i >= 64 {
			i += 1088 - 64 - 32
		}
		return 32 + i, err
	}
	return strconv.ParseUint(name, 0, 64)
}

// corpusVariables counts values of lanes by what they were found to be.
type corpusVariables struct {
	equal, wrong, unknown, elsewhere int
	causes                           map[string]int
}

// TestVariablesOfExecutingCorpus executes the code objects of the corpus, and holds every
// variable of every lane and frame against what the executor has at the place that
// llvm-dwarfdump prints.
func TestVariablesOfExecutingCorpus(t *testing.T) {
	gcn.Need(t)
	oracle.Tools(t, "llvm-dwarfdump-22")
	total := map[string]*corpusVariables{"O0": {causes: map[string]int{}}, "O2": {causes: map[string]int{}}}
	for _, path := range oracle.Beside(t, "corpus/amdgpu/O?/*.co") {
		if strings.Contains(path, ".cfi.") {
			continue // the same code
		}
		name := filepath.Base(path)
		level := filepath.Base(filepath.Dir(path))
		t.Run(level+" "+name, func(t *testing.T) {
			p := gcn.ProcessorOf(t, name)
			o := gcn.Open(t, p, path)
			c := &variablesJudge{executingWave: newWave(t, o, withLocals()), t: t, locations: dumpedLocations(t, path), counts: total[level]}
			for _, k := range o.Kernels {
				s, err := o.Launch(k, rand.New(rand.NewPCG(1, 2)), p.Lanes-9)
				if err != nil {
					t.Fatal(err)
				}
				c.execute(s)
			}
		})
	}
	for _, level := range slices.Sorted(maps.Keys(total)) {
		c := total[level]
		t.Logf("%s: %d values of lanes are equal, %d wrong, %d unknown, %d not held against anything", level, c.equal, c.wrong, c.unknown, c.elsewhere)
		for _, cause := range slices.Sorted(maps.Keys(c.causes)) {
			t.Logf("%9d × %s", c.causes[cause], cause)
		}
		if c.wrong > 0 || c.equal == 0 {
			t.Errorf("%s: some are wrong, or none was compared", level)
		}
	}
}

type variablesJudge struct {
	executingWave
	t         *testing.T
	locations map[uint64][]dumpedLocation
	counts    *corpusVariables
	walked    map[[2]uint64]int
}

// execute looks at the wave at every instruction, once in each function's call; as a
// sample, at every fifth.
func (c *variablesJudge) execute(s *gcn.State) {
	c.Launch(s)
	c.walked = map[[2]uint64]int{}
	for !s.Ended && s.Steps < gcn.MaxSteps && c.counts.wrong < 20 {
		at := [2]uint64{s.PC}
		if n := len(c.Calls); n > 0 {
			at[1] = c.Calls[n-1].Back
		}
		if c.walked[at]++; c.walked[at] == 1 && (proof.IsRequested() || len(c.walked)%5 == 0) {
			c.Refresh()
			c.look()
		}
		if err := s.Step(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *variablesJudge) look() {
	ctx := context.Background()
	if err := c.target.process.Refresh(ctx, c.Thread); err != nil {
		c.t.Fatal(err)
	}
	stack := c.target.Walk(ctx, c.Thread)
	depth := len(c.Calls)
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if i > depth {
			c.t.Errorf("%d frames, expected %d", len(stack.Frames), depth+1)
			return
		}
		truth := &frameTruth{Tracker: c.Tracker, registers: c.Live}
		if i > 0 {
			truth.registers = c.Calls[depth-i].Registers
		}
		if i < depth {
			truth.base = c.Calls[depth-1-i].CFA / uint64(c.State.Lanes) //nolint:gosec // positive
		}
		lookup := f.ModuleOffset
		if i > 0 {
			lookup--
		}
		scope := c.target.process.Loaded()[0].Code.Variables(lookup)
		if scope == nil {
			continue
		}
		c.frame(f, scope, lookup, truth)
	}
}

// frame holds the variables of a frame against the truth.
func (c *variablesJudge) frame(f *trace.Frame, scope *code.Variables, lookup uint64, truth *frameTruth) {
	lists := slices.Clone(f.Locals())
	for i := range scope.List {
		s := &scope.List[i]
		size := s.Type.Size
		expr := ""
		for _, l := range c.locations[s.Offset()] {
			if lookup >= l.start && lookup < l.end {
				expr = l.expr
			}
		}
		if s.Level >= len(lists) {
			c.t.Errorf("no variables of level %d", s.Level)
			return
		}
		var of []trace.FrameVariable
		of, lists[s.Level] = laneRest(lists[s.Level])
		for k := range of {
			v := &of[k]
			if v.Name != s.Name {
				c.t.Errorf("%s, expected %s", v.Name, s.Name)
				return
			}
			for lane := range v.Lanes.All() {
				c.value(v, expr, int(lane), size, truth)
			}
		}
	}
}

// laneRest splits off the values that lanes have of the first variable.
func laneRest(list []trace.FrameVariable) (ofLanes, rest []trace.FrameVariable) {
	for n := 1; n < len(list); n++ {
		if list[n].Name != list[0].Name || slices.Min(slices.Collect(list[n].Lanes.All())) == slices.Min(slices.Collect(list[0].Lanes.All())) {
			return list[:n], list[n:]
		}
	}
	return list, nil
}

// value holds the value that a lane has against the truth.
func (c *variablesJudge) value(v *trace.FrameVariable, expr string, lane int, size uint64, truth *frameTruth) {
	n := c.counts
	if expr == "" {
		if v.Status != trace.ValueOptimizedOut {
			n.wrong++
			c.t.Errorf("%s has no location, and is %s %s", v.Name, v.Status, v.Text)
		}
		return
	}
	want, err := truth.bytes(expr, lane, size)
	switch {
	case err != nil:
		n.elsewhere++
		n.causes["not held: "+expr]++
	case v.Status != trace.ValueOK && v.Status != trace.ValuePartial:
		n.unknown++
		n.causes[wavecheck.Numbers.ReplaceAllString(fmt.Sprint(v.Status, " ", v.Problem), "N")]++
	case want == nil:
		n.wrong++
		c.t.Errorf("%s of lane %d is %s, a part is nowhere: %s", v.Name, lane, v.Text, expr)
	default:
		if why := sameBytes(&v.Value, want); why != "" {
			n.wrong++
			c.t.Errorf("%#x, lane %d: %s %s: %s, by %s", c.State.PC-gcn.CodeBase, lane, v.Type, v.Name, why, expr)
			return
		}
		n.equal++
	}
}

// sameBytes holds a value against its bytes; "" where they are the same.
func sameBytes(v *trace.Value, b []byte) string {
	if len(v.Children) > 0 {
		each := len(b) / (len(v.Children) + int(v.More)) //nolint:gosec // small
		for i := range v.Children {
			if why := sameBytes(&v.Children[i], b[i*each:][:each]); why != "" {
				return v.Children[i].Name + ": " + why
			}
		}
		return ""
	}
	text, _, _ := strings.Cut(v.Text, " ")
	var want string
	switch {
	case v.Type == "float":
		f, err := strconv.ParseFloat(text, 32)
		if err == nil && math.Float32bits(float32(f)) == binary.LittleEndian.Uint32(b) {
			return ""
		}
		if g := math.Float32frombits(binary.LittleEndian.Uint32(b)); g != g && strings.Contains(text, "nan") {
			return ""
		}
		want = fmt.Sprint(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case len(b) == 4:
		want = fmt.Sprint(int32(binary.LittleEndian.Uint32(b))) //nolint:gosec // the sign
	case len(b) == 8:
		want = fmt.Sprintf("%#x", binary.LittleEndian.Uint64(b))
	default:
		return fmt.Sprintf("%s, a value of %d bytes", v.Text, len(b))
	}
	if text != want {
		return fmt.Sprintf("%s, expected %s", v.Text, want)
	}
	return ""
}
