// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"time"
)

// slowLink listens for callers, and sends what they say to the server a piece at a time, each
// after a pause. What the server says comes at once.
func (a *attacker) slowLink(ctx context.Context, each time.Duration) (address string, end func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "localhost:0")
	if err != nil {
		return "", nil, err
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go a.relay(ctx, near, each)
		}
	}()
	return l.Addr().String(), func() { _ = l.Close() }, nil
}

func (a *attacker) relay(ctx context.Context, near net.Conn, each time.Duration) {
	defer near.Close()
	far, err := a.dial(ctx)
	if err != nil {
		return
	}
	defer far.Close()
	go func() {
		copyPieces(near, far, func() {})
		_ = near.Close()
	}()
	first := true
	copyPieces(far, near, func() {
		if !first { // the head is as quick as it can be
			pause(ctx, each)
		}
		first = false
	})
}

// copyPieces copies what comes, and does something before each piece.
func copyPieces(to, from net.Conn, before func()) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		before()
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// command runs the command, as a caller of the server at an address.
func (a *attacker) command(ctx context.Context, address string, args ...string) error {
	cmd := exec.CommandContext(ctx, a.unwindd, append([]string{"--server", address}, args...)...)
	cmd.Env = append(os.Environ(), "UNWINDD_TOKEN="+a.token())
	return cmd.Run()
}
