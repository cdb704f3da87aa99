// SPDX-License-Identifier: Apache-2.0

package profile

// waitCalls are the system calls in which threads wait, by architecture and number.
var waitCalls = map[string]map[uint64]string{
	"x86_64": {
		0: "read", 1: "write", 2: "open", 7: "poll", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv",
		20: "writev", 23: "select", 26: "msync", 34: "pause", 35: "nanosleep", 40: "sendfile", 42: "connect", 43: "accept",
		44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 58: "vfork", 59: "execve", 61: "wait4", 65: "semop",
		69: "msgsnd", 70: "msgrcv", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 128: "rt_sigtimedwait", 130: "rt_sigsuspend",
		162: "sync", 202: "futex", 208: "io_getevents", 220: "semtimedop", 230: "clock_nanosleep", 232: "epoll_wait", 242: "mq_timedsend", 243: "mq_timedreceive",
		247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll", 275: "splice", 277: "sync_file_range", 281: "epoll_pwait", 285: "fallocate",
		288: "accept4", 295: "preadv", 296: "pwritev", 299: "recvmmsg", 306: "syncfs", 307: "sendmmsg", 326: "copy_file_range", 426: "io_uring_enter",
		441: "epoll_pwait2", 449: "futex_waitv", 455: "futex_wait",
	},
	"aarch64": {
		4: "io_getevents", 22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 47: "fallocate", 56: "openat", 63: "read",
		64: "write", 65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 69: "preadv", 70: "pwritev", 71: "sendfile",
		72: "pselect6", 73: "ppoll", 76: "splice", 81: "sync", 82: "fsync", 83: "fdatasync", 84: "sync_file_range", 95: "waitid",
		98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 133: "rt_sigsuspend", 137: "rt_sigtimedwait", 182: "mq_timedsend", 183: "mq_timedreceive", 188: "msgrcv",
		189: "msgsnd", 192: "semtimedop", 193: "semop", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg",
		212: "recvmsg", 221: "execve", 227: "msync", 242: "accept4", 243: "recvmmsg", 260: "wait4", 267: "syncfs", 269: "sendmmsg",
		285: "copy_file_range", 426: "io_uring_enter", 441: "epoll_pwait2", 449: "futex_waitv", 455: "futex_wait",
	},
}
