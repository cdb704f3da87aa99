package cfi

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tool returns the path of a program that a comparison needs.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "%s is not installed", name)
	}
	return path
}

// missing ends a test for want of something: on the project's machines that is
// a failure.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// compile builds testdata/name with gcc.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "a.out")
	args := append([]string{"-o", out, filepath.Join("testdata", name)}, flags...)
	if msg, err := exec.Command(tool(t, "gcc"), args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, msg)
	}
	return out
}

// elfTable makes the table of a section of an x86-64 file; nil where the file
// has no such section.
func elfTable(t testing.TB, path, name string) (*Table, *elf.File) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s := f.Section(name)
	if s == nil {
		return nil, f
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	section := Section{Name: name, Data: data, Address: s.Addr, EH: name == ".eh_frame", Order: f.ByteOrder, AddressSize: 8}
	if got := f.Section(".got"); got != nil {
		section.DataBase = got.Addr
	}
	table, err := NewTable(section)
	if err != nil {
		t.Fatal(err)
	}
	return table, f
}

// x86Names are readelf's names of the DWARF registers of x86-64.
var x86Names = func() map[string]uint64 {
	names := map[string]uint64{}
	for i, name := range strings.Fields("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip") {
		names[name] = uint64(i)
	}
	for i := range uint64(16) {
		names[fmt.Sprintf("xmm%d", i)] = 17 + i
	}
	return names
}()

// A listed entry is a CIE or FDE as readelf writes it.
type listed struct {
	Kind   string
	Offset uint64
	Head   string   // CIE: augmentation and factors; FDE: CIE and PCs
	Rows   []string // "ADDRESS CFA COLUMN:RULE ..."
}

var listedHead = regexp.MustCompile(`^([0-9a-f]{8,}) [0-9a-f]+ [0-9a-f]+ (CIE|FDE) (.*)$`)

// A register rule is written "r13 (r13)".
var namedRegister = regexp.MustCompile(`\b(r[0-9]+) \([a-z0-9]+\)`)

// readelf lists a section. Of readelf's columns, those that say u are left out:
// it writes u both for a rule that says undefined and for no rule.
func readelf(t *testing.T, path, section string) []listed {
	t.Helper()
	cmd := exec.Command(tool(t, "readelf"), "--debug-dump=frames-interp", "--debug-dump=no-follow-links", "--wide", path)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBUGINFOD_URLS=")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out []listed
	var columns []uint64
	inside := false
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " ")
		if strings.HasPrefix(line, "Contents of the ") {
			inside = strings.HasPrefix(line, "Contents of the "+section+" ")
			continue
		}
		if !inside || line == "" || strings.HasSuffix(line, "ZERO terminator") {
			continue
		}
		if m := listedHead.FindStringSubmatch(line); m != nil {
			offset, _ := strconv.ParseUint(m[1], 16, 64)
			out = append(out, listed{Kind: m[2], Offset: offset, Head: m[3]})
			continue
		}
		fields := strings.Fields(namedRegister.ReplaceAllString(line, "$1"))
		if fields[0] == "LOC" {
			columns = columns[:0]
			for _, name := range fields[2:] {
				column, ok := x86Names[name]
				if name == "ra" {
					column, ok = 16, true
				}
				if !ok {
					t.Fatalf("readelf names a column %q", name)
				}
				columns = append(columns, column)
			}
			continue
		}
		if len(fields) != len(columns)+2 {
			t.Fatalf("readelf: %q has %d columns, want %d", line, len(fields), len(columns)+2)
		}
		address, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			t.Fatalf("readelf: %q", line)
		}
		row := fmt.Sprintf("%x %s", address, fields[1])
		for i, rule := range fields[2:] {
			if rule != "u" {
				row += fmt.Sprintf(" %d:%s", columns[i], rule)
			}
		}
		e := &out[len(out)-1]
		// readelf has a row for every advance, also for one by nothing.
		if n := len(e.Rows); n > 0 && strings.HasPrefix(e.Rows[n-1], fmt.Sprintf("%x ", address)) {
			e.Rows[n-1] = row
		} else {
			e.Rows = append(e.Rows, row)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("readelf: %v", err)
	}
	// It writes no rows for an FDE of nothing but nops: they are the CIE's.
	initial := map[string]string{}
	for i := range out {
		e := &out[i]
		if e.Kind == "CIE" {
			row := " none" // a CIE of nothing but nops
			if len(e.Rows) == 1 {
				row = e.Rows[0][strings.IndexByte(e.Rows[0], ' '):]
			} else if len(e.Rows) > 1 {
				t.Fatalf("readelf: CIE at %#x has rows %q", e.Offset, e.Rows)
			}
			initial[fmt.Sprintf("%08x", e.Offset)] = row
			e.Rows = nil
		}
	}
	for i := range out {
		e := &out[i]
		var cie string
		var start, end uint64
		if e.Kind != "FDE" {
			continue
		}
		if _, err := fmt.Sscanf(e.Head, "cie=%s pc=%x..%x", &cie, &start, &end); err != nil {
			t.Fatalf("readelf: %q: %v", e.Head, err)
		}
		if len(e.Rows) == 0 && start < end {
			e.Rows = []string{fmt.Sprintf("%x%s", start, initial[cie])}
		}
	}
	return out
}

