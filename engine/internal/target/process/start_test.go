// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheStartOfAProcessIsRead(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"RANK=3", "EMPTY=", "TWO=a b"}
	start(t, cmd, false)
	p := openOne(t, cmd.Process.Pid)
	s := p.Start()
	if !slices.Equal(s.Command, []string{"sleep", "60"}) || !slices.Equal(s.Environment, cmd.Env) {
		t.Errorf("%q", s)
	}
	if cgroup, err := os.ReadFile("/proc/self/cgroup"); err == nil && s.Cgroup != string(cgroup) {
		t.Errorf("cgroup %q, expected that of the parent, %q", s.Cgroup, cgroup)
	}
	host, _ := os.Hostname()
	if f := p.Info().Facts.Process; f.Host != host || f.Command != "sleep 60" {
		t.Errorf("host %q, expected %q; command %q", f.Host, host, f.Command)
	}
}

func TestTheHostOfAContainerIsItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("another namespace takes root")
	}
	cmd := exec.Command("sh", "-c", "hostname unwindd-inner && echo ready && exec sleep 60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}
	if out, err := exec.Command("unshare", "--uts", "true").CombinedOutput(); err != nil {
		t.Skipf("namespaces cannot be made here: %v, %s", err, out)
	}
	start(t, cmd, true)
	if got := openOne(t, cmd.Process.Pid).Info().Facts.Process.Host; got != "unwindd-inner" {
		t.Errorf("host %q", got)
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil || strings.HasPrefix(string(name.Nodename[:]), "unwindd-inner") {
		t.Errorf("the test has the host %q, %v", name.Nodename, err)
	}
}
