// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// withModules is a state with modules.
type withModules struct {
	*state
	modules []*target.Module
}

func (s withModules) Modules() []*target.Module { return s.modules }

// assemble makes a file of assembler text with gcc.
func assemble(t testing.TB, text string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.s"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "gcc", append([]string{"-o", out, in}, args...)...)
	return out
}

func openObject(t testing.TB, path string) *object.Object {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	desc, err := x86_64.New().Describe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	o.SetRelocations(desc.Relocations)
	return o
}

// An instruction of a vendor that nobody here knows makes its FDE unreadable.
// The walk asks the architecture about that function, says what happened, and
// reads the other functions' FDEs.
func TestAnUnknownCFAInstructionCostsItsFDEAndTheWalkGoesOn(t *testing.T) {
	path := assemble(t, `
	.text
	.macro function name cfa rules:vararg
\name:	.cfi_startproc simple
	.cfi_return_column 3
	.cfi_def_cfa 0, \cfa
	.cfi_offset 3, -8
	\rules
	.skip 16, 0x90
	.cfi_endproc
	.endm
	function first, 16, .cfi_escape 0x3f
	function second, 8
	function last, 8, .cfi_undefined 3
`, "-shared", "-nostdlib", "-Wl,-Ttext=0x1000", "-Wl,--build-id=none")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[18], b[19] = 0x34, 0x12 // e_machine: the toy's
	o, err := object.New("toy.so", b)
	if err != nil {
		t.Fatal(err)
	}
	m := &target.Module{
		Module: trace.Module{
			Path:     "toy.so",
			Arch:     "toy",
			Segments: []trace.Segment{{Address: 0x1000, Size: 0x30, Start: codeStart, Executable: true}},
		},
		Object: o,
	}
	s := withModules{newState(1, 0x1014, 0x1024, 2).thread(0x1004, stackStart, 0, 0), []*target.Module{m}}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{described{&toy{rows: []cfi.Row{row(0x1000, 0x1010, 16)}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tt := e.Attach(s)
	stack := tt.Walk(context.Background(), s.threads[0])
	var got []string
	for _, f := range stack.Frames {
		got = append(got, fmt.Sprintf("%#x %s", f.PC, f.FoundBy))
	}
	got = append(got, string(stack.Stopped.Reason))
	if diff := cmp.Diff([]string{"0x1004 context", "0x1014 rules", "0x1024 cfi", "outermost"}, got); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	problems := strings.Join(tt.ModuleInfo(&m.Module).Problems, "\n")
	if !strings.Contains(problems, ".eh_frame+0x") || !strings.Contains(problems, cfi.ErrInstruction.Error()+": 0x3f") {
		t.Errorf("problems %q, expected the unknown instruction and its offset", problems)
	}
}

// groups is C++ that leaves each function in a section of its own, most of them
// in section groups.
const groups = `
int use(int);
template <int n> struct thing { int twice(int v) { return use(v + n) + n; } };
template struct thing<1>;
template struct thing<2>;
int plain(int v) { return use(v) + 1; }
`

func relocatable(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "groups.cc"), filepath.Join(dir, "groups.o")
	if err := os.WriteFile(in, []byte(groups), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "g++", append([]string{"-c", "-O1", "-g", "-ffunction-sections", "-o", out, in}, flags...)...)
	return out
}

// The code sections of a relocatable object all begin at address 0. The
// relocation of an FDE's location says which of them it is for.
func TestFDEsOfARelocatableObjectAreThoseOfTheirSection(t *testing.T) {
	debugFrame := []string{"-fno-exceptions", "-fno-asynchronous-unwind-tables"}
	compress := func(kind string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			oracle.Run(t, "objcopy", "--compress-debug-sections="+kind, path)
		}
	}
	for _, c := range []struct {
		name, section string
		flags         []string
		change        func(t *testing.T, path string)
	}{
		{name: "eh_frame", section: ".eh_frame"},
		{name: "debug_frame", section: ".debug_frame", flags: debugFrame},
		{name: "debug_frame, zlib", section: ".debug_frame", flags: debugFrame, change: compress("zlib-gabi")},
		{name: "debug_frame, zstd", section: ".debug_frame", flags: debugFrame, change: compress("zstd")},
		{name: "debug_frame, old zlib", section: ".debug_frame", flags: debugFrame, change: compress("zlib-gnu")},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := relocatable(t, c.flags...)
			if c.change != nil {
				c.change(t, path)
			}
			o := openObject(t, path)
			tables := code.FrameTables(o)
			if len(tables) != 1 || tables[0].Err != nil || tables[0].Section != c.section {
				t.Fatalf("tables %+v, expected one of %s", tables, c.section)
			}
			table := tables[0].Table
			symbols, err := o.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			functions := 0
			for _, s := range symbols {
				if s.Type != elf.STT_FUNC || s.Size == 0 {
					continue
				}
				functions++
				f, err := table.FDEIn(s.Section, s.Address+s.Size-1)
				if err != nil {
					t.Errorf("%s: %v", s.Name, err)
					continue
				}
				if f.Start != s.Address || f.End != s.Address+s.Size || f.Code != s.Section {
					t.Errorf("%s: FDE of %#x to %#x in section %d, expected %#x to %#x in %d", s.Name, f.Start, f.End, f.Code, s.Address, s.Address+s.Size, s.Section)
				}
				if _, err := table.FDEIn(s.Section, s.Address+s.Size); !errors.Is(err, cfi.ErrNoFDE) {
					t.Errorf("%s, behind it: %v, expected %v", s.Name, err, cfi.ErrNoFDE)
				}

				// Loaded alone, it is found by address.
				name := o.Sections()[s.Section].Name
				loaded, err := code.LoadedTables(o, []trace.Segment{{Section: name, Size: s.Size, Start: 0x400000, Executable: true}, {Section: ".data", Start: 0x500000}})
				if err != nil || len(loaded) != 1 {
					t.Fatalf("%d tables, %v", len(loaded), err)
				}
				if alone, err := loaded[0].FDE(0); err != nil || alone.Offset != f.Offset {
					t.Errorf("%s alone: %+v, %v, expected the FDE at %#x", s.Name, alone, err, f.Offset)
				}
			}
			if functions != 3 {
				t.Errorf("%d functions, expected 3", functions)
			}
			if _, err := table.FDE(0); !errors.Is(err, cfi.ErrAmbiguous) {
				t.Errorf("an address of three sections: %v, expected %v", err, cfi.ErrAmbiguous)
			}
			if p := table.Problems(); len(p) != 0 {
				t.Errorf("problems %v", p)
			}
		})
	}
}

