// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// A filter lists the system calls that are allowed: those that Go, C++, Python, Java, Node.js and Rust with their libraries
// make, or may as their next versions do, to compute, to use threads and memory, to serve a Unix socket, and to read files,
// which Landlock bounds. All others do not exist (ENOSYS), as for a program on an older kernel, so that runtimes fall back on
// something else; a few are refused instead (EPERM), where programs expect that and have no other way.

// group is a group of system calls that are allowed with any arguments.
type group struct {
	why   string
	calls []uint32
}

// computing are the calls of every program, on all machines. Those that only some machines have are in computingHere.
var computing = []group{
	{"reads and writes what is open", []uint32{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_PREADV, unix.SYS_PWRITEV,
		unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2,
		unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_FADVISE64, unix.SYS_READAHEAD, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE, unix.SYS_FLOCK}},
	{"opens files, within Landlock", []uint32{
		unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_FSTAT, fstatat, unix.SYS_STATX, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
		unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_UMASK,
		unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR}},
	{"makes and removes entries of its own folder, within Landlock", []uint32{
		unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_MKNODAT}},
	{"memory that the limits count; the rest of mmap has a condition", []uint32{
		unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_MLOCK, unix.SYS_MLOCK2,
		unix.SYS_MUNLOCK, unix.SYS_MEMBARRIER, unix.SYS_PKEY_ALLOC, unix.SYS_PKEY_FREE, unix.SYS_PKEY_MPROTECT, unix.SYS_MSEAL,
		unix.SYS_GET_MEMPOLICY, unix.SYS_SET_MEMPOLICY, unix.SYS_MBIND}},
	{"threads, their locks and their ends", []uint32{
		unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, unix.SYS_FUTEX_WAKE, unix.SYS_FUTEX_WAIT, unix.SYS_FUTEX_REQUEUE, unix.SYS_SET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS,
		unix.SYS_RSEQ, unix.SYS_RSEQ_SLICE_YIELD, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_WAIT4, unix.SYS_WAITID,
		unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_GETATTR, unix.SYS_SCHED_GET_PRIORITY_MAX,
		unix.SYS_SCHED_GET_PRIORITY_MIN, unix.SYS_SCHED_RR_GET_INTERVAL, unix.SYS_GETPRIORITY, unix.SYS_IOPRIO_GET, unix.SYS_GETCPU}},
	{"signals of its own", []uint32{
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT,
		unix.SYS_SIGALTSTACK, unix.SYS_SIGNALFD4, unix.SYS_RESTART_SYSCALL}},
	{"the time, and waiting", []uint32{
		unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_TIMES, unix.SYS_GETRUSAGE,
		unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_GETOVERRUN, unix.SYS_TIMER_DELETE, unix.SYS_GETITIMER, unix.SYS_SETITIMER,
		unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EVENTFD2, unix.SYS_INOTIFY_INIT1}},
	{"its socket; sockets of other kinds have conditions", []uint32{
		unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_SHUTDOWN,
		unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG}},
	{"who and where it is", []uint32{
		unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRANDOM, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID,
		unix.SYS_GETGROUPS, unix.SYS_GETPGID, unix.SYS_GETSID, unix.SYS_CAPGET, unix.SYS_GETRLIMIT}},
	{"confines itself more; a limit only falls", []uint32{
		unix.SYS_SECCOMP, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF, unix.SYS_SETRLIMIT, unix.SYS_CAPSET}},
	{"becomes the program that it is confined for; Landlock has the files that may be executed", []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT}},
}

// starting are the calls of a worker besides: it starts plugins, which have the filter of plugins as well, connects to them
// and ends them. Landlock bounds whom it signals.
var starting = []group{
	{"starts processes, with descriptors, a session and a name of their own", []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE, unix.SYS_SETSID, unix.SYS_SETPGID, unix.SYS_PRCTL}},
	{"ends plugins; these have the same filter, with process IDs that are not known yet", []uint32{
		unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETATTR,
		unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_GET_ROBUST_LIST}},
	{"connects to plugins", []uint32{unix.SYS_CONNECT}},
}

