// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

func TestTheFirstInterruptEndsSampling(t *testing.T) {
	defer signalTaker.Store(nil)
	s := newSampling(os.Getpid(), 100)
	take := *signalTaker.Load()
	if take(syscall.SIGINT) {
		t.Error("without a sample there is nothing to show")
	}
	s.progress(1)
	if take(syscall.SIGTERM) {
		t.Error("SIGTERM is taken")
	}
	select {
	case <-s.enough:
		t.Error("it was ended before")
	default:
	}
	if !take(syscall.SIGINT) {
		t.Error("SIGINT is not taken")
	}
	select {
	case <-s.enough:
	default:
		t.Error("it is not ended")
	}
	if take(syscall.SIGINT) {
		t.Error("a second SIGINT is taken")
	}
	s.end()
	if signalTaker.Load() != nil {
		t.Error("SIGINT is taken after the sampling")
	}
}

func TestTheLineOfASampling(t *testing.T) {
	var out bytes.Buffer
	s := &sampling{process: "process 4711 (bu\x1b[2Jsy)", repeat: 100000, out: &out, width: 60}
	s.progress(412)
	s.progress(413) // too soon
	if got, want := out.String(), "\r\x1b[Ksampling process 4711 (bu\\x1b[2Jsy): 412 of 100000, Ctrl-C "; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	out.Reset()
	s.end()
	if out.String() != "\r\x1b[K" {
		t.Errorf("the line is not cleared: %q", out.String())
	}
}

// TestInterruptedProfile interrupts the profile of a living process, on a terminal, when it says
// that there are samples.
func TestInterruptedProfile(t *testing.T) {
	oracle.Tools(t, "gcc")
	pid := waiting(t)
	for _, c := range []struct {
		signal syscall.Signal
		status int
	}{{syscall.SIGINT, 0}, {syscall.SIGTERM, 143}} {
		ours, theirs := oracle.Terminal(t)
		cmd := command("profile", "--in-process", pid, "--idle", "--repeat", "100000", "--every", "2ms", "--format", "folded")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, theirs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		said := ""
		line := "sampling process " + pid + " (waiting): "
		for b := make([]byte, 4096); !strings.Contains(said, line); {
			n, err := ours.Read(b)
			if said += string(b[:n]); err != nil {
				t.Fatalf("%v: %q", err, said)
			}
		}
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(ours) // the end of a terminal is an error
		_ = cmd.Wait()
		said += string(rest)
		_, after, _ := strings.Cut(said, line)
		count, _, _ := strings.Cut(after, " of 100000, Ctrl-C ends and shows")
		if n, err := strconv.Atoi(count); err != nil || n < 1 {
			t.Errorf("%v: %q", c.signal, said)
		}
		if got := cmd.ProcessState.ExitCode(); got != c.status {
			t.Errorf("%v: status %d, expected %d: %s", c.signal, got, c.status, said)
		}
		isReport := strings.Contains(out.String(), ";main;wait_middle;wait_inner;") && strings.Contains(said, "of 100000 moments")
		if isReport != (c.status == 0) {
			t.Errorf("%v: report %v: %s%s", c.signal, isReport, out.String(), said)
		}
	}
}

func TestStackOfAThreadThatDoesNotStop(t *testing.T) {
	pid := victim(t, "vfork")
	out, said, status := unwindd(t, "stack", pid)
	if status != 0 || !strings.Contains(out, "\n  stopped: not-stopped: it is in an uninterruptible wait (state D), and did not leave it for 1") || strings.Contains(out, "running:") || !strings.Contains(out, "wait_inner") {
		t.Errorf("status %d, %s%s", status, out, said)
	}
	snapshot := t.TempDir() + "/now.snapshot"
	if _, said, status := unwindd(t, "snapshot", pid, "-o", snapshot); status != 0 {
		t.Fatalf("status %d, %s", status, said)
	}
	out, said, status = unwindd(t, "stack", snapshot, "--format", "json")
	if status != 0 || !strings.Contains(out, `"not-stopped"`) || !strings.Contains(out, "it is in an uninterruptible wait (state D)") {
		t.Errorf("status %d, %s%s", status, out, said)
	}
}
