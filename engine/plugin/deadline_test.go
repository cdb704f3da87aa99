// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A machine under load gives a process the processor for a tenth of the time;
// here signals do.
func TestProcessThatRarelyRunsKeepsItsDeadline(t *testing.T) {
	a := testArchOf(t, good, Options{CallDeadline: time.Second})
	a.transport.(*supervisor).callLimit.wall = 2 * time.Minute // this machine may be under load itself
	if _, err := obey(t, a, "pid"); err != nil {
		t.Fatal(err)
	}
	pid, done := a.PID(), make(chan struct{})
	var throttle sync.WaitGroup
	throttle.Go(func() {
		for {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			time.Sleep(45 * time.Millisecond)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	began := time.Now()
	got, err := obey(t, a, "burn 400ms")
	took := time.Since(began)
	close(done)
	throttle.Wait()
	if err != nil || got != "burnt" || a.PID() != pid {
		t.Errorf("%q, %v, process %d, was %d", got, err, a.PID(), pid)
	}
	if took < time.Second {
		t.Errorf("it took %v, which is no load", took)
	}
}

func TestProcessorTimeIsUsedUpFirst(t *testing.T) {
	a := testArchOf(t, good, Options{CallDeadline: 300 * time.Millisecond})
	a.transport.(*supervisor).callLimit.wall = 2 * time.Minute
	if _, err := obey(t, a, "pid"); err != nil {
		t.Fatal(err)
	}
	_, err := obey(t, a, "burn 1h")
	var f *Failure
	if !errors.As(err, &f) || f.Reason != "no answer within 300ms of processor time" || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if p := a.Problems(); len(p) != 1 || !strings.Contains(p[0], "gave no answer to Disassemble within 300ms of processor time and was killed") {
		t.Errorf("problems: %q", p)
	}
}

// TestProcessorTime holds the clock of a process against the kernel's account
// of it.
func TestProcessorTime(t *testing.T) {
	before, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	burn(50 * time.Millisecond)
	after, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	total := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	if used := after - before; used < 50*time.Millisecond || after > total+10*time.Millisecond || after < total-time.Second {
		t.Errorf("used %v of %v; the kernel counts %v", used, after, total)
	}
	if _, err := processorTime(1 << 22); err == nil {
		t.Error("a process that cannot be has used processor time")
	}
}

// TestWhoComputesIsRunnable tells this process, which looks, from one that sleeps.
func TestWhoComputesIsRunnable(t *testing.T) {
	if !isRunnable(os.Getpid()) {
		t.Error("this process does not compute")
	}
	sleeper := exec.CommandContext(t.Context(), "sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	for deadline := time.Now().Add(30 * time.Second); isRunnable(sleeper.Process.Pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("who sleeps computes")
		}
	}
	if isRunnable(1 << 22) {
		t.Error("a process that cannot be computes")
	}
}

func TestProcessorTimeIsSharedByTheCallsUnderWay(t *testing.T) {
	var now time.Duration
	c := processorClock{read: func() (time.Duration, error) { return now, nil }}
	used := func(what string, f func() (time.Duration, error), want time.Duration) {
		t.Helper()
		if got, err := f(); err != nil || got != want {
			t.Errorf("%s: %v, %v, expected %v", what, got, err, want)
		}
	}
	now = time.Second // before any call: nobody's
	first := c.begin()
	now += 100
	used("alone", first, 100)
	second := c.begin()
	now += 100
	used("one of two", first, 150)
	used("the other", second, 50)
	c.end()
	now += 10
	used("the one that is left", second, 60)
	c.end()
	now += 1000
	third := c.begin()
	used("a later one", third, 0)
}

// TestDeadlineWithoutAProcessorClockIsOfTheClock runs by a clock of its own
// (testing/synctest), so that the load of the machine has no part in it.
func TestDeadlineWithoutAProcessorClockIsOfTheClock(t *testing.T) {
	d := deadlineOf(20 * time.Millisecond)
	for _, c := range []struct {
		what  string
		used  func() (time.Duration, error)
		after time.Duration
		want  string
	}{
		{"what has no processor clock", func() (time.Duration, error) { return 0, errors.ErrUnsupported }, d.processor, "20ms"},
		{"what sleeps", func() (time.Duration, error) { return 0, nil }, d.wall, "200ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, release := d.limit(t.Context(), c.used)
			defer release()
			<-ctx.Done()
			if took := time.Since(began); took != c.after || !isOutOfTime(ctx) || d.passed(ctx) != c.want {
				t.Errorf("%s ended after %v, out of time: %v, because of %s", c.what, took, isOutOfTime(ctx), d.passed(ctx))
			}
		})
	}
	ctx, release := d.limit(t.Context(), func() (time.Duration, error) { return 0, nil })
	release()
	if isOutOfTime(ctx) {
		t.Error("what was released is out of time")
	}
}
