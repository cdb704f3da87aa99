// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/plugin"
)

// TestAPriorityBecomesLowAndWhatItWas has a process with many threads and another of its own
// session, and one that has left it, as a plugin does.
func TestAPriorityBecomesLowAndWhatItWas(t *testing.T) {
	c := exec.CommandContext(t.Context(), "/proc/self/exe", hoarder, "family")
	c.SysProcAttr = ownSession()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		killAll(c.Process)
		_ = c.Wait()
	}()
	_ = in.Close()
	for end := time.Now().Add(10 * time.Second); len(plugin.DescendantsOf(c.Process.Pid)) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it starts no process")
		}
	}
	own, err := ownPriority()
	if err != nil {
		t.Fatal(err)
	}
	p := Pool{}
	w := &process{command: c}
	p.lower(w, &work{process: w, began: time.Now()})
	wantPriority(t, c.Process.Pid, own, 0)
	p.lower(w, &work{process: w, began: time.Now().Add(-slowAfter)})
	if lowered := max(own, low); mayRaise() {
		wantPriority(t, c.Process.Pid, lowered, low)
	} else {
		wantPriority(t, c.Process.Pid, own, low)
	}
	if err := p.raise(w); err != nil || p.keeps.Load() {
		t.Fatal(err)
	}
	wantPriority(t, c.Process.Pid, own, 0)
}

// wantPriority checks the priority of each thread of a process and its descendants, and of their
// sessions, where the kernel has any of these.
func wantPriority(t *testing.T, process, nice, session int) {
	t.Helper()
	for _, pid := range append(plugin.DescendantsOf(process), process) {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range threads {
			var id int
			_, _ = fmt.Sscan(e.Name(), &id)
			if n, err := unix.Getpriority(unix.PRIO_PROCESS, id); err != nil || 20-n != nice {
				t.Errorf("thread %d of %d: %d, %v, expected %d", id, pid, 20-n, err, nice)
			}
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
		if err == nil && len(text) > 0 && !strings.HasSuffix(string(bytes.TrimSpace(text)), fmt.Sprintf("nice %d", session)) {
			t.Errorf("the session of %d: %q, expected %d", pid, text, session)
		}
	}
}

// TestAWorkerKeepsItsPriorityWhereItCannotBeRaised has a worker whose priority was not raised again.
func TestAWorkerKeepsItsPriorityWhereItCannotBeRaised(t *testing.T) {
	p := Pool{}
	p.keeps.Store(true)
	w := &process{}
	p.lower(w, &work{process: w, began: time.Now().Add(-slowAfter)})
	if err := p.raise(w); w.isLow || err != nil {
		t.Errorf("%v, %v", w.isLow, err)
	}
}
