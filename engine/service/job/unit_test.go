// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// unitSource has what expressions of a unit refer to.
const unitSource = `
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone))
struct pair { long a, b; };
int global = 42;
double pi = 3.25;
__thread int own = 7;
volatile long sink;
NOINLINE long last(long x, long y) {
	sink = x + y;
	if (sink)
		abort();
	return x;
}
NOINLINE long left(long x) { sink = x; return last(x * 3, 5); }
NOINLINE long fill(long n) {
	struct pair local = { n, n + 1 };
	struct pair *volatile at = &local;
	long r = left(n + 1);
	return r + n + at->a;
}
int main(int argc, char **argv) { (void)argv; return (int)fill(argc + 9) + global + (int)pi; }
`

// unitProgram compiles unitSource; the DIEs of its unit are found by name.
func unitProgram(t *testing.T, name string, flags ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "unit.c")
	if err := os.WriteFile(source, []byte(unitSource), 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, name)
	oracle.With{Dir: dir}.Run(t, flags[0], append(flags[1:], "unit.c", "-o", name)...)
	return path
}

var (
	dieLine  = regexp.MustCompile(`^(0x[0-9a-f]{8}): +(DW_TAG_\w+)`)
	dieFrame = regexp.MustCompile(`^ +DW_AT_location\t\(DW_OP_fbreg ([-+]\d+)\)`)
	dieName  = regexp.MustCompile(`^ +DW_AT_name\t\("(.*)"\)`)
)

// unitCFA is the CFA of frames in which expressions are evaluated.
const unitCFA = 0x7ffc1000

// entriesOf are the offsets of a file's named entries, as llvm-dwarfdump has them: the
// first of each tag and name; and the addresses of those that are in a frame.
func entriesOf(t *testing.T, path string) map[string]string {
	t.Helper()
	entries := map[string]string{}
	offset, tag, name := "", "", ""
	for line := range strings.Lines(oracle.Run(t, oracle.Tool(t, "llvm-dwarfdump-22"), "--debug-info", path)) {
		line = strings.TrimRight(line, "\n")
		if m := dieLine.FindStringSubmatch(line); m != nil {
			offset, tag = m[1], m[2]
		} else if m := dieName.FindStringSubmatch(line); m != nil {
			key := strings.TrimPrefix(tag, "DW_TAG_") + " " + m[1]
			if name = m[1]; entries[key] == "" {
				entries[key] = offset
			}
		} else if m := dieFrame.FindStringSubmatch(line); m != nil {
			at, _ := strconv.Atoi(m[1])
			entries["frame "+name] = fmt.Sprintf("%#x", unitCFA+at)
		}
	}
	return entries
}

// filled puts offsets and addresses into a text: {variable global}, {symbol fill}.
func filled(t *testing.T, text string, entries map[string]string) string {
	t.Helper()
	return regexp.MustCompile(`\{(\w+ \w+( \w+)?)\}`).ReplaceAllStringFunc(text, func(s string) string {
		offset := entries[s[1:len(s)-1]]
		if offset == "" {
			t.Fatalf("no %s", s)
		}
		return offset
	})
}

