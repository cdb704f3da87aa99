// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// programs are made of shapes.cc by compilers in many forms of debug information.
func programs(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	source, assembly := filepath.Join(dir, "shapes.cc"), filepath.Join(dir, "code.s")
	shapes := func(compiler, to string, flags ...string) []string {
		return append([]string{compiler, "-O2", "-g", source, "-o", to}, flags...)
	}
	return oracle.Build{
		Sources: []string{source, assembly},
		Commands: [][]string{
			shapes("g++", "gcc5"), shapes("g++", "gcc4", "-gdwarf-4"), shapes("g++", "gcc-lto", "-flto"),
			shapes("g++", "gcc-types", "-gdwarf-4", "-fdebug-types-section"), shapes("g++", "gcc-packed", "-gz"),
			shapes("g++", "gcc-split", "-gsplit-dwarf", "-dumpbase", "split"),
			shapes("g++", "gcc-fixed", "-no-pie", "-O0", "-Wl,--build-id=none"),
			shapes("clang++-22", "clang5"), shapes("clang++-22", "clang4", "-gdwarf-4"),
			shapes("clang++-22", "clang-folded", "-ffunction-sections", "-fuse-ld=lld-22", "-Wl,--icf=all"),
			shapes("x86_64-w64-mingw32-g++", "mingw.exe", "-Wl,--build-id"),
			{"gcc", "-c", assembly, "-o", "code.o"}, // no lines
			{"g++", "-O2", "-g", source, "code.o", "-o", "assembly"},
			{"cp", "gcc5", "dwz"}, {"dwz", "dwz"},
			{"objcopy", "--only-keep-debug", "gcc5", "apart.debug"},
			{"objcopy", "--strip-all", "--add-gnu-debuglink=apart.debug", "gcc5", "apart"},
			{"objcopy", "--strip-all", "gcc-fixed", "bare"},
		},
	}.Make(t)
}

// A written is a file, and the symbol file that was written of it.
type written struct {
	symbolize.WrittenSymbols
	file *symbolize.File
	text string
	sym  *breakpad.File
	base uint64
}

