// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/host"
)

// A worker and its plugins have one limit of memory. The sum of their private memory is looked at while a request runs. Where
// the system's manager has given this process a control group of its own (systemd: Delegate=), each worker is in a group beneath it
// besides: then the kernel bounds all that it does, files in memory and processes that it left behind too, and ends it as a whole.

// controlGroups is where version 2 of control groups is mounted.
const controlGroups = "/sys/fs/cgroup"

// groups is a folder of control groups for workers.
type groups struct{ folder string }

// delegated finds the control group that this process may divide, and leaves it for one beneath, because groups with others
// beneath them have no processes. The error is why there is none.
func delegated() (*groups, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(controlGroups, &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, fmt.Errorf("%s has no control groups of version 2", controlGroups)
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	_, own, ok := strings.Cut("\n"+string(text), "\n0::")
	if own, _, _ = strings.Cut(own, "\n"); !ok || !filepath.IsAbs(own) {
		return nil, errors.New("this process has no control group of version 2")
	}
	folder := filepath.Join(controlGroups, own)
	if filepath.Base(folder) == beneathName && isDelegated(filepath.Dir(folder)) { // as the manager has put it there
		return divide(filepath.Dir(folder))
	}
	if !isDelegated(folder) {
		return nil, errors.New("the control group of this process is not delegated to it")
	}
	if all, err := os.ReadFile(filepath.Join(folder, "cgroup.procs")); err != nil || strings.TrimSpace(string(all)) != strconv.Itoa(os.Getpid()) {
		return nil, errors.Join(errors.New("other processes are in the control group of this one"), err)
	}
	beneath := filepath.Join(folder, beneathName)
	if err := os.Mkdir(beneath, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := setting(beneath, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return nil, err
	}
	return divide(folder)
}

// beneathName is the name of the control group of the server itself, which makes it: a unit's DelegateSubgroup= of this name
// takes systemd 254.
const beneathName = "server"

// isDelegated reports whether this process may divide a control group: systemd has marked it so, which root alone can see, or has
// given it to the user.
func isDelegated(folder string) bool {
	var value [1]byte
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		if n, err := unix.Getxattr(folder, name, value[:]); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	info, err := os.Stat(folder)
	if err != nil || os.Geteuid() == 0 {
		return false
	}
	user, _, ok := host.Owner(info)
	return ok && user == os.Geteuid()
}

// divide has the groups beneath a folder bound memory, and removes groups that a server left which was killed.
func divide(folder string) (*groups, error) {
	if err := setting(folder, "cgroup.subtree_control", "+memory"); err != nil {
		return nil, err
	}
	left, _ := filepath.Glob(filepath.Join(folder, groupPrefix+"*"))
	for _, dead := range left {
		_ = os.Remove(dead) // fails where it has processes
	}
	return &groups{folder}, nil
}

// groupPrefix begins the names of the groups of workers.
const groupPrefix = "worker-"

func setting(folder, name, value string) error {
	return os.WriteFile(filepath.Join(folder, name), []byte(value), 0)
}

// group is the control group of a worker.
type group struct{ folder string }

// groupSlack is the memory that a group has beyond the private memory of its processes: of the kernel, and pages of files.
const groupSlack = 256 << 20

// start makes a group for a process, which has done nothing yet, and may have a number of bytes. A nil groups makes none.
func (g *groups) start(process int, memory uint64) (*group, error) {
	if g == nil {
		return nil, nil
	}
	created := &group{filepath.Join(g.folder, groupPrefix+strconv.Itoa(process))}
	if err := os.Mkdir(created.folder, 0o700); err != nil {
		return nil, err
	}
	_ = setting(created.folder, "memory.swap.max", "0") // a kernel without swap has none
	for _, s := range [][2]string{
		{"memory.max", strconv.FormatUint(memory+groupSlack, 10)}, {"memory.oom.group", "1"}, {"cgroup.procs", strconv.Itoa(process)},
	} {
		if err := setting(created.folder, s[0], s[1]); err != nil {
			created.remove()
			return nil, err
		}
	}
	return created, nil
}

// isOver reports whether the kernel ended processes of the group because they had too much memory.
func (g *group) isOver() bool {
	if g == nil {
		return false
	}
	text, _ := os.ReadFile(filepath.Join(g.folder, "memory.events"))
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

// remove ends the processes of the group, and removes it.
func (g *group) remove() {
	if g == nil {
		return
	}
	_ = setting(g.folder, "cgroup.kill", "1")
	for range 100 { // until they are gone
		if err := os.Remove(g.folder); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
