// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

// knowsPeers says that checkPeer checks.
const knowsPeers = false

// checkPeer checks nothing where the system does not tell who is at the other
// end; the private directory and TLS remain.
func checkPeer(string, int) error { return nil }
