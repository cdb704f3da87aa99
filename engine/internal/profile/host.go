// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"os"

	"golang.org/x/sys/unix"
)

// This file describes the machine that a recording is read on: often it was recorded there.

// hostMachine returns the output of uname -m.
func hostMachine() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}

// osRelease returns the output of uname -r.
func osRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// ownFile reports whether a file exists and belongs to this user or to root.
func ownFile(name string) bool {
	var st unix.Stat_t
	return unix.Stat(name, &st) == nil && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}
