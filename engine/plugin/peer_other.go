//go:build !linux

package plugin

// checkPeer checks nothing where the system does not tell who is at the other
// end; the private directory and TLS remain.
func checkPeer(string, int) error { return nil }
