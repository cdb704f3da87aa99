// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// engineServer has the engines of calls that are under way, on the engine's side. Each
// call has a session, and a plugin that reads after its call is over finds none.
type engineServer struct {
	mu       sync.Mutex
	last     uint64
	sessions map[uint64]*session
}

type session struct {
	engine  Engine
	ctx     context.Context
	cancel  context.CancelCauseFunc
	reading sync.WaitGroup
}

// engineFault is the reason of calls that ended with ServeEngine.
type engineFault struct{ error }

func (f *engineFault) Unwrap() error { return f.error }

// open begins a session, whose context is the call's. end ends it, and waits for
// pending reads from the engine: after it the caller may free the memory that the
// engine reads from.
func (s *engineServer) open(ctx context.Context, e Engine) (callCtx context.Context, id uint64, end func()) {
	v := &session{engine: e}
	v.ctx, v.cancel = context.WithCancelCause(ctx)
	s.mu.Lock()
	if s.sessions == nil {
		s.sessions = make(map[uint64]*session)
	}
	s.last++
	id = s.last
	s.sessions[id] = v
	s.mu.Unlock()
	return v.ctx, id, func() {
		s.mu.Lock()
		delete(s.sessions, id)
		s.mu.Unlock()
		v.cancel(nil)
		v.reading.Wait()
	}
}

// use returns a session whose engine is read from until v.reading.Done; nil where the call
// is over.
func (s *engineServer) use(id uint64) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.sessions[id]
	if v != nil {
		v.reading.Add(1)
	}
	return v
}

// fail ends all calls that offer an engine, with a reason.
func (s *engineServer) fail(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.sessions {
		v.cancel(&engineFault{reason})
	}
}

// answer reads the data that a request asks for. All parts of the answer except the last
// are put as they come.
func (v *session) answer(p *pb.EngineRequest, put func(*pb.EngineAnswer) error) (last *pb.EngineAnswer, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = status.Errorf(codes.Internal, "the engine panicked: %v", r)
		}
	}()
	switch r := p.GetRequest().(type) {
	case *pb.EngineRequest_ReadMemory:
		a, err := v.readMemory(r.ReadMemory)
		return &pb.EngineAnswer{Answer: &pb.EngineAnswer_ReadMemory{ReadMemory: a}}, err
	case *pb.EngineRequest_ReadRegisters:
		a, err := v.readRegisters(r.ReadRegisters)
		return &pb.EngineAnswer{Answer: &pb.EngineAnswer_ReadRegisters{ReadRegisters: a}}, err
	case *pb.EngineRequest_ReadSection:
		return v.readSection(r.ReadSection, put)
	case *pb.EngineRequest_FindFunctions:
		a, err := v.findFunctions(r.FindFunctions)
		return &pb.EngineAnswer{Answer: &pb.EngineAnswer_FindFunctions{FindFunctions: a}}, err
	}
	return nil, status.Error(codes.InvalidArgument, "EngineRequest.request: none that this engine knows")
}

func (v *session) readMemory(p *pb.ReadMemoryRequest) (*pb.ReadMemoryAnswer, error) {
	if p.GetSize() > partSize {
		return nil, status.Errorf(codes.InvalidArgument, "ReadMemoryRequest.size: %d, expected at most %d", p.GetSize(), partSize)
	}
	if n := uint64(len(p.GetMore())); n > 0 {
		if n >= maxParts || p.GetSize() == 0 || (n+1)*uint64(p.GetSize()) > partSize || p.GetSpace() != 0 && p.GetSpace() != uint64(FileSpace) {
			return nil, status.Errorf(codes.InvalidArgument,
				"ReadMemoryRequest.more: %d further times %d bytes of space %d, expected at most %d times, %d bytes in all, of space 0 or the file",
				n, p.GetSize(), p.GetSpace(), maxParts-1, partSize)
		}
		return serveParts(v.ctx, v.engine, p), v.ctx.Err()
	}
	buf := make([]byte, p.GetSize())
	n, err := v.engine.ReadMemory(v.ctx, MemoryRange{
		Space: locexpr.AddressSpace(p.GetSpace()), Address: p.GetAddress(), Thread: p.GetThread(), Lane: p.GetLane(),
	}, buf)
	answer := &pb.ReadMemoryAnswer{Data: buf[:min(max(n, 0), len(buf))]}
	if len(answer.Data) < len(buf) && err == nil {
		err = fmt.Errorf("%d bytes of %d at %#x were read", n, len(buf), p.GetAddress())
	}
	if err != nil {
		answer.Error = headerText(err.Error())
	}
	return answer, v.ctx.Err()
}

func (v *session) readRegisters(p *pb.ReadRegistersRequest) (*pb.ReadRegistersAnswer, error) {
	r, err := v.engine.ReadRegisters(v.ctx, p.GetThread(), p.GetNumbers())
	if err != nil {
		return nil, err
	}
	column, err := encodeRegisters([]Registers{r}, func(r *Registers) *Registers { return r })
	return &pb.ReadRegistersAnswer{Registers: column}, err
}

// readSection copies the parts: the engine's bytes may be gone with the call.
func (v *session) readSection(p *pb.ReadSectionRequest, put func(*pb.EngineAnswer) error) (*pb.EngineAnswer, error) {
	data, err := v.engine.ReadSection(v.ctx, p.GetObject(), string(p.GetName()))
	if err != nil {
		return nil, err
	}
	size := uint64(len(data))
	for {
		n := min(len(data), partSize)
		part := &pb.SectionPart{Data: append([]byte(nil), data[:n]...), Size: size}
		answer := &pb.EngineAnswer{Answer: &pb.EngineAnswer_ReadSection{ReadSection: part}}
		if data, size = data[n:], 0; len(data) == 0 {
			return answer, nil
		}
		answer.Partial = true
		if err := put(answer); err != nil {
			return nil, err
		}
	}
}

// engineFailure returns the answer to a request that failed.
func engineFailure(err error) *pb.EngineAnswer {
	s, ok := status.FromError(err)
	if !ok {
		code := codes.Unknown
		switch {
		case errors.Is(err, context.Canceled):
			code = codes.Canceled
		case errors.Is(err, context.DeadlineExceeded):
			code = codes.DeadlineExceeded
		}
		s = status.New(code, headerText(err.Error()))
	}
	return &pb.EngineAnswer{Answer: &pb.EngineAnswer_Error{Error: &pb.EngineError{Code: uint32(s.Code()), Message: s.Message()}}}
}
