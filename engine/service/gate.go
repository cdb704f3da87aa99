// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
)

// headSize is the size of what comes before each message of gRPC: whether it is packed, and
// its length.
const headSize = 5

// messageCost bounds how many bytes of memory a message takes for each of its bytes: a list of
// empty texts takes 16 bytes for each two.
const messageCost = 16

// pace is the rule for how long a call waits for the next message.
type pace int

const (
	eachInTime  pace = iota // each message has the idle time
	bytesInTime             // leastBytes have it, whatever messages they are in
	inOwnTime               // the call has a rule of its own
)

// gate is the body of a call of gRPC, whose reader would take as many bytes into memory as a
// caller sends. It passes on a message when the call wants one, and memory for it is there.
type gate struct {
	body      io.ReadCloser
	memory    share
	idle      time.Duration
	allowance *allowance
	ctx       context.Context
	end       context.CancelFunc
	failed    chan struct{} // closed when err is there

	mu       sync.Mutex
	changed  sync.Cond
	isSingle bool  // its call takes one message
	isStream bool  // its call asks for messages by ask
	requests int   // for messages
	wants    int   // messages; one for a call without a stream
	came     int   // messages that were passed on whole
	isAtHead bool  // the head of the next message is being read
	pace     pace  //
	taken    int64 // memory of the message that the call has
	err      error // why no more comes

	head [headSize]byte
	left int64 // bytes of the current message that are still to come
}

// newGate makes the gate of a request.
func newGate(r *http.Request, c *http.ResponseController, memory share, idle time.Duration) *gate {
	if counting, ok := r.Body.(*countingReader); ok {
		counting.allowance = nil // the gate has its own
	}
	g := &gate{body: r.Body, memory: memory, idle: idle, wants: 1, failed: make(chan struct{})}
	g.changed.L = &g.mu
	g.ctx, g.end = context.WithCancel(r.Context())
	g.allowance = newAllowance(idle, func() { _ = c.SetReadDeadline(longAgo) }) // wakes the reader
	return g
}

// longAgo is a deadline that ends a read or a write at once.
var longAgo = time.Unix(1, 0)

// errShut is the error of a gate whose call has ended.
var errShut = errors.New("the call has ended")

// Read implements io.Reader.
func (g *gate) Read(p []byte) (n int, err error) {
	if len(p) < headSize {
		return 0, io.ErrShortBuffer
	}
	if g.left == 0 {
		if err := g.next(); err != nil {
			return 0, g.why(err)
		}
		n = copy(p, g.head[:])
	}
	// Small frames would have a buffer each.
	more, err := io.ReadFull(countedReader{g.body, g.allowance}, p[n:min(int64(len(p)), int64(n)+g.left)])
	g.left -= int64(more)
	switch {
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case g.left == 0:
		g.arrived()
	}
	return n + more, g.why(err)
}

// countedReader counts its bytes in an allowance.
type countedReader struct {
	io.Reader
	allowance *allowance
}

// Read implements io.Reader.
func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.allowance.count(n)
	return n, err
}

// next reads the head of a message, and waits until the call wants it and has memory for it.
func (g *gate) next() error {
	g.mu.Lock()
	g.isAtHead = true
	g.watch()
	g.mu.Unlock()
	_, err := io.ReadFull(g.body, g.head[:])
	g.mu.Lock()
	g.isAtHead = false
	g.allowance.rest()
	if err == nil && g.isSingle && g.came > 0 {
		err = badRequest.new("a second message, expected one")
	}
	for err == nil && g.wants <= g.came && g.ctx.Err() == nil {
		g.changed.Wait()
	}
	g.mu.Unlock()
	if err == nil {
		err = g.ctx.Err()
	}
	if err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint32(g.head[1:]))
	if size > maxMessage {
		return tooMuch.new(fmt.Sprintf("a message of %d bytes, expected at most %d: send less in each", size, maxMessage))
	}
	if err := g.hold(size); err != nil {
		return err
	}
	if g.left = size; size > 0 {
		g.allowance.wait()
	}
	return nil
}

// hold takes the memory of a message.
func (g *gate) hold(size int64) error {
	if g.head[0] != 0 { // it is packed
		size = maxMessage
	}
	if err := g.memory.await(g.ctx, g.idle, size*messageCost); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken += size * messageCost
	return nil
}

// watch has the caller be in time with the next message, if the call waits for it.
func (g *gate) watch() {
	if g.isAtHead && g.wants > g.came && g.pace != inOwnTime {
		g.allowance.wait()
	}
}

// arrived records that a message was passed on.
func (g *gate) arrived() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowance.rest()
	if g.came++; g.pace != bytesInTime {
		g.allowance.renew()
	}
}

// why returns the error for gRPC's reader. A stream's call has the reason from ask: the reader waits
// for the end of the call, so that gRPC gives no reason of its own.
func (g *gate) why(err error) error {
	if err == nil {
		return nil
	}
	g.allowance.rest()
	var p *problem
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSilent
	case !errors.Is(err, errNoRoom) && !errors.As(err, &p):
		return err
	}
	if g.fail(err) {
		<-g.ctx.Done()
		return errShut
	}
	return http2.StreamError{Code: http2.ErrCodeEnhanceYourCalm, Cause: problemOf(err)}
}

// fail records why no more comes.
func (g *gate) fail(err error) (isStream bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
	close(g.failed)
	return g.isStream
}

// ask records that the call wants a message. It has no use for the one before.
func (g *gate) ask() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.requests++; g.requests > g.wants {
		g.wants = g.requests
		g.letGo()
	}
	g.watch()
	g.changed.Broadcast()
}

// release returns the memory of the message that the call has, while it still works on it.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.letGo()
}

// letGo returns the memory of the message that the call has.
func (g *gate) letGo() {
	g.memory.give(g.taken)
	g.taken = 0
}

// setPace changes how long the call waits for messages.
func (g *gate) setPace(p pace) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pace = p; p == inOwnTime && g.isAtHead {
		g.allowance.rest()
	}
}

// Close implements io.Closer.
func (g *gate) Close() error {
	g.end()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowance.shut()
	g.letGo()
	g.changed.Broadcast()
	return g.body.Close()
}

// gatedStream is a call whose messages come through a gate.
type gatedStream struct {
	grpc.ServerStream
	gate *gate
}

// throughGate is the interceptor that makes gatedStreams.
func throughGate(server any, st grpc.ServerStream, _ *grpc.StreamServerInfo, call grpc.StreamHandler) error {
	g := requestOf(st.Context()).gate
	g.mu.Lock()
	g.isStream = true
	g.mu.Unlock()
	return call(server, &gatedStream{st, g})
}

// RecvMsg implements grpc.ServerStream. The message must not be used after an error.
func (s *gatedStream) RecvMsg(m any) error {
	s.gate.ask()
	got := make(chan error, 1)
	go func() { got <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-got:
		return err
	case <-s.gate.failed:
		return problemOf(s.gate.err)
	}
}
