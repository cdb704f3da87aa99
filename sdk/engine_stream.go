// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// engineStream is one ServeEngine: the engine's side.
type engineStream struct {
	engines *engineServer
	stream  grpc.BidiStreamingClient[pb.EngineAnswer, pb.EngineRequest]
	ctx     context.Context // ends with the stream
	cancel  context.CancelCauseFunc
	answers chan *pb.EngineAnswer
	deaf    chan struct{} // closed when answers cannot be sent any more
	slots   chan struct{} // one for each request that is answered at once
	strays  atomic.Int64  // requests in a row for calls that are over
}

// engineOpener is ServeEngine of a plugin's client.
type engineOpener func(ctx context.Context, opts ...grpc.CallOption) (grpc.BidiStreamingClient[pb.EngineAnswer, pb.EngineRequest], error)

// openEngineStream opens the stream, until ctx ends.
func openEngineStream(ctx context.Context, serve engineOpener, engines *engineServer) (*engineStream, error) {
	s := &engineStream{engines: engines, answers: make(chan *pb.EngineAnswer),
		deaf: make(chan struct{}), slots: make(chan struct{}, maxEngineRequests)}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	var err error
	if s.stream, err = serve(s.ctx, grpc.MaxCallRecvMsgSize(maxEngineRequest)); err != nil {
		s.cancel(err)
		return nil, err
	}
	go s.send()
	return s, nil
}

// serve answers until the stream ends, and returns the reason; nil: the plugin ended it.
// It calls ready when the plugin's first message has come.
func (s *engineStream) serve(ready func()) error {
	for isFirst := true; ; isFirst = false {
		p, err := s.stream.Recv()
		if err != nil {
			if cause := context.Cause(s.ctx); cause != nil {
				err = cause
			}
			s.cancel(err)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if isFirst {
			ready()
			if p.GetRequest() == nil {
				continue
			}
		}
		// A plugin with more requests at once is not read from meanwhile, and has to
		// wait.
		select {
		case s.slots <- struct{}{}:
			go s.answer(p)
		case <-s.deaf: // Recv returns the reason
		case <-s.ctx.Done():
		}
	}
}

// answer answers a request. Only the requests of a plugin wait until it reads its answers,
// not the call's end or its engine.
func (s *engineStream) answer(p *pb.EngineRequest) {
	defer func() { <-s.slots }()
	v := s.engines.use(p.GetSession())
	if v == nil {
		s.stray(p)
		return
	}
	s.strays.Store(0)
	last, err := v.answer(p, func(a *pb.EngineAnswer) error {
		a.Id = p.GetId()
		return s.put(v.ctx, a)
	})
	v.reading.Done()
	if err != nil {
		last = engineFailure(err)
	}
	last.Id = p.GetId()
	_ = s.put(s.ctx, last) // an error means that the stream has ended
}

// stray answers a request for a call that is over. A plugin that makes no others would
// keep the engine at work without a call, and so without a deadline.
func (s *engineStream) stray(p *pb.EngineRequest) {
	if s.strays.Add(1) > maxStrays {
		s.cancel(fmt.Errorf("%w: %d requests in a row for calls that are over", ErrMalformed, maxStrays))
		return
	}
	a := engineFailure(status.Errorf(codes.NotFound, "session %d is over", p.GetSession()))
	a.Id = p.GetId()
	_ = s.put(s.ctx, a)
}

// put queues an answer for sending, unless ctx or the stream ends before.
func (s *engineStream) put(ctx context.Context, a *pb.EngineAnswer) error {
	select {
	case s.answers <- a:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.deaf:
		return io.EOF
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// send sends the answers until the stream ends.
func (s *engineStream) send() {
	defer close(s.deaf)
	for {
		select {
		case a := <-s.answers:
			if s.stream.Send(a) != nil {
				return
			}
		case <-s.ctx.Done():
			return
		}
	}
}
