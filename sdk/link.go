// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// link is the connection to a plugin of either kind, with the engine that it may ask.
type link struct {
	serve   engineOpener
	gone    context.Context // ends with the process
	ready   time.Duration
	engines engineServer
	lacks   lacking
	ignored ignoredMembers

	mu         sync.Mutex
	attachment *attachment
}

// attachment is the plugin's connection to the engine, or an attempt to make it.
type attachment struct {
	settled chan struct{} // closed when the plugin is ready, or the rest is set
	// isUnwanted: the plugin asks nothing of the engine.
	isUnwanted bool
	err        error
}

// attach waits until the plugin is ready for requests to the engine, and reports whether
// it makes any. All calls share one connection, which outlives the call that began it; a
// connection that failed or ended is made again.
func (c *link) attach(ctx context.Context) (isWanted bool, err error) {
	c.mu.Lock()
	a := c.attachment
	if a == nil {
		a = &attachment{settled: make(chan struct{})}
		c.attachment = a
		go c.serveEngine(a)
	}
	c.mu.Unlock()
	select {
	case <-a.settled:
		return !a.isUnwanted, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// serveEngine serves the engine until the connection ends. A failure ends the calls
// that offer the engine; where the process is gone, each call ends by itself.
func (c *link) serveEngine(a *attachment) {
	ctx, cancel := context.WithCancelCause(c.gone)
	defer cancel(nil)
	isReady := false
	isLate := func() { cancel(fmt.Errorf("%w: no message within %s", ErrMalformed, c.ready)) }
	late := time.AfterFunc(cmp.Or(c.ready, math.MaxInt64), isLate)
	s, err := openEngineStream(ctx, c.serve, &c.engines)
	if err == nil {
		err = s.serve(func() {
			late.Stop()
			isReady = true
			close(a.settled)
		})
	}
	late.Stop()
	code := status.Code(err)
	if !isReady && code == codes.Unimplemented {
		a.isUnwanted = true
		close(a.settled)
		return
	}
	c.mu.Lock()
	c.attachment = nil
	c.mu.Unlock()
	if err == nil && !isReady {
		err = fmt.Errorf("%w: the plugin ended it before its first message", ErrMalformed)
	}
	if err != nil {
		err = fmt.Errorf("ServeEngine: %w", err)
	}
	if !isReady {
		a.err = err
		close(a.settled)
	} else if err != nil && code != codes.Unavailable && c.gone.Err() == nil {
		c.engines.fail(err)
	}
}

// begin opens a session for a call that offers an engine. sessionCtx becomes the context
// of the call.
func (c *link) begin(ctx context.Context, call string, e Engine) (sessionCtx context.Context, session uint64, end func(), err error) {
	if e == nil {
		return ctx, 0, func() {}, nil
	}
	isWanted, err := c.attach(ctx)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("%s: %w", call, err)
	}
	if !isWanted {
		return ctx, 0, func() {}, nil
	}
	ctx, session, end = c.engines.open(ctx, e)
	return ctx, session, end, nil
}

// unaryCall is a call whose answer is one message: Q is the encoded request, R the
// encoded answer and A the decoded one.
type unaryCall[Q, R, A any] struct {
	name      string
	engine    Engine // for the plugin's requests; nil: the call offers none
	request   Q
	session   *uint64 // in request, where the engine's session goes; nil: there is none
	rpc       func(context.Context, Q, ...grpc.CallOption) (R, error)
	maxAnswer int // bytes
	decode    func(R) (*A, error)
}

// do makes the call.
func (u *unaryCall[Q, R, A]) do(ctx context.Context, c *link) (*A, error) {
	if err := c.lacks.find(u.name); err != nil {
		return nil, err
	}
	ctx, session, end, err := c.begin(ctx, u.name, u.engine)
	if err != nil {
		return nil, err
	}
	defer end()
	if u.session != nil {
		*u.session = session
	}
	r, err := u.rpc(ctx, u.request, grpc.MaxCallRecvMsgSize(u.maxAnswer), grpc.MaxCallSendMsgSize(maxRequest))
	if err != nil {
		return nil, c.lacks.learn(u.name, callError(ctx, u.name, err))
	}
	c.ignored.lookAt(r)
	a, err := u.decode(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.name, err)
	}
	return a, nil
}

// streamCall is a call whose answer comes in parts: Q is the encoded request and P an encoded
// part.
type streamCall[Q, P any] struct {
	name    string
	engine  Engine // for the plugin's requests; nil: the call offers none
	request Q
	session *uint64 // in request, where the engine's session goes
	rpc     func(context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[P], error)
	add     func(*P) error // decodes a part, and adds it to the answer
}

// do makes the call. The error is nil where at least one part came.
func (s *streamCall[Q, P]) do(ctx context.Context, c *link) error {
	if err := c.lacks.find(s.name); err != nil {
		return err
	}
	ctx, session, end, err := c.begin(ctx, s.name, s.engine)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	*s.session = session
	stream, err := s.rpc(ctx, s.request, grpc.MaxCallRecvMsgSize(maxAnswer), grpc.MaxCallSendMsgSize(maxRequest))
	if err != nil {
		return callError(ctx, s.name, err)
	}
	for isFirst := true; ; isFirst = false {
		part, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && isFirst:
			return fmt.Errorf("%s: %w: no answer", s.name, ErrMalformed)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.lacks.learn(s.name, callError(ctx, s.name, err))
		}
		c.ignored.lookAt(part)
		if err := s.add(part); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
}
