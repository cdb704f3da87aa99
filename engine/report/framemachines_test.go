// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestRowsOfMachinesWithoutAPlugin has relocatable files of machines that
// nothing describes, of either class and byte order. What their rows must be is
// in machines.s.
func TestRowsOfMachinesWithoutAPlugin(t *testing.T) {
	type row struct {
		PC, CFA string
		Rules   map[string]string
	}
	rules := func(text string) map[string]string {
		m := map[string]string{}
		for _, f := range strings.Fields(text) {
			register, rule, _ := strings.Cut(f, "=")
			m[register] = rule
		}
		return m
	}
	for target, initial := range map[string]string{ // what the CIE says besides the CFA
		"powerpc": "", "powerpc64": "", "powerpc64le": "", "s390x": "", "i386": "r8=cfa-4",
		"mips": "", "mipsel": "", "mips64": "", "mips64el": "", "sparc": "", "sparcv9": "", "loongarch64": "", "arm": "", "armeb": "",
		"riscv64": "", "riscv32": "", "hexagon": "",
	} {
		t.Run(target, func(t *testing.T) {
			want := []row{
				{"0x0", "r15+160", rules(initial)},
				{"0x4", "r15+224", rules(initial + " r14=cfa-48")},
				{"0x8", "r11+224", rules(initial + " r12=r5 r14=cfa-48")},
				{"0x108", "r11+224", rules(initial + " r6=valcfa-24 r10=same r12=r5 r13=undefined r14=cfa-48")},
				{"0x12108", "r11+224", rules("r6=valcfa-24 r8=valexpr:31 r9=expr:309f r10=same r12=r5 r13=undefined r14=cfa-48")},
				{"0x12110", "r11+224", rules(initial + " r14=cfa-48")},
				{"0x12114", "expr:087f06", rules(initial)},
			}
			d := rowsJSON(t, assemble(t, "machines.s", target+"-linux-gnu"))
			if len(d.Problems) > 0 {
				t.Errorf("problems: %q", d.Problems)
			}
			got := map[string][]row{}
			for _, f := range d.FDEs {
				for _, r := range f.Rows {
					got[f.Section] = append(got[f.Section], row{r.PC, r.CFA, r.Rules})
				}
			}
			for _, section := range []string{".eh_frame", ".debug_frame"} {
				if diff := cmp.Diff(want, got[section]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", section, diff)
				}
			}
		})
	}
}

// TestRowsOfMachinesThatLLVMDoesNotKnow has what two.s says, of either section.
func TestRowsOfMachinesThatLLVMDoesNotKnow(t *testing.T) {
	files, err := filepath.Glob("testdata/relocatable/*.o")
	if err != nil || len(files) < 5 {
		t.Fatalf("%q, %v", files, err)
	}
	function := []string{"0x0 0xc .text: 0x0 r15+16, 0x4 r15+64 r14=cfa-8", "0xc 0x14 .text: 0xc r15+32"}
	want := map[string][]string{".eh_frame": function, ".debug_frame": function}
	for _, path := range files {
		got := map[string][]string{}
		d := rowsJSON(t, path)
		for _, f := range d.FDEs {
			var rows []string
			for _, r := range f.Rows {
				row := r.PC + " " + r.CFA
				for register, rule := range r.Rules {
					row += " " + register + "=" + rule
				}
				rows = append(rows, row)
			}
			got[f.Section] = append(got[f.Section], fmt.Sprintf("%s %s %s: %s", f.Start, f.End, f.Code, strings.Join(rows, ", ")))
		}
		if diff := cmp.Diff(want, got); diff != "" || len(d.Problems) > 0 {
			t.Errorf("%s: problems %q (-want +got):\n%s", path, d.Problems, diff)
		}
	}
}

// TestRowsOfSignedReturnAddresses has code that signs its return address and
// takes that back.
func TestRowsOfSignedReturnAddresses(t *testing.T) {
	d := rowsJSON(t, assemble(t, "signed.s", "aarch64-linux-gnu"))
	var got []bool
	for _, r := range d.FDEs[0].Rows {
		got = append(got, r.WindowSave)
	}
	if diff := cmp.Diff([]bool{false, true, false}, got); diff != "" || len(d.Problems) > 0 {
		t.Errorf("%s %q", diff, d.Problems)
	}
}

