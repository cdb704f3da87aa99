// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

var rocmLayouts = []corefile.Layout{corefile.Unified, corefile.Split, corefile.Merged}

// rocmEngine is an engine with everything that is shown of a wave.
func rocmEngine(t testing.TB, o Options) *Engine {
	t.Helper()
	o.Plugins = plugin.Options{InProcess: []sdk.Architecture{amdgpu.New(), x86_64.New()}}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func allOfWaves() Options {
	return Options{Registers: true, Lanes: true, Locals: &trace.ValueLimits{Depth: 3, Elements: 16}}
}

// TestCoresAndSnapshotsOfTheSameWaves executes the kernels of the corpus, stops them, and
// makes a core and a snapshot of them: their stacks are those that the executor knows, and
// equal, with lanes, variables and the registers of every frame. Frames are found by the call
// frame information of the object, by what its code says, and by that without names.
func TestCoresAndSnapshotsOfTheSameWaves(t *testing.T) {
	gcn.Need(t)
	paths := oracle.Beside(t, "corpus/amdgpu/O?/*.co")
	n := 0
	for i, path := range paths {
		name := filepath.Base(path)
		p := gcn.ProcessorOf(t, name)
		for k, stripped := range []bool{false, true} {
			for j, layout := range rocmLayouts {
				if !proof.IsRequested() && (i+j+k)%3 != 0 {
					continue
				}
				n++
				version := uint32(8 + n%5) //nolint:gosec // small
				t.Run(fmt.Sprint(filepath.Base(filepath.Dir(path)), " ", name, " ", layout, " stripped ", stripped), func(t *testing.T) {
					used := path
					if stripped {
						used = strippedObject(t, path)
					}
					// The call frame information of these objects is not exact everywhere.
					isExact := !strings.Contains(name, ".cfi.") || stripped
					compareWaves(t, gcn.Open(t, p, path), used, layout, version, isExact)
				})
			}
		}
	}
}

// TestCoresOfGeneratedProgramsOnMoreProcessors does the same for processors that the
// corpus has not, with generated programs.
func TestCoresOfGeneratedProgramsOnMoreProcessors(t *testing.T) {
	gcn.Need(t)
	for i, p := range slices.Concat(gcn.OtherProcessors, gcn.Processors) {
		for k, layout := range rocmLayouts {
			if !proof.IsRequested() && (i+k)%6 != 0 {
				continue
			}
			seed := uint64(i + k) //nolint:gosec // small
			t.Run(fmt.Sprint(p.Name, " ", layout), func(t *testing.T) {
				level := gcn.Levels[(i+k)%len(gcn.Levels)]
				device, _ := gcn.Program(t, p, seed, level)
				out := filepath.Join(t.TempDir(), "k.co")
				gcn.Compile(t, p, out, []string{device}, level)
				compareWaves(t, gcn.Open(t, p, out), out, layout, uint32(8+(i+k)%5), true) //nolint:gosec // small
			})
		}
	}
}

// strippedObject is an object without symbols and debug information.
func strippedObject(t testing.TB, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "stripped.co")
	if text, err := exec.Command(oracle.Tool(t, "llvm-strip-22"), "--strip-all", "-o", out, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// compareWaves makes a core and a snapshot of each kernel's waves. The code object that
// they name is the one at path.
func compareWaves(t *testing.T, o *gcn.Object, path string, layout corefile.Layout, version uint32, isExact bool) {
	t.Helper()
	o.Path = path
	frames, calls, values := 0, 0, 0
	for _, k := range o.Kernels {
		w := stopGCN(t, o, k, 1, 12)
		core, _ := writeROCm(t, withHost(t, (&coreMaker{layout: layout, version: version}).core(w)))
		e := rocmEngine(t, allOfWaves())
		of, err := e.Open(core)
		if err != nil {
			t.Fatal(err)
		}
		if problems := of.Problems(); len(problems) > 0 {
			t.Errorf("problems: %q", problems)
		}
		threads := of.Threads()[1:]
		if n := len(threads); n != len(w.waves) {
			t.Fatalf("%d waves, expected %d", n, len(w.waves))
		}
		held := e.Attach(w.held(t, threads))
		snapshot, contents := taken(t, e, held, SnapshotOptions{})
		if len(contents.Problems) > 0 {
			t.Errorf("problems of the snapshot: %q", contents.Problems)
		}
		again := takenPlainly(t, e, core)
		a, b, c := stacksOf(of)[1:], stacksOf(snapshot)[1:], stacksOf(again)[1:] // without the host's thread
		for i := range w.waves {
			frames += len(a[i].Frames)
			calls += len(w.waves[i].stack) - 1
			values += knownValues(a[i])
			if isExact {
				isTrue(t, a[i], w.waves[i].stack)
			}
			sameStacks(t, "a snapshot of the executor's", w.waves[i].pc, b[i], a[i])
			sameStacks(t, "a snapshot of the core", w.waves[i].pc, c[i], a[i])
			sameRegisters(t, held, of, held.Threads()[1+i], threads[i])
		}
	}
	t.Logf("%d frames, %d calls, %d values of variables", frames, calls, values)
	if frames == 0 {
		t.Error("nothing was compared")
	}
}

// takenPlainly is a snapshot of a core as who takes it takes one: without asking for
// variables and lanes.
func takenPlainly(t *testing.T, e *Engine, core string) *Target {
	t.Helper()
	plain, err := rocmEngine(t, Options{}).Open(core)
	if err != nil {
		t.Fatal(err)
	}
	s, err := plain.Snapshot(t.Context(), SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plain.snapshot")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(s.Write(f), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// knownValues counts the variables of a stack whose values are known.
func knownValues(s *trace.Stack) (n int) {
	for i := range s.Frames {
		for _, list := range s.Frames[i].Locals() {
			for k := range list {
				if list[k].Status == trace.ValueOK {
					n++
				}
			}
		}
	}
	return n
}

func stacksOf(t *Target) (list []*trace.Stack) {
	for s := range t.Stacks(context.Background()) {
		list = append(list, s)
	}
	return list
}

// isTrue holds a stack against the calls that the executor has in progress. What is not
// known may be missing.
func isTrue(t *testing.T, s *trace.Stack, want []uint64) {
	t.Helper()
	if len(s.Frames) > len(want) {
		t.Errorf("%s: %d frames, expected %d", s.Thread.ID, len(s.Frames), len(want))
		return
	}
	for i := range s.Frames {
		if s.Frames[i].PC != want[i] {
			t.Errorf("%s: frame %d is at %#x, expected %#x", s.Thread.ID, i, s.Frames[i].PC, want[i])
		}
	}
	if len(s.Frames) < len(want) {
		t.Logf("%s at %#x: %d frames of %d: %v", s.Thread.ID, want[0], len(s.Frames), len(want), s.Stopped)
	}
}

// sameStacks holds what is known of two stacks against each other.
func sameStacks(t *testing.T, what string, pc uint64, want, got *trace.Stack) {
	t.Helper()
	for _, s := range []*trace.Stack{want, got} {
		for i := range s.Frames {
			s.Frames[i].Module = nil
		}
	}
	if want.Lanes != got.Lanes || want.Stopped != got.Stopped || !reflect.DeepEqual(want.Frames, got.Frames) {
		d := cmp.Diff(want.Frames, got.Frames, cmp.Exporter(func(reflect.Type) bool { return true }))
		t.Errorf("%s at %#x differs from the core (%d and %d lanes, %v and %v):\n%.3000s", what, pc, want.Lanes, got.Lanes, want.Stopped, got.Stopped, d)
	}
}

// sameRegisters holds the registers of every frame against each other, whatever lanes
// they have.
func sameRegisters(t *testing.T, first, second *Target, thread, other *trace.Thread) {
	t.Helper()
	d, err := first.engine.Plugins().Find("amdgpu")
	if err != nil {
		t.Fatal(err)
	}
	_, a := first.process.Activations(context.Background(), thread)
	_, b := second.process.Activations(context.Background(), other)
	if len(a) != len(b) {
		t.Errorf("%d frames, expected %d", len(b), len(a))
		return
	}
	for i := range a {
		for k, number := range thread.Registers.Numbers {
			size := int(thread.Registers.Offsets[k+1] - thread.Registers.Offsets[k])
			info, _ := d.Description().Register(number)
			if x, y := registerText(a[i], number, size), registerText(b[i], number, size); x != y {
				t.Errorf("frame %d of %s at %#x: %s is\n%s, expected\n%s", i, other.ID, a[0].Lookup(), info.Name, y, x)
				return
			}
		}
	}
}

// registerText is a register of a frame in hexadecimal, lane by lane where not all of it is
// known.
func registerText(a walk.Activation, number uint32, size int) string {
	l, err := a.Location(context.Background(), uint64(number))
	if err != nil {
		return err.Error()
	}
	b := make([]byte, size)
	if l.Read(context.Background(), a.Context(), b, uint64(size)*8) == nil { //nolint:gosec // positive
		return hex.EncodeToString(b)
	}
	var text strings.Builder
	for i := 0; i < size; i += 4 {
		part, err := l.Offset(int64(i) * 8)
		if err == nil {
			err = part.Read(context.Background(), a.Context(), b[:4], 32)
		}
		if err != nil {
			text.WriteString("????????")
			continue
		}
		fmt.Fprintf(&text, "%x", b[:4])
	}
	return text.String()
}
