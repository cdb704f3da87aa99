// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/wavecheck"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// probed are the variables of testdata/lanes/probe.cl by their numbers: a member of
// one, or an element, follows a dot.
var probed = map[uint32]string{
	1: "a", 2: "b", 3: "c", 4: "d", 5: "e", 6: "f", 7: "out", 8: "n", 9: "back",
	10: "x", 11: "y", 12: "color", 13: "p.a", 14: "p.b", 15: "o.v", 16: "v.[0]", 17: "v.[3]", 18: "z",
	20: "words.[2]", 21: "words.[7]", 22: "l.words.[5]", 23: "shared", 24: "own", 30: "made.words.[3]", 31: "made.words.[23]",
	40: "here", 41: "below", 50: "doubled", 51: "inner", 54: "best",
	60: "id", 61: "uniform", 62: "n", 63: "out", 64: "sum", 65: "odd", 66: "left", 67: "fixed.[3]",
}

// probeCounts are values by lanes: equal to the truth, wrong, and not known, with the
// causes of these; by which frame it was and how it was compiled.
type probeCounts struct {
	mutex  sync.Mutex
	counts map[string]*probeCount
}

type probeCount struct {
	equal, wrong, unknown int
	causes                map[string]int
}

func (c *probeCounts) count(kind string) *probeCount {
	if c.counts == nil {
		c.counts = map[string]*probeCount{}
	}
	if c.counts[kind] == nil {
		c.counts[kind] = &probeCount{causes: map[string]int{}}
	}
	return c.counts[kind]
}

func (c *probeCount) cause(n int, format string, args ...any) {
	c.causes[wavecheck.Numbers.ReplaceAllString(fmt.Sprintf(format, args...), "N")] += n
}

func (c *probeCounts) judge(t *testing.T) {
	for _, of := range slices.Sorted(maps.Keys(c.counts)) {
		p := c.counts[of]
		t.Logf("%s: %d values of lanes are equal, %d wrong, %d unknown", of, p.equal, p.wrong, p.unknown)
		for _, cause := range slices.Sorted(maps.Keys(p.causes)) {
			t.Logf("%9d × %s", p.causes[cause], cause)
		}
		if p.wrong > 0 || strings.HasSuffix(of, "-O0") && p.unknown*7 > p.equal || p.equal == 0 {
			t.Errorf("%s: some are wrong, or more are not known than expected", of)
		}
	}
	if len(c.counts) == 0 {
		t.Error("nothing was compared")
	}
}

// A prober executes a kernel, and holds variables against what probe is given.
type prober struct {
	executingWave
	*probeCounts
	t     *testing.T
	entry uint64 // of probe
	level string
}

// TestVariablesOfLanesAreWhatProgramsHave executes programs that give their variables
// to a function, whose arguments are where the calling convention says. Each lane's
// value of the caller's variable must be that.
func TestVariablesOfLanesAreWhatProgramsHave(t *testing.T) {
	gcn.Need(t)
	var counts probeCounts
	t.Cleanup(func() { counts.judge(t) })
	for _, p := range gcn.Processors {
		for i, level := range gcn.Levels {
			if proof.IsRequested() || i%2 == 0 {
				probeGCN(t, "clang-22", p, level, &counts)
			}
		}
	}
}

// TestVariablesOfLanesByAnOlderCompiler is about a compiler that numbers address spaces in
// another way.
func TestVariablesOfLanesByAnOlderCompiler(t *testing.T) {
	gcn.Need(t)
	oracle.Tools(t, "clang-14", "ld.lld-14")
	var counts probeCounts
	t.Cleanup(func() { counts.judge(t) })
	for _, level := range []string{"-O0", "-O2"} {
		for _, i := range []int{0, 2} {
			probeGCN(t, "clang-14", gcn.Processors[i], level, &counts)
		}
	}
}

// probeGCN compiles and executes testdata/lanes/probe.cl.
func probeGCN(t *testing.T, clang string, p gcn.Processor, level string, counts *probeCounts) {
	t.Helper()
	t.Run(clang+" "+p.Name+" "+level, func(t *testing.T) {
		t.Parallel()
		out := filepath.Join(t.TempDir(), "k.co")
		if err := gcn.CompileBy(clang, p, out, []string{"testdata/lanes/probe.cl", gcn.LibraryFile(t)}, level, "-g"); err != nil {
			t.Fatal(err)
		}
		o := gcn.Open(t, p, out)
		pr := &prober{newWave(t, o, withLocals()), counts, t, gcn.CodeBase + o.Symbols["probe"], level}
		for _, k := range o.Kernels {
			s, err := o.Launch(k, rand.New(rand.NewPCG(1, 2)), p.Lanes-7)
			if err != nil {
				t.Fatal(err)
			}
			pr.run(s)
		}
	})
}

// An executingWave is a wave that executes, and the target of an engine that walks it.
type executingWave struct {
	*wavecheck.Judge
	target *Target
}

// newWave makes a wave that is walked with the options.
func newWave(t testing.TB, o *gcn.Object, options Options) executingWave {
	t.Helper()
	options.Plugins = plugin.Options{InProcess: []sdk.Architecture{amdgpu.New()}}
	e, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	j := wavecheck.New(t, o)
	of := e.Attach(j)
	j.Walker = of.Process()
	return executingWave{j, of}
}

// withLocals are options by which walks read variables.
func withLocals() Options { return Options{Locals: &trace.ValueLimits{Depth: 6, Elements: 64}} }