// refusals are calls that are refused, and of which programs know that they may be.
var refusals = []group{
	{"reads, drives or signals other processes", []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_KCMP, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
		unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO}},
	{"reaches daemons that act for the user: D-Bus, containers, the display; the engine connects, the plugin accepts", []uint32{unix.SYS_CONNECT}},
	{"changes files in ways that Landlock does not restrict", []uint32{
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_TRUNCATE,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR}},
	{"watches what the user does with files", []uint32{unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_INOTIFY_ADD_WATCH}},
	{"opens files past the checks of their paths", []uint32{unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT}},
	{"changes mounts, roots and namespaces", []uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
		unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT,
		unix.SYS_LISTMOUNT, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_LISTNS}},
	{"the user's keys", []uint32{unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL}},
	{"other users, sessions and groups", []uint32{
		unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_SETFSUID, unix.SYS_SETFSGID,
		unix.SYS_SETGROUPS, unix.SYS_SETSID, unix.SYS_SETPGID}},
	{"the whole machine", []uint32{
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

// memoryAndSockets are the conditions of plugins and of workers.
var memoryAndSockets = []condition{
	{"no network, no kernel protocols", unix.EACCES, unix.SYS_SOCKET, ownSocket},
	{"no network, no kernel protocols", unix.EACCES, unix.SYS_SOCKETPAIR, ownSocket},
	{"signals to itself only: whom a file that can be read tells so", unix.EPERM, unix.SYS_FCNTL,
		[]argument{{1, wholeWord, []uint32{unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG}, true}}},
	{"signals to itself only, and no typing into terminals", unix.EPERM, unix.SYS_IOCTL,
		[]argument{{1, wholeWord, []uint32{setOwner, unix.SIOCSPGRP, unix.TIOCSTI, unix.TIOCLINUX}, true}}},
	{"memory that RLIMIT_DATA counts", unix.ENOMEM, unix.SYS_MMAP, []argument{
		{3, unix.MAP_SHARED | unix.MAP_ANONYMOUS, []uint32{unix.MAP_SHARED | unix.MAP_ANONYMOUS}, true},
		{3, unix.MAP_GROWSDOWN, []uint32{unix.MAP_GROWSDOWN}, true},
	}},
	{"asking is enough; others weaken the layout of memory", unix.EPERM, unix.SYS_PERSONALITY, []argument{{0, wholeWord, []uint32{wholeWord}, false}}},
}

// ownSocket are the arguments of a socket. A datagram has its address with it, and needs no connect.
var ownSocket = []argument{
	{0, wholeWord, []uint32{unix.AF_UNIX}, false},
	{1, 0xf, []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}, false},
}

// ownSchedule is the reason that calls of the scheduler have conditions.
const ownSchedule = "its own processors, policy and priorities only"

// conditionsOf returns the conditions of the system calls that the plugin with a process ID may make with some
// arguments only, beside memoryAndSockets.
func conditionsOf(pid uint32) []condition {
	self := []argument{{0, wholeWord, []uint32{pid}, false}}
	selfOrZero := []argument{{0, wholeWord, []uint32{0, pid}, false}}
	// The first argument is the kind of the second one, a number: of a process, not of a
	// group or a user.
	ofProcess := func(kind uint32) []argument {
		return []argument{{0, wholeWord, []uint32{kind}, false}, {1, wholeWord, []uint32{0, pid}, false}}
	}
	return []condition{
		{"threads, no processes", unix.EPERM, unix.SYS_CLONE, []argument{{0, unix.CLONE_THREAD, []uint32{unix.CLONE_THREAD}, false}}},
		{"signals to itself only", unix.EPERM, unix.SYS_KILL, self},
		{"signals to itself only", unix.EPERM, unix.SYS_TGKILL, self},
		{"its own limits only", unix.EPERM, unix.SYS_PRLIMIT64, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SCHED_SETAFFINITY, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SCHED_SETATTR, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SCHED_SETSCHEDULER, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SCHED_SETPARAM, selfOrZero},
		{ownSchedule, unix.EPERM, unix.SYS_SETPRIORITY, ofProcess(unix.PRIO_PROCESS)},
		{ownSchedule, unix.EPERM, unix.SYS_IOPRIO_SET, ofProcess(ioprioProcess)},
		{"the addresses of its own locks only", unix.EPERM, unix.SYS_GET_ROBUST_LIST, selfOrZero},
		{"it dies with its parent", unix.EPERM, unix.SYS_PRCTL, []argument{{0, wholeWord, []uint32{unix.PR_SET_PDEATHSIG}, true}}},
	}
}
