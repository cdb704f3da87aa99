// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A facts is what --format breakpad has beside frames.
type facts struct {
	System struct {
		Arch  string `json:"cpu_arch"`
		CPU   string `json:"cpu_info"`
		Count int    `json:"cpu_count"`
		OS    string `json:"os"`
	} `json:"system_info"`
	Crash struct {
		Address, Type string
		Thread        *int `json:"crashing_thread"`
	} `json:"crash_info"`
	Main    int `json:"main_module"`
	Modules []struct {
		Base      string `json:"base_addr"`
		End       string `json:"end_addr"`
		Filename  string
		DebugFile string `json:"debug_file"`
		DebugID   string `json:"debug_id"`
		Version   string
	}
	Threads []struct {
		Frames []struct{ Module string }
	}
}

// factDumps are the dumps of this repository, and those of public ones in the folder that
// UNWINDD_MINIDUMPS names, which testdata/public.sh of engine/internal/target/minidump makes.
func factDumps(t *testing.T) []string {
	list := []string{"../../../examples/crash/server.dmp", "../../../engine/internal/target/minidump/testdata/minidump2.dmp"}
	if public := os.Getenv("UNWINDD_MINIDUMPS"); public != "" {
		more, err := filepath.Glob(filepath.Join(public, "*", "*.dmp"))
		if err != nil || len(more) < 40 {
			t.Fatalf("%d dumps in %s, %v", len(more), public, err)
		}
		list = append(list, more...)
	}
	return list
}

// output is what a command prints, whatever its status.
func output(name string, args ...string) string {
	out, _ := exec.Command(name, args...).Output() // a dump that is damaged is no failure
	return string(out)
}

func hexNumber(s string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	return n
}

// TestFactsAreThoseOfMinidumpStackwalk holds system, crash, modules and the modules of top
// frames against what minidump_stackwalk -m prints.
func TestFactsAreThoseOfMinidumpStackwalk(t *testing.T) {
	exe, err := unwindd()
	if err != nil {
		t.Fatal(err)
	}
	walker := filepath.Join(breakpadTools(t), "minidump_stackwalk")
	compared := map[string]int{}
	for _, dump := range factDumps(t) {
		text := output(walker, "-m", dump)
		if text == "" {
			compared["dumps that it does not read"]++
			continue
		}
		var have facts
		if err := json.Unmarshal([]byte(output(exe, "stack", dump, "--format", "breakpad")), &have); err != nil {
			t.Fatalf("%s: %v", dump, err)
		}
		compared["dumps"]++
		for line := range strings.Lines(text) {
			kind, problem := have.compare(strings.Split(strings.TrimRight(line, "\n"), "|"))
			compared[kind]++
			if problem != "" {
				t.Errorf("%s: %s: %s", filepath.Base(dump), strings.TrimSpace(line), problem)
			}
		}
	}
	t.Log(compared)
}

// compare compares a line. The problem is "" where there is none, or one of a class that
// docs/stack.md describes.
func (f *facts) compare(line []string) (kind, problem string) {
	unless := func(ok bool, format string, args ...any) {
		if !ok && problem == "" {
			problem = fmt.Sprintf(format, args...)
		}
	}
	switch {
	case line[0] == "OS":
		unless(f.System.OS == line[1], "os is %q", f.System.OS)
	case line[0] == "CPU":
		unless(f.System.Arch == line[1] && f.System.CPU == line[2] && strconv.Itoa(f.System.Count) == line[3], "%+v", f.System)
	case line[0] == "Crash" && line[1] == "No crash":
		unless(f.Crash.Type == "" && f.Crash.Thread == nil, "%+v", f.Crash)
	case line[0] == "Crash":
		unless(isSameCrash(f.Crash.Type, line[1]), "type is %q", f.Crash.Type)
		// What is not about memory has other numbers in the place of the address.
		unless(f.Crash.Address == "" || hexNumber(f.Crash.Address) == hexNumber(line[2]), "address is %s", f.Crash.Address)
		unless(f.Crash.Thread != nil && strconv.Itoa(*f.Crash.Thread) == line[3], "crashing_thread is %v", f.Crash.Thread)
	case line[0] == "Module":
		for i, m := range f.Modules {
			if hexNumber(m.Base) != hexNumber(line[5]) {
				continue
			}
			unless(m.Filename == line[1] && m.Version == line[2] && hexNumber(m.End) == hexNumber(line[6])+1, "%+v", m)
			unless(strings.Trim(m.DebugID, "0") == "" || m.DebugID == line[4] && (m.DebugFile == line[3] || line[3] == ""), "%+v", m)
			unless(line[7] != "1" || i == f.Main, "main_module is %d, not %d", f.Main, i)
			return "modules", problem
		}
		return "modules", "is not there"
	case len(line) > 3 && line[1] == "0": // THREAD|FRAME|MODULE|...
		i, err := strconv.Atoi(line[0])
		unless(err == nil && i < len(f.Threads) && len(f.Threads[i].Frames) > 0 && f.Threads[i].Frames[0].Module == line[2], "the top frame is in another module")
		return "top frames", problem
	default:
		return "other lines", ""
	}
	return line[0], problem
}

