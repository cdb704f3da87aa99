// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
)

// dumpedExpressions are expressions as JSON has them.
type dumpedExpressions struct {
	Expressions []struct {
		File, Section, Offset, Where, Text string
		Range                              *struct {
			Start, End string
			StartIndex *uint64 `json:"start_index"`
			Code       string
		}
	}
	Problems []string
}

// expressionsJSON are the expressions of a file in a dialect; nil: that of its architecture.
func expressionsJSON(t *testing.T, path string, dialect *locexpr.Dialect) (d dumpedExpressions) {
	t.Helper()
	o, description := described(t, path)
	expressions, err := report.NewObjectExpressions(o, description, dialect)
	if err != nil {
		t.Fatal(err)
	}
	readJSON(t, expressions.WriteJSON, &d)
	return d
}

// expressionSource has variables that move, and functions that are inlined.
const expressionSource = `
struct node { struct node *next; int value; };
static int table[64];
static inline __attribute__((always_inline)) int twice(int x) { int y = x * 2; return y + table[y & 63]; }
extern int use(struct node *, int *);
int walk(struct node *n, int (*f)(struct node *, int *)) {
	int sum = 0;
	for (struct node *i = n; i; i = i->next) { int part = f(i, &sum); if (part < 0) return part; sum += twice(part); }
	return sum;
}
int start(int argc) { struct node n = {0, argc}; int r = walk(&n, use); return r > 3 ? twice(r) + argc : r; }
`

// compiledExpressions compiles expressionSource; the file is in a folder of its own.
func compiledExpressions(t *testing.T, compiler ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "e.c"), []byte(expressionSource), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir}.Run(t, compiler[0], append(compiler[1:], "-O2", "-g", "-c", "-o", "e.o", "e.c")...)
	return filepath.Join(dir, "e.o")
}

var (
	dwarfdumpEntry = regexp.MustCompile(`^0x([0-9a-f]+):\s+DW_TAG`)
	dwarfdumpAttr  = regexp.MustCompile(`^\s+(DW_AT_\w+)\s*\((.*)$`)
	dwarfdumpRange = regexp.MustCompile(`^\s*\[0x([0-9a-f]+),\s*0x([0-9a-f]+)\)(?: "\S+")?: (.*)$`)
	operationName  = regexp.MustCompile(`DW_OP_[A-Za-z_]+`)
)

// operations are the names of an expression's operations. LLVM numbers registers
// apart, and has a note in the place of DW_OP_GNU_uninit.
func operations(text string) string {
	return strings.TrimSuffix(strings.Join(operationName.FindAllString(text, -1), " "), " DW_OP_GNU_uninit")
}

// dwarfdumpExpressions are the expressions of .debug_info, each with its entry,
// attribute, range and operations.
func dwarfdumpExpressions(t *testing.T, path string) (list []string) {
	t.Helper()
	out := oracle.Run(t, llvm(t, "dwarfdump"), "--debug-info", path)
	var entry uint64
	attr := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if m := dwarfdumpEntry.FindStringSubmatch(line); m != nil {
			entry, _ = strconv.ParseUint(m[1], 16, 64)
			attr = ""
			continue
		}
		if m := dwarfdumpAttr.FindStringSubmatch(line); m != nil {
			if attr, line = m[1], m[2]; strings.Contains(line, "DW_OP_") && !strings.Contains(line, "[0x") {
				list = append(list, fmt.Sprintf("%#x %s %s", entry, attr, operations(line)))
			}
		}
		if m := dwarfdumpRange.FindStringSubmatch(line); m != nil && attr != "" {
			start, _ := strconv.ParseUint(m[1], 16, 64)
			end, _ := strconv.ParseUint(m[2], 16, 64)
			list = append(list, fmt.Sprintf("%#x %s [%#x %#x) %s", entry, attr, start, end, operations(m[3])))
		}
	}
	return list
}

func ownExpressions(d dumpedExpressions) (list []string, ranges int) {
	for _, e := range d.Expressions {
		if !strings.HasPrefix(e.Section, ".debug_info") || operations(e.Text) == "" {
			continue
		}
		at := ""
		if e.Range != nil {
			ranges++
			at = fmt.Sprintf("[%s %s) ", e.Range.Start, e.Range.End)
		}
		list = append(list, fmt.Sprintf("%s %s %s%s", e.Offset, e.Where, at, operations(e.Text)))
	}
	return list, ranges
}

