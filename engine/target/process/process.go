// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/elfcore"
	"github.com/unwindd/unwindd/sdk"
)

// Options says what a process is read with.
type Options struct {
	// Finder opens the files that the process has mapped. Where its Sysroot is "" and the
	// process has mounts of its own, they are looked up under its root directory.
	Finder object.Finder
	// Describe gives the description of an ELF machine's architecture, whose register
	// sets (sdk.CoreNote) say which registers are asked for. Its error is the reason
	// why threads have no registers.
	Describe func(machine uint16) (*sdk.Description, error)
}

// A Target is what was copied of a living process. It implements target.Target. It may be
// used concurrently, but for Close.
type Target struct {
	*elfcore.Core
	threads []*target.Thread
	info    target.Info
	finder  object.Finder
	stopped time.Duration
	longest time.Duration
}

// maxAttempts is how often a process is stopped anew that executes another program while it
// is being stopped.
const maxAttempts = 8

// enoughLooks is how often a process is looked at before it is said to have ended.
const enoughLooks = 4

// Open stops the threads of a process, copies their registers and stacks, lets them go, and
// opens the files of the code that the process has loaded. pid may be the ID of any of its
// threads. The error wraps ErrEnded, ErrNoStacks or ErrDenied where it is one of these.
func Open(pid int, options Options) (*Target, error) {
	if pid <= 0 {
		return nil, ended(pid)
	}
	for attempt := 1; ; attempt++ {
		c, o, err := read(pid, &options)
		// While a thread calls execve the process may look as if it had ended.
		hasEnded := isGone(err) || errors.Is(err, ErrEnded) || errors.Is(err, errZombie)
		switch {
		case err == nil:
			return open(c, o, options)
		case hasEnded && !isThere(pid) && attempt >= enoughLooks:
			if errors.Is(err, errZombie) {
				return nil, err
			}
			return nil, ended(pid)
		case !hasEnded && !errors.Is(err, errChanged):
			return nil, err
		case attempt == maxAttempts:
			return nil, fmt.Errorf("process %d: %w: it was looked at %d times", pid, errChanged, attempt)
		}
		time.Sleep(time.Millisecond << attempt)
	}
}

