// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// Every instruction of the corpus has the name of what it is in: where there is
// nothing but the stream, which names kernels, what they call, and subroutines.
// Where a stream does not say where a subroutine is, what may be its code has none.
func TestNamesOfStreamsReachFrames(t *testing.T) {
	dirs := map[string]bool{}
	for _, path := range oracle.Beside(t, "corpus/visa/*/*.asm") {
		dirs[filepath.Dir(path)] = true
	}
	instructions, called, unnamed := 0, 0, 0
	for dir := range dirs {
		for _, c := range readGenCode(t, filepath.Base(dir), dir) {
			t.Run(c.name, func(t *testing.T) {
				w := newGenWalk(t, c, genStream)
				m := w.target.process.Loaded()[0].Code
				if err := m.Open(context.Background()); err != nil {
					t.Fatal(err)
				}
				first := map[string]uint64{}
				for _, in := range c.assembly.Instructions {
					if _, ok := first[in.Function]; !ok {
						first[in.Function] = in.Offset
					}
					instructions++
					if in.Function != c.assembly.Kernel {
						called++
					}
					frames := m.Names(in.Offset, false)
					got, want := fmt.Sprint(len(frames)), fmt.Sprintf("%s %#x", in.Function, first[in.Function])
					if len(frames) == 1 {
						got = fmt.Sprintf("%s %#x", frames[0].Function, frames[0].Start)
					}
					if len(frames) == 0 && m.FunctionAt(context.Background(), in.Offset) != nil && in.Offset > 0 {
						unnamed++
						continue
					}
					if got != want {
						t.Errorf("%#x: %s, expected %s", in.Offset, got, want)
					}
				}
			})
		}
	}
	t.Logf("%d instructions, %d in what is called, %d without a name", instructions, called, unnamed)
	if instructions < 1000 || called < 500 || unnamed > instructions/8 {
		t.Errorf("%d instructions, %d in what is called, %d without a name", instructions, called, unnamed)
	}
}

// A stream beside code that has no DWARF names its frames, too.
func TestNamesOfStreamsBesideCode(t *testing.T) {
	named, all := 0, 0
	for _, dir := range []string{"skl-rec-O2", "tgllp-k-O2", "pvc-rec-O0"} {
		for _, c := range readGenCode(t, dir, filepath.Dir(oracle.Beside(t, "corpus/visa/"+dir+"/*.asm")[0])) {
			elf, err := os.ReadFile(c.elf)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := os.ReadFile(c.dbg)
			if err != nil {
				t.Fatal(err)
			}
			frames, _ := genFrames(t, genModule{name: "k", data: withoutDWARF(elf), stream: stream})
			functions := map[uint64]string{}
			for _, in := range c.assembly.Instructions {
				functions[in.Offset] = in.Function
			}
			for i, list := range frames {
				want, is := functions[uint64(i)*8]
				if !is {
					continue
				}
				all++
				if len(list) == 0 {
					continue
				}
				if named++; list[0].Function != want {
					t.Errorf("%s: %#x: %s, expected %s", c.name, i*8, list[0].Function, want)
				}
			}
		}
	}
	if t.Logf("%d of %d instructions have names", named, all); all < 300 || named < all*7/8 {
		t.Errorf("%d of %d instructions have names", named, all)
	}
}

// What problems call a function without a name is not its name.
func TestFramesHaveNoMadeUpNames(t *testing.T) {
	dir := filepath.Dir(oracle.Beside(t, "corpus/visa/skl-rec-O2/*.asm")[0])
	for _, c := range readGenCode(t, "skl-rec-O2", dir) {
		w := newGenWalk(t, c, genFrame)
		m := w.target.process.Loaded()[0].Code
		if err := m.Open(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, in := range c.assembly.Instructions {
			if f := m.FunctionAt(context.Background(), in.Offset); f != nil && f.Name != "" {
				t.Errorf("%#x: %q", in.Offset, f.Name)
			}
		}
	}
}
