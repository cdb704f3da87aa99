// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// replay is samples of g++'s compiler proper while it compiles a program,
// taken by testdata/samples/sampler.c.
type replay struct {
	modules []*target.Module
	samples []*walk.Sample
	pcs     [][]uint64 // what backtrace() of the C library said, for each sample
}

// record takes at most limit samples.
func record(tb testing.TB, limit int) *replay {
	tb.Helper()
	oracle.Tools(tb, "gcc", "g++")
	dir := tb.TempDir()
	sampler := filepath.Join(dir, "sampler.so")
	compile := func(env []string, args ...string) {
		tb.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	compile(nil, "gcc", "-O2", "-shared", "-fPIC", "testdata/samples/sampler.c", "-o", sampler)
	compile([]string{"SAMPLES=" + filepath.Join(dir, "s"), "LD_PRELOAD=" + sampler},
		"g++", "-std=c++17", "-O2", "-g", "-c", "testdata/variables/exchange.cpp", "-o", filepath.Join(dir, "x.o"))
	all, err := filepath.Glob(filepath.Join(dir, "s.*.maps"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, maps := range all {
		text, err := os.ReadFile(maps)
		if err != nil {
			tb.Fatal(err)
		}
		if !strings.Contains(string(text), "/cc1plus\n") {
			continue
		}
		r := &replay{modules: mappedModules(tb, string(text))}
		r.read(tb, strings.TrimSuffix(maps, ".maps"), limit)
		return r
	}
	tb.Fatalf("%d processes were sampled, none is the compiler", len(all))
	return nil
}

// mappedModules opens the files of executable mappings.
func mappedModules(tb testing.TB, maps string) []*target.Module {
	tb.Helper()
	var modules []*target.Module
	for line := range strings.Lines(maps) {
		var start, end, offset, inode uint64
		var perms, device, path string
		if n, _ := fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &start, &end, &perms, &offset, &device, &inode, &path); n < 7 ||
			perms[2] != 'x' || path[0] != '/' {
			continue
		}
		o, err := object.Open(path)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { o.Close() })
		s, ok := o.SegmentForMapping(offset, end-start, true)
		if !ok {
			tb.Fatalf("%s: no segment at %#x", path, offset)
		}
		modules = append(modules, &target.Module{
			Module: trace.Module{
				ID:       len(modules),
				Path:     path,
				Arch:     "x86_64",
				File:     path,
				Segments: []trace.Segment{{Address: s.Address - s.Offset + offset, Size: end - start, Start: start, Executable: true}},
			},
			Object: o,
		})
	}
	return modules
}

func (r *replay) read(tb testing.TB, path string, limit int) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	word := func() uint64 {
		var b [8]byte
		if _, err := io.ReadFull(in, b[:]); err != nil {
			tb.Fatal(err)
		}
		return binary.LittleEndian.Uint64(b[:])
	}
	for n := min(word(), uint64(limit)); n > 0; n-- {
		pcs, size := make([]uint64, word()), word()
		s := &walk.Sample{Sample: trace.Sample{Arch: "x86_64"}, Loaded: r.modules}
		for reg := range uint32(17) {
			s.Registers.Set(reg, binary.LittleEndian.AppendUint64(nil, word()))
		}
		sp, _ := s.Registers.Uint64(x86_64.Description().SP, sdk.LittleEndian)
		for i := range pcs {
			pcs[i] = word()
		}
		s.StackStart, s.Stack = sp-128, make([]byte, size)
		if _, err := io.ReadFull(in, s.Stack); err != nil {
			tb.Fatal(err)
		}
		// The vDSO has no file.
		if !slices.ContainsFunc(pcs, func(pc uint64) bool { _, executable := s.Mapped(pc - 1); return !executable }) {
			r.samples, r.pcs = append(r.samples, s), append(r.pcs, pcs)
		}
	}
	if len(r.samples) == 0 {
		tb.Fatal("no samples")
	}
}

func newX86Engine(tb testing.TB, options Options) *Engine {
	tb.Helper()
	return newEngineOf(tb, x86_64.New(), options)
}

// evaluated is an architecture of whose rows none can be compiled: no register is
// one of addresses.
type evaluated struct{ sdk.Architecture }

func (a evaluated) Describe(ctx context.Context) (*sdk.Description, error) {
	d, err := a.Architecture.Describe(ctx)
	if err != nil {
		return nil, err
	}
	own := *d
	own.Registers = slices.Clone(d.Registers)
	for i := range own.Registers {
		own.Registers[i].Class = sdk.Vector
	}
	return &own, nil
}

func newEngineOf(tb testing.TB, arch sdk.Architecture, options Options) *Engine {
	tb.Helper()
	options.Plugins = plugin.Options{InProcess: []sdk.Architecture{arch}}
	e, err := New(options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close() })
	return e
}

