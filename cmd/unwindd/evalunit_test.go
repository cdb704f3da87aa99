// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
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
	for line := range strings.Lines(oracle.Run(t, llvm(t, "dwarfdump"), "--debug-info", path)) {
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

// TestEvalInAUnit evaluates the operations that refer to a unit, in each form in which
// units are: of DWARF 4 and 5, of the 64-bit format, split, and with a supplementary file.
func TestEvalInAUnit(t *testing.T) {
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
				args = append([]string{"eval", "--arch", "x86_64", "--unit", path + ":" + filled(t, c.unit, entries)}, args...)
				stdout, stderr, status := unwindd(t, args...)
				if want := shortHex(filled(t, c.want, entries)); strings.TrimSpace(stdout) != want || status != 0 {
					t.Errorf("%s: %q, status %d, expected %q\n%s", args, stdout, status, want, stderr)
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
func TestEvalInASplitUnit(t *testing.T) {
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
		args := append([]string{"eval", "--arch", "x86_64", "--unit", path + ":0"}, strings.Split(filled(t, c.args, entries), "|")...)
		stdout, stderr, status := unwindd(t, args...)
		if want := shortHex(filled(t, c.want, entries)); strings.TrimSpace(stdout) != want || status != 0 {
			t.Errorf("%s: %q, status %d, expected %q\n%s", args, stdout, status, want, stderr)
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
		stdout, stderr, status := unwindd(t, "eval", "--arch", "x86_64", "--unit", path+":0", "--expr", fmt.Sprint("addrx ", i))
		constant, _, _ := unwindd(t, "eval", "--arch", "x86_64", "--unit", path+":0", "--expr", fmt.Sprint("constx ", i))
		address := strings.TrimSpace(stdout)
		if status != 0 || !known[address] || strings.TrimSpace(constant) != "value generic "+strings.TrimPrefix(address, "memory global ") {
			t.Errorf("address %d: %q, %q, status %d\n%s", i, stdout, constant, status, stderr)
		}
	}
	if err := os.Remove(dwo); err != nil {
		t.Fatal(err)
	}
	_, stderr, status := unwindd(t, "eval", "--arch", "x86_64", "--unit", path+":0", "--expr", "lit1")
	if status != 1 || !strings.Contains(stderr, "program-unit.dwo") || !strings.Contains(stderr, "unit at 0x0") {
		t.Errorf("without the split file: status %d, %q", status, stderr)
	}
}

// Entries refer to those of a supplementary file, where dwz put what two files share.
func TestEvalInAUnitWithASupplementaryFile(t *testing.T) {
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
	stdout, stderr, status := unwindd(t, "eval", "--arch", "x86_64", "--unit", first+":0x"+m[1],
		"--expr", "GNU_variable_value 0x"+m[1], "--mem", "global:"+symbols["symbol global"]+"=2a000000")
	if strings.TrimSpace(stdout) != "value int 0x2a" || status != 0 {
		t.Errorf("%q, status %d\n%s", stdout, status, stderr)
	}
}

// physicalIndex counts the physical frames before that of a function.
func physicalIndex(frames []report.Frame, function string) (n int) {
	for _, f := range frames {
		switch {
		case f.Inlined || f.FoundBy == "call-site":
		case strings.TrimSuffix(f.Function, ".cold") == function:
			return n
		default:
			n++
		}
	}
	return -1
}

// In a frame of a core the function is that of its PC, and what it was given when it was
// called is found in its callers, through tail calls too.
func TestEvalInAUnitOfAFrame(t *testing.T) {
	oracle.Tools(t, "gcc")
	path := unitProgram(t, "program", "gcc", "-O2", "-fcf-protection=none", "-g", "-gdwarf-5")
	core := subject.Core(t, path)
	frames := crashed(t, stackJSON(t, core)).Frames
	if !slices.ContainsFunc(frames, func(f report.Frame) bool { return f.Function == "left" && f.FoundBy == "call-site" }) {
		t.Fatal("no frame of left, which was left by a tail call")
	}
	for _, f := range crashed(t, stackJSON(t, core, "--locals")).Frames {
		if f.Function == "left" && (f.Locals == nil || len(*f.Locals) != 1 || (*f.Locals)[0].Value == nil || *(*f.Locals)[0].Value != "11") {
			t.Errorf("variables of left, which was called with 11: %+v", f.Locals)
		}
	}
	taken, _ := takeSnapshot(t, core)
	for _, target := range []string{core, taken} {
		// fill was called with 10 and called left with 11, which called last with 33.
		for _, c := range []struct{ function, register, want string }{
			{"last", "reg5", "value generic 0x21"}, {"last", "reg4", "value generic 0x5"}, {"fill", "reg5", "value generic 0xa"},
		} {
			n := physicalIndex(frames, c.function)
			stdout, stderr, status := unwindd(t, "eval", "--arch", "x86_64", "--snapshot", target, "--frame", fmt.Sprint(n),
				"--unit", path+":0", "--expr", "entry_value {"+c.register+"}")
			if strings.TrimSpace(stdout) != c.want || status != 0 {
				t.Errorf("%s of %s, frame %d: %q, status %d, expected %q\n%s", c.register, c.function, n, stdout, status, c.want, stderr)
			}
		}
	}
	other := unitProgram(t, "other", "gcc", "-O1", "-g")
	_, stderr, status := unwindd(t, "eval", "--arch", "x86_64", "--snapshot", core, "--unit", other+":0", "--expr", "lit1")
	if status != 1 || !strings.Contains(stderr, "is the file of no module") {
		t.Errorf("another program's unit: status %d, %q", status, stderr)
	}
}

// TestEvalOfUnitsThatAreNotThere has offsets and files that --unit cannot use.
func TestEvalOfUnitsThatAreNotThere(t *testing.T) {
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
		status           int
		want             []string // in the message
	}{
		{"x86_64", path + ":0x100000", "lit1", 1, []string{path, ".debug_info", "offset 0x100000", "no unit has the offset"}},
		{"x86_64", path + ":0xffffffffffffffff", "lit1", 1, []string{"offset 0xffffffffffffffff"}},
		{"x86_64", cut + ":0", "lit1", 1, []string{cut, ".debug_info", "length"}},
		{"x86_64", bare + ":0", "lit1", 1, []string{bare, "no debugging information"}},
		{"x86_64", path, "lit1", 2, []string{"expected FILE:OFFSET"}},
		{"x86_64", path + ":2d", "lit1", 2, []string{`offset "2d"`, "0x"}},
		{"x86_64", path + "x:0", "lit1", 1, []string{"no such file"}},
		{"amdgpu", path + ":0", "lit1", 1, []string{"is of x86_64, expected amdgpu"}},
		{"x86_64", path + ":0", "call4 0xfffff", 1, []string{"ill-formed", "DW_OP_call4", "no unit has the offset 0xfffff"}},
		{"x86_64", path + ":0", "lit1; convert 0xc", 1, []string{"DW_OP_convert", "expected DW_TAG_base_type"}},
		{"x86_64", path + ":0", "lit1; convert 0xfffff", 1, []string{"DW_OP_convert", "not in the unit"}},
		{"x86_64", path + ":0", "addrx 5", 1, []string{"DW_OP_addrx", ".debug_addr"}},
		{"x86_64", path + ":0", "fbreg 0", 1, []string{"DW_OP_fbreg", "frame base"}},
		{"x86_64", path + ":0", "entry_value {reg5}", 1, []string{"DW_OP_entry_value", "the function is not described"}},
	} {
		stdout, stderr, status := unwindd(t, "eval", "--arch", c.arch, "--unit", c.unit, "--expr", c.expr)
		for _, want := range c.want {
			if status != c.status || !strings.Contains(stderr, want) {
				t.Errorf("--unit %s --expr %q: status %d, %q, expected %d, %q\n%s", c.unit, c.expr, status, stderr, c.status, want, stdout)
			}
		}
	}
	for _, value := range []string{"0x10000000000000000", "-1", "x", ""} {
		if _, stderr, status := unwindd(t, "eval", "--arch", "x86_64", "--expr", "dup", "--stack", value); status != 2 || !strings.Contains(stderr, "--stack") {
			t.Errorf("--stack %q: status %d, %q", value, status, stderr)
		}
	}
	if _, stderr, status := unwindd(t, "eval", "--arch", "x86_64", "--unit", path+":0", "--expr", "lit1", "-o", path); status != 2 || !strings.Contains(stderr, "written over") {
		t.Errorf("over its own file: status %d, %q", status, stderr)
	}
}
