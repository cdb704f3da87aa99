// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/sdk"
)

// An abiCase is a program, and a way in which it ends.
type abiCase struct {
	name, source, mode string
	flags              string
	further            bool // than gdb, which knows less of it
	values             int  // variables that both have, at least
}

var abiCases = []abiCase{
	{"O0", "abi.c", "data", "-O0 -g -no-pie", false, 25},
	{"O1", "abi.c", "data", "-O1 -g -no-pie", false, 20},
	{"O2", "abi.c", "data", "-O2 -g -no-pie", false, 15},
	{"O2 static", "abi.c", "data", "-O2 -g -static", false, 15},
	{"position-independent", "abi.c", "data", "-O2 -g", false, 15},
	{"called by a library", "abi.c", "sorted", "-O2 -g -no-pie", false, 15},
	{"tail call", "abi.c", "tail", "-O2 -g -no-pie", false, 15},
	{"without call frame information", "abi.c", "data", "-O2 -static -fno-asynchronous-unwind-tables -fno-unwind-tables", true, 0},
	{"caught", "abi.cc", "", "-O2 -g", false, 1},
	{"caught, static", "abi.cc", "", "-O2 -g -static", false, 1},
}

// TestStacksAndValuesOfOtherABIsAreGDBs has programs of POWER, in both byte orders, and of
// s390x crash under qemu, and compares every PC and every variable with gdb's.
func TestStacksAndValuesOfOtherABIsAreGDBs(t *testing.T) {
	t.Parallel()
	long(t)
	for _, m := range crossMachines {
		oracle.Tools(t, m.triple+"-gcc", m.triple+"-g++", "qemu-"+m.machine, "gdb-multiarch")
		for i, c := range abiCases {
			t.Run(m.machine+" "+c.name, func(t *testing.T) {
				if i > 3 {
					proof.Only(t)
				}
				t.Parallel()
				m.compareWithGDB(t, &c)
			})
		}
	}
}

func (m *crossMachine) compareWithGDB(t *testing.T, c *abiCase) {
	dir := t.TempDir()
	exe, values := filepath.Join(dir, "subject"), filepath.Join(dir, "values.json")
	compiler := m.triple + "-gcc"
	if strings.HasSuffix(c.source, ".cc") {
		compiler = m.triple + "-g++"
	}
	oracle.Run(t, compiler, append(strings.Fields("-w "+c.flags), "-o", exe, subject.Source(t, c.source))...)
	after := []string{"-ex", fmt.Sprintf("python values_path=%q", values), "-ex", "source " + subject.Source(t, "gdb_values.py")}
	path, pcs := m.qemuSnapshot(t, nil, after, exe, c.mode)
	stack := m.stack(t, path)
	var want, got []string
	for _, list := range pcs {
		want = list
	}
	for i := range stack.Frames {
		f := &stack.Frames[i]
		got = append(got, fmt.Sprintf("%#x", f.PC))
		if f.Details != nil {
			for j := range f.Details.TailCallers {
				got = append(got, fmt.Sprintf("%#x", f.Details.TailCallers[j].PC))
			}
		}
	}
	if want[len(want)-1] == "0x0" { // gdb has a frame for the return address 0
		want = want[:len(want)-1]
	}
	if c.further && len(want) < len(got) {
		got = got[:len(want)]
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 5 {
		t.Errorf("(-gdb +unwindd), stopped %+v\n%s", stack.Stopped, diff)
	}
	if n := m.compareValues(t, stack, values); n < c.values {
		t.Errorf("%d values of gdb, expected %d", n, c.values)
	}
}

// A abiGDBValue is a variable as gdb_values.py writes it.
type abiGDBValue struct{ PC, Function, Name, Text string }

// compareValues holds the variables of a stack against gdb's; it returns how many both have.
func (m *crossMachine) compareValues(t *testing.T, stack *trace.Stack, path string) (count int) {
	t.Helper()
	d, err := m.arch.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var theirs []abiGDBValue
	if err := json.Unmarshal(text, &theirs); err != nil {
		t.Fatal(err)
	}
	ours := abiTexts(stack)
	for _, v := range theirs {
		if strings.Contains(v.Text, "<") && !strings.Contains(v.Text, "<repeats") { // optimized out, in whole or in part
			continue
		}
		got, ok := ours[v.PC+" "+v.Name]
		name := strings.TrimPrefix(v.Function, ".") + "." + v.Name
		switch isSame := ok && sameText(got, v.Text); {
		case isSame:
			count++
		case ok && m.isRight(name, got, d.ByteOrder):
			t.Logf("%s: gdb has %s, the source as unwindd %s", name, v.Text, got)
		default:
			t.Errorf("%s = %s, gdb has %s", name, got, v.Text)
		}
	}
	return count
}

// isRight reports whether the source says that a variable of abi.c has this value.
func (m *crossMachine) isRight(name, text string, order sdk.ByteOrder) bool {
	want, ok := abiValue(name, order)
	return ok && pointers.ReplaceAllString(text, "POINTER") == want
}

// abiTexts are the variables of a stack by PC and name; the innermost of several blocks.
func abiTexts(stack *trace.Stack) map[string]string {
	locals := map[string]string{}
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if f.Details == nil {
			continue
		}
		for _, list := range slices.Backward(f.Details.Locals) {
			for j := range list {
				text := value.Line(&list[j].Value, list[j].Language)
				if list[j].Status == trace.ValueFailed {
					text = "<" + list[j].Problem + ">"
				}
				locals[fmt.Sprintf("%#x %s", f.PC, list[j].Name)] = text
			}
		}
	}
	return locals
}

var (
	symbolic = regexp.MustCompile(` <[^>]*>`)
	octal    = regexp.MustCompile(`\\([0-7]{3})`)
	zeros    = regexp.MustCompile(`(\\000)+"`)
	fraction = regexp.MustCompile(`-?[0-9]+\.[0-9]+(e[-+][0-9]+)?`)
)

// sameText compares the texts of values: what symbols are at a pointer, escapes, zeros at the
// end of text, and digits that a number of its format has not are no differences.
func sameText(a, b string) bool {
	plain := func(text string) string {
		text = zeros.ReplaceAllString(symbolic.ReplaceAllString(text, ""), `"`)
		text = octal.ReplaceAllStringFunc(text, func(escaped string) string {
			var n int
			fmt.Sscanf(escaped[1:], "%o", &n)
			if n < 0x20 || n > 0x7e || n == '"' || n == '\\' {
				return escaped
			}
			return string(rune(n))
		})
		return fraction.ReplaceAllStringFunc(text, func(digits string) string {
			f, _, err := big.ParseFloat(digits, 10, 100, big.ToNearestEven)
			if err != nil {
				return digits
			}
			return f.Text('g', 29)
		})
	}
	return plain(a) == plain(b)
}
