// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// completions returns the words that shells offer, with their descriptions, and the directive.
func completions(t *testing.T, dir string, args ...string) (words []string, directive string) {
	t.Helper()
	cmd := command(append([]string{"__complete"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	last := len(lines) - 1
	return lines[:last], lines[last]
}

// Directives of cobra for the scripts of shells: whether these complete names of files, and keep the order.
const (
	completesFiles = ":0"
	noFiles        = ":4"
	threadsInOrder = ":36"
)

func TestProcessesAreCompletedWithTheirNames(t *testing.T) {
	pid := waiting(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, pid[:1]+"dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pid[:1] + "core", "core"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"stack", "snapshot", "profile"} {
		words, directive := completions(t, dir, command, pid[:1])
		for _, want := range []string{pid + "\twaiting", pid[:1] + "dir/", pid[:1] + "core"} {
			if !slices.Contains(words, want) {
				t.Errorf("%s: no %q in %q", command, want, words)
			}
		}
		if slices.Contains(words, "core") || directive != noFiles {
			t.Errorf("%s: %q, %s", command, words, directive)
		}
		if words, _ := completions(t, dir, command, ""); !slices.Contains(words, "core") || !slices.Contains(words, pid+"\twaiting") {
			t.Errorf("%s: %q", command, words)
		}
		if words, directive := completions(t, dir, command, "c"); len(words) > 0 || directive != completesFiles {
			t.Errorf("%s: %q, %s: a file's name is completed by the shell", command, words, directive)
		}
		if words, _ := completions(t, dir, "profile", "--pid", pid[:1]); !slices.Contains(words, pid+"\twaiting") {
			t.Errorf("--pid: %q", words)
		}
		if words, directive := completions(t, dir, "profile", "--", "ls", pid[:1]); len(words) > 0 || directive != completesFiles {
			t.Errorf("a program: %q, %s", words, directive)
		}
		words, directive = completions(t, dir, command, "core", "")
		if isSeveral := command != "snapshot"; isSeveral != (len(words) > 0) || directive != noFiles {
			t.Errorf("%s, a second argument: %q, %s", command, words, directive)
		}
	}
}

func TestThreadsOfTheTargetAreCompleted(t *testing.T) {
	core, err := filepath.Abs(filepath.Join(crashDir, "server.core"))
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(filepath.Dir(core), "server")
	for _, args := range [][]string{{"stack", core, "--thread", ""}, {"stack", exe, core, "--thread", "5"}} {
		words, directive := completions(t, "", args...)
		if len(words) != 4 || !strings.HasSuffix(words[0], "\tserver") || directive != threadsInOrder {
			t.Errorf("%q: %q, %s", args, words, directive)
		}
	}
	if words, directive := completions(t, "", "stack", filepath.Join(t.TempDir(), "none"), "--thread", ""); len(words) > 0 || directive != threadsInOrder {
		t.Errorf("of no target: %q, %s", words, directive)
	}
}

func TestThreadsOfALivingProcessAreCompleted(t *testing.T) {
	pid := waiting(t)
	words, _ := completions(t, "", "stack", pid, "--thread", "")
	if len(words) != 4 || words[0] != pid+"\twaiting" {
		t.Errorf("%q", words)
	}
}

// TestCompletionDoesNotWait has a target that cannot be read at once.
func TestCompletionDoesNotWait(t *testing.T) {
	oracle.Tools(t, "xz")
	begun := time.Now()
	packed := filepath.Join(t.TempDir(), "core.xz")
	oracle.Run(t, "sh", "-c", "head -c 100000000 /dev/zero | xz -0 > "+packed)
	words, _ := completions(t, "", "stack", packed, "--thread", "")
	if len(words) > 0 {
		t.Errorf("%q, after %v", words, time.Since(begun))
	}
}

func TestNamesInCompletionsArePlain(t *testing.T) {
	got := offer([]named{{"12", "a\x1b[2J\nb\tc"}, {"2", "no"}}, "1")
	if len(got) != 1 || got[0] != "12\ta\\x1b[2J\\nb\\tc" {
		t.Errorf("%q", got)
	}
}
