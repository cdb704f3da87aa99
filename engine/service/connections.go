// SPDX-License-Identifier: Apache-2.0

package service

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// connections are all open connections of a server. One address, or user of a Unix socket, has
// no more than are left for others. Where there are too many, the one that waits for a request
// for the longest time is closed.
type connections struct {
	budget *budget // by address
	watch  func(event string)

	mu      sync.Mutex
	waiting map[string]*list.List // of *callerConn by address, those that wait for the longest time first
}

// Events of connections.
const (
	connectionTaken   = "taken"
	connectionEvicted = "evicted"
	connectionRefused = "refused"
)

func newConnections(most int, watch func(event string)) *connections {
	return &connections{budget: newBudget(int64(most)), watch: watch, waiting: map[string]*list.List{}}
}

// callerConn is an open connection.
type callerConn struct {
	net.Conn
	all     *connections
	address string
	place   *list.Element // among those that wait for a request; nil: it has one
	isGone  bool          // it is closed, and never waits again
	closed  sync.Once
}

// Close implements net.Conn.
func (c *callerConn) Close() error {
	err := c.Conn.Close()
	c.closed.Do(func() {
		c.all.gone(c)
		c.all.budget.of(c.address).give(1)
	})
	return err
}

// admitted is a listener whose connections are bounded.
type admitted struct {
	net.Listener
	all *connections
}

// Accept implements net.Listener.
func (l admitted) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if a := l.all.admit(c); a != nil {
			return a, nil
		}
		l.all.watch(connectionRefused)
		_ = c.Close()
	}
}

// admit admits a connection; nil: there is no place.
func (l *connections) admit(c net.Conn) *callerConn {
	a := &callerConn{Conn: c, all: l, address: addressOf(c)}
	for {
		if _, err := l.budget.of(a.address).try(1); err == nil {
			l.wait(a)
			l.watch(connectionTaken)
			return a
		}
		other := l.longest(a.address)
		if other == nil {
			return nil
		}
		l.watch(connectionEvicted)
		_ = other.Close()
	}
}

// longest returns the connection that waits for a request for the longest time, of the address
// that has the most, but no fewer than the address of a new one; nil: there is none.
func (l *connections) longest(address string) *callerConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.budget.amountOf(address)
	found := l.waiting[address]
	for other, line := range l.waiting {
		if n := l.budget.amountOf(other); n > most {
			found, most = line, n
		}
	}
	if found == nil {
		return nil
	}
	return found.Front().Value.(*callerConn) //nolint:forcetypeassert // it has no others
}

// wait records that a connection waits for a request. One that was given up as its request came
// answers that, and says then that it waits again.
func (l *connections) wait(c *callerConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil || c.isGone {
		return
	}
	if l.waiting[c.address] == nil {
		l.waiting[c.address] = list.New()
	}
	c.place = l.waiting[c.address].PushBack(c)
}

// busy records that a connection does not wait any more.
func (l *connections) busy(c *callerConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(c)
}

// gone records that a connection is closed.
func (l *connections) gone(c *callerConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(c)
	c.isGone = true
}

// leave takes a connection out of those that wait.
func (l *connections) leave(c *callerConn) {
	if c.place == nil {
		return
	}
	line := l.waiting[c.address]
	line.Remove(c.place)
	if c.place = nil; line.Len() == 0 {
		delete(l.waiting, c.address)
	}
}

// changed follows the state of a connection.
func (l *connections) changed(c net.Conn, state http.ConnState) {
	own := connectionOf(c)
	switch {
	case own == nil:
	case state == http.StateIdle:
		l.wait(own)
	case state == http.StateActive:
		l.busy(own)
	}
}

// connectionOf returns the connection beneath TLS; nil: it is none of a server's listener.
func connectionOf(c net.Conn) *callerConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	own, _ := c.(*callerConn)
	return own
}

// addressOf names who is at the other end of a connection.
func addressOf(c net.Conn) string {
	if user, ok := peerUser(c); ok {
		return user
	}
	return addressName(c.RemoteAddr().String())
}

// addressName names who is at an address: a network of IPv6 is one caller, and so is this machine.
func addressName(text string) string {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return text
	}
	switch ip := at.Addr().Unmap().WithZone(""); {
	case ip.IsLoopback():
		return "127.0.0.1"
	case ip.Is6():
		return netip.PrefixFrom(ip, networkBits).Masked().String()
	default:
		return ip.String()
	}
}

// networkBits is the length of the part of an address of IPv6 that names a network, in which a
// machine takes any address.
const networkBits = 64
