// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"
)

// servers is a pool of servers that clients load, one of which has a deadlock.
func servers(w *work) (*answer, error) {
	program, err := w.build("server.cpp", "g++", "-O1", "-g", "-pthread")
	if err != nil {
		return nil, err
	}
	count := w.size(20, 200)
	dead := w.choose(count)
	for i := range count {
		if _, err := w.start(program, w.dir, strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	pids, err := w.await("ready", count)
	if err != nil {
		return nil, err
	}
	l := &load{dir: w.dir, stop: make(chan struct{})}
	defer close(l.stop)
	for i := range count {
		if err := l.connect(i); err != nil {
			return nil, err
		}
	}
	if err := l.deadlock(dead); err != nil {
		return nil, err
	}
	time.Sleep(settle)
	a, err := w.compareProcesses(pids, planted{label: "server", values: strconv.Itoa(dead), fact: "deadlock", here: "transfer"},
		"--label", `server=server \S+ (\d+)`)
	if err != nil {
		return a, err
	}
	for i := range count {
		if err := l.answers(i); (err == nil) == (i == dead) {
			return a, fmt.Errorf("after it was collected, server %d of which %d has a deadlock: %w", i, dead, err)
		}
	}
	return a, nil
}

// load are the clients of servers.
type load struct {
	dir  string
	stop chan struct{}
}

// pause is the time of a client between an answer and the next request.
const pause = 50 * time.Millisecond

func (l *load) dial(server int) (net.Conn, error) {
	return net.Dial("unix", filepath.Join(l.dir, strconv.Itoa(server)+".socket"))
}

// connect has a client send requests to a server, one after the other.
func (l *load) connect(server int) error {
	c, err := l.dial(server)
	if err != nil {
		return err
	}
	go func() {
		<-l.stop
		_ = c.Close() // this ends the client
	}()
	go func() {
		for answer := []byte{0}; ; time.Sleep(pause) {
			if _, err := c.Write([]byte("t")); err != nil {
				return
			}
			if _, err := c.Read(answer); err != nil {
				return
			}
		}
	}()
	return nil
}

// deadlock has two threads of a server wait for each other.
func (l *load) deadlock(server int) error {
	c, err := l.dial(server)
	if err != nil {
		return err
	}
	go func() {
		<-l.stop
		_ = c.Close()
	}()
	_, err = c.Write([]byte("d"))
	return err
}

// answers requests one answer of a server.
func (l *load) answers(server int) error {
	c, err := l.dial(server)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("t")); err != nil {
		return err
	}
	_, err = c.Read([]byte{0})
	return err
}
