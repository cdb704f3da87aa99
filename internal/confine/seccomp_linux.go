// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter lists denied calls. A list of allowed calls would be stricter and would
// break runtimes of vendors' plugins, which are not written yet; so the dangerous groups
// are denied, with the reason of each, and system calls newer than the table do not exist
// (ENOSYS), as for a program on an older kernel. Landlock restricts the reading of files.

// newestSyscall is the last number that the table knows. x32 calls carry a high
// bit, so they lie above it.
const newestSyscall = unix.SYS_RSEQ_SLICE_YIELD

// denial is a group of system calls that plugins do not get.
type denial struct {
	why   string
	errno syscall.Errno // ENOSYS where runtimes fall back on something else
	calls []uint32
}

// deniedCalls are denied with any arguments. Calls that only some machines have are in
// deniedHere.
var deniedCalls = []denial{
	{"reads, drives or signals other processes", unix.EPERM, []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_KCMP, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
		unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO}},
	{"reaches daemons that act for the user: D-Bus, containers, the display; the engine connects, the plugin accepts", unix.EPERM, []uint32{
		unix.SYS_CONNECT}},
	{"makes files that Landlock does not see, and that can be executed", unix.ENOSYS, []uint32{
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET}},
	{"makes processes in ways whose flags a filter cannot read; clone is left for threads", unix.ENOSYS, []uint32{
		unix.SYS_CLONE3}},
	{"changes files in ways that Landlock does not restrict", unix.EPERM, []uint32{
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_TRUNCATE,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR}},
	{"watches what the user does with files", unix.EPERM, []uint32{
		unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_INOTIFY_ADD_WATCH}},
	{"opens files past the checks of their paths", unix.EPERM, []uint32{
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT}},
	{"memory that RLIMIT_DATA does not count", unix.ENOSYS, []uint32{unix.SYS_MAP_SHADOW_STACK}},
	{"shares memory and queues with the user's other programs", unix.ENOSYS, []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SHMDT, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK}},
	{"changes mounts, roots and namespaces", unix.EPERM, []uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
		unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT,
		unix.SYS_LISTMOUNT, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_LISTNS}},
	{"large parts of the kernel that a plugin has no use for, where its holes have been", unix.ENOSYS, []uint32{
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}},
	{"the user's keys", unix.EPERM, []uint32{
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL}},
	{"the whole machine", unix.EPERM, []uint32{
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_LSM_SET_SELF_ATTR,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME}},
}

// argument is a test of the low 32 bits of one argument of a system call.
type argument struct {
	index     uint32
	mask      uint32
	values    []uint32 // it passes when the masked argument is one of these
	isNegated bool     // or, if isNegated, none of these
}

const wholeWord = ^uint32(0)

// Numbers of the kernel that package unix does not have.
const (
	ioprioProcess = 1      // IOPRIO_WHO_PROCESS
	setOwner      = 0x8901 // FIOSETOWN
)

// condition allows a system call when all its arguments pass.
type condition struct {
	why       string
	errno     syscall.Errno
	call      uint32
	arguments []argument
}

// ownSchedule is the reason that calls of the scheduler have conditions.
const ownSchedule = "its own processors, policy and priorities only"

