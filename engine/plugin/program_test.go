// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/confine/confinetest"
)

// shellProgram is a script of the shell's, as a Program.
func shellProgram(t *testing.T, text string) Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Program{Path: path, Args: []string{"one", "two"}, MaxOutput: 1 << 16, Deadline: 10 * time.Second, WallDeadline: time.Minute}
}

// TestProgram: input, output, arguments, exit status, and an environment of nothing.
func TestProgram(t *testing.T) {
	m := manager(t, Options{})
	p := shellProgram(t, `read line; echo "$line $1 $2 $HOME"; echo said >&2; exit 7`)
	p.Input = []byte("hello\n" + strings.Repeat("x", 1<<20)) // more than it reads
	out, err := m.Run(context.Background(), p)
	if err != nil || string(out.Stdout) != "hello one two \n" || string(out.Stderr) != "said\n" || out.Status != 7 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestProgramIsConfined: it reads no file of the user's, writes none, and starts no other
// program.
func TestProgramIsConfined(t *testing.T) {
	confinetest.Need(t)
	m := manager(t, Options{})
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"reads":  "read x < " + secret + " && echo $x",
		"writes": "echo x > " + filepath.Join(filepath.Dir(secret), "new") + " && echo done",
		"runs":   "/bin/cat " + secret,
		"forks":  "(echo child)",
	} {
		out, err := m.Run(context.Background(), shellProgram(t, text))
		if err != nil || len(out.Stdout) > 0 || out.Status == 0 {
			t.Errorf("a program that %s: %+v, %v", what, out, err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(secret), "new")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file was written:", err)
	}
}

// TestProgramThatIsNotDone: one that is killed leaves nothing, and the error says why.
func TestProgramThatIsNotDone(t *testing.T) {
	m := manager(t, Options{})
	forever := shellProgram(t, `while :; do :; done`)
	ctx, cancel := context.WithTimeoutCause(context.Background(), 200*time.Millisecond, context.Canceled)
	defer cancel()
	if _, err := m.Run(ctx, forever); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller gave up: %v", err)
	}
	missing := forever
	missing.Path = filepath.Join(t.TempDir(), "missing")
	if _, err := m.Run(context.Background(), missing); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no such program: %v", err)
	}
	none, err := NewManager(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if _, err := none.Run(context.Background(), forever); err == nil || !strings.Contains(err.Error(), "Options.Self") {
		t.Errorf("without Self: %v", err)
	}
}