// TestExpressionsInAUnit evaluates the operations that refer to a unit, in each form in which
// units are: of DWARF 4 and 5, of the 64-bit format, split, and with a supplementary file.
func TestExpressionsInAUnit(t *testing.T) {
	oracle.Tools(t, "gcc", "nm")
	cases := []struct {
		unit, args, want string
	}{
		{"0", "--expr|call4 {variable global}", "memory global {symbol global}"},
		{"11", "--expr|call_ref {variable global}", "memory global {symbol global}"},
		{"0", "--expr|call2 {variable pi}", "memory global {symbol pi}"},
		{"0", "--expr|GNU_variable_value {variable global}|--mem|global:{symbol global}=2a000000", "value int 0x2a"},
		{"0", "--expr|convert {base_type double}|--stack|7", "value double 0x401c000000000000"},
		{"0", "--expr|const_type {base_type double} 0000000000000a40; const_type {base_type double} 0000000000000a40; plus", "value double 0x401a000000000000"},
		{"0", "--expr|regval_type rax, {base_type int}|--reg|rax=fffffffffffffff6", "value int 0xfffffff6"},
		{"0", "--expr|deref_type 8 {base_type double}|--stack|0x2008|--mem|global:0x2008=0000000000000a40", "value double 0x400a000000000000"},
		{"0", "--expr|implicit_pointer {variable global} 4", "implicit-pointer {variable global}+4"},
		{"0", "--expr|minus|--stack|10|--stack|0x3", "value generic 0x7"},
		{"{subprogram fill}", "--expr|fbreg -40|--cfa|global:0x7ffc1000", "memory global 0x7ffc0fd8"},
		{"{variable at}", "--expr|fbreg -40|--cfa|global:0x7ffc1000", "memory global 0x7ffc0fd8"},
		{"0", "--expr|fbreg -40|--reg|rip={symbol fill}|--reg|rsp=0x7ffc0ff8", "memory global 0x7ffc0fd8"},
		{"{subprogram fill}", "--expr|call4 {variable at}|--cfa|global:0x7ffc1000", "memory global {frame at}"},
	}
	for _, build := range [][]string{
		{"gcc", "-O0", "-g", "-gdwarf-5"},
		{"gcc", "-O0", "-g", "-gdwarf-4"},
		{"gcc", "-O0", "-g", "-gdwarf-5", "-gdwarf64"},
	} {
		t.Run(strings.Join(build[2:], " "), func(t *testing.T) {
			path := unitProgram(t, "program", build...)
			entries := entriesOf(t, path)
			addSymbols(t, path, entries)
			for _, c := range cases {
				args := strings.Split(filled(t, c.args, entries), "|")
				args = append([]string{"--arch", "x86_64", "--unit", path + ":" + filled(t, c.unit, entries)}, args...)
				found, err := evaluated(t, args...)
				if want := shortHex(filled(t, c.want, entries)); strings.TrimSpace(found.text) != want || err != nil {
					t.Errorf("%s: %q, %v, expected %q", args, found.text, err, want)
				}
			}
		})
	}
}

// addSymbols adds the addresses of a program's symbols.
func addSymbols(t *testing.T, path string, entries map[string]string) {
	t.Helper()
	for line := range strings.Lines(oracle.Run(t, "nm", path)) {
		if f := strings.Fields(line); len(f) == 3 {
			entries["symbol "+f[2]] = "0x" + f[0]
		}
	}
}

// shortHex leaves out leading zeros.
func shortHex(text string) string {
	return regexp.MustCompile(`0x0+([0-9a-f])`).ReplaceAllString(text, "0x$1")
}

// A skeleton's unit is the split one, with the addresses that the object has for it.
func TestExpressionsInASplitUnit(t *testing.T) {
	oracle.Tools(t, "gcc", "nm")
	path := unitProgram(t, "program", "gcc", "-O0", "-g", "-gdwarf-5", "-gsplit-dwarf")
	dwo := filepath.Join(filepath.Dir(path), "program-unit.dwo")
	entries := entriesOf(t, dwo)
	addSymbols(t, path, entries)
	for _, c := range []struct{ args, want string }{
		{"--expr|call4 {variable global}", "memory global {symbol global}"},
		{"--expr|convert {base_type double}|--stack|7", "value double 0x401c000000000000"},
		{"--expr|GNU_variable_value {variable global}|--mem|global:{symbol global}=2a000000", "value int 0x2a"},
		{"--expr|fbreg -40|--reg|rip={symbol fill}|--reg|rsp=0x7ffc0ff8", "memory global 0x7ffc0fd8"},
	} {
		args := append([]string{"--arch", "x86_64", "--unit", path + ":0"}, strings.Split(filled(t, c.args, entries), "|")...)
		found, err := evaluated(t, args...)
		if want := shortHex(filled(t, c.want, entries)); strings.TrimSpace(found.text) != want || err != nil {
			t.Errorf("%s: %q, %v, expected %q", args, found.text, err, want)
		}
	}
	// Each address of the unit's part of .debug_addr is that of one of its symbols.
	known := map[string]bool{}
	for key, address := range entries {
		if strings.HasPrefix(key, "symbol ") {
			known["memory global "+shortHex(address)] = true
		}
	}
	for i := range 3 {
		found, err := evaluated(t, "--arch", "x86_64", "--unit", path+":0", "--expr", fmt.Sprint("addrx ", i))
		constant, err2 := evaluated(t, "--arch", "x86_64", "--unit", path+":0", "--expr", fmt.Sprint("constx ", i))
		address := strings.TrimSpace(found.text)
		if err := errors.Join(err, err2); err != nil || !known[address] || strings.TrimSpace(constant.text) != "value generic "+strings.TrimPrefix(address, "memory global ") {
			t.Errorf("address %d: %q, %q, %v", i, found.text, constant.text, err)
		}
	}
	if err := os.Remove(dwo); err != nil {
		t.Fatal(err)
	}
	_, err := evaluated(t, "--arch", "x86_64", "--unit", path+":0", "--expr", "lit1")
	if err == nil || !strings.Contains(err.Error(), "program-unit.dwo") || !strings.Contains(err.Error(), "unit at 0x0") {
		t.Errorf("without the split file: %v", err)
	}
}

