// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/oracle"
)

// onFirstProcessor has a thread execute on the first processor that this process may use, with a
// real-time priority. The kernel keeps some time for threads without such a priority, and none for a
// thread whose priority is lower than another one's.
func onFirstProcessor(id int, priority uint32) error {
	var all, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for i := range 1024 {
		if all.IsSet(i) {
			first.Set(i)
			break
		}
	}
	if err := unix.SchedSetaffinity(id, &first); err != nil {
		return err
	}
	return unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority}, 0)
}

func TestAThreadThatGetsNoProcessorIsWaitedFor(t *testing.T) {
	if os.Geteuid() != 0 || runtime.NumCPU() < 2 {
		oracle.Missing(t, "root, who may take a processor, and another processor")
	}
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "8"), true)
	ids, err := threadsOf(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:4] {
		if err := onFirstProcessor(id, 1); err != nil {
			t.Fatal(err)
		}
	}
	// A machine with other work may open the process only when the spinner is done.
	for range 10 {
		wait := spinOnFirstProcessor(t, program, 400*time.Millisecond)
		p := openOne(t, cmd.Process.Pid)
		if len(p.Threads()) != len(ids) {
			t.Errorf("%d threads, expected %d", len(p.Threads()), len(ids))
		}
		for _, th := range p.Threads() {
			if th.IsUnstopped || th.Problem != "" {
				t.Errorf("thread %s: %s", th.ID, th.Problem)
			}
		}
		wait()
		// The threads that the spinner took no processor from stood still for the others.
		switch all, longest := p.Stopped(); {
		case all > stopPatience:
			t.Fatalf("stopped for %v", all)
		case longest >= stopDeadline:
			return
		}
	}
	t.Error("expected that threads waited for others")
}

// spinOnFirstProcessor has a process take the first processor for a time, from now on, and returns
// the function that waits for its end.
func spinOnFirstProcessor(t *testing.T, program string, duration time.Duration) (wait func()) {
	t.Helper()
	spinner := exec.Command(program, "spin", strconv.FormatInt(duration.Milliseconds(), 10))
	begin, err := spinner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := spinner.StdoutPipe()
	if err == nil {
		err = spinner.Start()
	}
	if err == nil {
		err = onFirstProcessor(spinner.Process.Pid, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = begin.Write([]byte{10})
	_, _ = out.Read(make([]byte, 1))
	return func() { _ = spinner.Wait() }
}

func TestAThreadInAnUninterruptibleWaitIsNotWaitedFor(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "vfork"), true)
	waitForStates(t, cmd.Process.Pid, "SD")
	p := openOne(t, cmd.Process.Pid)
	threads := p.Threads()
	if len(threads) != 2 {
		t.Fatalf("%d threads, expected 2", len(threads))
	}
	late := threads[1]
	if late.ID == strconv.Itoa(cmd.Process.Pid) || !late.IsUnstopped || late.IsRunning || !strings.HasPrefix(late.Problem, "it is in an uninterruptible wait (state D)") {
		t.Errorf("thread %s: not stopped %v, running %v: %s", late.ID, late.IsUnstopped, late.IsRunning, late.Problem)
	}
	if _, longest := p.Stopped(); longest > stopPatience/2 {
		t.Errorf("the first thread stood still for %v", longest)
	}
	waitForStates(t, cmd.Process.Pid, "SD")
}

// TestHowLongThreadsAreWaitedFor has the bounds, of threads in different states.
func TestHowLongThreadsAreWaitedFor(t *testing.T) {
	stopped := &tracee{isStopped: true}
	stopping := &tracee{late: lateness{state: 't'}} // since it was asked
	scheduled, waiting := &tracee{late: lateness{state: 'R'}}, &tracee{late: lateness{state: 'D'}}
	for _, c := range []struct {
		about    string
		begun    time.Duration // ago
		past     time.Duration // since these threads were interrupted
		pending  []*tracee
		others   []*tracee
		isSample bool
		want     bool
	}{
		{"in time", stopDeadline, stopDeadline, []*tracee{waiting}, []*tracee{stopped}, false, false},
		{"in an uninterruptible wait", 2 * stopDeadline, 2 * stopDeadline, []*tracee{waiting}, []*tracee{stopped}, false, true},
		{"without a processor", 2 * stopDeadline, 2 * stopDeadline, []*tracee{scheduled, waiting}, []*tracee{stopped}, false, false},
		{"stopped just now", 2 * stopDeadline, 2 * stopDeadline, []*tracee{stopping}, []*tracee{stopped}, false, false},
		{"for a moment of a profile", 2 * stopDeadline, 2 * stopDeadline, []*tracee{scheduled}, []*tracee{stopped}, true, true},
		{"while none stands still", 2 * stopDeadline, 2 * stopDeadline, []*tracee{waiting}, nil, true, false},
		{"too long", 2 * stopPatience, 2 * stopPatience, []*tracee{scheduled}, []*tracee{stopped}, false, true},
		{"too long for all", 2 * stopPatience, 2 * stopPatience, []*tracee{scheduled}, nil, false, true},
		{"a new one, late", 2 * stopPatience, stopDeadline / 2, []*tracee{scheduled}, []*tracee{stopped}, false, false},
	} {
		tr := &tracer{begun: time.Now().Add(-c.begun), deadline: stopDeadline, patience: stopPatience, isSample: c.isSample, threads: append(c.others, c.pending...)}
		if got := tr.mayGiveUp(c.pending, c.past); got != c.want {
			t.Errorf("%s: given up %v, expected %v", c.about, got, c.want)
		}
	}
}
