// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// engineConn is one ServeEngine: the plugin's side.
type engineConn struct {
	stream grpc.BidiStreamingServer[pb.EngineAnswer, pb.EngineRequest]
	slots  chan struct{} // one for each request that the engine answers at once

	sending sync.Mutex

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*waiter
	end     error // why no request can be made any more
}

// waiter waits for the answer to a request.
type waiter struct {
	section []byte // the part received so far
	answer  *pb.EngineAnswer
	err     error
	done    chan struct{} // closed when answer or err is set
}

func newEngineConn(stream grpc.BidiStreamingServer[pb.EngineAnswer, pb.EngineRequest]) *engineConn {
	return &engineConn{stream: stream, slots: make(chan struct{}, maxEngineRequests), waiting: map[uint64]*waiter{}}
}

// run sends that the plugin is ready, and receives answers until the stream ends.
func (c *engineConn) run() error {
	err := c.stream.Send(&pb.EngineRequest{})
	for err == nil {
		var p *pb.EngineAnswer
		if p, err = c.stream.Recv(); err == nil {
			c.take(p)
		}
	}
	c.close(status.Errorf(codes.Unavailable, "the engine is gone: %v", err))
	return nil
}

// take receives an answer or a part of one. Its waiter may be gone.
func (c *engineConn) take(p *pb.EngineAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting[p.GetId()]
	if w == nil {
		return
	}
	if part := p.GetReadSection(); part != nil {
		if w.section == nil && part.GetSize() <= maxPrepared {
			w.section = make([]byte, 0, part.GetSize())
		}
		w.section = append(w.section, part.GetData()...)
	}
	if !p.GetPartial() {
		delete(c.waiting, p.GetId())
		w.answer = p
		close(w.done)
	}
}

// maxPrepared is the size of the largest section, in bytes, for which memory is allocated
// before it is received.
const maxPrepared = 1 << 30

// close ends all waiters.
func (c *engineConn) close(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = err
	for id, w := range c.waiting {
		delete(c.waiting, id)
		w.err = err
		close(w.done)
	}
}

// ask makes a request and waits for its answer.
func (c *engineConn) ask(ctx context.Context, p *pb.EngineRequest) (*waiter, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w := &waiter{done: make(chan struct{})}
	c.mu.Lock()
	if c.end != nil {
		c.mu.Unlock()
		return nil, c.end
	}
	c.last++
	p.Id = c.last
	c.waiting[p.Id] = w
	c.mu.Unlock()

	c.sending.Lock()
	err := c.stream.Send(p)
	c.sending.Unlock()
	if err != nil {
		c.forget(p.Id)
		return nil, status.Errorf(codes.Unavailable, "the engine is gone: %v", err)
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		c.forget(p.Id)
		return nil, ctx.Err()
	}
	if e := w.answer.GetError(); e != nil {
		return nil, status.Error(codes.Code(e.GetCode()), e.GetMessage())
	}
	return w, w.err
}

func (c *engineConn) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// engineClient is the engine in the plugin's process, for one call.
type engineClient struct {
	conn    asker
	session uint64
}

// asker makes requests of the engine.
type asker interface {
	ask(ctx context.Context, p *pb.EngineRequest) (*waiter, error)
}

// readMemory makes one request.
func (e *engineClient) readMemory(ctx context.Context, p *pb.ReadMemoryRequest) (*pb.ReadMemoryAnswer, error) {
	w, err := e.conn.ask(ctx, &pb.EngineRequest{Session: e.session, Request: &pb.EngineRequest_ReadMemory{ReadMemory: p}})
	if err != nil {
		return nil, engineError(ctx, "ReadMemory", err)
	}
	if w.answer.GetReadMemory() == nil {
		return nil, otherAnswer("ReadMemory")
	}
	return w.answer.GetReadMemory(), nil
}

// otherAnswer returns the error for a request that got an answer of another type.
func otherAnswer(call string) error {
	return fmt.Errorf("%s: %w: EngineAnswer.answer: another request's", call, ErrMalformed)
}

func (e *engineClient) ReadMemory(ctx context.Context, m MemoryRange, buf []byte) (int, error) {
	read := 0
	for read < len(buf) {
		size := min(len(buf)-read, partSize)
		p, err := e.readMemory(ctx, &pb.ReadMemoryRequest{
			Space: uint64(m.Space), Address: m.Address + uint64(read),
			Thread: m.Thread, Lane: m.Lane, Size: uint32(size),
		})
		if err != nil {
			return read, err
		}
		n := copy(buf[read:read+size], p.GetData())
		read += n
		if p.GetError() != "" {
			return read, errors.New(p.GetError())
		}
		if n < size {
			return read, fmt.Errorf("ReadMemory: %w: %d bytes, expected %d or an error", ErrMalformed, n, size)
		}
	}
	return read, nil
}

func (e *engineClient) ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (Registers, error) {
	w, err := e.conn.ask(ctx, &pb.EngineRequest{Session: e.session, Request: &pb.EngineRequest_ReadRegisters{
		ReadRegisters: &pb.ReadRegistersRequest{Thread: thread, Numbers: numbers},
	}})
	if err != nil {
		return Registers{}, engineError(ctx, "ReadRegisters", err)
	}
	if w.answer.GetReadRegisters() == nil {
		return Registers{}, otherAnswer("ReadRegisters")
	}
	states, err := decodeRegisters(w.answer.GetReadRegisters().GetRegisters(), 1)
	if err != nil {
		return Registers{}, fmt.Errorf("ReadRegisters: %w", err)
	}
	return states[0], nil
}

func (e *engineClient) ReadSection(ctx context.Context, object uint64, name string) ([]byte, error) {
	w, err := e.conn.ask(ctx, &pb.EngineRequest{Session: e.session, Request: &pb.EngineRequest_ReadSection{
		ReadSection: &pb.ReadSectionRequest{Object: object, Name: []byte(name)},
	}})
	if err != nil {
		return nil, engineError(ctx, "ReadSection", err)
	}
	if w.answer.GetReadSection() == nil {
		return nil, otherAnswer("ReadSection")
	}
	return w.section, nil
}

// noEngine is the engine of a call whose caller offers none.
type noEngine struct{}

var errNoEngine = errors.New("the caller offers no engine")

func (noEngine) ReadMemory(context.Context, MemoryRange, []byte) (int, error) { return 0, errNoEngine }

func (noEngine) ReadRegisters(context.Context, uint64, []uint32) (Registers, error) {
	return Registers{}, errNoEngine
}

func (noEngine) ReadSection(context.Context, uint64, string) ([]byte, error) { return nil, errNoEngine }
