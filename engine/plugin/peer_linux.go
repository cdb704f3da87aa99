// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// knowsPeers means that checkPeer checks.
const knowsPeers = true

// checkPeer checks that process pid, of this user, is at the other end of this process's
// connections to a socket. It looks at the connections in use themselves, among this
// process's descriptors, because another connection made for the check would prove
// nothing about them. No connection at all is an error.
func checkPeer(socket string, pid int) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("peer of %s: %w", socket, err)
	}
	connections := 0
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A duplicate stays the same connection even if fd is closed.
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			continue
		}
		connected, err := checkPeerOf(dup, socket, pid)
		unix.Close(dup)
		if err != nil {
			return err
		}
		if connected {
			connections++
		}
	}
	if connections == 0 {
		return fmt.Errorf("peer of %s: there is no connection to it", socket)
	}
	return nil
}

func checkPeerOf(fd int, socket string, pid int) (connected bool, err error) {
	// address is nil for a descriptor that is not a socket, or not connected.
	address, _ := unix.Getpeername(fd)
	if u, ok := address.(*unix.SockaddrUnix); !ok || u.Name != socket {
		return false, nil
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return false, fmt.Errorf("peer of %s: %w", socket, err)
	}
	if int(peer.Pid) != pid || int(peer.Uid) != os.Geteuid() {
		return false, fmt.Errorf("peer of %s is process %d of user %d, expected process %d of user %d",
			socket, peer.Pid, peer.Uid, pid, os.Geteuid())
	}
	return true, nil
}
