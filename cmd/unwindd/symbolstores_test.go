// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// copyTo copies a file into a directory.
func copyTo(t *testing.T, dir, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, filepath.Base(path), b)
	return filepath.Join(dir, filepath.Base(path))
}

// frameLines are the lines of stacks that are of a program's own functions, without columns.
var frameLines = regexp.MustCompile(`(?m)^  #\d+ .* (\S+\.c:\d+)(:\d+)?$`)

// TestStoresOfSymbolFiles walks the core of the crash example without its program, by the
// symbol file in a directory, of a server, and of the environment.
func TestStoresOfSymbolFiles(t *testing.T) {
	store, none, folder := t.TempDir(), t.TempDir(), t.TempDir()
	server := filepath.Join(crashDir, "server")
	if _, stderr, status := unwindd(t, "symbols", "--store", store, server); status != 0 {
		t.Fatal(stderr)
	}
	core := copyTo(t, folder, filepath.Join(crashDir, "server.core"))
	want := placesOf(t, "stack", filepath.Join(crashDir, "server.core"))
	if len(want) < 3 {
		t.Fatalf("%q", want)
	}
	s := httptest.NewServer(http.FileServer(http.Dir(store)))
	defer s.Close()
	file, _ := filepath.Glob(filepath.Join(store, "*", "*", "*.sym"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, at := range []string{store, s.URL, "file://" + store, file[0]} {
		if diff := cmp.Diff(want, placesOf(t, "stack", "--sysroot", none, "--symbols", at, core)); diff != "" {
			t.Errorf("%s: %s", at, diff)
		}
	}
	t.Setenv("UNWINDD_SYMBOLS", none+" "+store)
	if diff := cmp.Diff(want, placesOf(t, "stack", "--sysroot", none, core)); diff != "" {
		t.Errorf("by the environment: %s", diff)
	}
	if got := placesOf(t, "stack", "--sysroot", none, "--symbols", "", core); len(got) > 0 {
		t.Errorf("with --symbols '': %q", got)
	}
	for wrong, want := range map[string]int{"/no/such/directory": exitInput, "ftp://host/": exitUsage, "http://": exitUsage} {
		if _, stderr, status := unwindd(t, "stack", "--symbols", wrong, core); status != want || !strings.Contains(stderr, "--symbols") {
			t.Errorf("%s: status %d, %s", wrong, status, stderr)
		}
	}
}

// placesOf are the places of the program's frames that a command prints.
func placesOf(t *testing.T, args ...string) (places []string) {
	t.Helper()
	stdout, stderr, status := unwindd(t, args...)
	if status != 0 {
		t.Fatalf("%v: status %d, %s", args, status, stderr)
	}
	for _, m := range frameLines.FindAllStringSubmatch(stdout, -1) {
		places = append(places, m[1])
	}
	return places
}

// TestProfilesBySymbolFiles makes a profile with the program's debug information, and with
// a stripped program and a symbol file: they are the same.
func TestProfilesBySymbolFiles(t *testing.T) {
	store, none, folder := t.TempDir(), t.TempDir(), t.TempDir()
	words := filepath.Join(filepath.Dir(wordsRecording), "words")
	if _, stderr, status := unwindd(t, "symbols", "--store", store, words); status != 0 {
		t.Fatal(stderr)
	}
	oracle.Run(t, "strip", "-g", "-o", filepath.Join(folder, "words"), words)
	recording := copyTo(t, folder, wordsRecording)
	folded := func(args ...string) string {
		t.Helper()
		stdout, stderr, status := unwindd(t, append([]string{"profile", "--format", "folded", "--sysroot", none}, args...)...)
		if status != 0 {
			t.Fatalf("%v: status %d, %s", args, status, stderr)
		}
		return stdout
	}
	want := folded(wordsRecording)
	if folded(recording) == want {
		t.Error("the stripped program gives the same profile")
	}
	if diff := cmp.Diff(want, folded("--symbols", store, recording)); diff != "" {
		t.Error(diff)
	}
	if got := folded("--symbols", store, "--symbols=false", recording); strings.Contains(got, "main") {
		t.Errorf("there are names with --symbols=false: %s", got)
	}
}
