// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startAsked starts a command that answers what is written to stdin. What it says is in
// cmd.Stderr. It is killed after a minute.
func startAsked(t *testing.T, args ...string) (cmd *exec.Cmd, stdin io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	cmd = command(args...)
	cmd.Stderr = &strings.Builder{}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop() })
	return cmd, stdin, bufio.NewReader(stdout)
}

// Each answer comes before the next question is there, though the questions
// before came together.
func TestAnswersComeBeforeTheNextQuestion(t *testing.T) {
	cmd, stdin, out := startAsked(t, "symbolize", "--obj", filepath.Join(crashDir, "server"))
	for _, questions := range []string{"0x1\n", "0x1\n0x2\n0x3", "\n", "0x4\n"} {
		if _, err := io.WriteString(stdin, questions); err != nil {
			t.Fatal(err)
		}
		for range strings.Count(questions, "\n") {
			var err error
			for line := "?"; line != "\n"; {
				if line, err = out.ReadString('\n'); err != nil {
					t.Fatalf("no answer to %q: %v", questions, err)
				}
			}
		}
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A file that is cut between two questions has no names any more, which is said.
func TestFilesCutBetweenQuestionsAreErrors(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(crashDir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, stdin, out := startAsked(t, "symbolize", "--obj", path)
	_, err = io.WriteString(stdin, "0x401100\n")
	if _, readErr := out.ReadString('\n'); err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	if err := os.Truncate(path, int64(len(data)/2)); err != nil {
		t.Fatal(err)
	}
	_ = stdin.Close()
	err = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 1 || !strings.Contains(fmt.Sprint(cmd.Stderr), "file shrank while it was mapped") {
		t.Errorf("%v, exit status %d, and it says %q", err, status, cmd.Stderr)
	}
}
