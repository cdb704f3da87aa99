// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

const crashDir = "../../examples/crash"

// copyFile copies a file of the crash example, changed.
func copyFile(t *testing.T, name, to string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(crashDir, name))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		b = change(b)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// mustSay fails unless every text is in what was printed.
func mustSay(t *testing.T, printed string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(printed, text) {
			t.Errorf("%q is not said in:\n%s", text, printed)
		}
	}
}

func TestTargetsThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	fifo := filepath.Join(dir, "fifo")
	if err := oracle.Mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		status int
		says   []string
	}{
		{"a text file", []string{"stack", file("notes.txt", "no core at all")}, 1, []string{"notes.txt", "not a"}},
		{"an empty file", []string{"stack", file("empty", "")}, 1, []string{"empty"}},
		{"a missing file", []string{"stack", filepath.Join(dir, "gone")}, 1, []string{"gone", "no such file"}},
		{"a directory", []string{"stack", dir}, 1, []string{dir, "none of its", "is a core"}},
		{"a fifo", []string{"stack", fifo}, 1, []string{"fifo", "regular file"}},
		{"an executable", []string{"stack", filepath.Join(crashDir, "server")}, 1, []string{"server is an executable: give the core"}},
		{"no target", []string{"stack"}, 2, []string{"expected TARGET..."}},
		{"an unknown flag", []string{"stack", "--colour", "x"}, 2, []string{"--colour"}},
		{"an unknown format of a dump", []string{"dump", "visa", "--format", "xml", "../../plugins/visa/stream/testdata/dg2-g10-rec-O2-1.dbg"}, 2, []string{"xml", "json"}},
		{"an unknown format", []string{"stack", "--format", "xml", filepath.Join(crashDir, "server.core")}, 2, []string{"xml", "json"}},
		{"an unknown command", []string{"unwind"}, 2, []string{"unwind"}},
		{"an unknown thread", []string{"stack", "--thread", "1", filepath.Join(crashDir, "server.core")}, 1, []string{"no thread 1"}},
		{"no frames", []string{"stack", "--max-frames", "-1", filepath.Join(crashDir, "server.core")}, 2, []string{"--max-frames -1"}},
		{"an unknown architecture", []string{"plugin", "info", "z80"}, 1, []string{"z80"}},
		{"a configuration that is not", []string{"stack", "--config", file("c.toml", "[plugin"), filepath.Join(crashDir, "server.core")}, 1, []string{"c.toml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, status := unwindd(t, c.args...)
			if status != c.status {
				t.Errorf("status %d, expected %d", status, c.status)
			}
			if stdout != "" {
				t.Errorf("printed %q", stdout)
			}
			mustSay(t, stderr, c.says...)
		})
	}
}