// crashForms are how this minidump_stackwalk names what rust-minidump's, whose names are
// taken, names in another way.
var crashForms = []struct{ theirs, ours string }{
	{` ?/ ?0x00000000$`, ``}, // si_code 0
	{`^FAST_FAIL_`, `EXCEPTION_STACK_BUFFER_OVERRUN / FAST_FAIL_`},
	{`^Uncaught NSException$`, `NSException / 0x00000000`},
}

func isSameCrash(ours, theirs string) bool {
	for _, f := range crashForms {
		if ours == regexp.MustCompile(f.theirs).ReplaceAllString(theirs, f.ours) {
			return true
		}
	}
	return ours == theirs || strings.HasPrefix(theirs, "0x") // which it has no name for
}

// registerLine is a register in the output of minidump_dump.
var registerLine = regexp.MustCompile(`(?m)^  (\w+) +=? ?(0x[0-9a-f]+)$`)

// TestNotesAreThoseOfMinidumpDump holds the registers of all contexts, identifiers and names of
// modules and exceptions of `dump notes` against minidump_dump.
func TestNotesAreThoseOfMinidumpDump(t *testing.T) {
	exe, err := unwindd()
	if err != nil {
		t.Fatal(err)
	}
	dumper := filepath.Join(breakpadTools(t), "minidump_dump")
	type context struct{ Registers map[string]string }
	compared := map[string]int{}
	for _, dump := range factDumps(t) {
		var have struct {
			Threads, Exceptions []context
			Modules             []struct {
				Name    string
				DebugID string `json:"debug_id"`
			}
			Unloaded []struct{ Name string } `json:"unloaded_modules"`
		}
		if err := json.Unmarshal([]byte(output(exe, "dump", "notes", dump, "--format", "json")), &have); err != nil {
			t.Fatalf("%s: %v", dump, err)
		}
		var contexts []context
		for _, c := range append(have.Threads, have.Exceptions...) {
			if len(c.Registers) > 0 {
				contexts = append(contexts, c)
			}
		}
		text := output(dumper, dump)
		parts := regexp.MustCompile(`MDRawContext\w+\n`).Split(text, -1)[1:]
		if len(parts) == 0 && len(contexts) > 0 {
			compared["dumps whose contexts it does not read"]++
			continue
		}
		if len(parts) != len(contexts) {
			t.Errorf("%s: %d contexts, minidump_dump has %d", dump, len(contexts), len(parts))
			continue
		}
		compared["dumps"]++
		for i, part := range parts {
			part, _, _ = strings.Cut(part, "\n\n")
			seen := map[string]bool{} // the arrays behind the structure have the same names
			for _, m := range registerLine.FindAllStringSubmatch(part, -1) {
				if v := contexts[i].Registers[m[1]]; strings.HasPrefix(v, "0x") && !seen[m[1]] {
					seen[m[1]] = true
					if compared["registers"]++; hexNumber(v) != hexNumber(m[2]) {
						t.Errorf("%s: context %d: %s is %s, minidump_dump has %s", dump, i, m[1], v, m[2])
					}
				}
			}
		}
		known := map[string]bool{"": true}
		for _, m := range have.Modules {
			known[m.Name], known[m.DebugID] = true, true
		}
		for _, m := range have.Unloaded {
			known[m.Name] = true
		}
		for _, m := range regexp.MustCompile(`\((?:code_file|debug_identifier)\) += "([^"]*)"`).FindAllStringSubmatch(text, -1) {
			if compared["names"]++; !known[m[1]] && strings.Trim(m[1], "0") != "" {
				t.Errorf("%s: %q is not there", dump, m[1])
			}
		}
	}
	t.Log(compared)
	if compared["registers"] < 60 || compared["dumps whose contexts it does not read"] > 1 {
		t.Errorf("%v", compared)
	}
}
