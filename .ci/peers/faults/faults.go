// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fault is a way in which the system fails a command.
type fault struct {
	kind, name string
	enter      entry
	variables  map[string]string // of the environment; DIR is the folder of folders, "": it is not set
	// prepare does something before, and undo undoes it.
	prepare func(b *bench) (undo func() error, err error)
	// redirect changes the standard files. end is called when it has started.
	redirect func(cmd *exec.Cmd) (end func(), err error)
	// during does something while the command runs.
	during func(b *bench, pid int)
	// ends are exit statuses of a command that the fault ends.
	ends map[int]bool
	// starves is one that leaves Go's runtime without memory or threads, which ends
	// a program.
	starves bool
	// fatal is the text of Go's library before it ends a program because of the fault.
	fatal string
	// hasNoReader is a fault in which standard output has no reader, hasNoMessages one in
	// which standard error has none.
	hasNoReader, hasNoMessages bool
	isSampled                  bool // a small run has it
	// leavesFolders is one that leaves no descriptor to remove folders of sockets by. The
	// next command removes them.
	leavesFolders bool
}

// faults runs every command under every fault.
func (b *bench) faults() error {
	for _, f := range slices.Concat(fullDisks(), lowLimits(), missing(), containers(), olderKernels(), standardFiles(), signals(b.random.Int64N)) {
		if *isSmall && !f.isSampled || !isChosen(f.kind+": "+f.name) {
			continue
		}
		for _, c := range b.commands {
			if _, err := b.try(c, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// fullDisks are folders on disks of so many bytes, or of so many files.
func fullDisks() (list []*fault) {
	for _, where := range []string{"tmp", "cache", "out", "home", "run"} {
		for _, options := range []string{"size=4k", "size=16k", "size=64k", "nr_inodes=1", "nr_inodes=2"} {
			list = append(list, &fault{
				kind: "a full disk", name: fmt.Sprintf("%s has %s", where, options), isSampled: options == "size=4k" && (where == "tmp" || where == "out"),
				prepare: func(b *bench) (func() error, error) {
					path := b.folder(where)
					if err := unix.Mount("none", path, "tmpfs", 0, options+",mode=777"); err != nil {
						return nil, err
					}
					return func() error { return unix.Unmount(path, unix.MNT_DETACH) }, nil
				},
			})
		}
	}
	return list
}

// unusedUser is a user that has no processes.
const unusedUser = 61234

// lowLimits are rlimits, and the memory of a control group.
func lowLimits() (list []*fault) {
	add := func(name string, resource int, values []uint64, f fault) {
		for i, v := range values {
			one := f
			one.kind, one.name = name, fmt.Sprintf("%s %d", name, v)
			one.enter.Limits = map[int]uint64{resource: v}
			one.isSampled = i == len(values)/2
			one.leavesFolders = resource == unix.RLIMIT_NOFILE && v < 10
			list = append(list, &one)
		}
	}
	add("RLIMIT_NOFILE", unix.RLIMIT_NOFILE, []uint64{256, 128, 64, 48, 32, 28, 24, 22, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8}, fault{})
	add("RLIMIT_FSIZE", unix.RLIMIT_FSIZE, []uint64{1 << 20, 64 << 10, 16 << 10, 4096, 100, 0}, fault{})
	add("RLIMIT_AS", unix.RLIMIT_AS, []uint64{4 << 30, 2 << 30, 1500 << 20, 1 << 30, 512 << 20, 256 << 20, 128 << 20, 64 << 20}, fault{starves: true})
	add("RLIMIT_DATA", unix.RLIMIT_DATA, []uint64{1 << 30, 512 << 20, 256 << 20, 128 << 20, 64 << 20, 48 << 20, 32 << 20, 16 << 20}, fault{starves: true})
	add("RLIMIT_NPROC, as another user", unix.RLIMIT_NPROC, []uint64{64, 32, 24, 20, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 2, 1}, fault{starves: true, enter: entry{User: unusedUser}})
	add("RLIMIT_STACK", unix.RLIMIT_STACK, []uint64{256 << 10, 64 << 10}, fault{})
	add("RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, []uint64{0}, fault{})
	add("RLIMIT_SIGPENDING", unix.RLIMIT_SIGPENDING, []uint64{0}, fault{})
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err != nil {
		fmt.Println("left out, because there is no hierarchy of version 1: memory of a control group")
		return list
	}
	for _, bytes := range []int{128 << 20, 64 << 20, 48 << 20, 32 << 20, 24 << 20, 16 << 20, 8 << 20} {
		list = append(list, memoryGroup(bytes))
	}
	return list
}

// missing is the faults that leave out a part of the system.
func missing() []*fault {
	const kind = "something is missing"
	return []*fault{
		{kind: kind, name: "no /proc", enter: entry{Hidden: []string{"/proc"}}, isSampled: true},
		{kind: kind, name: "no /dev", enter: entry{Hidden: []string{"/dev"}}},
		{kind: kind, name: "no /sys", enter: entry{Hidden: []string{"/sys"}}},
		{kind: kind, name: "no /etc", enter: entry{Hidden: []string{"/etc"}}},
		{kind: kind, name: "no /tmp, and TMPDIR is not set", variables: map[string]string{"TMPDIR": ""}, enter: entry{NoTmp: true}, isSampled: true},
		{kind: kind, name: "no /tmp, /proc", variables: map[string]string{"TMPDIR": ""}, enter: entry{NoTmp: true, Hidden: []string{"/proc"}}},
		{kind: kind, name: "TMPDIR names nothing", variables: map[string]string{"TMPDIR": "DIR/none"}},
		{kind: kind, name: "TMPDIR is a file", variables: map[string]string{"TMPDIR": "/etc/passwd"}},
		{kind: kind, name: "no HOME", variables: map[string]string{"HOME": "", "XDG_CACHE_HOME": "", "XDG_RUNTIME_DIR": ""}},
		{kind: kind, name: "HOME names nothing", variables: map[string]string{"HOME": "DIR/none", "XDG_CACHE_HOME": "", "XDG_RUNTIME_DIR": "DIR/none"}},
		{kind: kind, name: "HOME is a file", variables: map[string]string{"HOME": "/etc/passwd", "XDG_CACHE_HOME": "", "XDG_RUNTIME_DIR": "/etc/passwd"}},
		{kind: kind, name: "no environment", variables: map[string]string{"PATH": "", "HOME": "", "TMPDIR": "", "XDG_CACHE_HOME": "", "XDG_RUNTIME_DIR": "", "NO_COLOR": ""}},
		{kind: kind, name: "nothing can be written", enter: entry{ReadOnly: true}, isSampled: true},
		{kind: kind, name: "nothing but /tmp can be written", variables: map[string]string{"TMPDIR": ""}, enter: entry{ReadOnly: true, Writable: []string{"/tmp"}}},
		{kind: kind, name: "another user, without rights", enter: entry{User: unusedUser}, variables: map[string]string{"HOME": "/root", "XDG_CACHE_HOME": ""}},
	}
}

// containers are namespaces of their own, in which unwindd is process 1.
func containers() []*fault {
	const kind = "a container"
	return []*fault{
		{kind: kind, name: "with user namespaces", enter: entry{Container: true}, isSampled: true},
		{kind: kind, name: "without user namespaces", enter: entry{Container: true, NoUserNamespaces: true}},
		{kind: kind, name: "that cannot be written", enter: entry{Container: true, ReadOnly: true, Writable: []string{"/tmp"}}, variables: map[string]string{"TMPDIR": ""}},
	}
}

// newerCalls are system calls that Linux 3.2, which is the oldest that Go runs on, had not,
// or that sandboxes deny.
var newerCalls = []struct {
	name    string
	numbers []uintptr
}{
	{"landlock", []uintptr{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF}},
	{"seccomp", []uintptr{unix.SYS_SECCOMP}},
	{"pidfd_open", []uintptr{unix.SYS_PIDFD_OPEN}},
	{"pidfd_send_signal", []uintptr{unix.SYS_PIDFD_SEND_SIGNAL}},
	{"pidfd_getfd", []uintptr{unix.SYS_PIDFD_GETFD}},
	{"process_vm_readv", []uintptr{unix.SYS_PROCESS_VM_READV}},
	{"ptrace", []uintptr{unix.SYS_PTRACE}},
	{"memfd_create", []uintptr{unix.SYS_MEMFD_CREATE}},
	{"userfaultfd", []uintptr{unix.SYS_USERFAULTFD}},
	{"io_uring", []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}},
	{"perf_event_open", []uintptr{unix.SYS_PERF_EVENT_OPEN}},
	{"bpf", []uintptr{unix.SYS_BPF}},
	{"execveat", []uintptr{unix.SYS_EXECVEAT}},
	{"close_range", []uintptr{unix.SYS_CLOSE_RANGE}},
	{"openat2", []uintptr{unix.SYS_OPENAT2}},
	{"clone3", []uintptr{unix.SYS_CLONE3}},
	{"unshare", []uintptr{unix.SYS_UNSHARE, unix.SYS_SETNS}},
	{"statx", []uintptr{unix.SYS_STATX}},
	{"copy_file_range", []uintptr{unix.SYS_COPY_FILE_RANGE}},
	{"renameat2", []uintptr{unix.SYS_RENAMEAT2}},
	{"getrandom", []uintptr{unix.SYS_GETRANDOM}},
	{"faccessat2", []uintptr{unix.SYS_FACCESSAT2}},
	{"fchmodat2", []uintptr{unix.SYS_FCHMODAT2}},
	{"membarrier", []uintptr{unix.SYS_MEMBARRIER}},
	{"rseq", []uintptr{unix.SYS_RSEQ}},
	{"epoll_pwait2", []uintptr{unix.SYS_EPOLL_PWAIT2}},
	{"preadv2", []uintptr{unix.SYS_PREADV2, unix.SYS_PWRITEV2}},
	{"mlock2", []uintptr{unix.SYS_MLOCK2}},
	{"splice", []uintptr{unix.SYS_SPLICE, unix.SYS_SENDFILE, unix.SYS_VMSPLICE, unix.SYS_TEE}},
	{"prlimit64", []uintptr{unix.SYS_PRLIMIT64}},
	{"capset", []uintptr{unix.SYS_CAPSET}},
	{"flock", []uintptr{unix.SYS_FLOCK}},
	{"fallocate", []uintptr{unix.SYS_FALLOCATE}},
	{"fsync", []uintptr{unix.SYS_FSYNC, unix.SYS_FDATASYNC}},
	{"madvise", []uintptr{unix.SYS_MADVISE}},
	{"sched_getaffinity", []uintptr{unix.SYS_SCHED_GETAFFINITY}},
	{"mincore", []uintptr{unix.SYS_MINCORE}},
	{"kcmp", []uintptr{unix.SYS_KCMP}},
	{"socketpair", []uintptr{unix.SYS_SOCKETPAIR}},
	{"inotify", []uintptr{unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH}},
	{"getsockopt", []uintptr{unix.SYS_GETSOCKOPT}},
	{"statfs", []uintptr{unix.SYS_STATFS, unix.SYS_FSTATFS}},
}

// olderKernels are kernels without some system calls (ENOSYS), and sandboxes that deny them
// (EPERM): each in turn, and all that are newer than Linux 3.2.
func olderKernels() (list []*fault) {
	for _, errno := range []syscall.Errno{unix.ENOSYS, unix.EPERM} {
		kind := "system calls that fail with " + unix.ErrnoName(errno)
		var all []uintptr
		for _, c := range newerCalls {
			one := &fault{kind: kind, name: c.name, enter: entry{Denied: c.numbers, Errno: errno}, isSampled: c.name == "close_range" && errno == unix.ENOSYS}
			if c.name == "getrandom" && errno != unix.ENOSYS {
				one.fatal = "crypto/rand: failed to read random data" // crypto/rand.Read: it never returns an error
			}
			list = append(list, one)
		}
		name := "all that Linux 3.2 has not"
		if errno != unix.ENOSYS {
			name += ", but getrandom" // without it nothing else would be tried
		}
		for nr := uintptr(unix.SYS_KCMP); nr <= unix.SYS_RSEQ_SLICE_YIELD; nr++ {
			if nr != unix.SYS_GETRANDOM || errno == unix.ENOSYS {
				all = append(all, nr)
			}
		}
		list = append(list, &fault{kind: kind, name: name, enter: entry{Denied: all, Errno: errno}, isSampled: errno == unix.ENOSYS})
	}
	return list
}

// standardFiles are faults of standard files: closed, full, or without a reader.
func standardFiles() []*fault {
	const kind = "standard input, output and error"
	return []*fault{
		{kind: kind, name: "input is closed", enter: entry{Closed: []int{0}}},
		{kind: kind, name: "output is closed", enter: entry{Closed: []int{1}}, hasNoReader: true, isSampled: true},
		{kind: kind, name: "error is closed", enter: entry{Closed: []int{2}}, hasNoMessages: true},
		{kind: kind, name: "all are closed", enter: entry{Closed: []int{0, 1, 2}}, hasNoReader: true, hasNoMessages: true},
		{kind: kind, name: "output is a full device", redirect: toDevice(true, false), isSampled: true},
		{kind: kind, name: "error is a full device", redirect: toDevice(false, true), hasNoMessages: true},
		{kind: kind, name: "both are full devices", redirect: toDevice(true, true), hasNoMessages: true},
		{kind: kind, name: "nobody reads the output", redirect: toNobody(true, false), ends: ends(syscall.SIGPIPE), isSampled: true},
		{kind: kind, name: "nobody reads the errors", redirect: toNobody(false, true), ends: ends(syscall.SIGPIPE), hasNoMessages: true},
		{kind: kind, name: "nobody reads either", redirect: toNobody(true, true), ends: ends(syscall.SIGPIPE), hasNoMessages: true},
	}
}

func toDevice(output, errors bool) func(*exec.Cmd) (func(), error) {
	return func(cmd *exec.Cmd) (func(), error) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		redirect(cmd, full, output, errors)
		return func() { _ = full.Close() }, nil
	}
}

func toNobody(output, errors bool) func(*exec.Cmd) (func(), error) {
	return func(cmd *exec.Cmd) (func(), error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		_ = r.Close()
		redirect(cmd, w, output, errors)
		return func() { _ = w.Close() }, nil
	}
}

func redirect(cmd *exec.Cmd, to *os.File, output, errors bool) {
	if output {
		cmd.Stdout = to
	}
	if errors {
		cmd.Stderr = to
	}
}

// signals are those that end a command at a moment, as a time limit does.
func signals(random func(int64) int64) (list []*fault) {
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGXCPU, unix.SIGKILL} {
		for i := range 8 {
			list = append(list, &fault{
				kind: "a time limit", name: fmt.Sprintf("%v after %d ms or so", s, 8*i), ends: ends(s), isSampled: s == unix.SIGTERM && i == 3,
				during: func(_ *bench, pid int) {
					time.Sleep(time.Duration(8*i)*time.Millisecond + time.Duration(random(8e6)))
					_ = syscall.Kill(pid, s)
				},
			})
		}
	}
	return list
}

// memoryGroup is a control group with so much memory, where those can be made. The kernel kills who needs
// more.
func memoryGroup(bytes int) *fault {
	f := &fault{kind: "memory of a control group", name: fmt.Sprintf("%d MiB", bytes>>20), ends: ends(syscall.SIGKILL), starves: true}
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("faults-%d", os.Getpid()))
	f.enter.Group = group
	f.prepare = func(*bench) (func() error, error) {
		if err := os.MkdirAll(group, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), fmt.Append(nil, bytes), 0); err != nil {
			return nil, err
		}
		return func() error { return os.Remove(group) }, nil
	}
	return f
}
