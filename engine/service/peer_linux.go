// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUser returns the user at the other end of a Unix socket.
func peerUser(c net.Conn) (user string, ok bool) {
	u, isUnix := c.(*net.UnixConn)
	if !isUnix {
		return "", false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return "", false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil { //nolint:gosec // a descriptor
			user, ok = userName(int(cred.Uid)), true
		}
	})
	return user, ok && err == nil
}
