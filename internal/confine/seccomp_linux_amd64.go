// SPDX-License-Identifier: Apache-2.0

package confine

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// deniedHere are the denied calls of x86-64 that newer machines do not have.
var deniedHere = []denial{
	{"processes", unix.EPERM, []uint32{unix.SYS_FORK, unix.SYS_VFORK}},
	{"changes files in ways that Landlock does not restrict", unix.EPERM, []uint32{
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}},
	{"ports and segments of the machine", unix.EPERM, []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}},
	{"leftovers", unix.ENOSYS, []uint32{unix.SYS_USELIB, unix.SYS_CREATE_MODULE, unix.SYS_QUERY_MODULE, unix.SYS_GET_KERNEL_SYMS,
		unix.SYS__SYSCTL, unix.SYS_SYSFS, unix.SYS_USTAT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL}},
}