// isThere says whether a process has not ended. One that executes another program loses all
// threads but one, and what was to be read of them. While the thread that executes takes the
// place of the first one, that looks like a process that has ended: so it is asked again.
func isThere(pid int) bool {
	for range 5 {
		if seemsThere(pid) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func seemsThere(pid int) bool {
	s, err := readStatus(fmt.Sprintf("/proc/%d", pid))
	if err != nil || s.state != 'Z' && s.state != 'X' {
		return err == nil
	}
	threads, err := threadsOf(pid)
	return err == nil && len(threads) > 1
}

// read copies a process. o is what /proc says of it beside.
func read(pid int, options *Options) (c *copied, o *outline, err error) {
	s, err := readStatus(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return nil, nil, err
	}
	pid = s.leader
	o = &outline{root: options.Finder.Sysroot, elsewhere: map[string]string{}, lost: map[string]bool{}}
	if c, o.status, err = lookAt(pid, options); err != nil {
		return nil, nil, err
	}
	if o.root == "" && hasOwnMounts(c) {
		o.root = c.dir() + "/root"
	}
	isLost := func(m *mapping) bool { return o.isLost(c, m) }
	if err := c.prepare(isLost); err != nil {
		return nil, nil, o.status.deny(pid, err)
	}
	c.findRegistered(o)
	if err := c.copyStopped(isLost); err != nil {
		if errors.Is(err, errChanged) || isGone(err) || errors.Is(err, ErrEnded) {
			return nil, nil, err
		}
		return nil, nil, o.status.deny(pid, err)
	}
	o.describe(c)
	return c, o, nil
}

// lookAt is what is known of a process before it is prepared for being copied. pid is that of
// its first thread. It has no description where no architecture reads its registers:
// undescribed is why.
func lookAt(pid int, options *Options) (c *copied, s status, err error) {
	threads, err := threadsOf(pid)
	if err != nil {
		return nil, s, err
	}
	if s, err = readStatus(fmt.Sprintf("/proc/%d", pid)); err != nil {
		return nil, s, err
	}
	if err := s.refuse(pid, threads); err != nil {
		return nil, s, err
	}
	c = &copied{pid: pid, lead: living(pid, threads)}
	if c.machine, err = readMachine(c.dir() + "/exe"); err != nil {
		return nil, s, s.deny(pid, err)
	}
	if options.Describe != nil {
		c.description, c.undescribed = options.Describe(c.machine.elf)
	}
	if d := c.description; d != nil && d.AddressBits != uint32(8*c.machine.size()) { //nolint:gosec // 32 or 64
		c.description, c.undescribed = nil, fmt.Errorf("%s has addresses of %d bits, the process of %d", d.Name, d.AddressBits, 8*c.machine.size())
	}
	return c, s, nil
}

// living is a thread of a process that has not ended: where it can be that of the process's
// ID, which mostly lives longest. Once IDs were given out up to the highest, those of new
// threads are lower ones.
func living(pid int, threads []int) int {
	for _, id := range append([]int{pid}, threads...) {
		if s, err := readStatus(fmt.Sprintf("/proc/%d/task/%d", pid, id)); err == nil && s.state != 'Z' && s.state != 'X' {
			return id
		}
	}
	return pid
}

// An outline is what /proc says of a process beside its memory.
type outline struct {
	status     status
	command    string
	executable string
	root       string            // the directory beneath which the paths of mappings are
	elsewhere  map[string]string // where files are opened that are not at their paths
	lost       map[string]bool   // by path; see isLost
	names      map[int]string    // of threads
	stuck      map[int]byte      // the states of threads that did not stop
}

// maxCommand bounds the command line that is kept.
const maxCommand = 64 << 10

// describe reads what may be read of a process that goes on.
func (o *outline) describe(c *copied) {
	if data, err := readFile(c.dir()+"/cmdline", nil); err == nil {
		data = bytes.TrimRight(data[:min(len(data), maxCommand)], "\x00")
		o.command = string(bytes.ReplaceAll(data, []byte{0}, []byte{' '}))
	}
	o.executable, _ = os.Readlink(c.dir() + "/exe")
	o.names, o.stuck = map[int]string{}, map[int]byte{}
	for _, th := range c.threads {
		dir := fmt.Sprintf("/proc/%d/task/%d", c.pid, th.id)
		if name, err := readFile(dir+"/comm", nil); err == nil {
			o.names[th.id] = strings.TrimSuffix(string(name), "\n")
		}
		if !th.isStopped && !th.isGone {
			s, _ := readStatus(dir)
			o.stuck[th.id] = s.state
		}
	}
}

// isLost says whether the file of a mapping with code can be opened by no path. Usually it
// can by the mapping's own. One that has no name any more, or none beneath the root that
// paths are looked up under, is opened by /proc/PID/map_files, which takes CAP_SYS_ADMIN or
// CAP_CHECKPOINT_RESTORE, and the executable by /proc/PID/exe.
func (o *outline) isLost(c *copied, m *mapping) bool {
	lost, known := o.lost[m.path]
	if !known {
		lost = !o.hasName(c, m) && !o.reach(c, m)
		o.lost[m.path] = lost
	}
	return lost
}

// hasName reports whether there is a file at the path of a mapping, and sets where the mapped
// one is opened in its place if it has another inode: something else was mounted there. On
// overlayfs the inode of the mapping may be that of the file beneath.
func (o *outline) hasName(c *copied, m *mapping) bool {
	if m.isDeleted() {
		return false
	}
	var st unix.Stat_t
	if err := unix.Stat(o.root+m.path, &st); err != nil {
		return false
	}
	if st.Ino != m.inode && strings.HasPrefix(m.path, "/") {
		_ = o.reach(c, m)
	}
	return true
}

// reach finds another path of a mapping's file.
func (o *outline) reach(c *copied, m *mapping) bool {
	candidates := []string{fmt.Sprintf("/proc/%d/map_files/%x-%x", c.pid, m.start, m.end)}
	if exe, err := os.Readlink(c.dir() + "/exe"); err == nil && exe == m.path {
		candidates = append(candidates, c.dir()+"/exe")
	}
	for _, path := range candidates {
		if f, err := os.Open(path); err == nil {
			_ = f.Close()
			o.elsewhere[m.path] = path
			return true
		}
	}
	return false
}

// open makes a target of what was copied.
func open(c *copied, o *outline, options Options) (*Target, error) {
	t := &Target{finder: options.Finder, stopped: c.stopped, longest: c.longest}
	t.finder.Sysroot, t.finder.Elsewhere = o.root, o.elsewhere
	var err error
	t.Core, err = elfcore.New(fmt.Sprintf("/proc/%d", c.pid), c.image(o.status.name), elfcore.Options{
		Finder: t.finder, Describe: options.Describe, Kind: target.LiveProcess,
	})
	if err != nil {
		return nil, err
	}
	t.describe(c, o)
	return t, nil
}

// hasOwnMounts says whether a process has mounts of its own. Its mappings have the paths
// that their files have there. (Those of a process that only has another root directory
// have the paths that they have for who reads them.)
func hasOwnMounts(c *copied) bool {
	theirs, err := os.Stat(c.dir() + "/ns/mnt")
	ours, e := os.Stat("/proc/self/ns/mnt")
	return err == nil && e == nil && !os.SameFile(theirs, ours)
}

// describe completes threads and facts by what a core has no room for.
func (t *Target) describe(c *copied, o *outline) {
	t.threads = t.Core.Threads()
	for _, th := range t.threads {
		if id, err := strconv.Atoi(th.ID); err == nil && o.names[id] != "" {
			th.Name = o.names[id]
		}
	}
	t.info = t.Core.Info()
	arch := ""
	if len(t.threads) > 0 {
		arch = t.threads[0].Arch
	}
	for _, th := range c.threads {
		state, ok := o.stuck[th.id]
		if !ok {
			continue
		}
		t.threads = append(t.threads, &target.Thread{
			Handle: uint64(len(t.threads)), ID: strconv.Itoa(th.id), Name: o.names[th.id], Arch: arch, IsRunning: true,
			Problem: fmt.Sprintf("it did not stop within %v: its state is %c, and a thread in an uninterruptible wait (D) stops after that", stopDeadline, state),
		})
	}
	facts := *t.info.Facts
	facts.Process.ID = int64(c.pid)
	facts.Process.Command, facts.Process.Executable = o.command, o.executable
	facts.Process.User = &o.status.uid
	facts.Process.Created, facts.Process.Kept = startTime(o.status.started), c.at
	facts.Mappings = len(c.maps)
	t.info.Facts = &facts
}

// Info is what is known of the process. Facts have its command line, its executable, when
// it started and when it was stopped.
func (t *Target) Info() target.Info { return t.info }

// Threads are in the order of their IDs. Those that did not stop are behind the others, and
// say so.
func (t *Target) Threads() []*target.Thread { return t.threads }

// Finder is what the files of the process were found by, and are to be found by later.
func (t *Target) Finder() object.Finder { return t.finder }

// Stopped is how long threads of the process were stopped: all of them, from the first
// one's stop to the last one's release, and the one that was stopped longest.
func (t *Target) Stopped() (all, longest time.Duration) { return t.stopped, t.longest }