// Entries refer to those of a supplementary file, where dwz put what two files share.
func TestExpressionsInAUnitWithASupplementaryFile(t *testing.T) {
	oracle.Tools(t, "gcc", "dwz", "nm", "readelf")
	first := unitProgram(t, "first", "gcc", "-O0", "-g", "-gdwarf-4")
	second := unitProgram(t, "second", "gcc", "-O1", "-g", "-gdwarf-4")
	oracle.Run(t, "dwz", "-m", filepath.Join(filepath.Dir(first), "common"), first, second)
	text := oracle.Run(t, "readelf", "--debug-dump=info", first)
	m := regexp.MustCompile(`<([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_variable\)\n.*DW_AT_name .* global\n(?:.*\n){0,5}.*DW_AT_type +: <alt `).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no variable whose type is in the supplementary file:\n%.2000s", text)
	}
	symbols := map[string]string{}
	addSymbols(t, first, symbols)
	found, err := evaluated(t, "--arch", "x86_64", "--unit", first+":0x"+m[1],
		"--expr", "GNU_variable_value 0x"+m[1], "--mem", "global:"+symbols["symbol global"]+"=2a000000")
	if strings.TrimSpace(found.text) != "value int 0x2a" || err != nil {
		t.Errorf("%q, %v", found.text, err)
	}
}

// indexOf is the index of the frame of a function.
func indexOf(frames []trace.Frame, function string) int {
	return slices.IndexFunc(frames, func(f trace.Frame) bool { return strings.TrimSuffix(functionOf(&f), ".cold") == function })
}

// functionOf is the function that a frame belongs to.
func functionOf(f *trace.Frame) string {
	if len(f.Symbols) == 0 {
		return ""
	}
	return f.Symbols[len(f.Symbols)-1].Function
}

// In a frame of a core the function is that of its PC, and what it was given when it was
// called is found in its callers, through tail calls too.
func TestExpressionsInAUnitOfAFrame(t *testing.T) {
	oracle.Tools(t, "gcc")
	path := unitProgram(t, "program", "gcc", "-O2", "-fcf-protection=none", "-g", "-gdwarf-5")
	core := subject.Core(t, path)
	crashed := openTarget(t, core)
	frames := crashed.Walk(t.Context(), crashed.Crashed()).Frames
	left := frames[indexOf(frames, "last")].TailCallers()
	if len(left) != 1 || functionOf(&left[0]) != "left" || len(left[0].Locals()) != 1 {
		t.Fatalf("%+v, expected the frame of left, which was left by a tail call", left)
	}
	if v := left[0].Locals()[0]; len(v) != 1 || v[0].Name != "x" || v[0].Text != "11" {
		t.Errorf("variables of left, which was called with 11: %+v", v)
	}
	for _, target := range []string{core, writtenSnapshot(t, crashed)} {
		// fill was called with 10 and called left with 11, which called last with 33.
		for _, c := range []struct{ function, register, want string }{
			{"last", "reg5", "value generic 0x21"}, {"last", "reg4", "value generic 0x5"}, {"fill", "reg5", "value generic 0xa"},
		} {
			n := indexOf(frames, c.function)
			found, err := evaluated(t, "--arch", "x86_64", "--snapshot", target, "--frame", fmt.Sprint(n),
				"--unit", path+":0", "--expr", "entry_value {"+c.register+"}")
			if strings.TrimSpace(found.text) != c.want || err != nil {
				t.Errorf("%s of %s, frame %d: %q, %v, expected %q", c.register, c.function, n, found.text, err, c.want)
			}
		}
	}
	other := unitProgram(t, "other", "gcc", "-O1", "-g")
	_, err := evaluated(t, "--arch", "x86_64", "--snapshot", core, "--unit", other+":0", "--expr", "lit1")
	if err == nil || !strings.Contains(err.Error(), "is the file of no module") {
		t.Errorf("another program's unit: %v", err)
	}
}

