// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

const (
	wine      = "/usr/lib/wine/wine64" // of the package wine64
	wineFiles = "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows"
)

// winePatience bounds the time of a program.
const winePatience = 3 * time.Minute

// onWindows are the packages whose tests run on Windows: they read what was written on Linux.
var onWindows = []string{
	"engine/internal/target/elfcore", "engine/internal/target/minidump", "engine/internal/target/perfdata",
	"engine/internal/unpack", "engine/symbolize",
}

// needsLinuxTests are tests among them of files that are cut while they are mapped, which Windows
// refuses, and of pages as /proc shows them.
const needsLinuxTests = "^(TestPagesAreGivenBack|TestCoreThatIsCutWhileItIsOpen|TestAFileThatIsCutUnderIt|TestHistoryOfAFileThatShrinksIsAnError|TestFileThatShrinksIsAnError)$"

// windowsCommands are commands that print the same on Windows as here, in the folder examples.
var windowsCommands = []struct {
	dir  string
	args []string
}{
	{"crash", []string{"stack", "server.core"}},
	{"crash", []string{"stack", "--format", "json", "--locals", "server.core"}},
	{"crash", []string{"stack", "server.dmp"}},
	{"crash", []string{"symbolize", "--obj", "server", "0x1257"}},
	{"crash", []string{"dump", "rows", "server"}},
	{"profile", []string{"profile", "--format", "folded", "--module", "/example/words=words", "perf.data"}},
	{"mixed", []string{"stack", "mixed.snapshot"}},
	{"mixed", []string{"eval", "--arch", "x86_64", "--snapshot", "mixed.snapshot", "--expr", "DW_OP_call_frame_cfa"}},
}

// windows is a folder in which Wine runs programs.
type windows struct{ prefix string }

// newWindows makes a prefix without wineboot, which takes minutes: a Go program needs these
// libraries alone. With such a time stamp Wine leaves the prefix as it is.
func newWindows(t *testing.T) windows {
	t.Helper()
	oracle.Tools(t, wine, "x86_64-w64-mingw32-gcc", "go")
	w := windows{t.TempDir()}
	system := filepath.Join(w.prefix, "drive_c/windows/system32")
	for _, dir := range []string{system, filepath.Join(w.prefix, "dosdevices"), filepath.Join(w.prefix, "drive_c/temp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for drive, dir := range map[string]string{"c:": "../drive_c", "z:": "/"} {
		if err := os.Symlink(dir, filepath.Join(w.prefix, "dosdevices", drive)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ntdll", "kernel32", "kernelbase", "advapi32", "msvcrt", "ucrtbase", "sechost", "bcrypt", "ws2_32", "winmm", "powrprof", "rpcrt4", "userenv", "iphlpapi", "mswsock"} {
		content, err := os.ReadFile(filepath.Join(wineFiles, name+".dll"))
		if err == nil {
			err = os.WriteFile(filepath.Join(system, name+".dll"), content, 0o600)
		}
		if err != nil {
			oracle.Missing(t, "Wine has no %s: %v", name, err)
		}
	}
	oracle.Run(t, "x86_64-w64-mingw32-gcc", "-shared", "-o", filepath.Join(system, "bcryptprimitives.dll"), "testdata/windows/bcryptprimitives.c", "-ladvapi32")
	if err := os.WriteFile(filepath.Join(w.prefix, ".update-timestamp"), []byte("disable\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs a program in a folder. Temporary files of tests are on the same drive, so that their
// paths without it are as targets have them.
func (w windows) run(t *testing.T, dir, exe string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), winePatience)
	defer end()
	cmd := exec.CommandContext(ctx, wine, append([]string{exe}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"WINEDEBUG=-all", "WINEPREFIX=" + w.prefix, "HOME=" + w.prefix, "GOTMPDIR=z:" + t.TempDir()}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// overlay adds a file to the tests of a package: Go's os.RemoveAll, with which tests end, does
// not take the error of Wine before 9.0 for a sign to remove files in the older way.
func (w windows) overlay(t *testing.T, name string) string {
	t.Helper()
	base := filepath.Join(w.prefix, filepath.Base(name))
	text := "package " + filepath.Base(name) + "\n\nimport _ \"unsafe\"\n\n//go:linkname older internal/syscall/windows.TestDeleteatFallback\nvar older bool\n\nfunc init() { older = true }\n"
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {oracle.Checkout(t, name) + "/wine_test.go": base + ".go"}})
	if err := errors.Join(err, os.WriteFile(base+".go", []byte(text), 0o600), os.WriteFile(base+".json", replaced, 0o600)); err != nil {
		t.Fatal(err)
	}
	return base + ".json"
}

// TestWindowsExecutable runs the executable for Windows, and the tests of what reads files, under
// Wine. The commands print the same bytes as on Linux.
func TestWindowsExecutable(t *testing.T) {
	w := newWindows(t)
	build := oracle.With{Dir: "../..", Env: []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"}}
	exe := filepath.Join(w.prefix, "unwindd.exe")
	build.Run(t, "go", "build", "-trimpath", "-o", exe, "./cmd/unwindd")
	for _, c := range windowsCommands {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			dir := oracle.Checkout(t, "examples/"+c.dir)
			got, errs, err := w.run(t, dir, exe, c.args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
			here := command(c.args...)
			here.Dir = dir
			want, err := here.Output()
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("on Windows:\n%s\nhere:\n%s", got, want)
			}
		})
	}
	crash, out := oracle.Checkout(t, "examples/crash"), filepath.Join(w.prefix, "out.txt")
	want, _, _ := w.run(t, crash, exe, "stack", "server.core")
	for _, how := range []string{"made", "replaced"} {
		_, errs, err := w.run(t, crash, exe, "stack", "-o", "z:"+out, "server.core")
		if got, readErr := os.ReadFile(out); err != nil || readErr != nil || string(got) != want {
			t.Errorf("a file that is %s: %v, %v\n%s\n%s", how, err, readErr, errs, got)
		}
	}
	for _, args := range [][]string{{"stack", "4"}, {"serve"}, {"worker"}} {
		_, errs, err := w.run(t, "", exe, args...)
		if err == nil || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "needs Linux") {
			t.Errorf("%v: %v, %s", args, err, errs)
		}
	}
	for _, name := range onWindows {
		t.Run(name, func(t *testing.T) {
			test := filepath.Join(w.prefix, filepath.Base(name)+".test.exe")
			build.Run(t, "go", "test", "-c", "-trimpath", "-vet=off", "-overlay", w.overlay(t, name), "-ldflags=-checklinkname=0", "-o", test, "./"+name)
			start := time.Now()
			got, errs, err := w.run(t, oracle.Checkout(t, name), test, "-test.v", "-test.skip", needsLinuxTests)
			if err != nil || !strings.HasSuffix(got, "PASS\n") {
				t.Fatalf("%v\n%s\n%s", err, got, errs)
			}
			t.Logf("%d tests pass, %d are skipped, in %v", strings.Count(got, "\n--- PASS"), strings.Count(got, "\n--- SKIP"), time.Since(start).Round(time.Millisecond))
		})
	}
}
