// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"os"

	"golang.org/x/sys/unix"
)

// This file has what a recording has in common with the machine that it is read
// on: more often than not it was made there.

// hostMachine is what uname -m says.
func hostMachine() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}

// osRelease is what uname -r says.
func osRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// ownFile says whether a file is there and of this user or of root.
func ownFile(name string) bool {
	var st unix.Stat_t
	return unix.Stat(name, &st) == nil && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}
