// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/internal/target/elfcore"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// Options sets how a process is read, and where its files are found.
type Options struct {
	// Finder opens the files that the process has mapped. If its Sysroot is "" and the
	// process has its own mounts, files are looked up under the process's root directory.
	Finder object.Finder
	// Describe returns the description of an ELF machine's architecture, whose register
	// sets (sdk.CoreNote) are read. Its error is the reason why threads have no registers.
	Describe func(machine object.ELFMachine) (*sdk.Description, error)
	// Look is called with the target while the threads stand still. Memory that it reads is a part of
	// the target. nil: the threads go on once they are copied.
	Look func(t *Target)
	// Member is its part where several processes are stopped together; nil: it is by itself.
	Member *Member
}

// Target is the copy of a live process. It implements target.Target. Except for Close it may be
// used concurrently.
type Target struct {
	*elfcore.Core
	threads []*trace.Thread
	info    trace.Target
	start   target.Start
	finder  object.Finder
	stopped time.Duration
	longest time.Duration
	lead    int    // a live thread
	mapped  uint64 // bytes in readable mappings
	still   *still // nil: only the copy is there
}

// maxAttempts bounds how often a process is stopped anew, after it has executed another program
// while it was being stopped.
const maxAttempts = 8

// enoughLooks is how often a process must look ended before it counts as ended.
const enoughLooks = 4

