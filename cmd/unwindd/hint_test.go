// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

const serverID = "01092ed6fbfc989c60cdda4dd2cc30a56e23db6d"

// hintsOf returns the hints of a command, as it prints them and as its JSON has them.
func hintsOf(t *testing.T, args ...string) (lines []string, hints []report.Hint) {
	t.Helper()
	stdout, stderr, status := unwindd(t, append([]string{"stack"}, args...)...)
	if status != exitDone {
		t.Fatalf("unwindd stack %v: status %d\n%s", args, status, stderr)
	}
	for line := range strings.Lines(stdout) {
		if text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "hint: "); ok {
			lines = append(lines, text)
		}
	}
	if len(lines) > 0 && !strings.HasSuffix(stdout, "\n\nhint: "+lines[len(lines)-1]+"\n") {
		t.Errorf("the hint is not the last line, behind an empty one:\n%s", stdout)
	}
	return lines, stackJSON(t, args...).Target.Hints
}

// TestHintsNameWhatIsMissing takes away what the stacks of the crash example need.
func TestHintsNameWhatIsMissing(t *testing.T) {
	s := strip(t)
	alone := filepath.Join(t.TempDir(), "server.core")
	copyFile(t, "server.core", alone, nil)
	debugDir := t.TempDir()
	put(t, debugDir, s.byID, s.debug)
	wrongDir := t.TempDir()
	put(t, wrongDir, s.byID, otherID(t, s))
	symbolsOnly := filepath.Join(t.TempDir(), "server")
	objcopy(t, "--strip-debug", filepath.Join(crashDir, "server"), symbolsOnly)
	const names = "server lacks names here (build ID " + serverID
	const missing = "server is not here (build ID " + serverID
	const ways = "): give a file that has them with --debug-dir DIR, or a server with --debuginfod URL or --symbols URL"
	const files = "): give the file with --exe FILE, or the files of its machine with --sysroot DIR, or a server with --debuginfod URL or --symbols URL"
	for _, c := range []struct {
		name  string
		args  []string
		needs report.Need // "": nothing is missing
		text  string
	}{
		{"nothing", []string{filepath.Join(crashDir, "server.core")}, "", ""},
		{"names", []string{s.core}, report.NeedNames, names + ways},
		{"names of one frame", []string{s.core, "--crashed", "--top", "1"}, report.NeedNames, names + ways},
		{"nothing, with the debug file", []string{s.core, "--debug-dir", debugDir}, "", ""},
		{"a debug file of another build", []string{s.core, "--debug-dir", wrongDir}, report.NeedNames, names + "; what was found is of another build" + ways},
		{"the executable", []string{alone}, report.NeedFile, missing + files},
		{"an executable of another build", []string{alone, "--exe", "/bin/true"}, report.NeedFile, missing + "; what was found is of another build" + files},
		{"nothing, with the executable", []string{alone, "--exe", filepath.Join(crashDir, "server")}, "", ""},
		{"the code, with the debug file", []string{alone, "--debug-dir", debugDir}, report.NeedFile, missing + "; only its debug file is, so that callers are guesses" + files},
		{"names, with the stripped executable", []string{alone, "--exe", s.exe}, report.NeedNames, names + ways},
		{"lines", []string{alone, "--exe", symbolsOnly}, report.NeedLines, "server has no lines here (build ID " + serverID + ways},
	} {
		lines, hints := hintsOf(t, c.args...)
		if c.needs == "" {
			if len(lines)+len(hints) != 0 {
				t.Errorf("%s is missing: %q, %+v", c.name, lines, hints)
			}
			continue
		}
		if len(lines) != 1 || lines[0] != c.text || len(hints) != 1 || hints[0] != (report.Hint{Module: "/srv/example/server", BuildID: serverID, Needs: c.needs, Text: c.text}) {
			t.Errorf("%s: %q, %+v, expected %s %q", c.name, lines, hints, c.needs, c.text)
		}
	}
}

