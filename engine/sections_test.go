// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// sectioned is x86-64 whose plugin says something of an object.
type sectioned struct {
	sdk.Architecture
	answer func(*sdk.OpenObjectRequest) *sdk.OpenObjectAnswer
}

func (a sectioned) OpenObject(_ context.Context, _ sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return a.answer(req), nil
}

// three are functions of a section each, which begin alike, and differ in lines.
const three = `__attribute__((noinline)) static int inner(int v);
int first(int v) {
	return inner(v) + 1;
}

int second(int v) {
	return first(v) * 3;
}

__attribute__((noinline)) static int inner(int v) {
	return v - second(v);
}
`

// sectionPlaces are where the sections of three are loaded, not in their order.
var sectionPlaces = map[string]uint64{"first": 0x7000_0000, "second": 0x5000_0000, "inner": 0x6000_0000}

// sectionsState is a thread at the start of first, with return addresses just
// behind the starts of the other two: whatever row is in force, the CFA is rsp+8.
func sectionsState(t *testing.T, path string) (withModules, *target.Module) {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	m := &target.Module{Module: trace.Module{Path: path, File: path, Arch: "x86_64"}, Object: o}
	for _, name := range []string{"first", "second", "inner"} {
		s := o.Section(".text." + name)
		if s == nil {
			t.Fatalf("no section of %s", name)
		}
		m.Segments = append(m.Segments, trace.Segment{Section: s.Name, Size: s.Size + 0x1000, Start: sectionPlaces[name], Executable: true})
	}
	s := newState(sectionPlaces["second"]+1, sectionPlaces["inner"]+1, 0)
	th := &trace.Thread{ID: "1", Arch: "x86_64"}
	for number, v := range map[uint32]uint64{16: sectionPlaces["first"], 7: stackStart} {
		th.Registers.Set(number, binary.LittleEndian.AppendUint64(nil, v))
	}
	s.threads = append(s.threads, th)
	return withModules{s, []*target.Module{m}}, m
}

func compileSections(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "three.c"), filepath.Join(dir, "three.o")
	if err := os.WriteFile(in, []byte(three), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "gcc", append([]string{"-c", "-O1", "-g", "-fno-optimize-sibling-calls", "-ffunction-sections", "-o", out, in}, flags...)...)
	return out
}

func walkSections(t *testing.T, arch sdk.Architecture, s withModules) (*Target, *trace.Stack) {
	t.Helper()
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{arch}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	target := e.Attach(s)
	return target, target.Walk(context.Background(), s.threads[0])
}

func sectionFrames(s *trace.Stack) (frames []string) {
	for _, f := range s.Frames {
		text := fmt.Sprintf("%#x %s +%#x", f.PC, f.FoundBy, f.ModuleOffset)
		for _, y := range f.Symbols {
			text += fmt.Sprintf(" %s at %#x, %s:%d", y.Function, y.Start, filepath.Base(y.File), y.Line)
		}
		frames = append(frames, text)
	}
	return append(frames, string(s.Stopped.Reason))
}

func TestSectionsOfARelocatableObjectAreLoadedApart(t *testing.T) {
	want := []string{
		"0x70000000 context +0x0 first at 0x0, three.c:2",
		"0x50000001 cfi +0x1 second at 0x0, three.c:6",
		"0x60000001 cfi +0x1 inner at 0x0, three.c:10",
		"outermost",
	}
	for name, flags := range map[string][]string{
		"eh_frame":    nil,
		"debug_frame": {"-fno-asynchronous-unwind-tables"},
		"DWARF 4":     {"-gdwarf-4"},
		"compressed":  {"-gz"},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := sectionsState(t, compileSections(t, flags...))
			tt, stack := walkSections(t, x86_64.New(), s)
			if d := cmp.Diff(want, sectionFrames(stack)); d != "" {
				t.Errorf("(-want +got)\n%s%s", d, stack.Stopped.Detail)
			}
			if p := tt.ModuleInfo(&m.Module).Problems; len(p) > 0 {
				t.Errorf("problems: %q", p)
			}
		})
	}
	t.Run("separate debug file", func(t *testing.T) {
		path := compileSections(t, "-fno-asynchronous-unwind-tables")
		debug := filepath.Join(filepath.Dir(path), "three.debug")
		oracle.Run(t, "objcopy", "--only-keep-debug", path, debug)
		oracle.Run(t, "objcopy", "--strip-debug", "--add-gnu-debuglink="+debug, path)
		s, m := sectionsState(t, path)
		tt, stack := walkSections(t, x86_64.New(), s)
		if info := tt.ModuleInfo(&m.Module); info.DebugFile != debug {
			t.Fatalf("no debug file: %+v", info)
		}
		if d := cmp.Diff(want, sectionFrames(stack)); d != "" {
			t.Errorf("(-want +got)\n%s%s", d, stack.Stopped.Detail)
		}
	})
}