// openTarget opens a target until the test ends.
func openTarget(t *testing.T, path string) *engine.Target {
	t.Helper()
	e, err := engine.New(engine.Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, MaxFrames: engine.DefaultMaxFrames, Locals: &trace.DefaultValueLimits,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	state, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// writtenSnapshot is the path of a snapshot of a target.
func writtenSnapshot(t *testing.T, state *engine.Target) string {
	t.Helper()
	s, err := state.Snapshot(t.Context(), engine.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// TestUnitsThatAreNotThere has offsets and files that cannot be used.
func TestUnitsThatAreNotThere(t *testing.T) {
	oracle.Tools(t, "gcc", "objcopy")
	path := unitProgram(t, "program", "gcc", "-O1", "-g", "-gdwarf-5")
	dir := filepath.Dir(path)
	cut, bare := filepath.Join(dir, "cut"), filepath.Join(dir, "bare")
	oracle.Run(t, "objcopy", "--dump-section", ".debug_info="+cut+".info", path, cut)
	info, err := os.ReadFile(cut + ".info")
	if err == nil {
		err = os.WriteFile(cut+".info", info[:len(info)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "objcopy", "--update-section", ".debug_info="+cut+".info", path, cut)
	oracle.Run(t, "objcopy", "--strip-debug", path, bare)
	for _, c := range []struct {
		arch, unit, expr string
		isUsage          bool
		want             []string // in the message
	}{
		{"x86_64", path + ":0x100000", "lit1", false, []string{path, ".debug_info", "offset 0x100000", "no unit has the offset"}},
		{"x86_64", path + ":0xffffffffffffffff", "lit1", false, []string{"offset 0xffffffffffffffff"}},
		{"x86_64", cut + ":0", "lit1", false, []string{cut, ".debug_info", "length"}},
		{"x86_64", bare + ":0", "lit1", false, []string{bare, "no debugging information"}},
		{"x86_64", path, "lit1", true, []string{"expected FILE:OFFSET"}},
		{"x86_64", path + ":2d", "lit1", true, []string{`offset "2d"`, "0x"}},
		{"x86_64", path + "x:0", "lit1", false, []string{"no such file"}},
		{"amdgpu", path + ":0", "lit1", false, []string{"is of x86_64, expected amdgpu"}},
		{"x86_64", path + ":0", "call4 0xfffff", false, []string{"ill-formed", "DW_OP_call4", "no unit has the offset 0xfffff"}},
		{"x86_64", path + ":0", "lit1; convert 0xc", false, []string{"DW_OP_convert", "expected DW_TAG_base_type"}},
		{"x86_64", path + ":0", "lit1; convert 0xfffff", false, []string{"DW_OP_convert", "not in the unit"}},
		{"x86_64", path + ":0", "addrx 5", false, []string{"DW_OP_addrx", ".debug_addr"}},
		{"x86_64", path + ":0", "fbreg 0", false, []string{"DW_OP_fbreg", "frame base"}},
		{"x86_64", path + ":0", "entry_value {reg5}", false, []string{"DW_OP_entry_value", "the function is not described"}},
	} {
		_, err := evaluated(t, "--arch", c.arch, "--unit", c.unit, "--expr", c.expr)
		for _, want := range c.want {
			if err == nil || errors.Is(err, ErrUsage) != c.isUsage || !strings.Contains(err.Error(), want) {
				t.Errorf("--unit %s --expr %q: %v, expected %q", c.unit, c.expr, err, want)
			}
		}
	}
	for _, value := range []string{"0x10000000000000000", "-1", "x", ""} {
		if _, err := evaluated(t, "--arch", "x86_64", "--expr", "dup", "--stack", value); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--stack") {
			t.Errorf("--stack %q: %v", value, err)
		}
	}
}
