// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package service

import "net"

// peerUser is not implemented on this system.
func peerUser(net.Conn) (user string, ok bool) { return "", false }