// TestTruncatedCores cuts a core everywhere: what is left of it is printed, or
// the error says what is wrong.
func TestTruncatedCores(t *testing.T) {
	whole, err := os.Stat(filepath.Join(crashDir, "server.core"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyFile(t, "server", filepath.Join(dir, "server"), nil)
	core := filepath.Join(dir, "server.core")
	most := 0
	for _, size := range []int64{1, 16, 63, 64, 100, 500, 1000, 2000, 4096, 8192, 50000, whole.Size() / 2, whole.Size() - 5000, whole.Size() - 1} {
		copyFile(t, "server.core", core, func(b []byte) []byte { return b[:size] })
		stdout, stderr, status := unwindd(t, "stack", "--in-process", core)
		if want := strings.Contains(stdout, "\nthread "); (status == exitDone) != want {
			t.Errorf("%d bytes: status %d\n%s%s", size, status, stdout, stderr)
		}
		switch {
		case status == 1:
			mustSay(t, stderr, "server.core")
		case status != 0:
			t.Errorf("%d bytes: status %d\n%s", size, status, stderr)
		default:
			mustSay(t, stdout, "problem:")
			most = max(most, strings.Count(stdout, "thread"))
		}
		if strings.Contains(stderr, "goroutine") {
			t.Errorf("%d bytes: %s", size, stderr)
		}
	}
	if most == 0 {
		t.Error("no truncated core gave a thread")
	}
}

func TestExecutableThatIsMissingOrAnother(t *testing.T) {
	core := filepath.Join(t.TempDir(), "server.core")
	copyFile(t, "server.core", core, nil)

	// Without the executable: its static code has no rules, so stacks end early.
	stdout, stderr, status := unwindd(t, "stack", core)
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	mustSay(t, stdout, "/srv/example/server", "problem:", "crashed")

	// Another executable with another build ID is not used.
	other := subject.Build(t, "nocfi")
	stdout, stderr, status = unwindd(t, "stack", core, "--exe", other)
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	mustSay(t, stdout, "build ID")
}

// TestExecutableWithoutBuildID: it is used, and the output says that it could
// not be checked.
func TestExecutableWithoutBuildID(t *testing.T) {
	core := subject.Core(t, subject.Build(t, "noid"), "crash")
	stdout, stderr, status := unwindd(t, "stack", core)
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	mustSay(t, stdout, "many_saves", "could not be checked")
}

// odd is the misbehaving plugin once it is built: of this module, of which Go keeps all
// but what it links.
var odd struct {
	sync.Mutex
	file []byte
}

// oddPlugin makes the misbehaving plugin under a name.
func oddPlugin(t *testing.T, dir, mode string) {
	t.Helper()
	odd.Lock()
	defer odd.Unlock()
	if odd.file == nil {
		path := filepath.Join(t.TempDir(), "odd")
		oracle.Run(t, "go", "build", "-o", path, "./testdata/plugins/odd")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		odd.file = b
	}
	b := slices.Clone(odd.file)
	// What a plugin says of itself is cached by the hash of its file.
	b = append(b, mode...)
	if err := os.WriteFile(filepath.Join(dir, "unwindd-arch-"+mode), b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// oddCore is the crash example under the odd plugin's machine number.
func oddCore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	machine := func(b []byte) []byte {
		binary.LittleEndian.PutUint16(b[18:], 0x7b7b)
		return b
	}
	copyFile(t, "server", filepath.Join(dir, "server"), machine)
	core := filepath.Join(dir, "server.core")
	copyFile(t, "server.core", core, machine)
	return core
}

func TestPluginsThatMisbehave(t *testing.T) {
	long(t)
	core := oddCore(t)
	for _, c := range []struct {
		mode   string
		frames string // in every stack: how many
		says   []string
	}{
		{"good", "all", nil},
		{"hang", "one", []string{"plugin-failed", "hang", "BindThreads", "no answer within 5"}},
		{"panic", "one", []string{"plugin-failed", "BindThreads: the plugin panicked: ", "index out of range [1] with length 1, at main.odd.BindThreads (main.go:"}},
		{"crash", "one", []string{"plugin-failed", "exited with status 2: panic: the moon fell down, at main.crash (main.go:"}},
		{"die", "one", []string{"plugin-failed", "die", "BindThreads", "exit"}},
		{"lie", "one", []string{"plugin-failed", "lie", "BindThreads"}},
		{"error", "one", []string{"plugin-failed", "wrong phase"}},
		{"nonsense", "one", []string{"plugin-failed", "nonsense", "OpenObject"}},
		{"exit", "none", []string{"exit", "no licence found"}},
		{"garbage", "none", []string{"garbage"}},
		{"mute", "none", []string{"mute"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			oddPlugin(t, dir, c.mode)
			stdout, stderr, status := unwindd(t, "stack", core, "--plugin-dir", dir, "--no-fold")
			want := exitDone
			if c.frames == "none" {
				want = exitUnwalked
			}
			if status != want {
				t.Errorf("status %d, expected %d: %s", status, want, stderr)
			}
			mustSay(t, stdout+stderr, c.says...)
			if threads := strings.Count(stdout, "\nthread "); threads != 4 {
				t.Errorf("%d threads, expected 4:\n%s", threads, stdout)
			}
			frames := strings.Count(stdout, "  #")
			switch c.frames {
			case "all":
				mustSay(t, stdout, "qsort_r", "start_thread", "clone3")
			case "one":
				if frames < 4 || strings.Contains(stdout, "start_thread") {
					t.Errorf("expected the top frame of every thread:\n%s", stdout)
				}
			case "none":
				if frames != 0 {
					t.Errorf("frames without an architecture:\n%s", stdout)
				}
			}
		})
	}
}

// TestPluginsLogWithVerboseTwice: a plugin's own lines, and those in which its
// library says what went wrong.
func TestPluginsLogWithVerboseTwice(t *testing.T) {
	core := oddCore(t)
	for _, c := range []struct {
		mode, line string
		once       bool
	}{
		{"good", "asked for 4 threads", false},
		{"panic", "main.odd.BindThreads(", false},
		{"panic", "the plugin panicked, call: BindThreads", true},
	} {
		dir := t.TempDir()
		oddPlugin(t, dir, c.mode)
		for _, flags := range [][]string{{}, {"-v"}, {"-v", "-v"}, {"-vv"}, {"--verbose", "--verbose"}} {
			_, stderr, _ := unwindd(t, append([]string{"stack", core, "--plugin-dir", dir}, flags...)...)
			expected := len(flags) == 2 || strings.Join(flags, "") == "-vv" || c.once && len(flags) == 1
			if strings.Contains(stderr, c.line) != expected {
				t.Errorf("%s with %v: the line %q is there: %v, expected %v\n%s", c.mode, flags, c.line, !expected, expected, stderr)
			}
		}
	}
}

// TestTwoPluginsForOneMachine: nothing is chosen for the user.
func TestTwoPluginsForOneMachine(t *testing.T) {
	core := oddCore(t)
	dir := t.TempDir()
	oddPlugin(t, dir, "good")
	oddPlugin(t, dir, "other")
	stdout, stderr, _ := unwindd(t, "stack", core, "--plugin-dir", dir)
	mustSay(t, stdout+stderr, "unwindd-arch-good", "unwindd-arch-other")
}

// TestPinnedPlugin: a plugin whose hash is not the one configured is not
// started.
func TestPinnedPlugin(t *testing.T) {
	core := oddCore(t)
	dir := t.TempDir()
	oddPlugin(t, dir, "good")
	config := filepath.Join(dir, "config.toml")
	text := fmt.Sprintf("[plugins]\ndirs = [%q]\n[plugins.pins]\ngood = %q\n", dir, strings.Repeat("ab", 32))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, _ := unwindd(t, "stack", core, "--config", config)
	mustSay(t, stdout+stderr, "good", strings.Repeat("ab", 32))
}