// TestAHintDoesNotProposeAServerThatWasAsked asks one that has nothing, and one that is not there.
func TestAHintDoesNotProposeAServerThatWasAsked(t *testing.T) {
	s := strip(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	t.Setenv("DEBUGINFOD_CACHE_PATH", t.TempDir())
	text := "server lacks names here (build ID " + serverID + "): give a file that has them with --debug-dir DIR (asked: "
	for _, want := range []string{server.URL + ": the server does not have it)", "no server had it a short time ago)"} {
		if lines, _ := hintsOf(t, s.core, "--debuginfod", server.URL); len(lines) != 1 || lines[0] != text+want {
			t.Errorf("%q, expected %q", lines, text+want)
		}
	}
	t.Setenv("DEBUGINFOD_CACHE_PATH", t.TempDir())
	server.Close()
	if lines, _ := hintsOf(t, s.core, "--debuginfod", server.URL); len(lines) != 1 || !strings.HasPrefix(lines[0], text+server.URL+": ") || !strings.Contains(lines[0], "refused") {
		t.Errorf("%q", lines)
	}
}

// jitSource is a program that dies in code that it made, or at an address where no code is.
const jitSource = `#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
	char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, "\x0f\x0b", 2);
	((void (*)(void))(argc > 1 ? (char *)0x1234 : code))();
	return 0;
}
`

// TestCodeThatAProgramMadeHasAHint: a wild jump is none to such code.
func TestCodeThatAProgramMadeHasAHint(t *testing.T) {
	dir := t.TempDir()
	source := put(t, dir, "jit.c", []byte(jitSource))
	exe := filepath.Join(dir, "jit")
	oracle.Run(t, "gcc", "-g", "-o", exe, source)
	if lines, _ := hintsOf(t, subject.Core(t, exe), "--exe", exe, "--crashed"); len(lines) != 1 || !strings.HasPrefix(lines[0], "code that the program made while it ran lacks names here") {
		t.Errorf("code in memory: %q", lines)
	}
	if lines, _ := hintsOf(t, subject.Core(t, exe, "wild"), "--exe", exe, "--crashed"); len(lines) != 0 {
		t.Errorf("a wild jump: %q", lines)
	}
}

// TestSymbolizeHintsOnStandardError: standard output stays llvm-symbolizer's.
func TestSymbolizeHintsOnStandardError(t *testing.T) {
	s := strip(t)
	const want = "unwindd: hint: server lacks names here (build ID " + serverID + "): give a file that has them with --debug-dir DIR, or a server with --debuginfod URL\n"
	stdout, stderr, status := unwindd(t, "symbolize", "--obj", s.exe, "0x401209", "0x401300")
	if status != exitDone || stdout != "??\n??:0:0\n\n??\n??:0:0\n\n" || stderr != want {
		t.Errorf("status %d, %q, %q, expected %q", status, stdout, stderr, want)
	}
	if _, stderr, _ := unwindd(t, "symbolize", "--obj", filepath.Join(crashDir, "server"), "0x401209"); strings.Contains(stderr, "hint") {
		t.Errorf("nothing is missing: %q", stderr)
	}
}

// TestAProfileHintsAtTheModuleWithMostSamples: the executable of the recording is not there.
func TestAProfileHintsAtTheModuleWithMostSamples(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "perf.data", readFile(t, "../../examples/profile/perf.data"))
	stdout, stderr, status := unwindd(t, "profile", "--format", "json", path)
	var p struct {
		Target struct{ Hints []report.Hint }
	}
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || status != exitDone || len(p.Target.Hints) == 0 {
		t.Fatalf("status %d, %v: %+v", status, err, p.Target.Hints)
	}
	if h := p.Target.Hints[0]; filepath.Base(h.Module) != "words" || h.Needs != report.NeedFile || !hasLine(stderr, "hint: words is not here (build ID "+h.BuildID+")") {
		t.Errorf("%+v\n%s", h, stderr)
	}
	if _, stderr, _ := unwindd(t, "profile", "--symbols=false", path, "-o", os.DevNull); strings.Contains(stderr, "hint") {
		t.Errorf("no names were asked for:\n%s", stderr)
	}
	if _, stderr, _ := unwindd(t, "profile", "../../examples/profile/perf.data", "-o", os.DevNull); strings.Contains(stderr, "hint") {
		t.Errorf("nothing is missing:\n%s", stderr)
	}
}
