// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// symbolFile has the facts of a symbol file that tests compare.
type symbolFile struct {
	id, name string         // of its MODULE record
	records  map[string]int // by their first word; lines have none
}

// symbolsOf reads a symbol file that the command wrote.
func symbolsOf(t *testing.T, path string) symbolFile {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := symbolFile{records: map[string]int{}}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if words[0] == "MODULE" {
			f.id, f.name = words[3], words[4] // MODULE Linux x86_64 ID NAME
		}
		f.records[strings.TrimLeft(words[0], "0123456789abcdef")]++
	}
	return f
}

func TestSymbolsGoWhereTheUserSays(t *testing.T) {
	server, dir := filepath.Join(crashDir, "server"), t.TempDir()
	to := filepath.Join(dir, "server.sym")
	if _, stderr, status := unwindd(t, "symbols", server, "-o", to); status != 0 || stderr != "" {
		t.Fatal(status, stderr)
	}
	f := symbolsOf(t, to)
	if c := f.records; c["FUNC"] == 0 || c[""] == 0 || c["STACK"] == 0 || c["PUBLIC"] == 0 {
		t.Errorf("%v: expected functions, lines, public symbols and call frame information", c)
	}
	stdout, _, status := unwindd(t, "symbols", server)
	written, err := os.ReadFile(to)
	if err != nil || status != 0 || stdout != string(written) {
		t.Errorf("%d %v: standard output is not what -o is", status, err)
	}
	// A store has them by name and identifier.
	store := filepath.Join(dir, "store")
	copyFile(t, "server", filepath.Join(dir, "other"), nil)
	_, stderr, status := unwindd(t, "symbols", "-v", "--store", store, server, filepath.Join(dir, "other"))
	if status != 0 || !strings.Contains(stderr, "written to "+store) {
		t.Fatal(status, stderr)
	}
	for _, name := range []string{"server", "other"} {
		m := symbolsOf(t, filepath.Join(store, name, f.id, name+".sym"))
		if m.name != name || m.id != f.id {
			t.Errorf("%+v, expected %s and %s", m, name, f.id)
		}
	}
}

// TestSymbolsOfSeparateDebugFiles: the debug file is found as symbolize finds it.
func TestSymbolsOfSeparateDebugFiles(t *testing.T) {
	s := strip(t)
	bare, stderr, status := unwindd(t, "symbols", s.exe)
	if status != 0 || !strings.Contains(stderr, "no debug information") || strings.Contains(bare, "\nFILE ") {
		t.Errorf("%d %s: expected a file without lines, and a word about it", status, stderr)
	}
	want, _, _ := unwindd(t, "symbols", filepath.Join(crashDir, "server"))
	dir := t.TempDir()
	put(t, dir, s.byID, s.debug)
	root := t.TempDir()
	put(t, root, filepath.Join("usr/lib/debug", s.byID), s.debug)
	for _, flags := range [][]string{{"--debug-dir", dir}, {"--sysroot", root}} {
		got, stderr, status := unwindd(t, append([]string{"symbols", s.exe}, flags...)...)
		if status != 0 || stderr != "" || got != want {
			t.Errorf("%v: %d %s: expected what the file with debug information gives", flags, status, stderr)
		}
	}
}

func TestSymbolsRefuses(t *testing.T) {
	dir := t.TempDir()
	server := filepath.Join(crashDir, "server")
	oracle.With{Dir: dir, Input: "int f(void) { return 1; }\n"}.Run(t, "gcc", "-x", "c", "-", "-shared", "-o", "evil.so", "-Wl,-soname,../evil")
	oracle.With{Dir: dir, Input: "int f(void) { return 1; }\n"}.Run(t, "gcc", "-x", "c", "-c", "-", "-o", "f.o")
	text := put(t, dir, "text", []byte("no program\n"))
	store := filepath.Join(dir, "store")
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"symbols"}, 2, "symbols: expected FILE"},
		{[]string{"symbols", server, server}, 2, "--store"},
		{[]string{"symbols", server, "--store", store, "-o", "x"}, 2, "expected one of them"},
		{[]string{"symbols", server, "--format", "json"}, 2, "--format"},
		{[]string{"symbols", filepath.Join(dir, "missing")}, 1, "missing"},
		{[]string{"symbols", text}, 1, "ELF"},
		{[]string{"symbols", filepath.Join(dir, "f.o")}, 1, "an executable or a shared library"},
		{[]string{"symbols", "--store", store, filepath.Join(dir, "evil.so")}, 1, "DT_SONAME"},
		{[]string{"symbols", server, "-o", server}, 2, "would be written over"},
	} {
		_, stderr, status := unwindd(t, c.args...)
		if status != c.status || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: %d %q, expected %d and %q", c.args, status, stderr, c.status, c.says)
		}
	}
	if entries, _ := os.ReadDir(store); len(entries) > 0 {
		t.Errorf("%v is in the store, expected nothing", entries)
	}
	// One file that has none is no reason to leave out the others.
	_, _, status := unwindd(t, "symbols", "--store", store, text, server)
	if _, err := os.Stat(filepath.Join(store, "server")); err != nil || status != 1 {
		t.Errorf("%v, status %d, expected the server's and 1", err, status)
	}
}