// conditions returns the conditions of system calls that process pid may make with some
// arguments only.
func conditions(pid uint32) []condition {
	// A datagram has its address with it, and needs no connect.
	sockets := []argument{
		{0, wholeWord, []uint32{unix.AF_UNIX}, false},
		{1, 0xf, []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}, false},
	}
	self := []argument{{0, wholeWord, []uint32{pid}, false}}
	selfOrZero := []argument{{0, wholeWord, []uint32{0, pid}, false}}
	// The first argument is the kind of the second one, a number: of a process, not of a
	// group or a user.
	ofProcess := func(kind uint32) []argument {
		return []argument{{0, wholeWord, []uint32{kind}, false}, {1, wholeWord, []uint32{0, pid}, false}}
	}
	return []condition{
		{"no network, no kernel protocols", unix.EACCES, unix.SYS_SOCKET, sockets},
		{"no network, no kernel protocols", unix.EACCES, unix.SYS_SOCKETPAIR, sockets},
		{"threads, no processes", unix.EPERM, unix.SYS_CLONE, []argument{{0, unix.CLONE_THREAD, []uint32{unix.CLONE_THREAD}, false}}},
		{"signals to itself only", unix.EPERM, unix.SYS_KILL, self},
		{"signals to itself only", unix.EPERM, unix.SYS_TGKILL, self},
		{"signals to itself only: whom a file that can be read tells so", unix.EPERM, unix.SYS_FCNTL,
			[]argument{{1, wholeWord, []uint32{unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG}, true}}},
		{"signals to itself only, and no typing into terminals", unix.EPERM, unix.SYS_IOCTL,
			[]argument{{1, wholeWord, []uint32{setOwner, unix.SIOCSPGRP, unix.TIOCSTI, unix.TIOCLINUX}, true}}},
		{"its own limits only", unix.EPERM, unix.SYS_PRLIMIT64, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SCHED_SETAFFINITY, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SCHED_SETATTR, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SCHED_SETSCHEDULER, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SCHED_SETPARAM, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SETPRIORITY, ofProcess(unix.PRIO_PROCESS)},
		{ownSchedule, unix.EPERM, unix.SYS_IOPRIO_SET, ofProcess(ioprioProcess)},
		{"the addresses of its own locks only", unix.EPERM, unix.SYS_GET_ROBUST_LIST, selfOrZero},
		{"memory that RLIMIT_DATA counts", unix.ENOMEM, unix.SYS_MMAP, []argument{
			{3, unix.MAP_SHARED | unix.MAP_ANONYMOUS, []uint32{unix.MAP_SHARED | unix.MAP_ANONYMOUS}, true},
			{3, unix.MAP_GROWSDOWN, []uint32{unix.MAP_GROWSDOWN}, true},
		}},
		{"it dies with its parent", unix.EPERM, unix.SYS_PRCTL, []argument{{0, wholeWord, []uint32{unix.PR_SET_PDEATHSIG}, true}}},
		{"asking is enough; others weaken the layout of memory", unix.EPERM, unix.SYS_PERSONALITY, []argument{{0, wholeWord, []uint32{wholeWord}, false}}},
	}
}

// Offsets in struct seccomp_data. Both machines with a filter are little-endian.
const (
	dataNumber    = 0
	dataArch      = 4
	dataArguments = 16
)

// seccompProgram is the filter of process pid; nil on machines without one.
func seccompProgram(pid uint32) []bpf.Instruction {
	if auditArch == 0 {
		return nil
	}
	deny := func(e syscall.Errno) bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)} }
	program := []bpf.Instruction{
		// The calls of another architecture have other numbers.
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: newestSyscall, SkipTrue: 1},
		deny(unix.ENOSYS),
	}
	for _, list := range [][]denial{deniedCalls, deniedHere} {
		for _, d := range list {
			for _, nr := range d.calls {
				program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 1}, deny(d.errno))
			}
		}
	}
	for _, c := range conditions(pid) {
		var body []bpf.Instruction
		for _, a := range c.arguments {
			body = append(body, bpf.LoadAbsolute{Off: dataArguments + 8*a.index, Size: 4})
			if a.mask != wholeWord {
				body = append(body, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: a.mask})
			}
			// Each value jumps over the rest of the values and one return.
			for i, v := range a.values {
				rest := uint8(len(a.values) - i - 1)
				if a.isNegated {
					body = append(body, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, deny(c.errno))
				} else {
					body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: rest + 1})
				}
			}
			if !a.isNegated {
				body = append(body, deny(c.errno))
			}
		}
		body = append(body, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.call, SkipTrue: uint8(len(body))})
		program = append(program, body...)
	}
	return append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// seccompFilter is the assembled filter; nil on machines without one.
func seccompFilter(pid uint32) []unix.SockFilter {
	raw, err := bpf.Assemble(seccompProgram(pid))
	if err != nil || len(raw) == 0 {
		return nil
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter
}

// hasSeccomp asks the kernel whether it can kill a process by a filter,
// which is newer than filters.
func hasSeccomp() bool {
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// usableFilter returns the filter of this process; nil, and the reason, where there is none.
func usableFilter() (filter []unix.SockFilter, missing string) {
	filter = seccompFilter(uint32(os.Getpid()))
	switch {
	case filter == nil:
		return nil, "seccomp: no filter is written for " + runtime.GOARCH
	case !hasSeccomp():
		return nil, "seccomp: this kernel has no filters"
	}
	return filter, ""
}

// applySeccomp applies a filter to this thread, with SECCOMP_FILTER_FLAG_TSYNC among
// flags on all threads of the process. It needs no_new_privs.
func applySeccomp(filter []unix.SockFilter, flags uintptr) error {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return fmt.Errorf("set the filter: %w", errno)
	case thread != 0:
		return fmt.Errorf("set the filter: thread %d has another one", thread)
	}
	return nil
}
