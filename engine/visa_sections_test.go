// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/sdk"
)

// compileZebin compiles a source into a zebin, which tests share.
func compileZebin(t *testing.T, processor, source string) string {
	t.Helper()
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"ocloc", "compile", "-file", source, "-device", processor, "--format", "zebin", "-options", "-g", "-out_dir", "."},
	}}.Make(t)
	found, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	return found[0]
}

// zebins are what is compiled here, and those of the corpus where it is there. Of
// several kernels the compiler leaves out the debugging information.
func zebins(t *testing.T) map[string]string {
	list := map[string]string{"one kernel": compileZebin(t, "tgllp", "testdata/visa/rec.cl")}
	for _, processor := range []string{"skl", "tgllp", "pvc"} {
		list[processor] = compileZebin(t, processor, "../plugins/visa/testdata/two.cl")
	}
	corpus, err := filepath.Glob("../../shared/corpus/visa/zebin/*.zebin")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range corpus {
		list[filepath.Base(path)] = path
	}
	return list
}

// loadZebin loads every section of code of a zebin by itself, in another order
// than that of the file. There is a thread at each of the PCs that at gives.
func loadZebin(t *testing.T, path string, places func(o *object.Object, starts map[uint32]uint64) []uint64) (*Target, map[uint32]uint64) {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	m := &target.Module{Module: trace.Module{Path: path, File: path, Arch: "visa"}, Object: o}
	starts := map[uint32]uint64{}
	for _, s := range o.Sections() {
		if !strings.HasPrefix(s.Name, ".text.") {
			continue
		}
		start := uint64(0x100000 - 0x10000*s.Index)
		starts[uint32(s.Index)] = start
		m.Segments = append(m.Segments, trace.Segment{Section: s.Name, Size: s.Size, Start: start, Executable: true})
	}
	s := newState()
	for i, pc := range places(o, starts) {
		th := &trace.Thread{Handle: uint64(i), ID: fmt.Sprint(i), Arch: "visa"}
		th.Registers.Set(0, binary.LittleEndian.AppendUint32(nil, uint32(pc)))
		s.threads = append(s.threads, th)
	}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{visa.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.Attach(withModules{s, []*target.Module{m}}), starts
}

// Each kernel of a zebin is a section from address 0 on, loaded by itself. At
// every instruction a thread is in the function of its section, at the offset that
// the file has.
func TestThreadsInZebinsAreInTheFunctionOfTheirSection(t *testing.T) {
	type place struct {
		section uint32
		offset  uint64
		name    string
	}
	for name, path := range zebins(t) {
		t.Run(name, func(t *testing.T) {
			var places []place
			functions := map[string]bool{}
			tt, _ := loadZebin(t, path, func(o *object.Object, starts map[uint32]uint64) (pcs []uint64) {
				symbols, err := o.Symbols()
				if err != nil {
					t.Fatal(err)
				}
				for i := range symbols {
					s := &symbols[i]
					if start, ok := starts[s.Section]; ok && s.Size > 0 && s.Name != "_entry" {
						for at := s.Address; at < s.Address+s.Size; at += 16 {
							places = append(places, place{s.Section, at, innermost(symbols, s.Section, at)})
							pcs = append(pcs, start+at)
						}
					}
				}
				return pcs
			})
			lines, kernels := 0, 0
			o := tt.process.Loaded()[0].Object
			for i, th := range tt.Threads() {
				p := places[i]
				functions[p.name] = true
				stack := tt.Walk(context.Background(), th)
				f := &stack.Frames[0]
				kernel := o.Section(".text."+p.name) != nil
				if outermost := strings.HasSuffix(stack.Stopped.Detail, " is a kernel"); outermost && (!kernel || stack.Stopped.Detail != p.name+" is a kernel") {
					t.Fatalf("%+v: %s", p, stack.Stopped.Detail)
				} else if outermost {
					kernels++
				}
				if f.Module != tt.Modules()[0] || f.ModuleOffset != p.offset {
					t.Fatalf("%+v: module offset %#x", p, f.ModuleOffset)
				}
				if len(f.Symbols) == 0 || f.Symbols[len(f.Symbols)-1].Function != p.name {
					t.Fatalf("%+v: in %+v", p, f.Symbols)
				}
				if f.Symbols[0].Line > 0 {
					lines++
				}
			}
			if described := o.Section(".debug_line") != nil; described != (lines > len(places)/2) {
				t.Errorf("%d of %d places have a line, has debugging information: %v", lines, len(places), described)
			}
			if kernels == 0 {
				t.Error("no kernel is the outermost")
			}
			if len(functions) < 4 || len(places) < 100 {
				t.Errorf("only %d functions and %d places", len(functions), len(places))
			}
		})
	}
}

// innermost is the function at an address of a section that begins last. A kernel
// has the size of its whole section, functions in it included.
func innermost(symbols []object.Symbol, section uint32, address uint64) string {
	best := object.Symbol{}
	for _, s := range symbols {
		if s.Section == section && s.Size > 0 && s.Name != "_entry" && address-s.Address < s.Size && (best.Name == "" || s.Address >= best.Address) {
			best = s
		}
	}
	return best.Name
}

// Call frame information of a zebin, where there is some, is found for the section
// that its relocations name, which is not the one that its symbols are in.
func TestCallFrameInformationOfZebinsIsThatOfTheSection(t *testing.T) {
	found := 0
	for name, path := range zebins(t) {
		tt, starts := loadZebin(t, path, func(*object.Object, map[uint32]uint64) []uint64 { return nil })
		m := tt.process.Loaded()[0]
		o := m.Object
		o.SetRelocations(visa.Description().Relocations)
		laid, err := o.LaidOut()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		laid.SetRelocations(visa.Description().Relocations)
		for _, table := range code.FrameTables(laid) {
			for f, err := range table.FDEs() {
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				start, ok := starts[f.Code]
				at := tt.process.Segment(start).ObjectAddress(start) + m.Code.Offset(f.Start)
				if again, err := table.FDE(at); !ok || errors.Is(err, cfi.ErrNoFDE) || again.Offset != f.Offset {
					t.Errorf("%s: FDE at %#x: of section %d, found by %#x: %v", name, f.Offset, f.Code, at, err)
				}
				found++
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d FDEs", found)
	}
}
