// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// poison is what a terminal would obey, and what would make a line of its own.
const poison = "\x1b[31m\rFORGED\nFORGED\t\x07\u202e\u2028\u009b"

// poisonous are other texts of the length of a name, with bytes that are no UTF-8.
func poisonous(name string) string {
	const bad = "\n\x1b\x9b\r\x7f\t\u202e"
	return name[:1] + strings.Repeat(bad, len(name)/len(bad)+1)[:len(name)-2] + name[len(name)-1:]
}

// mustBePlain fails where text has what a terminal would obey, or a line that
// begins with what a name put behind a line break.
func mustBePlain(t *testing.T, what, text string) {
	t.Helper()
	for n, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "FORGED") || !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s, line %d: %q", what, n+1, line)
			return
		}
	}
}

// poisonedFile is a copy of a file in which names are replaced. Every one must be
// there.
func poisonedFile(t *testing.T, path, dir string, names ...string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !bytes.Contains(b, []byte(name)) {
			t.Fatalf("%s has no %s", path, name)
		}
		b = bytes.ReplaceAll(b, []byte(name), []byte(poisonous(name)))
	}
	to := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// poisonedSnapshot is the mixed example with poison in every string that is free.
func poisonedSnapshot(t *testing.T) string {
	t.Helper()
	in, err := zip.OpenReader("../../examples/mixed/mixed.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range in.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "snapshot.json" {
			var v any
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatal(err)
			}
			if b, err = json.Marshal(poisonStrings("", v)); err != nil {
				t.Fatal(err)
			}
		}
		to, err := w.Create(f.Name)
		if err == nil {
			_, err = to.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "poisoned.snapshot")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func poisonStrings(member string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = poisonStrings(k, e)
		}
	case []any:
		for i := range v {
			v[i] = poisonStrings(member, v[i])
		}
	case string:
		switch member {
		case "id", "name", "path", "agent", "queue", "dispatch", "kernel", "thread":
			return v + poison
		}
	}
	return v
}

// TestTextIsEscaped: whatever a file or a plugin has in its strings, a terminal is
// told nothing by them.
func TestTextIsEscaped(t *testing.T) {
	dir := t.TempDir()
	server := poisonedFile(t, filepath.Join(crashDir, "server"), dir, "content_length", "server.c")
	core := poisonedFile(t, filepath.Join(crashDir, "server.core"), dir, "/srv/example/server")
	words := poisonedFile(t, "../../examples/profile/words", dir, "count_by_sort", "words.cc")
	recording := poisonedFile(t, wordsRecording, dir, "sorter")
	spirv := poisonedFile(t, "../../engine/internal/symbol/spirv/testdata/calls.spv", dir, "/example/calls.cl", "middle")
	visa := poisonedFile(t, "../../plugins/visa/stream/testdata/skl-rec-O2-1.dbg", dir, "reck", "fact0")
	llvm := filepath.Join(dir, "poisoned.ll")
	b, err := os.ReadFile("../../engine/internal/symbol/llvmir/testdata/inlined.ll")
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte(`name: "`), []byte(`name: "\1B[31m\0AFORGED\9B`))
	b = bytes.ReplaceAll(b, []byte(`"ir_a.c"`), []byte(`"ir\1B[31m\0AFORGED\9B.c"`))
	if err := os.WriteFile(llvm, b, 0o644); err != nil {
		t.Fatal(err)
	}
	notes := noteOwner(t, "owner"+poison+"\x9b")
	snapshot := poisonedSnapshot(t)
	plugins := t.TempDir()
	oddPlugin(t, plugins, "loud")
	cursed := t.TempDir()
	oddPlugin(t, cursed, "curse")
	missing := filepath.Join(dir, "missing"+poison+"\x9b")
	odd := oddCore(t)
	cases := [][]string{
		{"stack", snapshot, "--lanes", "--registers"}, {"stack", "-v", snapshot, "--no-fold"},
		{"stack", snapshot, "--lane", "3"}, {"stack", snapshot, "--thread", "none" + poison},
		{"stack", core, "-v"}, {"stack", core, "--exe", server, "--in-process"},
		{"stack", odd, "--plugin-dir", plugins, "-v"}, {"stack", odd, "--plugin-dir", cursed, "-v"},
		{"plugin", "list", "--plugin-dir", plugins}, {"plugin", "list", "--plugin-dir", cursed},
		{"plugin", "info", "loud", "--plugin-dir", plugins}, {"plugin", "info", "none" + poison},
		{"profile", "--in-process", recording}, {"profile", "--in-process", "-v", recording},
		{"profile", "--in-process", "--format", "folded", recording},
		{"profile", "--in-process", "--event", "none" + poison, recording},
		{"snapshot", core, "-o", filepath.Join(t.TempDir(), "s"+poison)},
		{"dump", "notes", notes}, {"dump", "notes", server}, {"dump", "cfi", server}, {"dump", "rows", server},
		{"dump", "expr", server}, {"dump", "spirv", spirv}, {"dump", "visa", visa}, {"dump", "llvmir", llvm},
		{"eval", "--arch", "x86_64", "--expr", "lit1; none" + poison}, {"eval", "--arch", "none" + poison, "--expr", "lit1"},
		{"eval", "--arch", "x86_64", "--snapshot", snapshot, "--expr", "regx rip", "--trace", "--thread", "24947" + poison},
		{"symbolize", "--obj", spirv, "middle+1"}, {"symbolize", "--obj", llvm, "f+1"},
		{"symbolize", "--obj", words, "FRAME 0x4012aa"}, {"symbolize", "--obj", server, "none" + poison},
		{"none" + poison}, {"stack", "--none" + poison}, {"stack", "--format", poison, core},
	}
	for _, format := range []string{"json", "breakpad"} {
		for _, file := range []string{snapshot, core} {
			cases = append(cases, []string{"stack", file, "--exe", server, "--format", format})
		}
	}
	for _, format := range []string{"json", "speedscope", "firefox"} {
		cases = append(cases, []string{"profile", "--in-process", "--objects", dir, "--format", format, recording})
	}
	for _, args := range [][]string{
		{"plugin", "list", "--plugin-dir", plugins}, {"plugin", "info", "loud", "--plugin-dir", plugins}, {"compare", snapshot, core},
		{"snapshot", core, "-o", filepath.Join(t.TempDir(), "s"+poison)}, {"eval", "--arch", "x86_64", "--expr", "lit1; none" + poison},
		{"dump", "notes", notes}, {"dump", "cfi", server}, {"dump", "expr", server}, {"dump", "spirv", spirv}, {"dump", "visa", visa}, {"dump", "llvmir", llvm},
	} {
		cases = append(cases, append(args, "--format", "json"))
	}
	cases = append(cases, []string{"symbolize", "--obj", server, "--output-style", "json", "0x401100"})
	for _, style := range []string{"llvm", "gnu"} {
		for _, more := range []string{"", "--pretty-print", "--basenames", "--relativenames", "--addresses", "--no-demangle", "--functions=short", "--print-source-context-lines=3"} {
			args := []string{"symbolize", "--obj", server, "--output-style", style, "0x401100"}
			if more != "" {
				args = append(args, more)
			}
			cases = append(cases, args)
		}
	}
	for name, args := range commandLines() {
		if last := args[len(args)-1]; strings.Contains(last, "/") {
			cases = append(cases, append(args[:len(args)-1:len(args)-1], missing))
		} else {
			cases = append(cases, append(args[:len(args):len(args)], "--config", missing))
		}
		_ = name
	}
	for i, args := range cases {
		t.Run(fmt.Sprint(i, " ", args[0]), func(t *testing.T) {
			t.Parallel()
			stdout, stderr, _ := unwindd(t, args...)
			mustBePlain(t, fmt.Sprintf("%q: output", args), stdout)
			mustBePlain(t, fmt.Sprintf("%q: errors", args), stderr)
			if stdout == "" && stderr == "" {
				t.Error("nothing is said")
			}
		})
	}
	// Questions are foreign too.
	for _, tool := range [][]string{{"symbolize"}, {"symbolize", "--obj", server}, {"symbolize", "-v", "--obj", server, "--output-style", "gnu"}} {
		cmd := command(tool...)
		cmd.Stdin = strings.NewReader("missing\x1b[31m\r\x9b 0x1\n" + server + " \x1b[31m\u202e\nFILE:\x1b\x1b 1\n")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		mustBePlain(t, fmt.Sprintf("%q: output", tool), stdout.String())
		mustBePlain(t, fmt.Sprintf("%q: errors", tool), stderr.String())
	}
}

