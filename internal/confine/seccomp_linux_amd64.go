// SPDX-License-Identifier: Apache-2.0

package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	fstatat   = unix.SYS_NEWFSTATAT
)

// computingHere are the calls of x86-64 that newer machines do not have.
var computingHere = []group{
	{"older forms of calls for files", []uint32{
		unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_GETDENTS, unix.SYS_DUP2, unix.SYS_PIPE,
		unix.SYS_UNLINK, unix.SYS_RMDIR, unix.SYS_MKDIR, unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_MKNOD}},
	{"older forms of waiting", []uint32{
		unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD, unix.SYS_SIGNALFD, unix.SYS_INOTIFY_INIT, unix.SYS_PAUSE, unix.SYS_ALARM, unix.SYS_TIME}},
	{"threads and their processes", []uint32{unix.SYS_ARCH_PRCTL, unix.SYS_GETPGRP}},
}

// startingHere are the calls of x86-64 with which a worker starts processes.
var startingHere = []group{{"starts processes", []uint32{unix.SYS_VFORK}}}

// refusalsHere are the refused calls of x86-64 that newer machines do not have.
var refusalsHere = []group{
	{"processes", []uint32{unix.SYS_FORK, unix.SYS_VFORK}},
	{"changes files in ways that Landlock does not restrict", []uint32{
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}},
	{"ports and segments of the machine", []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}},
}