// TestSamplesWalkLikeBacktrace walks samples of a large program, by compiled
// rows and without, and holds them against the C library's own unwinder, which
// ran in the process. A recorded stack may end before the stack does.
func TestSamplesWalkLikeBacktrace(t *testing.T) {
	if testing.Short() {
		t.Skip("samples a compiler")
	}
	r := record(t, 1500)
	e := newX86Engine(t, Options{NoSymbols: true})
	walker := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64"}, Loaded: r.modules}).Process().Walker()
	plain := newEngineOf(t, evaluated{x86_64.New()}, Options{NoSymbols: true}).Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64"}, Loaded: r.modules}).Process().Walker()
	whole, cut, further, differ, frames := 0, 0, 0, 0, 0
	reasons := map[trace.StopReason]int{}
	for i, s := range r.samples {
		stack := walker.Walk(context.Background(), s)
		got := pcs(stack)
		frames += len(got)
		reasons[stack.Stopped.Reason]++
		switch {
		case slices.Equal(got, r.pcs[i]):
			whole++
		case stack.Stopped.Reason == trace.StopEndOfStack && len(got) <= len(r.pcs[i]) && slices.Equal(got, r.pcs[i][:len(got)]):
			cut++
		case len(got) > len(r.pcs[i]) && slices.Equal(got[:len(r.pcs[i])], r.pcs[i]) && stack.Frames[len(r.pcs[i])].FoundBy != trace.ByCFI:
			further++ // in code without call frame information, where the other gives up
		default:
			if differ++; differ <= 5 {
				t.Errorf("sample %d: %s: %s\ngot       %#x\nbacktrace %#x", i, stack.Stopped.Reason, stack.Stopped.Detail, got, r.pcs[i])
			}
		}
		slow := plain.Walk(context.Background(), s)
		if !slices.EqualFunc(stack.Frames, slow.Frames, func(a, b trace.Frame) bool {
			return a.PC == b.PC && a.CFA == b.CFA && a.CFASpace == b.CFASpace && a.HasCFA == b.HasCFA
		}) ||
			stack.Stopped.Reason != slow.Stopped.Reason {
			t.Errorf("sample %d: with compiled rows %#x, %v, without %#x, %v", i, got, stack.Stopped, pcs(slow), slow.Stopped)
		}
	}
	t.Logf("%d samples, %d frames: %d whole, %d cut, %d go further, %d differ; %v", len(r.samples), frames, whole, cut, further, differ, reasons)
	if whole*2 < len(r.samples) {
		t.Errorf("%d of %d samples were walked to their end, expected half of them", whole, len(r.samples))
	}
}

// BenchmarkWalk walks recorded stacks without symbols, when every row is known.
// cpu-ns/frame is of processor time.
func BenchmarkWalk(b *testing.B) {
	r := record(b, 3000)
	e := newX86Engine(b, Options{NoSymbols: true})
	walker := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64"}, Loaded: r.modules}).Process().Walker()
	walkOne := func(s *walk.Sample) *trace.Stack { return walker.Walk(context.Background(), s) }
	deep := 0
	for i := range r.pcs {
		if len(r.pcs[i]) > len(r.pcs[deep]) {
			deep = i
		}
	}
	// One stack after the other: each is read from memory.
	b.Run("stream", func(b *testing.B) { benchWalk(b, r.samples, walkOne) })
	// The deepest one again and again, in the processor's caches.
	b.Run("deep", func(b *testing.B) { benchWalk(b, r.samples[deep:deep+1], walkOne) })
	// The same as a target, whose stacks are the caller's to keep.
	b.Run("target", func(b *testing.B) {
		process := e.Attach(r.samples[deep])
		benchWalk(b, r.samples[deep:deep+1], func(s *walk.Sample) *trace.Stack { return process.Walk(context.Background(), s.Thread()) })
	})
}

func benchWalk(b *testing.B, samples []*walk.Sample, walk func(*walk.Sample) *trace.Stack) {
	b.Helper()
	for _, s := range samples {
		walk(s)
	}
	frames, i := 0, 0
	before := oracle.ProcessorTime()
	b.ReportAllocs()
	for b.Loop() {
		frames += len(walk(samples[i]).Frames)
		i = (i + 1) % len(samples)
	}
	b.ReportMetric(float64(oracle.ProcessorTime()-before)/float64(frames), "cpu-ns/frame")
	b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
}

// lookup is one question to the cache of rows.
type lookup struct {
	module  *code.Module
	address uint64
	exact   bool
}

// replay is the look-ups of all walks of a recording, in their order.
func (r *replay) replay(tb testing.TB, process *Target) []lookup {
	tb.Helper()
	walker := process.Process().Walker()
	var lookups []lookup
	for _, s := range r.samples {
		for _, f := range walker.Walk(context.Background(), s).Frames {
			if f.Module != nil {
				lookups = append(lookups, lookup{process.process.Loaded()[f.Module.ID], f.ModuleOffset, f.Exact})
			}
		}
	}
	return lookups
}

// BenchmarkRowCache replays the look-ups of a recorded profile. hit-% is of the
// first round, where every address is new once; distinct is how many there are.
func BenchmarkRowCache(b *testing.B) {
	r := record(b, 1<<20)
	e := newX86Engine(b, Options{NoSymbols: true})
	known := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64"}, Loaded: r.modules})
	lookups := r.replay(b, known)
	misses, distinct := e.Library().RowMisses(), map[lookup]bool{}
	for _, l := range lookups {
		distinct[l] = true
	}
	before, n := oracle.ProcessorTime(), 0
	b.ReportAllocs()
	for b.Loop() {
		l := lookups[n%len(lookups)]
		if _, err := l.module.Row(context.Background(), l.address, l.exact); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(oracle.ProcessorTime()-before)/float64(n), "cpu-ns/op")
	b.ReportMetric(100*(1-float64(misses)/float64(len(lookups))), "hit-%")
	b.ReportMetric(float64(len(distinct)), "distinct")
}
