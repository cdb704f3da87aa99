// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
)

// link is how a worker reaches the server. While it is cut, nothing arrives on either
// side, and no side is told; sent data arrives when it is whole again, as in TCP.
type link struct {
	listener net.Listener
	to       string
	late     atomic.Int64 // results that came late, and were refused

	mu    sync.Mutex
	whole *sync.Cond
	isCut bool
	isDue chan struct{} // closed when it is cut, which is when a result comes; nil: it is not to be
}

func newLink(to string) (*link, error) {
	l := &link{to: to}
	l.whole = sync.NewCond(&l.mu)
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.listener.Accept()
			if err != nil {
				return
			}
			go l.carry(c)
		}
	}()
	return l, nil
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) cut(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = is
	l.whole.Broadcast()
}

// cutWithResult has the link be cut when the worker sends the next result, which is late then;
// and cut is closed.
func (l *link) cutWithResult() (cut <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isDue = make(chan struct{})
	return l.isDue
}

// said is told what the worker says, before it is carried.
func (l *link) said(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDue != nil && bytes.Contains(text, []byte("PUB unwindd.result.v1.")) {
		close(l.isDue)
		l.isDue, l.isCut = nil, true
	}
}

// answered is told what the server says, before it is carried.
func (l *link) answered(text []byte) {
	l.late.Add(int64(bytes.Count(text, []byte("maximum messages per subject exceeded"))))
}

// wait waits until the link is whole.
func (l *link) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.isCut {
		l.whole.Wait()
	}
}

func (l *link) close() {
	l.cut(false)
	_ = l.listener.Close()
}

// carry carries a connection.
func (l *link) carry(c net.Conn) {
	defer c.Close()
	l.wait()
	s, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer s.Close()
	var both sync.WaitGroup
	both.Go(func() { l.copy(s, c, l.said) })
	both.Go(func() { l.copy(c, s, l.answered) })
	both.Wait()
}

// copy carries one direction.
func (l *link) copy(to, from net.Conn, hear func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		hear(buf[:n])
		l.wait()
		_, e := to.Write(buf[:n])
		if e != nil || err != nil {
			_, _ = to.Close(), from.Close() // the other direction ends, too
			return
		}
	}
}