func (p *prober) run(s *gcn.State) {
	p.Launch(s)
	for !s.Ended && s.Steps < gcn.MaxSteps {
		if n := len(p.Calls); s.PC == p.entry && n > 0 {
			// The call has changed the return address alone, so that what its caller had
			// right before it is known too.
			s.PC = p.Calls[n-1].Back - 4
			p.probe("top", 0)
			s.PC = p.entry
			p.probe("caller", 1)
		}
		if err := s.Step(); err != nil {
			p.t.Error(err)
			return
		}
	}
}

// probe holds a variable of a frame against the arguments.
func (p *prober) probe(which string, index int) {
	s := p.State
	var lanes []int
	_ = s.Active(func(lane int) error { lanes = append(lanes, lane); return nil })
	if len(lanes) == 0 {
		return
	}
	p.Refresh()
	ctx := context.Background()
	if err := p.target.process.Refresh(ctx, p.Thread); err != nil {
		p.t.Error(err)
		return
	}
	stack := p.target.Walk(ctx, p.Thread)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	c := p.count(which + " " + p.level)
	if len(stack.Frames) <= index {
		c.unknown += len(lanes)
		c.cause(len(lanes), "%s", stack.Stopped.Detail)
		return
	}
	tag := s.Vector[lanes[0]]
	name := probed[tag]
	if name == "" {
		p.t.Errorf("no variable has number %d", tag)
		return
	}
	for _, lane := range lanes {
		truth := uint64(s.Vector[s.Lanes+lane]) | uint64(s.Vector[2*s.Lanes+lane])<<32
		v, why := laneValue(stack.Frames[index].Locals(), name, uint32(lane)) //nolint:gosec // small
		switch {
		case v == nil:
			c.unknown++
			c.cause(1, "%s: %s", name, why)
		case !isSame(v, truth):
			if c.wrong++; c.wrong < 20 {
				p.t.Errorf("%s frame of %s, lane %d: %s %s = %s, expected %#x", which, p.Object.Path, lane, name, v.Type, v.Text, truth)
			}
		default:
			c.equal++
		}
	}
}

// laneValue is the value that a lane has of a variable, which no other one hides.
func laneValue(levels [][]trace.FrameVariable, path string, lane uint32) (*trace.Value, string) {
	parts := strings.Split(path, ".")
	for _, list := range levels {
		for i := range list {
			v := &list[i]
			if v.Name != parts[0] || v.IsShadowed || v.Lanes != nil && !v.Lanes.Has(lane) {
				continue
			}
			return memberValue(&v.Value, parts[1:])
		}
	}
	return nil, "not in scope"
}

func memberValue(v *trace.Value, path []string) (*trace.Value, string) {
	for _, name := range path {
		i := slices.IndexFunc(v.Children, func(c trace.Value) bool { return c.Name == name })
		if i < 0 {
			break
		}
		v = &v.Children[i]
	}
	if v.Status != trace.ValueOK {
		return nil, fmt.Sprint(v.Status, " ", v.Problem)
	}
	return v, ""
}

// isSame reports whether a value equals the content of a register.
func isSame(v *trace.Value, bits uint64) bool {
	text, _, _ := strings.Cut(v.Text, " ")
	switch v.Type {
	case "float":
		f, err := strconv.ParseFloat(text, 32)
		return err == nil && math.Float32bits(float32(f)) == uint32(bits) //nolint:gosec // the lower half
	case "bool":
		return text == strconv.FormatBool(bits != 0)
	case "enum color", "color":
		return text == map[uint64]string{1: "RED", 2: "GREEN", 7: "BLUE"}[bits]
	case "long", "ulong", "unsigned long":
	default:
		if !strings.HasSuffix(v.Type, "*") {
			bits = uint64(int64(int32(uint32(bits)))) //nolint:gosec // as INT converts it
		}
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return n == bits || n == bits&math.MaxUint32 && n>>32 == 0
	}
	n, err := strconv.ParseInt(text, 0, 64)
	return err == nil && uint64(n) == bits //nolint:gosec // the bits
}

// TestVariablesOfLanesByTheExtension is about locations with operations of the
// heterogeneous extension, which are read to the letter. The compiler's own are made such
// ones: an address space is said by DW_OP_LLVM_form_aspace_address. The frame base of this
// processor counts the bytes of a lane, so that the rest means the same.
func TestVariablesOfLanesByTheExtension(t *testing.T) {
	gcn.Need(t)
	p := gcn.Processors[3]
	out := filepath.Join(t.TempDir(), "k.co")
	gcn.Compile(t, p, out, []string{"testdata/lanes/probe.cl", gcn.LibraryFile(t)}, "-O0", "-g")
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	inSpace := []byte{dw.OpLit0 + 5, dw.OpSwap, dw.OpXderef}
	n := bytes.Count(b, inSpace)
	b = bytes.ReplaceAll(b, inSpace, []byte{dw.OpLit0 + 5, dw.OpLLVMUser, dw.UserFormAspaceAddress})
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var counts probeCounts
	o := gcn.Open(t, p, out)
	pr := &prober{newWave(t, o, withLocals()), &counts, t, gcn.CodeBase + o.Symbols["probe"], "-O0"}
	for _, k := range o.Kernels {
		s, err := o.Launch(k, rand.New(rand.NewPCG(1, 2)), p.Lanes-7)
		if err != nil {
			t.Fatal(err)
		}
		pr.run(s)
	}
	counts.judge(t)
	if n < 20 {
		t.Errorf("%d locations were changed", n)
	}
}
