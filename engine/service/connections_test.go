// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net"
	"net/http"
	"slices"
	"testing"
)

// from is a connection from an address.
type from struct {
	net.Conn
	address string
	closed  *[]string
}

func (c from) RemoteAddr() net.Addr { return from{address: c.address} }
func (c from) Network() string      { return "tcp" }
func (c from) String() string       { return c.address }

func (c from) Close() error {
	*c.closed = append(*c.closed, c.address)
	return nil
}

// TestAConnectionThatWasGivenUpDoesNotWait has a request come to a connection as that is given up:
// net/http answers it, and tells then that the connection waits.
func TestAConnectionThatWasGivenUpDoesNotWait(t *testing.T) {
	var closed []string
	events := 0
	l := newConnections(4, func(string) {
		if events++; events > 100 {
			t.Fatal("a new connection waits for one that is closed already")
		}
	})
	open := func(address string) *callerConn { return l.admit(from{address: address, closed: &closed}) }
	first, second := open("192.0.2.1:1"), open("192.0.2.1:2")
	if open("192.0.2.1:3") == nil {
		t.Fatal("a new connection is refused, though others wait")
	}
	l.changed(first, http.StateActive)
	l.changed(first, http.StateIdle)
	l.changed(second, http.StateActive)
	for _, address := range []string{"192.0.2.1:4", "192.0.2.1:5"} {
		if open(address) == nil {
			t.Errorf("%s is refused, though one waits", address)
		}
	}
	if open("198.51.100.1:1") == nil {
		t.Error("another address is refused")
	}
	if want := []string{"192.0.2.1:1", "192.0.2.1:3", "192.0.2.1:4"}; !slices.Equal(closed, want) {
		t.Errorf("connections %q were given up, expected %q", closed, want)
	}
	if n := l.budget.inUse(); n != 3 {
		t.Errorf("%d connections are counted, expected 3", n)
	}
}