// TestPoisonIsSeen: what TestTextIsEscaped poisons is printed, escaped.
func TestPoisonIsSeen(t *testing.T) {
	dir := t.TempDir()
	server := poisonedFile(t, filepath.Join(crashDir, "server"), dir, "content_length", "server.c")
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"stack", poisonedSnapshot(t), "-v"}, []string{`thread w0\x1b[31m\rFORGED\nFORGED\t\a\u202e\u2028\u009b, crashed`, `kernel grade\x1b[31m`, `agent 1\x1b[31m`, `/example/host\x1b[31m`}},
		{[]string{"symbolize", "--obj", server, "0x401100"}, []string{`c\n\x1b\x9b\r\x7f\t\u202e`, `s\n\x1b\x9b\r`}},
		{[]string{"symbolize", "--obj", server, "--output-style", "gnu", "0x401100"}, []string{`s\n\x1b\x9b\r`}},
		{[]string{"dump", "notes", noteOwner(t, "owner\x1b[31m")}, []string{`owner\x1b[31m`}},
	} {
		stdout, stderr, status := unwindd(t, c.args...)
		if status != 0 {
			t.Errorf("%q: status %d: %s", c.args, status, stderr)
		}
		mustSay(t, stdout, c.says...)
	}
}

// noteOwner is an ELF file with a note of an owner.
func noteOwner(t *testing.T, owner string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(crashDir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	// The note of the ABI has an owner of 4 bytes and 16 bytes of data, which are made
	// one of a longer owner and fewer bytes.
	old := []byte("\x04\x00\x00\x00\x10\x00\x00\x00\x01\x00\x00\x00GNU\x00")
	at := bytes.Index(b, old)
	if at < 0 {
		t.Fatal("no note of the ABI")
	}
	if len(owner) > 18 {
		owner = owner[:18]
	}
	name := append([]byte(owner), 0)
	b[at], b[at+4] = byte(len(name)), 0
	copy(b[at+12:at+32], make([]byte, 20))
	copy(b[at+12:], name)
	path := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
