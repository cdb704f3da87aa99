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

	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// An engineServer serves the engines of calls that are under way: the engine's
// side. Each call has a session, and a plugin that reads after its call is
// over finds none.
type engineServer struct {
	pb.UnimplementedEngineServer
	mu       sync.Mutex
	last     uint64
	sessions map[uint64]*session
}

type session struct {
	engine  Engine
	ctx     context.Context
	cancel  context.CancelFunc
	reading sync.WaitGroup
}

// open begins a session. end ends it, and waits for what still reads from the
// engine: after it the caller may take away what the engine reads from.
func (s *engineServer) open(ctx context.Context, e Engine) (id uint64, end func()) {
	v := &session{engine: e}
	v.ctx, v.cancel = context.WithCancel(ctx)
	s.mu.Lock()
	if s.sessions == nil {
		s.sessions = make(map[uint64]*session)
	}
	s.last++
	id = s.last
	s.sessions[id] = v
	s.mu.Unlock()
	return id, func() {
		s.mu.Lock()
		delete(s.sessions, id)
		s.mu.Unlock()
		v.cancel()
		v.reading.Wait()
	}
}

// with runs read with the engine of a session, and a context that ends with
// the request and with the session.
func (s *engineServer) with(ctx context.Context, id uint64, read func(context.Context, Engine) error) (err error) {
	s.mu.Lock()
	v := s.sessions[id]
	if v != nil {
		v.reading.Add(1)
	}
	s.mu.Unlock()
	if v == nil {
		return status.Errorf(codes.NotFound, "session %d is over", id)
	}
	defer v.reading.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.ctx, cancel)()
	defer func() {
		if r := recover(); r != nil {
			err = status.Errorf(codes.Internal, "the engine panicked: %v", r)
		}
	}()
	err = read(ctx, v.engine)
	if _, ok := status.FromError(err); ok {
		return err
	}
	code := codes.Unknown
	switch {
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return status.Error(code, headerText(err.Error()))
}

func (s *engineServer) ReadMemory(ctx context.Context, p *pb.ReadMemoryRequest) (*pb.ReadMemoryAnswer, error) {
	if p.GetSize() > partSize {
		return nil, status.Errorf(codes.InvalidArgument, "ReadMemoryRequest.size: %d, expected at most %d", p.GetSize(), partSize)
	}
	if n := uint64(len(p.GetMore())); n > 0 && (p.GetSize() == 0 || (n+1)*uint64(p.GetSize()) > partSize || p.GetSpace() != 0) {
		return nil, status.Errorf(codes.InvalidArgument, "ReadMemoryRequest.more: %d further times %d bytes of space %d, expected at most %d in all, of space 0",
			n, p.GetSize(), p.GetSpace(), partSize)
	}
	answer := &pb.ReadMemoryAnswer{}
	err := s.with(ctx, p.GetSession(), func(ctx context.Context, e Engine) error {
		if len(p.GetMore()) > 0 {
			answer = serveParts(ctx, e, p)
			return ctx.Err()
		}
		buf := make([]byte, p.GetSize())
		n, err := e.ReadMemory(ctx, MemoryRange{
			Space: locexpr.AddressSpace(p.GetSpace()), Address: p.GetAddress(), Thread: p.GetThread(), Lane: p.GetLane(),
		}, buf)
		answer.Data = buf[:min(max(n, 0), len(buf))]
		if len(answer.Data) < len(buf) && err == nil {
			err = fmt.Errorf("%d bytes of %d at %#x were read", n, len(buf), p.GetAddress())
		}
		if err != nil {
			answer.Error = headerText(err.Error())
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (s *engineServer) ReadRegisters(ctx context.Context, p *pb.ReadRegistersRequest) (*pb.ReadRegistersAnswer, error) {
	answer := &pb.ReadRegistersAnswer{}
	err := s.with(ctx, p.GetSession(), func(ctx context.Context, e Engine) error {
		r, err := e.ReadRegisters(ctx, p.GetThread(), p.GetNumbers())
		if err != nil {
			return err
		}
		answer.Registers, err = encodeRegisters([]Registers{r}, func(r *Registers) *Registers { return r })
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (s *engineServer) ReadSection(p *pb.ReadSectionRequest, stream grpc.ServerStreamingServer[pb.SectionPart]) error {
	return s.with(stream.Context(), p.GetSession(), func(ctx context.Context, e Engine) error {
		data, err := e.ReadSection(ctx, p.GetObject(), string(p.GetName()))
		if err != nil {
			return err
		}
		for len(data) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(len(data), partSize)
			if err := stream.Send(&pb.SectionPart{Data: data[:n]}); err != nil {
				return err
			}
			data = data[n:]
		}
		return nil
	})
}
