// SPDX-License-Identifier: Apache-2.0

package confine

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// deniedHere are the denied calls that are leftovers on AArch64.
var deniedHere = []denial{
	{"leftovers", unix.ENOSYS, []uint32{unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL}},
}