// TestExpressionsEqualLLVMDwarfdump compares every expression of debugging
// information entries, those of location lists with their ranges.
func TestExpressionsEqualLLVMDwarfdump(t *testing.T) {
	files := map[string][]string{
		"gcc, DWARF 5":          {"gcc", "-gdwarf-5"},
		"gcc, DWARF 4":          {"gcc", "-gdwarf-4"},
		"gcc, DWARF 2":          {"gcc", "-gdwarf-2", "-gstrict-dwarf"},
		"riscv64":               {"clang-22", "--target=riscv64-linux-gnu", "-mrelax"},
		"riscv64, compressed":   {"clang-22", "--target=riscv64-linux-gnu", "-mrelax", "-gz", "-gdwarf-4"},
		"loongarch64":           {"clang-22", "--target=loongarch64-linux-gnu", "-mrelax", "-gdwarf-4"},
		"mips64, big endian":    {"clang-22", "--target=mips64-linux-gnu"},
		"powerpc64le":           {"clang-22", "--target=powerpc64le-linux-gnu"},
		"several code sections": {"clang-22", "-ffunction-sections", "-gdwarf-4"},
	}
	for name, compiler := range files {
		t.Run(name, func(t *testing.T) {
			path := compiledExpressions(t, compiler...)
			want := dwarfdumpExpressions(t, path)
			d := expressionsJSON(t, path, nil)
			got, ranges := ownExpressions(d)
			if len(d.Problems) > 0 || ranges < 10 {
				t.Errorf("%d expressions of lists, problems %q", ranges, d.Problems)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-llvm-dwarfdump +unwindd):\n%s", diff)
			}
		})
	}
}

// A split file is read by itself, where ranges count from addresses that it has
// not, and through the file that names it.
func TestExpressionsOfSplitFiles(t *testing.T) {
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		t.Run(version, func(t *testing.T) {
			whole, split := compiledExpressions(t, "clang-22", version), compiledExpressions(t, "clang-22", version, "-gsplit-dwarf")
			d := expressionsJSON(t, whole, nil)
			type expression struct{ where, start, end, code, operations string }
			var lists [3][]expression
			own := expressionsJSON(t, strings.TrimSuffix(split, ".o")+".dwo", nil)
			through := expressionsJSON(t, split, nil)
			if len(through.Problems) > 0 {
				t.Fatalf("problems %q", through.Problems)
			}
			indexed := 0
			for i, d := range []dumpedExpressions{d, through, own} {
				for _, e := range d.Expressions {
					if e.Range == nil {
						continue
					}
					x := expression{e.Where, e.Range.Start, e.Range.End, e.Range.Code, operations(e.Text)}
					if i == 1 && filepath.Ext(e.File) != ".dwo" {
						t.Errorf("of file %q", e.File)
					}
					if i == 2 {
						x.start, x.end = lists[0][len(lists[2])].start, lists[0][len(lists[2])].end
						if e.Range.StartIndex != nil {
							indexed++
						}
					}
					lists[i] = append(lists[i], x)
				}
			}
			for i := range lists[1:] {
				if diff := cmp.Diff(lists[0], lists[1+i], cmp.AllowUnexported(expression{})); diff != "" || len(lists[0]) < 10 {
					t.Errorf("lists of %d (-whole +split):\n%s", 1+i, diff)
				}
			}
			if indexed != len(lists[2]) {
				t.Errorf("%d of %d ranges count from an address", indexed, len(lists[2]))
			}
		})
	}
}

func TestExpressionsOfMachinesWithoutAPlugin(t *testing.T) {
	path := assemble(t, "machines.s", "riscv64-linux-gnu")
	for _, dialect := range []*locexpr.Dialect{nil, locexpr.DWARF5} {
		d := expressionsJSON(t, path, dialect)
		var got []string
		for _, e := range d.Expressions {
			got = append(got, e.Section+" "+e.Where+": "+e.Text)
		}
		var want []string
		for _, section := range []string{".eh_frame", ".debug_frame"} {
			want = append(want, section+" rule of r8: DW_OP_lit1", section+" rule of r9: DW_OP_lit0; DW_OP_stack_value",
				section+" CFA: DW_OP_const1u 127; DW_OP_deref")
		}
		if diff := cmp.Diff(want, got); diff != "" || len(d.Problems) > 0 {
			t.Errorf("dialect %v: problems %q (-want +got):\n%s", dialect, d.Problems, diff)
		}
	}
}

// TestExpressionsAreOfTheDialectThatFits has operations of one of AMDGPU's dialects, in a
// file that does not say of which.
func TestExpressionsAreOfTheDialectThatFits(t *testing.T) {
	vendor := 0
	for _, e := range expressionsJSON(t, "../../plugins/amdgpu/testdata/amd_h.gfx90a.cfi.co", nil).Expressions {
		if strings.HasSuffix(e.Text, ">") {
			t.Errorf("%s: %s", e.Offset, e.Text)
		}
		if strings.Contains(e.Text, "DW_OP_LLVM_") {
			vendor++
		}
	}
	if vendor == 0 {
		t.Error("no operation is of LLVM's own")
	}
}