// Open stops the threads of a process, copies their registers and stacks, releases them, and
// opens the files of the code that the process has loaded. pid may be the ID of any of its
// threads. The error wraps ErrEnded, ErrNoStacks or ErrDenied if that is the reason.
func Open(pid int, options Options) (*Target, error) {
	if pid <= 0 {
		return nil, ended(pid)
	}
	for attempt := 1; ; attempt++ {
		c, o, err := read(pid, &options)
		// While a thread calls execve the process may look as if it had ended.
		hasEnded := isGone(err) || errors.Is(err, ErrEnded) || errors.Is(err, errZombie)
		switch {
		case err == nil && c.opened != nil:
			c.opened.stopped, c.opened.longest = c.stopped, c.longest
			return c.opened, nil
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

// isThere reports whether a process has not ended. A process that calls execve loses all threads
// except the caller, and while that takes the place of the first thread the process looks as if
// it had ended: so it is looked at more than once.
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

// read copies a process, and reads its outline.
func read(pid int, options *Options) (c *copied, o *outline, err error) {
	s, err := readStatus(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return nil, nil, err
	}
	pid = s.leader
	o = &outline{root: options.Finder.Sysroot, elsewhere: map[string]string{}, lost: map[string]bool{}}
	if c, o.status, err = inspect(pid, options); err != nil {
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
	c.member = options.Member
	c.member.isPrepared()
	if options.Look != nil {
		c.whileStill = func() error { return c.look(o, options) }
	}
	if err := c.copyStopped(isLost); err != nil {
		if errors.Is(err, errChanged) || isGone(err) || errors.Is(err, ErrEnded) {
			return nil, nil, err
		}
		return nil, nil, o.status.deny(pid, err)
	}
	if c.opened == nil {
		o.describe(c)
	}
	return c, o, nil
}

// look opens the copy while the threads stand still, for Options.Look.
func (c *copied) look(o *outline, options *Options) (err error) {
	o.describe(c)
	if c.opened, err = open(c, o, *options); err != nil {
		return err
	}
	c.opened.still = newStill(c.lead)
	defer c.opened.still.end()
	options.Look(c.opened)
	return nil
}

// inspect reads the state that a process must have before it is prepared for being copied. pid
// is the ID of its first thread. If no architecture reads its registers, it has no description,
// and undescribed is why.
func inspect(pid int, options *Options) (c *copied, s status, err error) {
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
	c = &copied{pid: pid, lead: liveThread(pid, threads)}
	if c.machine, err = readMachine(c.dir() + "/exe"); err != nil {
		return nil, s, s.deny(pid, err)
	}
	if options.Describe != nil {
		c.description, c.undescribed = options.Describe(object.NewELFMachine(c.machine.elf, c.machine.class, order))
	}
	if d := c.description; d != nil && d.AddressBits != uint32(8*c.machine.size()) { //nolint:gosec // 32 or 64
		c.description, c.undescribed = nil, fmt.Errorf("%s has addresses of %d bits, the process of %d", d.Name, d.AddressBits, 8*c.machine.size())
	}
	return c, s, nil
}

// liveThread returns a thread of a process that has not ended: if possible the thread with the
// process's ID, which usually lives longest. It need not be the lowest ID: IDs wrap around.
func liveThread(pid int, threads []int) int {
	for _, id := range append([]int{pid}, threads...) {
		if s, err := readStatus(fmt.Sprintf("/proc/%d/task/%d", pid, id)); err == nil && s.state != 'Z' && s.state != 'X' {
			return id
		}
	}
	return pid
}

// outline is the state of a process that /proc has and a core has not.
type outline struct {
	status     status
	command    string
	executable string
	host       string
	start      target.Start
	root       string            // the directory that the paths of mappings are relative to
	elsewhere  map[string]string // other paths of files that are not at their own
	lost       map[string]bool   // by path; see isLost
	names      map[int]string    // of threads
	own        map[int]int       // IDs of threads in their own PID namespace; nil: the same
}

// describe reads the members that need no stopped threads.
func (o *outline) describe(c *copied) {
	o.start = readStart(c.dir())
	o.command = strings.Join(o.start.Command, " ")
	o.command = o.command[:min(len(o.command), maxCommand)]
	o.executable, _ = os.Readlink(c.dir() + "/exe")
	o.host = hostOf(c.dir())
	o.names, o.own = map[int]string{}, c.ownIDs()
	for _, th := range c.threads {
		dir := fmt.Sprintf("/proc/%d/task/%d", c.pid, th.id)
		if name, err := readFile(dir+"/comm", nil); err == nil {
			o.names[th.id] = strings.TrimSuffix(string(name), "\n")
		}
	}
}

// isLost reports whether the file of a mapping with code can be opened by no path. Usually the
// mapping's own path works. A file without a name, or without one beneath root, is opened by
// /proc/PID/map_files, which takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE, and the executable
// by /proc/PID/exe.
func (o *outline) isLost(c *copied, m *mapping) bool {
	lost, known := o.lost[m.path]
	if !known {
		lost = !o.hasName(c, m) && !o.reach(c, m)
		o.lost[m.path] = lost
	}
	return lost
}

// hasName reports whether there is a file at the path of a mapping. If that has another inode,
// as another file was mounted there, it sets the path by which the mapped file is opened. On
// overlayfs the inode of the mapping may be that of the lower file.
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

// open makes a target of the copy.
func open(c *copied, o *outline, options Options) (*Target, error) {
	t := &Target{finder: options.Finder, stopped: c.stopped, longest: c.longest, lead: c.lead, mapped: c.readable()}
	t.finder.Sysroot, t.finder.Elsewhere = o.root, o.elsewhere
	var err error
	t.Core, err = elfcore.New(fmt.Sprintf("/proc/%d", c.pid), c.image(o.status.name), elfcore.Options{
		Finder: t.finder, Describe: options.Describe, Kind: trace.LiveProcess,
	})
	if err != nil {
		return nil, err
	}
	t.describe(c, o)
	return t, nil
}

// hasOwnMounts reports whether a process has its own mounts: the paths of its mappings are
// relative to them. (If a process only has another root directory, the paths are relative to
// the reader's root.)
func hasOwnMounts(c *copied) bool {
	theirs, err := os.Stat(c.dir() + "/ns/mnt")
	ours, e := os.Stat("/proc/self/ns/mnt")
	return err == nil && e == nil && !os.SameFile(theirs, ours)
}

// describe completes threads and facts with the outline.
func (t *Target) describe(c *copied, o *outline) {
	t.threads = t.Core.Threads()
	for _, th := range t.threads {
		if id, err := strconv.Atoi(th.ID); err == nil {
			th.Name, th.OwnID = cmp.Or(o.names[id], th.Name), int64(o.own[id])
		}
	}
	t.info, t.start = t.Core.Info(), o.start
	arch := ""
	if len(t.threads) > 0 {
		arch = t.threads[0].Arch
	}
	for _, th := range c.threads {
		if th.isStopped || th.isGone {
			continue
		}
		t.threads = append(t.threads, &trace.Thread{
			Handle: uint64(len(t.threads)), ID: strconv.Itoa(th.id), Name: o.names[th.id], Arch: arch,
			IsUnstopped: true, Problem: th.late.String(),
		})
	}
	facts := *t.info.Facts
	facts.Process.ID = int64(c.pid)
	facts.Process.Command, facts.Process.Executable = o.command, o.executable
	facts.Process.User = &o.status.uid
	facts.Process.Created, facts.Process.Kept = startTime(o.status.started), c.stoppedAt
	facts.Process.Host = o.host
	facts.Mappings = len(c.maps)
	t.info.Facts = &facts
}

// Info describes the process. Facts have its command line, its executable, when it started and
// when it was stopped.
func (t *Target) Info() trace.Target { return t.info }

// Start is how the process was started, as /proc had it when it was stopped.
func (t *Target) Start() target.Start { return t.start }

// Threads returns the threads in the order of their IDs. Threads that did not stop come last.
func (t *Target) Threads() []*trace.Thread { return t.threads }

// Finder returns the finder of the process's files.
func (t *Target) Finder() object.Finder { return t.finder }

// Stopped returns how long threads of the process were stopped: all, from the first thread's
// stop to the last one's release, and the longest stop of one thread.
func (t *Target) Stopped() (all, longest time.Duration) { return t.stopped, t.longest }