// list lists a table as readelf does.
func list(t *testing.T, table *Table) []listed {
	t.Helper()
	name := func(reg uint64) string {
		for s, n := range x86Names {
			if n == reg && s != "rip" {
				return s
			}
		}
		return fmt.Sprintf("r%d", reg)
	}
	var out []listed
	for c, err := range table.CIEs() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, listed{Kind: "CIE", Offset: c.Offset,
			Head: fmt.Sprintf("%q cf=%d df=%d ra=%d", c.Augmentation, c.CodeAlignment, c.DataAlignment, c.ReturnAddress)})
	}
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		e := listed{Kind: "FDE", Offset: f.Offset, Head: fmt.Sprintf("cie=%08x pc=%016x..%016x", f.CIE.Offset, f.Start, f.End)}
		err := f.Rows(func(r *Row) bool {
			cfa := "exp"
			switch r.CFA.Kind {
			case NoCFA:
				cfa = "none"
			case CFARegister:
				cfa = fmt.Sprintf("%s%+d", name(r.CFA.Register), r.CFA.Offset)
			}
			row := fmt.Sprintf("%x %s", r.Start, cfa)
			for _, r := range r.Rules {
				switch r.Rule.Kind {
				case Undefined:
				case SameValue:
					row += fmt.Sprintf(" %d:s", r.Column)
				case Offset:
					row += fmt.Sprintf(" %d:c%+d", r.Column, r.Rule.Offset)
				case ValOffset:
					row += fmt.Sprintf(" %d:v%+d", r.Column, r.Rule.Offset)
				case Register:
					row += fmt.Sprintf(" %d:r%d", r.Column, r.Rule.Register)
				case Expression:
					row += fmt.Sprintf(" %d:exp", r.Column)
				case ValExpression:
					row += fmt.Sprintf(" %d:vexp", r.Column)
				}
			}
			e.Rows = append(e.Rows, row)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestRowsEqualReadelf(t *testing.T) {
	files := []struct {
		name     string
		path     func(t *testing.T) string
		sections []string
		atLeast  int // FDEs
	}{
		{"libc", library("libc.so.6"), []string{".eh_frame"}, 2000},
		{"ld", library("ld-linux-x86-64.so.2"), []string{".eh_frame"}, 100},
		{"program", func(t *testing.T) string { return compile(t, "frames.c", "-O2", "-g", "-mavx", "-fexceptions") }, []string{".eh_frame"}, 5},
		{"program without optimization, static", func(t *testing.T) string { return compile(t, "frames.c", "-O0", "-static") }, []string{".eh_frame"}, 500},
		{"program with .debug_frame", func(t *testing.T) string {
			return compile(t, "frames.c", "-O2", "-g", "-mavx", "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-ffunction-sections", "-Wl,--gc-sections")
		}, []string{".eh_frame", ".debug_frame"}, 5},
	}
	for _, file := range files {
		t.Run(file.name, func(t *testing.T) {
			tool(t, "readelf")
			path := file.path(t)
			for _, section := range file.sections {
				table, _ := elfTable(t, path, section)
				if table == nil {
					t.Fatalf("%s has no %s", path, section)
				}
				want, got := map[uint64]listed{}, map[uint64]listed{}
				fdes, withRows := 0, 0
				for _, e := range readelf(t, path, section) {
					want[e.Offset] = e
				}
				for _, e := range list(t, table) {
					got[e.Offset] = e
					if e.Kind == "FDE" {
						fdes++
						withRows += len(e.Rows)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-readelf +got):\n%.4000s", section, diff)
				}
				if fdes < file.atLeast && section == file.sections[len(file.sections)-1] {
					t.Errorf("%s: %d FDEs, want at least %d", section, fdes, file.atLeast)
				}
				if section == ".debug_frame" {
					// The linker dropped unused() and left its FDE, at 0.
					dropped := func(e listed) bool { return strings.Contains(e.Head, "pc=0000000000000000..") }
					if !slices.ContainsFunc(slices.Collect(maps.Values(got)), dropped) {
						t.Error("no FDE of dropped code is listed")
					}
					if _, err := table.FDE(0); !errors.Is(err, ErrNoFDE) {
						t.Errorf("FDE of dropped code: %v, want %v", err, ErrNoFDE)
					}
				}
				t.Logf("%s %s: %d FDEs, %d rows", path, section, fdes, withRows)
			}
		})
	}
}

// library finds a library of the system that is built for x86-64.
func library(name string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		for _, dir := range []string{"/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"} {
			path := filepath.Join(dir, name)
			if f, err := elf.Open(path); err == nil {
				machine := f.Machine
				f.Close()
				if machine == elf.EM_X86_64 {
					return path
				}
			}
		}
		missing(t, "no %s for x86-64 is installed", name)
		return ""
	}
}
