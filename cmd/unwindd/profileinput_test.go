// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// profileIn runs `unwindd profile` as folded stacks in a folder, with standard input.
func profileIn(t *testing.T, dir string, input io.Reader, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(append([]string{"profile", "--in-process", "--format", "folded", "--event", "cpu-clock"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, input
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestRecordingsFromAnywhere(t *testing.T) {
	folder, err := filepath.Abs(filepath.Dir(wordsRecording))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(wordsRecording)
	if err != nil {
		t.Fatal(err)
	}
	want, said, status := profileIn(t, folder, nil, "perf.data")
	if status != exitDone || !strings.Contains(want, "insert") {
		t.Fatalf("status %d, %s%s", status, want, said)
	}
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := oracle.Mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	pack := func(tool string) []byte { return packedBy(t, tool, wordsRecording) }
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	module := "words=" + filepath.Join(folder, "words")
	for _, c := range []struct {
		what  string
		dir   string
		input []byte
		args  []string
	}{
		{"by default", folder, nil, nil},
		{"-", folder, data, []string{"-"}},
		{"/dev/stdin", folder, data, []string{"/dev/stdin", "--module", module}},
		{"packed from standard input", folder, pack("gzip"), []string{"-"}},
		{"gzip", dir, nil, []string{write("a", pack("gzip")), "--module", module}},
		{"xz", dir, nil, []string{write("b", pack("xz")), "--module", module}},
		{"zstd", dir, nil, []string{write("c", pack("zstd")), "--module", module}},
		{"bzip2", dir, nil, []string{write("d", pack("bzip2")), "--module", module}},
		{"a FIFO", dir, nil, []string{fifo, "--module", module}},
	} {
		if c.what == "a FIFO" {
			go func() { _ = os.WriteFile(fifo, data, 0) }()
		}
		got, said, status := profileIn(t, c.dir, bytes.NewReader(c.input), c.args...)
		if got != want || status != exitDone {
			t.Errorf("%s: status %d, %s%s", c.what, status, got, said)
		}
	}
	packed := pack("gzip")
	cut, said, status := profileIn(t, folder, bytes.NewReader(packed[:len(packed)/2]), "-")
	if status != exitDone || cut == "" || !strings.Contains(said, "problem: -: read as far as ") {
		t.Errorf("what is cut: status %d, %s%s", status, cut, said)
	}
}

func TestRecordingsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		input  string
		args   []string
		status int
		want   string
	}{
		{"", nil, exitUsage, "there is no ./perf.data: give a RECORDING, or have one made: `unwindd profile -- PROGRAM ARGS`, or `perf record "},
		{"", []string{"-"}, exitInput, "-: not a perf.data file: it is empty"},
		{"nothing of the kind", []string{"-"}, exitInput, `-: not a perf.data file: it begins with "nothing "`},
		{"\x1f\x8b\x08", []string{"-"}, exitInput, "-: gzip: the stream is cut"},
	} {
		_, said, status := profileIn(t, dir, strings.NewReader(c.input), c.args...)
		if status != c.status || !strings.Contains(said, c.want) {
			t.Errorf("%q: status %d, %s", c.input, status, said)
		}
	}
	if _, said, status := profileIn(t, dir, nil, "--max-unpacked", "1K", "-"); status != exitInput {
		t.Errorf("nothing: status %d, %s", status, said)
	}
	got, said, status := profileIn(t, filepath.Dir(wordsRecording), bytes.NewReader(packedBy(t, "gzip", wordsRecording)), "--max-unpacked", "20K", "-")
	if status != exitDone || got == "" || !strings.Contains(said, "read as far as 20480 bytes") {
		t.Errorf("a bound: status %d, %s%s", status, got, said)
	}
}
