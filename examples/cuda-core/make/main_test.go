// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/examples/cuda-core/sass"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/sdk"
)

const committed = "../crash.core"

// recorded reads the stacks of all lanes of a core from their tables, by Go's reader of ELF
// files and the names of sections.
func recorded(t *testing.T, file string) map[string][]uint64 {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stacks := map[string][]uint64{}
	le := binary.LittleEndian
	for _, s := range f.Sections {
		suffix, ok := strings.CutPrefix(s.Name, ".cudbg.lntbl")
		if !ok {
			continue
		}
		rows, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		for i := uint64(0); (i+1)*s.Entsize <= uint64(len(rows)); i++ {
			row := rows[i*s.Entsize:]
			stack := []uint64{le.Uint64(row)}
			if b := f.Section(fmt.Sprintf(".cudbg.bt%s.ln%d", suffix, i)); b != nil {
				calls, err := b.Data()
				if err != nil {
					t.Fatal(err)
				}
				for ; len(calls) > 0; calls = calls[b.Entsize:] {
					stack = append(stack, le.Uint64(calls[8:]))
				}
			}
			stacks[fmt.Sprintf("%s lane %d", suffix, le.Uint32(row[16:]))] = stack
		}
	}
	return stacks
}

// openCore opens a core.
func openCore(t *testing.T, file string) *engine.Target {
	t.Helper()
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{nvidia.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	target, err := e.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	return target
}

// TestWalksAreTheRecordedStacks walks the committed core by call frame information alone: the
// stack of each thread is the one that the core has recorded for its lanes, and no lane is
// left out.
func TestWalksAreTheRecordedStacks(t *testing.T) {
	want := recorded(t, committed)
	target := openCore(t, committed)
	if details := target.Crashed().Stop.Details; !slices.Contains(details, "it loads from R5:R4, now 0x7fffb0001dc0") {
		t.Errorf("details %q, expected the address behind the parts", details)
	}
	if problems := target.Problems(); len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
	walked, left := map[string]int{}, map[string]int{}
	for stack := range target.Stacks(t.Context()) {
		var list []uint64
		for i := range stack.Frames {
			if stack.Frames[i].FoundBy != "" && i > 0 && stack.Frames[i].FoundBy != "cfi" {
				t.Errorf("%s: frame %d was found by %s", stack.Thread.ID, i, stack.Frames[i].FoundBy)
			}
			list = append(list, stack.Frames[i].PC)
		}
		walked[fmt.Sprintf("%#x", list)] += len(stack.Thread.LaneStates)
	}
	for _, stack := range want {
		left[fmt.Sprintf("%#x", stack)]++
	}
	if len(want) < 60 {
		t.Fatalf("%d lanes", len(want))
	}
	for stack, lanes := range left {
		if walked[stack] != lanes {
			t.Errorf("%d lanes have the stack %s, expected %d", walked[stack], stack, lanes)
		}
	}
	if len(walked) != len(left) {
		t.Errorf("%d different stacks, expected %d", len(walked), len(left))
	}
}

// TestStacksAfterEachStep executes the kernel, and stops it after each of many steps: also in
// the prologues and epilogues of functions, the stacks that are walked are the calls that were
// executed.
func TestStacksAfterEachStep(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, "nvcc", "nvdisasm")
	dir := t.TempDir()
	cubin, err := compile("../parts.cu", dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := sass.Disassemble("nvdisasm", filepath.Join(dir, "parts.cubin"), kernel)
	if err != nil {
		t.Fatal(err)
	}
	image, start, err := relocate(cubin)
	if err != nil {
		t.Fatal(err)
	}
	l := newLaunch(p)
	cores, seen := 0, map[uint64]bool{}
	for step := range 1 << 20 {
		isOver, err := l.step(step)
		if err != nil {
			t.Fatal(err)
		}
		if isOver || l.faulted != nil {
			break
		}
		if !l.isNew(seen) && step%50 != 0 {
			continue
		}
		cores++
		file := filepath.Join(dir, "step.core")
		if err := os.WriteFile(file, describe(l, cubin, image, start).Build().Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := check(file, l, start); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	if missing := slices.DeleteFunc(slices.Clone(p.Instructions), func(i sass.Instruction) bool { return seen[i.Offset] || i.Name == "NOP" || i.Name == "BRA" }); len(missing) > 0 {
		t.Logf("no lane stood at %d instructions, the first at %#x", len(missing), missing[0].Offset)
	}
	t.Logf("%d cores, lanes at %d instructions", cores, len(seen))
}

// isNew reports whether a lane is at an instruction at which none was before.
func (l *launched) isNew(seen map[uint64]bool) (isNew bool) {
	for _, w := range l.warps {
		for _, lane := range w.Lanes {
			if lane.State != sass.Exited && !seen[lane.PC] {
				seen[lane.PC], isNew = true, true
			}
		}
	}
	return isNew
}

// changed writes the committed core with a change.
func changed(t *testing.T, name string, change func(data []byte) []byte) string {
	t.Helper()
	data, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// withoutSections gives all sections of a type another one, which nothing reads.
func withoutSections(data []byte, kind uint32) []byte {
	le := binary.LittleEndian
	for at := le.Uint64(data[40:]); at < uint64(len(data)); at += sectionHeader {
		if le.Uint32(data[at+4:]) == kind {
			le.PutUint32(data[at+4:], 0)
		}
	}
	return data
}

// pcsOf are the PCs of the frames of each thread.
func pcsOf(t *testing.T, file string) (stacks map[string][]uint64, found map[string]int) {
	t.Helper()
	stacks, found = map[string][]uint64{}, map[string]int{}
	for stack := range openCore(t, file).Stacks(t.Context()) {
		for i := range stack.Frames {
			stacks[stack.Thread.ID] = append(stacks[stack.Thread.ID], stack.Frames[i].PC)
			found[string(stack.Frames[i].FoundBy)]++
		}
	}
	return stacks, found
}

// TestLightweightCores walks a core without local memory, as the driver writes it where it is
// asked for a lightweight one: the stacks are the recorded ones.
func TestLightweightCores(t *testing.T) {
	const local = 0x80000003
	want, _ := pcsOf(t, committed)
	got, found := pcsOf(t, changed(t, "light.core", func(data []byte) []byte { return withoutSections(data, local) }))
	for id, stack := range want {
		if !slices.Equal(got[id], stack) {
			t.Errorf("%s: %#x, expected %#x", id, got[id], stack)
		}
	}
	if found["callchain"] == 0 {
		t.Errorf("no frame was found by the recorded callers: %v", found)
	}
}

// TestPackedCores opens a core that the driver has packed.
func TestPackedCores(t *testing.T) {
	want, _ := pcsOf(t, committed)
	got, _ := pcsOf(t, changed(t, "packed.core.gz", func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(data)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}))
	if len(got) != len(want) {
		t.Errorf("%d threads, expected %d", len(got), len(want))
	}
}
