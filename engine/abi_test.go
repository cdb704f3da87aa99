// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/fixture/power"
	"github.com/unwindd/unwindd/internal/fixture/s390x"
	"github.com/unwindd/unwindd/sdk"
)

// A crossMachine is an architecture of internal/fixture, whose programs Debian's compilers make
// and qemu runs.
type crossMachine struct {
	emulated
	triple string
	arch   sdk.Architecture
}

var crossMachines = []crossMachine{
	{emulated{"ppc64le", "power9", "/usr/powerpc64le-linux-gnu"}, "powerpc64le-linux-gnu", power.NewLittleEndian()},
	{emulated{"ppc64", "power9", "/usr/powerpc64-linux-gnu"}, "powerpc64-linux-gnu", power.NewBigEndian()},
	{emulated{"s390x", "max", "/usr/s390x-linux-gnu"}, "s390x-linux-gnu", s390x.New()},
}

// stack is the stack of the one thread of a target, in an engine with all of these
// architectures side by side: two of them have one ELF machine.
func (m *crossMachine) stack(t *testing.T, path string) *trace.Stack {
	t.Helper()
	var all []sdk.Architecture
	for i := range crossMachines {
		all = append(all, crossMachines[i].arch)
	}
	limits := trace.DefaultValueLimits
	e, err := engine.New(engine.Options{Registers: true, Locals: &limits, Plugins: plugin.Options{InProcess: all}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	target, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	threads := target.Threads()
	if len(threads) != 1 {
		t.Fatalf("%s: %d threads, expected 1", path, len(threads))
	}
	return target.Walk(t.Context(), threads[0])
}

// abiValues are the variables of internal/subject/testdata/abi.c, as its source has them.
// Optimized code has many of them in registers that callees save.
var abiValues = map[string]string{
	"narrow.ch": `122 'z'`, "narrow.uc": `200 '\310'`, "narrow.ss": "-2", "narrow.us": "65535", "narrow.t": "true", "narrow.k": "GREEN",
	"narrow.i": "-123456", "narrow.u": "4000000000", "narrow.l": "-1234567890123", "narrow.ll": "18364758544493064720", "narrow.numbers": "{4, 3, 2, 1}",
	"floats.f": "0.5", "floats.d": "-2.75", "floats.ld": "-3.25", "floats.z": "1 + 2i", "floats.zf": "3 + 4i",
	"floats.p": "{x = 1.5, y = -2.25}", "floats.s": `{x = 7 '\a', y = -7}`, "floats.kept": "1 + 2i",
	"last.ch": `-7 '\371'`, "last.us": "65534", "last.f": "-0.25", "last.d": "1.5", "last.ld": "-3.5", "last.p": "{x = 1.5, y = -2.25}",
	"last.s": `{x = 7 '\a', y = -7}`,
	"last.copy": `{bits = {a = 5, b = 1000, c = -100, d = 588715939448, e = GREEN}, u = {d = 1.5, w = WORDS, c = BYTES}, k = GREEN, f = -0.25, ld = -3.5, ` +
		`z = 1 + 2i, zf = 3 + 4i, s = {-7, -2, 3}, t = true, uc = 200 '\310', wide = -5, text = POINTER, self = POINTER}`,
	"main.argc": "2",
}

// abiValue is the value of a variable, as a machine with a byte order has it.
func abiValue(variable string, order sdk.ByteOrder) (text string, ok bool) {
	text, ok = abiValues[variable]
	words, bytes := "{0, 1073217536}", `"\000\000\000\000\000\000\370?"`
	if order == sdk.BigEndian {
		words, bytes = "{1073217536, 0}", `"?\370"`
	}
	return strings.NewReplacer("WORDS", words, "BYTES", bytes).Replace(text), ok
}

var pointers = regexp.MustCompile(`0x[0-9a-f]+( <[^>]*>)?( "[^"]*")?`)

// checkValues holds all variables of a stack against the source; it returns how many there are.
func checkValues(t *testing.T, stack *trace.Stack, order sdk.ByteOrder) (count int) {
	t.Helper()
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if f.Details == nil {
			continue
		}
		for level, list := range f.Details.Locals {
			for j := range list {
				v := &list[j]
				name := abiFunction(f, level) + "." + v.Name
				want, ok := abiValue(name, order)
				if !ok {
					continue
				}
				switch got := pointers.ReplaceAllString(value.Line(&v.Value, v.Language), "POINTER"); {
				case v.Status == trace.ValueFailed:
					t.Errorf("%s: %s", name, v.Problem)
				case v.Status != trace.ValueOK, strings.Contains(got, "<optimized out>"):
				case got != want:
					t.Errorf("%s = %s, expected %s", name, got, want)
				default:
					count++
				}
			}
		}
	}
	return count
}

// abiFunction is the function of a frame, or of one of the calls inlined in it.
func abiFunction(f *trace.Frame, level int) string {
	if level < len(f.Symbols) {
		return f.Symbols[level].Function
	}
	return ""
}

// abiStacks are the functions of each mode of abi.c, innermost first, without those that were
// inlined and the calls between middle and _start.
var abiStacks = map[string][]string{
	"data":    {"crash", "narrow", "floats", "last", "middle"},
	"tail":    {"crash", "narrow", "floats", "last", "left", "middle"},
	"call":    {"", "crash", "narrow", "floats", "last", "middle"},
	"handler": {"crash", "handler", "", "crash", "narrow", "floats", "last", "middle"},
	"sorted":  {"crash", "compare", "narrow", "floats", "last", "middle"},
}

// TestRecordedStacksOfOtherABIs walks snapshots of programs of POWER, in both byte orders, and
// of s390x: not optimized, optimized, and without call frame information. testdata/abi/make.sh
// made them.
func TestRecordedStacksOfOtherABIs(t *testing.T) {
	for _, m := range crossMachines {
		d, err := m.arch.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for build, least := range map[string]int{"O0": 27, "O2": 20, "bare": 0} {
			for _, mode := range []string{"data", "tail", "call", "handler"} {
				t.Run(strings.Join([]string{m.machine, build, mode}, "-"), func(t *testing.T) {
					stack := m.stack(t, filepath.Join("testdata", "abi", m.machine+"-"+build+"-"+mode+".snapshot"))
					if got, want := abiNames(stack), m.wantNames(build, mode); !slices.Equal(got, want) {
						t.Errorf("%q, expected %q", got, want)
					}
					if stack.Stopped.Reason != trace.StopOutermost {
						t.Errorf("stopped %+v, expected at the outermost frame", stack.Stopped)
					}
					for i := range stack.Frames {
						if f := &stack.Frames[i]; f.FoundBy.IsGuess() && mode != "call" {
							t.Errorf("frame %d is a guess, by %s", i, f.FoundBy)
						}
					}
					if mode == "call" {
						least /= 2 // callers that were found by a guess have lost registers
					}
					if n := checkValues(t, stack, d.ByteOrder); n < least {
						t.Errorf("%d values, expected %d", n, least)
					}
				})
			}
		}
	}
}

// abiNames are the functions of a stack down to the one that main calls.
func abiNames(stack *trace.Stack) []string {
	var names []string
	for i := range stack.Frames {
		f := &stack.Frames[i]
		names = append(names, abiFunction(f, 0))
		if f.Details != nil {
			for j := range f.Details.TailCallers {
				names = append(names, f.Details.TailCallers[j].Symbols[0].Function)
			}
		}
		if names[len(names)-1] == "middle" {
			break
		}
	}
	return names
}

// wantNames are the functions of a mode, as a machine has them.
func (m *crossMachine) wantNames(build, mode string) []string {
	want := slices.Clone(abiStacks[mode])
	switch {
	case mode == "call" && m.machine == "ppc64": // it reads a descriptor at null
		want = want[1:]
	case build == "bare": // debug information alone has functions that were left by tail calls
		want = slices.DeleteFunc(want, func(name string) bool { return name == "left" })
	}
	return want
}
