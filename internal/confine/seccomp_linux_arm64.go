// SPDX-License-Identifier: Apache-2.0

package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	fstatat   = unix.SYS_FSTATAT
)

// computingHere are the calls that AArch64 alone has.
var computingHere = []group{{"older forms of calls for files", []uint32{unix.SYS_RENAMEAT}}}

// Nothing more has other numbers here.
var startingHere, refusalsHere []group