// TestRowsOfRelocatableFilesAreOfASection has two functions that both begin at
// 0, each of a section of its own.
func TestRowsOfRelocatableFilesAreOfASection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.o")
	oracle.With{Input: "int f(int x) { return 2 * x; }\nint g(int x) { return 3 * x; }\n"}.Run(t, "gcc", "-c", "-O1", "-ffunction-sections", "-x", "c", "-o", path, "-")
	var got []string
	for _, f := range rowsJSON(t, path).FDEs {
		got = append(got, f.Start+" "+f.Code)
	}
	if diff := cmp.Diff([]string{"0x0 .text.f", "0x0 .text.g"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRowsGoOnBehindAnEntryThatIsWrong(t *testing.T) {
	path := assemble(t, "forms.s", "x86_64-linux-gnu")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// An unknown instruction, in the first FDE of .eh_frame.
	at := strings.Index(string(b), "\x09\x0e\x0f\x03\x2c\x01")
	if at < 0 {
		t.Fatal("DW_CFA_register r14, r15 is not there")
	}
	b[at] = 0x3a
	bad := filepath.Join(t.TempDir(), "bad.o")
	if err := os.WriteFile(bad, b, 0o600); err != nil {
		t.Fatal(err)
	}
	d := rowsJSON(t, bad)
	if len(d.FDEs) != 2 || len(d.Problems) != 1 {
		t.Fatalf("%d FDEs, problems %q", len(d.FDEs), d.Problems)
	}
	good, cut := d.FDEs[0], d.FDEs[1]
	if len(good.Rows) != 12 && len(cut.Rows) == 12 {
		good, cut = cut, good
	}
	if len(good.Rows) != 12 || len(cut.Rows) != 5 {
		t.Errorf("%d and %d rows, want all 12 of one and 5 of the other", len(good.Rows), len(cut.Rows))
	}
	if p := d.Problems[0]; !strings.HasPrefix(p, bad+": "+cut.Section+"+0x") || !strings.Contains(p, "0x3a") {
		t.Errorf("problem %q", p)
	}
	entries, problems := dumpCFI(t, bad)
	if len(entries) != 4 || len(problems) != 1 || problems[0] != d.Problems[0] {
		t.Errorf("%d entries, problems %q", len(entries), problems)
	}
}

// withManyHeaders gives a 64-bit little-endian file n more section headers, copies
// of a section's.
func withManyHeaders(t *testing.T, path, name string, n int) string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	index := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return s.Name == name })
	b, err := os.ReadFile(path)
	if err != nil || index < 0 {
		t.Fatalf("section %d: %v", index, err)
	}
	const size = 64
	at, count := binary.LittleEndian.Uint64(b[40:]), len(f.Sections)
	headers := slices.Clone(b[at : at+uint64(count*size)])
	for range n {
		headers = append(headers, headers[index*size:(index+1)*size]...)
	}
	binary.LittleEndian.PutUint64(b[40:], uint64(len(b)))
	binary.LittleEndian.PutUint16(b[60:], uint16(count+n))
	path = filepath.Join(t.TempDir(), "many.o")
	if err := os.WriteFile(path, append(b, headers...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSectionsOverTheSameBytesAreWrittenOnce has 30,000 section headers of one
// range.
func TestSectionsOverTheSameBytesAreWrittenOnce(t *testing.T) {
	honest := assemble(t, "forms.s", "x86_64-linux-gnu")
	for _, name := range []string{".eh_frame", ".debug_frame"} {
		many := withManyHeaders(t, honest, name, 30000)
		want, got := rowsJSON(t, honest), rowsJSON(t, many)
		if diff := cmp.Diff(want.FDEs, got.FDEs); diff != "" {
			t.Errorf("%s (-once +many):\n%.500s", name, diff)
		}
		if len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "it and 29999 more are not read") {
			t.Errorf("%s: problems %.500q", name, got.Problems)
		}
		c := callFrames(t, many)
		c.Problem = func(error) {}
		var out bytes.Buffer
		if err := c.WriteCFIText(&out); err != nil || out.Len() > 1<<16 {
			t.Errorf("%s: entries: %d bytes, %v", name, out.Len(), err)
		}
	}
}
