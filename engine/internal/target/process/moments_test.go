// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// recordWith records a process with options, and returns what it says of it.
func recordWith(t *testing.T, pid int, o trace.RecordOptions) trace.Recorded {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "perf.data"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r, err := Record(context.Background(), pid, out, options(), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestThreadsThatWaitHaveNoSamples: of three threads that execute and five that wait, each moment
// has the three, whatever else the machine does: a thread that waits for a processor executes.
func TestThreadsThatWaitHaveNoSamples(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "busy", "3"), true)
	pid := cmd.Process.Pid
	time.Sleep(20 * time.Millisecond) // for the threads to wait
	r := recordWith(t, pid, trace.RecordOptions{Repeat: 20, Every: time.Millisecond, OnlyRunning: true})
	if r.Moments != 20 || r.Samples != 60 || r.Waiting != 100 || len(r.Problems) > 0 {
		t.Errorf("%d samples at %d moments, %d times a thread waited, problems %q; expected 60, 20, 100", r.Samples, r.Moments, r.Waiting, r.Problems)
	}
	goesOn(t, pid)
	if r := recordWith(t, pid, trace.RecordOptions{Repeat: 5}); r.Samples != 40 || r.Waiting != 0 {
		t.Errorf("of all threads: %d samples, %d times one waited", r.Samples, r.Waiting)
	}
	time.Sleep(20 * time.Millisecond) // for threads that were stopped to wait again
	threads, err := threadsOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	one := slices.IndexFunc(threads, func(id int) bool { return stateOf(pid, id) == 'R' })
	if r := recordWith(t, pid, trace.RecordOptions{Repeat: 5, Threads: []int{threads[one], threads[0]}}); r.Samples != 10 {
		t.Errorf("of two threads: %d samples", r.Samples)
	}
	time.Sleep(20 * time.Millisecond)
	if r := recordWith(t, pid, trace.RecordOptions{Repeat: 5, Threads: []int{threads[one], threads[0]}, OnlyRunning: true}); r.Samples != 5 || r.Waiting != 5 {
		t.Errorf("of two threads, one of which waits: %d samples, %d times one waited", r.Samples, r.Waiting)
	}
}

func TestAProcessOfThreadsThatWait(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "2"), true)
	time.Sleep(20 * time.Millisecond)
	r := recordWith(t, cmd.Process.Pid, trace.RecordOptions{Repeat: 5, Every: time.Millisecond, OnlyRunning: true})
	if r.Moments != 5 || r.Samples != 0 || r.Stopped != 0 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "all its threads waited at each of 5 moments") {
		t.Errorf("%+v", r)
	}
}

// TestADurationIsWallTime: moments that are missed do not make a recording longer.
func TestADurationIsWallTime(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "50"), true)
	begun := time.Now()
	r := recordWith(t, cmd.Process.Pid, trace.RecordOptions{Duration: 200 * time.Millisecond, Every: 500 * time.Microsecond})
	if took := time.Since(begun); took > 2*time.Second || took < 190*time.Millisecond {
		t.Errorf("200 ms took %v", took)
	}
	if r.Moments == 0 || r.Moments+r.Missed != 400 {
		t.Errorf("%d moments and %d missed ones, expected 400", r.Moments, r.Missed)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = cmd.Process.Kill()
	}()
	if r := recordWith(t, cmd.Process.Pid, trace.RecordOptions{Every: time.Millisecond}); r.Moments == 0 || len(r.Problems) > 0 {
		t.Errorf("until it ends: %d moments, problems %q", r.Moments, r.Problems)
	}
}

// TestSeveralProcessesInOneRecording records two processes, and a program that starts another one.
func TestSeveralProcessesInOneRecording(t *testing.T) {
	program, _ := victim(t)
	one, two := start(t, exec.Command(program, "busy", "1"), true), start(t, exec.Command(program, "busy", "2"), true)
	time.Sleep(20 * time.Millisecond)
	gone := 1<<22 + 5
	r := recordWith(t, one.Process.Pid, trace.RecordOptions{Repeat: 10, Every: time.Millisecond, OnlyRunning: true, Others: []int{two.Process.Pid, gone}})
	if r.Moments != 10 || r.Samples != 30 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "no such process: it is not recorded") {
		t.Errorf("%d samples at %d moments, problems %q; expected 30 at 10", r.Samples, r.Moments, r.Problems)
	}
	parent := start(t, exec.Command("sh", "-c", `"$0" busy 1 & wait`, program), true)
	t.Cleanup(func() {
		for _, child := range childrenOf(parent.Process.Pid) {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
	})
	r = recordWith(t, parent.Process.Pid, trace.RecordOptions{Repeat: 20, Every: time.Millisecond, OnlyRunning: true, Children: true})
	if r.Samples < 10 {
		t.Errorf("%d samples of a child", r.Samples)
	}
	_ = one.Process.Kill()
	_ = one.Wait()
	_ = two.Process.Kill()
	_ = two.Wait()
}