func TestSectionsThatCannotBeToldApartAreNotGuessed(t *testing.T) {
	o := openObject(t, relocatable(t))
	segment := func(name string) trace.Segment { return trace.Segment{Section: name, Size: 16, Executable: true} }
	for _, c := range []struct {
		name     string
		segments []trace.Segment
		says     string
	}{
		{"two of code", []trace.Segment{segment(".text._Z5plaini"), segment(".text._ZN5thingILi1EE5twiceEi")}, "several sections of code"},
		{"none of that name", []trace.Segment{segment(".text.other")}, `called ".text.other"`},
		{"no code", []trace.Segment{segment(".eh_frame")}, `called ".eh_frame"`},
		{"one of three, without a name", []trace.Segment{segment("")}, "could be what is loaded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tables, err := code.LoadedTables(o, c.segments)
			if len(tables) != 0 || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d tables, %v, expected an error that says %q", len(tables), err, c.says)
			}
		})
	}
}

func TestTheOnlySectionOfCodeNeedsNoName(t *testing.T) {
	o := openObject(t, assemble(t, ".text\nf: .cfi_startproc\nnop\n.cfi_endproc\n", "-c"))
	tables, err := code.LoadedTables(o, []trace.Segment{{Size: 1, Executable: true}})
	if err != nil || len(tables) != 1 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	if f, err := tables[0].FDE(0); err != nil || f.End != 1 {
		t.Errorf("%+v, %v", f, err)
	}
}
