// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

const recipesDir = "../../examples/recipes"

// handlerOfCores is a folder with examples/recipes/unwindd-core and this build beside it, as they are installed.
func handlerOfCores(t *testing.T) (script string) {
	t.Helper()
	oracle.Tools(t, "sh", "timeout", "xargs", "logger")
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(recipesDir, "unwindd-core"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"unwindd-core": string(text), "unwindd": "#!/bin/sh\nexec " + self + " \"$@\"\n",
		"logger": "#!/bin/sh\nexit 1\n", // there is no log where a machine starts
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // they are run
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "unwindd-core")
}

// snapshotsIn are the names of a handler's snapshots.
func snapshotsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// TestTheHandlerOfCores runs examples/recipes/unwindd-core as the kernel does: in the root folder, with neither
// an environment nor a standard output.
func TestTheHandlerOfCores(t *testing.T) {
	script, dir := handlerOfCores(t), t.TempDir()
	core, err := os.ReadFile(filepath.Join(crashDir, "server.core"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"100-1.snapshot", "20-1.snapshot", "3-1.snapshot", "3-x.snapshot", "other.crash"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	handle := func(time string, core []byte) {
		t.Helper()
		settings := fmt.Sprintf("FOLDER=%s KEEP=3", dir)
		cmd := exec.Command("sh", "-c", `exec env -i $2 "$0" "$1" "$3" >&- 2>&-`, script, fmt.Sprint(os.Getpid()), settings, time)
		cmd.Dir, cmd.Stdin = "/", bytes.NewReader(core)
		_ = cmd.Run() // nothing looks at its status
	}
	handle("1000", core)
	want := []string{"100-1.snapshot", "1000-PID.snapshot", "20-1.snapshot", "3-x.snapshot"} // 3-x is none of its own
	for i, name := range want {
		want[i] = strings.ReplaceAll(name, "PID", fmt.Sprint(os.Getpid()))
	}
	if got := snapshotsIn(t, dir); !slices.Equal(got, want) {
		t.Errorf("the folder has %v, expected %v", got, want)
	}
	stacks, _, status := unwindd(t, "stack", filepath.Join(dir, want[1]), "--exe", filepath.Join(crashDir, "server"))
	if status != exitDone {
		t.Errorf("status %d", status)
	}
	mustSay(t, stacks, "signal 11", "qsort_r", "3 threads: 5267-5269")
	info, err := os.Stat(filepath.Join(dir, want[1]))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: expected a snapshot that only its owner reads", info, err)
	}
	handle("2000", []byte("this is no core"))
	if got := snapshotsIn(t, dir); len(got) != 3 {
		t.Errorf("the folder has %v, expected one less", got)
	}
}

// TestTheHandlerOfCoresEnds: where a core never ends, nothing is left.
func TestTheHandlerOfCoresEnds(t *testing.T) {
	script, dir, temp := handlerOfCores(t), t.TempDir(), t.TempDir()
	cmd := exec.Command(script, fmt.Sprint(os.Getpid()), "1")
	cmd.Env = []string{"FOLDER=" + dir, "SECONDS_EACH=1", "TMPDIR=" + temp}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\x7fELF\x02\x01\x01")); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	left, _ := filepath.Glob(filepath.Join(temp, "*"))
	if got := snapshotsIn(t, dir); len(got) > 0 || len(left) > 0 {
		t.Errorf("%v and %v are left", got, left)
	}
}

// TestPatternsFitTheKernel: a core_pattern has at most 127 bytes.
func TestPatternsFitTheKernel(t *testing.T) {
	count := 0
	for _, path := range []string{"../../docs/recipes.md", filepath.Join(recipesDir, "unwindd-core"), filepath.Join(recipesDir, "daemonset.yaml")} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`'(\|[^']*)'`).FindAllStringSubmatch(string(text), -1) {
			if count++; len(m[1]) > 127 {
				t.Errorf("%s: %d bytes: %s", path, len(m[1]), m[1])
			}
		}
	}
	if count < 4 {
		t.Errorf("%d patterns", count)
	}
}

// TestEventsForSentry: the outermost frame first, names as they are, and one issue for one signature.
func TestEventsForSentry(t *testing.T) {
	oracle.Tools(t, "jq")
	const id = "0123456789abcdef0123456789abcdef"
	for _, path := range []string{filepath.Join(crashDir, "server.core"), filepath.Join(crashDir, "server.dmp"), "../../examples/mixed/mixed.snapshot"} {
		stacks, _, _ := unwindd(t, "stack", path, "--format", "json")
		out := oracle.With{Input: stacks}.Run(t, "jq", "-c", "--arg", "id", id, "-f", filepath.Join(recipesDir, "sentry.jq"))
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 3 || lines[0] != `{"event_id":"`+id+`"}` || lines[1] != `{"type":"event"}` {
			t.Fatalf("%s: %s", path, out)
		}
		type stack struct{ Frames []map[string]any }
		var event struct {
			EventID   string `json:"event_id"`
			Exception struct {
				Values []struct {
					Type, Value string
					ThreadID    string `json:"thread_id"`
					Stacktrace  stack
				}
			}
			Threads struct {
				Values []struct {
					ID         string
					Crashed    bool
					Stacktrace *stack
				}
			}
			Fingerprint []string
		}
		if err := json.Unmarshal([]byte(lines[2]), &event); err != nil {
			t.Fatal(err)
		}
		crash := event.Exception.Values[0]
		if event.EventID != id || crash.Type == "" || len(event.Fingerprint) != 1 || !strings.HasPrefix(event.Fingerprint[0], "unwindd-") {
			t.Errorf("%s: %s", path, lines[2])
		}
		for _, th := range event.Threads.Values {
			if (th.ID == crash.ThreadID) != (th.Stacktrace == nil) {
				t.Errorf("%s: thread %s: its stack is to be where it crashed or in the thread", path, th.ID)
			}
		}
		frames := crash.Stacktrace.Frames
		if !strings.HasPrefix(filepath.Base(path), "server") {
			continue
		}
		if first, last := frames[0]["function"], frames[len(frames)-1]; first != "_start" || last["function"] != "content_length" || last["lineno"] != float64(40) || last["filename"] != "server.c" {
			t.Errorf("%s: from %v to %v", path, first, last)
		}
	}
}