// openFile opens a file whose debug file is beside it.
func openFile(t *testing.T, path string) *symbolize.File {
	t.Helper()
	s := symbolize.New(symbolize.Options{DebugDirs: []string{filepath.Dir(path)}})
	t.Cleanup(func() { _ = s.Close() })
	f, err := s.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes the symbol file of a file, and reads it.
func write(t *testing.T, path string) *written {
	t.Helper()
	w := &written{file: openFile(t, path)}
	w.base, _ = w.file.Object.ImageBase()
	var out bytes.Buffer
	var err error
	if w.WrittenSymbols, err = w.file.WriteSymbolFile(&out); err != nil {
		t.Fatal(path, err)
	}
	if p := append(w.file.Problems(), w.Problems...); len(p) > 0 {
		t.Error(path, p)
	}
	w.text = out.String()
	if w.sym, err = breakpad.Read(path+".sym", out.Bytes()); err != nil {
		t.Fatal(path, err)
	}
	return w
}

// addresses are those of code at which something begins or ends in the symbol file, and others
// throughout the code: about as many as most, in turn with every n-th function.
func (w *written) addresses(most int) map[uint64]bool {
	list, every, count := map[uint64]bool{}, w.sym.Counts().Records*3/most+1, 0
	ends := func(start, end uint64) {
		list[start+w.base], list[end-1+w.base] = true, true
	}
	w.sym.Functions(func(fn breakpad.Function, b *breakpad.Body) bool {
		if count++; count%every != 0 {
			return true
		}
		ends(fn.Start, fn.End)
		for l := range b.Lines() {
			ends(l.Start, l.End)
		}
		for c := range b.Inlines() {
			for _, r := range c.Ranges {
				ends(r.Start, r.End)
			}
		}
		return true
	})
	for _, s := range w.file.Object.Sections() {
		if s.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		for at := s.Address; at < s.Address+s.Size; at += s.Size/uint64(most) + 1 {
			list[at] = true
		}
	}
	return list
}

// frameDifference says how frames by the symbol file differ from those by the file; "" where they
// do not. What the format cannot say is in parentheses.
func frameDifference(want, got []trace.Symbol) string {
	switch {
	case len(want) == 0 && len(got) == 1 && got[0].File == "":
		return "(a PUBLIC record has no end)"
	case len(want) == 1 && want[0].Function == "" && (len(got) == 0 || got[0].File == ""):
		return "(a line without a function)"
	case len(want) == 1 && len(got) == 1 && want[0].Line == 0 && got[0].File == "" && want[0].Function == got[0].Function:
		return "" // a symbol's file without a line
	case len(want) != len(got):
		return "other frames"
	}
	for i := range want {
		a, b := &want[i], &got[i]
		switch {
		case a.Function != b.Function && symbol.Demangle(a.Function) == b.Function:
			return "(a name that is mangled in DW_AT_name)"
		case a.Function != b.Function:
			return "another name"
		case a.File != b.File || a.Line != b.Line:
			return "another line"
		}
	}
	return ""
}

// compareNames asks both for every address.
func (w *written) compareNames(t *testing.T, most int) (asked int) {
	t.Helper()
	differences := map[string]int{}
	var got []trace.Symbol
	for address := range w.addresses(most) {
		asked++
		want, _ := w.file.Names().Frames(nil, address)
		got, _ = w.sym.Frames(got[:0], address-w.base)
		d := frameDifference(want, got)
		if d == "" {
			continue
		}
		if d == "another line" && strings.HasSuffix(w.file.Object.Name(), "-folded") {
			d = "(another line of code that is of several functions)" // records have the last one's
		}
		if differences[d]++; d[0] != '(' && differences[d] <= 3 {
			t.Errorf("%s: %#x: %s:\n got %s\nwant %s", w.file.Object.Name(), address, d, frameText(got), frameText(want))
		}
	}
	t.Logf("%s: %d addresses, %v, %+v", filepath.Base(w.file.Object.Name()), asked, differences, w.sym.Counts())
	return asked
}

func frameText(list []trace.Symbol) string {
	var s []string
	for i := range list {
		s = append(s, fmt.Sprintf("%s %s:%d", list[i].Function, list[i].File, list[i].Line))
	}
	return strings.Join(s, " < ")
}

// compareRows holds the STACK CFI records against every row of the call frame information, or of a
// PE file's unwind codes.
func (w *written) compareRows(t *testing.T) {
	t.Helper()
	rows, unsaid := 0, 0
	compare := func(want *cfi.Row) bool {
		var got cfi.Row
		registers := registersOf(w.file.Object.Machine(), want.ReturnAddress)
		for _, address := range []uint64{want.Start, want.End - 1} {
			rows++
			found, err := w.sym.Row(&got, address-w.base, registers)
			if !found && want.CFA.Kind == cfi.CFAExpression {
				unsaid++
			} else if d := rowDifference(want, &got); !found || err != nil || d != "" {
				t.Fatalf("%s: %#x: %v %v %s:\n got %+v\nwant %+v", w.file.Object.Name(), address, found, err, d, got, *want)
			}
		}
		return true
	}
	if f := w.file.Object.PE(); f != nil {
		err := f.Functions(func(fn pe.Function) bool {
			return f.Rows(fn, func(r *pe.Row) bool {
				return compare(&r.Row)
			}) == nil
		})
		if err != nil {
			t.Fatal(err)
		}
	} else {
		w.eachRow(t, compare)
	}
	if rows == 0 {
		t.Errorf("%s: no rows", w.file.Object.Name())
	}
	t.Logf("%s: %d rows, %d that cannot be said", filepath.Base(w.file.Object.Name()), rows, unsaid)
}

// eachRow calls yield with the rows of the call frame information.
func (w *written) eachRow(t *testing.T, yield func(*cfi.Row) bool) {
	t.Helper()
	for _, table := range code.FrameTables(w.file.Object) {
		if table.Err != nil {
			t.Error(table.Err)
			continue
		}
		for fde, err := range table.FDEs() {
			if err == nil {
				err = fde.Rows(yield)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func registersOf(machine uint16, ra uint64) breakpad.Registers {
	names := symbolize.BreakpadRegisters(machine)
	return func(name string) (uint64, bool) {
		if name == ".ra" {
			return ra, true
		}
		for n := range uint64(128) {
			if known, ok := names(n); ok && known == name {
				return n, true
			}
		}
		return 0, false
	}
}

// rowDifference says how two rows differ. A register that is what it was may be left out.
func rowDifference(want, got *cfi.Row) string {
	if want.CFA.Kind != got.CFA.Kind || want.CFA.Register != got.CFA.Register || want.CFA.Offset != got.CFA.Offset {
		return "CFA"
	}
	for _, r := range want.Rules {
		g, ok := got.Rule(r.Column)
		if r.Rule.Kind != cfi.Unspecified && (!ok || g.Kind != r.Rule.Kind || g.Offset != r.Rule.Offset || g.Register != r.Rule.Register) {
			return fmt.Sprintf("column %d", r.Column)
		}
	}
	for _, r := range got.Rules {
		if _, ok := want.Rule(r.Column); !ok && r.Rule.Kind != cfi.SameValue {
			return fmt.Sprintf("column %d", r.Column)
		}
	}
	return ""
}

// TestSymbolFilesSayWhatTheFilesDo reads back what is written. SYMBOLFILE_PROGRAMS names more
// files, with blanks between them.
func TestSymbolFilesSayWhatTheFilesDo(t *testing.T) {
	dir := programs(t)
	var list []string
	for _, name := range []string{
		"gcc5", "gcc4", "gcc-lto", "gcc-types", "gcc-packed", "gcc-split", "gcc-fixed",
		"clang5", "clang4", "clang-folded", "assembly", "dwz", "apart", "bare", "mingw.exe",
	} {
		list = append(list, filepath.Join(dir, name))
	}
	for _, path := range append(list, strings.Fields(os.Getenv("SYMBOLFILE_PROGRAMS"))...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			w := write(t, path)
			if got := w.sym.Counts(); got.Functions != w.Functions || got.Publics != w.Publics || got.Records != w.Records || got.Damaged != 0 {
				t.Errorf("%+v, written %+v", got, w.WrittenSymbols)
			}
			w.compareNames(t, 20_000)
			w.compareRows(t)
		})
	}
}

// functions are the FUNC records by the beginning of their names.
func (w *written) functions(prefix string) (list []breakpad.Function) {
	w.sym.Functions(func(fn breakpad.Function, _ *breakpad.Body) bool {
		if strings.HasPrefix(fn.Name, prefix) {
			list = append(list, fn)
		}
		return true
	})
	return list
}

// TestFormsOfDebugInformationGiveTheSameFile: however it is kept, the same debug information gives
// the same records.
func TestFormsOfDebugInformationGiveTheSameFile(t *testing.T) {
	dir := programs(t)
	records := func(name string) string {
		_, text, _ := strings.Cut(write(t, filepath.Join(dir, name)).text, "\n")
		return text
	}
	want := records("gcc5")
	for _, name := range []string{"dwz", "apart"} {
		if records(name) != want {
			t.Errorf("%s is not as gcc5", name)
		}
	}
}

// TestFoldedFunctions: of functions that the linker folded one has the code, which is said.
func TestFoldedFunctions(t *testing.T) {
	w := write(t, filepath.Join(programs(t), "clang-folded"))
	list := w.functions("folded_")
	if len(list) != 1 || !list[0].Multiple {
		t.Errorf("%+v, expected one record with m", list)
	}
	for _, fn := range w.functions("main") {
		if fn.Multiple {
			t.Errorf("%+v: expected no m", fn)
		}
	}
	for _, fn := range write(t, filepath.Join(programs(t), "gcc5")).functions("") {
		if fn.Multiple {
			t.Errorf("%+v: expected no m: nothing is folded", fn)
		}
	}
}

// TestSymbolsOfAssembly: a symbol whose end no record would tell is a FUNC record.
func TestSymbolsOfAssembly(t *testing.T) {
	w := write(t, filepath.Join(programs(t), "assembly"))
	sized := w.functions("sized")
	if len(sized) != 1 || sized[0].End-sized[0].Start != 2 {
		t.Fatalf("%+v, expected a record of 2 bytes", sized)
	}
	if frames, err := w.sym.Frames(nil, sized[0].End+20); len(frames) > 0 || err != nil {
		t.Errorf("%s %v: expected no name behind it", frameText(frames), err)
	}
	if frames, err := w.sym.Frames(nil, sized[0].End+101); len(frames) != 1 || frames[0].Function != "unsized" || err != nil {
		t.Errorf("%s %v: expected unsized", frameText(frames), err)
	}
	bare := write(t, filepath.Join(programs(t), "bare"))
	if bare.HasDebugInfo || bare.Records != 0 || bare.CFI == 0 {
		t.Errorf("%+v: expected no debug information, and call frame information", bare.WrittenSymbols)
	}
}
