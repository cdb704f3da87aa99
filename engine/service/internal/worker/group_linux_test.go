// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// hoarder is the argument of a process of this executable that takes all the memory that it gets, by another process that
// outlives it.
const hoarder = "hoarder"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == hoarder {
		hoardMain(os.Args[2])
	}
	os.Exit(m.Run())
}

func hoardMain(step string) {
	if step != "second" { // in the group
		_, _ = io.ReadAll(os.Stdin)
	}
	switch step {
	case "wait":
		time.Sleep(20 * time.Second)
		os.Exit(0)
	case "family":
		_ = exec.Command("/proc/self/exe", hoarder, "wait").Start() //nolint:noctx // until it is ended
		apart := exec.Command("/proc/self/exe", hoarder, "wait")    //nolint:noctx // likewise
		apart.SysProcAttr = ownSession()
		_ = apart.Start()
		time.Sleep(20 * time.Second)
		os.Exit(0)
	case "first":
		_ = exec.Command("/proc/self/exe", hoarder, "second").Start() //nolint:noctx // it outlives this one
		os.Exit(0)
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		b := make([]byte, 8<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		hoarded = append(hoarded, b)
	}
	os.Exit(0)
}

// hoarded keeps the memory of a hoarder.
var hoarded [][]byte

// TestAControlGroupBoundsAllThatAWorkerLeaves needs a control group that is delegated to the test: a process whose parent has
// ended is not found by its parents, and the group ends it.
func TestAControlGroupBoundsAllThatAWorkerLeaves(t *testing.T) {
	all, err := delegated()
	if err != nil {
		t.Skip(err)
	}
	const most = 64 << 20
	in := func(step string) (*exec.Cmd, *group) {
		t.Helper()
		c := exec.Command("/proc/self/exe", hoarder, step) //nolint:noctx // it ends by itself, or the group ends it
		begin, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		g, err := all.start(c.Process.Pid, most)
		if err != nil {
			t.Fatal(err)
		}
		_ = begin.Close()
		return c, g
	}
	started, g := in("first")
	if err := started.Wait(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !g.isOver(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the process that was left behind has all the memory that it took")
		}
	}
	g.remove()
	if _, err := os.Stat(g.folder); !os.IsNotExist(err) {
		t.Errorf("the group is left: %v", err)
	}
	waits, g := in("wait")
	g.remove()
	_ = waits.Wait()
	if left, _ := filepath.Glob(filepath.Join(all.folder, groupPrefix+"*")); len(left) > 0 {
		t.Errorf("groups are left: %v", left)
	}
	if state, ok := waits.ProcessState.Sys().(syscall.WaitStatus); !ok || state.Signal() != syscall.SIGKILL {
		t.Errorf("%v, expected that the group ended it", waits.ProcessState)
	}
}