// What the plugin says of a section holds there and nowhere else; what it says of
// none cannot be placed.
func TestAnswersAboutSectionsOfARelocatableObject(t *testing.T) {
	row := func(end uint64, offset int64) []cfi.Row {
		return []cfi.Row{{End: end, ReturnAddress: 16, CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 7, Offset: offset},
			Rules: []cfi.RegisterRule{{Column: 7, Rule: cfi.Rule{Kind: cfi.ValOffset}}, {Column: 16, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}}}}
	}
	answer := func(req *sdk.OpenObjectRequest) *sdk.OpenObjectAnswer {
		index := map[string]uint32{}
		for i, s := range req.Sections {
			if s.Address != 0 {
				t.Errorf("%s is at %#x, expected as in the file", s.Name, s.Address)
			}
			index[s.Name] = uint32(i)
		}
		return &sdk.OpenObjectAnswer{
			Tables: []sdk.RowTable{
				{Priority: sdk.OverridesCFI, Reason: "the test says so", Section: index[".text.second"], Rows: row(0x10, 8)},
				{Priority: sdk.OverridesCFI, Reason: "of no section", Rows: row(0x10, 800)},
			},
			Functions: []sdk.Function{
				{Name: "nowhere", End: 0x10, Kind: sdk.KernelFunction},
				{Name: "deep", Section: index[".text.inner"], End: 0x10, Kind: sdk.KernelFunction},
			},
		}
	}
	s, m := sectionsState(t, compileSections(t))
	tt, stack := walkSections(t, sectioned{x86_64.New(), answer}, s)
	want := []string{
		"0x70000000 context +0x0 first at 0x0, three.c:2",
		"0x50000001 cfi +0x1 second at 0x0, three.c:6",
		"0x60000001 object +0x1 inner at 0x0, three.c:10",
		"outermost",
	}
	if d := cmp.Diff(want, sectionFrames(stack)); d != "" || stack.Stopped.Detail != "deep is a kernel" {
		t.Errorf("(-want +got)\n%s%s", d, stack.Stopped.Detail)
	}
	problems := strings.Join(tt.ModuleInfo(&m.Module).Problems, "\n")
	for _, text := range []string{"rows of the architecture are of no section", "functions of the architecture are of no section", "the test says so"} {
		if !strings.Contains(problems, text) {
			t.Errorf("problems %q, expected %q", problems, text)
		}
	}
}

func TestSegmentsThatAreOfNoSectionAreLeftOut(t *testing.T) {
	path := compileSections(t)
	for _, c := range []struct {
		name    string
		segment trace.Segment
		says    string
	}{
		{"no name", trace.Segment{Size: 16, Executable: true}, "could be what is loaded"},
		{"no such name", trace.Segment{Section: ".text.last", Size: 16, Executable: true}, `called ".text.last"`},
		{"a name of no code", trace.Segment{Section: ".eh_frame", Size: 16, Executable: true}, `called ".eh_frame"`},
		{"behind the section", trace.Segment{Section: ".text.first", Address: 1 << 20, Size: 16, Executable: true}, "a segment at 0x100000 of section .text.first"},
	} {
		s, m := sectionsState(t, path)
		c.segment.Start = sectionPlaces["first"]
		m.Segments = []trace.Segment{c.segment}
		tt, stack := walkSections(t, x86_64.New(), s)
		if p := strings.Join(tt.ModuleInfo(&m.Module).Problems, "\n"); !strings.Contains(p, c.says) {
			t.Errorf("%s: problems %q, expected %q", c.name, p, c.says)
		}
		if f := stack.Frames[0]; f.Module != nil || len(f.Symbols) > 0 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// Memory is mapped by pages: behind its section nothing is the module's, above
// all not the section that follows in the file.
func TestWhatFollowsASectionIsNotTheNextOne(t *testing.T) {
	s, m := sectionsState(t, compileSections(t))
	tt, _ := walkSections(t, x86_64.New(), s)
	size := m.Object.Section(".text.first").Size
	start := sectionPlaces["first"]
	if tt.process.Segment(start+size-1) == nil || tt.process.Segment(start+size) != nil {
		t.Errorf("segments at the end of a section of %#x bytes: %v %v", size, tt.process.Segment(start+size-1), tt.process.Segment(start+size))
	}
	mod := tt.process.Loaded()[0]
	for name, place := range sectionPlaces {
		at := tt.process.Segment(place).ObjectAddress(place)
		if got, ok := mod.Start(at); got != place || !ok || mod.Code.Offset(at) != 0 || mod.Code.Offset(at+1) != 1 {
			t.Errorf("%s: %#x %v, offset %#x", name, got, ok, mod.Code.Offset(at))
		}
	}
	if m.Object.Type() != elf.ET_REL || m.Object.Section(".text.second").Address != 0 {
		t.Error("the module's own object was laid out")
	}
}
