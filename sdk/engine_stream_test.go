// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// pluginEnd is the plugin's end of ServeEngine.
type pluginEnd = grpc.BidiStreamingServer[pb.EngineAnswer, pb.EngineRequest]

// A rawServer is a plugin that somebody wrote against arch.proto.
type rawServer struct {
	pb.UnimplementedArchitectureServer
	streams atomic.Int64 // how often ServeEngine was opened
	serve   func(pluginEnd) error
	call    func(context.Context, *pb.FrameRulesRequest) error
}

func (s *rawServer) ServeEngine(stream pluginEnd) error {
	s.streams.Add(1)
	return s.serve(stream)
}

func (s *rawServer) FrameRules(ctx context.Context, p *pb.FrameRulesRequest) (*pb.FrameRulesAnswer, error) {
	return &pb.FrameRulesAnswer{}, s.call(ctx, p)
}

func frameRules(c *Client, timeout time.Duration, e Engine) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := c.FrameRules(ctx, e, &FrameRulesRequest{})
	return err
}

func memoryRequest(id, session uint64, size uint32) *pb.EngineRequest {
	return &pb.EngineRequest{Id: id, Session: session, Request: &pb.EngineRequest_ReadMemory{ReadMemory: &pb.ReadMemoryRequest{Size: size}}}
}

// exchange makes one request and returns its answer.
func exchange(stream pluginEnd, p *pb.EngineRequest) (*pb.EngineAnswer, error) {
	if err := stream.Send(p); err != nil {
		return nil, err
	}
	return stream.Recv()
}

func TestPluginThatAsksNothingServesNoEngine(t *testing.T) {
	checkLeaks(t)
	c := dialServer(t, &struct {
		pb.UnimplementedArchitectureServer
	}{})
	if err := frameRules(c, time.Minute, &testEngine{}); !errors.Is(err, ErrNotImplemented) || strings.Contains(err.Error(), "ServeEngine") {
		t.Errorf("the call itself should fail, not the stream: %v", err)
	}
	var sessions []uint64
	s := &rawServer{
		serve: func(pluginEnd) error { return status.Error(codes.Unimplemented, "") },
		call: func(_ context.Context, p *pb.FrameRulesRequest) error {
			sessions = append(sessions, p.GetSession())
			return nil
		},
	}
	c = dialServer(t, s)
	for range 2 {
		if err := frameRules(c, time.Minute, &testEngine{}); err != nil {
			t.Error(err)
		}
	}
	if s.streams.Load() != 1 || len(sessions) != 2 || sessions[0] != 0 {
		t.Errorf("asked %d times, sessions %d", s.streams.Load(), sessions)
	}
}

func TestStreamThatIsNotReadyEndsTheCall(t *testing.T) {
	checkLeaks(t)
	for _, m := range []struct {
		name  string
		serve func(pluginEnd) error
		want  string
	}{
		{"no message", func(s pluginEnd) error { <-s.Context().Done(); return nil }, "FrameRules: context deadline exceeded"},
		{"its end", func(pluginEnd) error { return nil }, "FrameRules: ServeEngine: malformed message: the plugin ended it before its first message"},
		{"an error", func(pluginEnd) error { return errors.New("not my day") }, "FrameRules: ServeEngine: rpc error: code = Unknown desc = not my day"},
	} {
		t.Run(m.name, func(t *testing.T) {
			s := &rawServer{serve: m.serve}
			c := dialServer(t, s)
			for n := range 2 {
				err := frameRules(c, 50*time.Millisecond, &testEngine{})
				if err == nil || err.Error() != m.want {
					t.Errorf("call %d: %v, expected %s", n, err, m.want)
				}
			}
			if n := s.streams.Load(); m.name != "no message" && n != 2 {
				t.Errorf("opened %d times, expected an attempt for each call", n)
			}
		})
	}
}

// What a plugin's end of the stream does while a call is under way.
func TestStreamThatFailsEndsTheCallsUnderWay(t *testing.T) {
	checkLeaks(t)
	flood := func(s pluginEnd) error {
		for id := uint64(1); ; id++ {
			if _, err := exchange(s, memoryRequest(id, 1<<40, 1)); err != nil {
				return err
			}
		}
	}
	for _, m := range []struct {
		name        string
		serve       func(pluginEnd) error
		want        string
		isMalformed bool
	}{
		{"an error", func(pluginEnd) error { return errors.New("lost the thread") }, "FrameRules: ServeEngine: rpc error: code = Unknown desc = lost the thread", false},
		{"requests for no call", flood, "FrameRules: ServeEngine: malformed message: 65536 requests in a row for calls that are over", true},
		{"too much at once", func(s pluginEnd) error {
			_, err := exchange(s, &pb.EngineRequest{Request: &pb.EngineRequest_ReadSection{ReadSection: &pb.ReadSectionRequest{Name: make([]byte, maxEngineRequest)}}})
			return err
		}, "FrameRules: ServeEngine: rpc error: code = ResourceExhausted", false},
	} {
		t.Run(m.name, func(t *testing.T) {
			under := make(chan struct{})
			s := &rawServer{
				serve: func(s pluginEnd) error {
					if err := s.Send(&pb.EngineRequest{}); err != nil {
						return err
					}
					<-under
					return m.serve(s)
				},
				call: func(ctx context.Context, _ *pb.FrameRulesRequest) error {
					under <- struct{}{}
					<-ctx.Done()
					return nil
				},
			}
			c := dialServer(t, s)
			for range 2 { // the second with a stream of its own
				err := frameRules(c, time.Minute, &testEngine{})
				if err == nil || !strings.HasPrefix(err.Error(), m.want) || errors.Is(err, ErrMalformed) != m.isMalformed {
					t.Errorf("%v, expected %s", err, m.want)
				}
			}
			if n := s.streams.Load(); n != 2 {
				t.Errorf("opened %d times", n)
			}
		})
	}
}

// A plugin that asks and never reads the answers blocks nothing but itself.
func TestAnswersThatNobodyReadsHoldNothingUp(t *testing.T) {
	checkLeaks(t)
	asked := make(chan uint64)
	var reads atomic.Int64
	s := &rawServer{
		serve: func(s pluginEnd) error {
			if err := s.Send(&pb.EngineRequest{}); err != nil {
				return err
			}
			session := <-asked
			go func() {
				for id := uint64(1); s.Send(memoryRequest(id, session, partSize)) == nil; id++ {
				}
			}()
			<-s.Context().Done()
			return nil
		},
		call: func(_ context.Context, p *pb.FrameRulesRequest) error {
			asked <- p.GetSession()
			time.Sleep(100 * time.Millisecond)
			return nil
		},
	}
	c := dialServer(t, s)
	e := countingEngine{&reads}
	if err := frameRules(c, time.Minute, e); err != nil {
		t.Fatal(err)
	}
	// Those that are answered at once, and those that the connection holds.
	if n := reads.Load(); n == 0 || n > 2*maxEngineRequests {
		t.Errorf("%d requests were read, expected about %d", n, maxEngineRequests)
	}
}

// countingEngine is memory without end.
type countingEngine struct{ reads *atomic.Int64 }

func (e countingEngine) ReadMemory(_ context.Context, _ MemoryRange, buf []byte) (int, error) {
	e.reads.Add(1)
	return len(buf), nil
}

func (countingEngine) ReadRegisters(context.Context, uint64, []uint32) (Registers, error) {
	return Registers{}, nil
}

func (countingEngine) ReadSection(context.Context, uint64, string) ([]byte, error) { return nil, nil }

func TestRequestsAreAnsweredInAnyOrderAndWithTheirErrors(t *testing.T) {
	checkLeaks(t)
	session := make(chan uint64)
	result := make(chan error)
	check := func(s pluginEnd) error {
		id := <-session
		// The first blocks until the call is over.
		if err := s.Send(memoryRequest(1, id, 1)); err != nil {
			return err
		}
		section := func(name string) *pb.EngineRequest {
			return &pb.EngineRequest{Id: 2, Session: id, Request: &pb.EngineRequest_ReadSection{ReadSection: &pb.ReadSectionRequest{Object: 7, Name: []byte(name)}}}
		}
		a, err := exchange(s, section(".data"))
		if err != nil || a.GetId() != 2 || a.GetPartial() || a.GetReadSection() == nil || a.GetReadSection().GetSize() != 3 {
			return fmt.Errorf("section: %v, %w", a, err)
		}
		for _, m := range []struct {
			p    *pb.EngineRequest
			code codes.Code
			want string
		}{
			{section(".none"), codes.Unknown, "object 7 has no section .none"},
			{memoryRequest(3, id+1, 1), codes.NotFound, "session 2 is over"},
			{memoryRequest(4, id, partSize+1), codes.InvalidArgument, "ReadMemoryRequest.size: 1048577, expected at most 1048576"},
			{&pb.EngineRequest{Id: 5, Session: id}, codes.InvalidArgument, "EngineRequest.request: none that this engine knows"},
			{&pb.EngineRequest{Id: 6, Session: id, Request: &pb.EngineRequest_ReadMemory{ReadMemory: &pb.ReadMemoryRequest{Size: 1, More: make([]uint64, maxParts)}}},
				codes.InvalidArgument, "ReadMemoryRequest.more: 65536 further times 1 bytes of space 0, expected at most 65535 times, 1048576 bytes in all, of space 0 or the file"},
		} {
			a, err := exchange(s, m.p)
			if err != nil || a.GetId() != m.p.GetId() || codes.Code(a.GetError().GetCode()) != m.code || a.GetError().GetMessage() != m.want {
				return fmt.Errorf("%v, %w, expected %s", a, err, m.want)
			}
		}
		return nil
	}
	server := &rawServer{
		serve: func(s pluginEnd) error {
			if err := s.Send(&pb.EngineRequest{}); err != nil {
				return err
			}
			result <- check(s)
			a, err := s.Recv()
			if err != nil || a.GetId() != 1 || codes.Code(a.GetError().GetCode()) != codes.Canceled {
				err = fmt.Errorf("of the call that is over: %v, %w", a, err)
			}
			result <- err
			<-s.Context().Done()
			return nil
		},
		call: func(_ context.Context, p *pb.FrameRulesRequest) error {
			session <- p.GetSession()
			return <-result
		},
	}
	c := dialServer(t, server)
	e := &testEngine{section: []byte("abc"), block: make(chan struct{}), entered: make(chan struct{}, 1), finished: make(chan struct{}, 1)}
	if err := frameRules(c, time.Minute, e); err != nil {
		t.Error(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestNewestStreamCounts(t *testing.T) {
	checkLeaks(t)
	var kept Engine
	c := dial(t, &testArch{frameRules: func(ctx context.Context, e Engine, _ *FrameRulesRequest) (*FrameRulesAnswer, error) {
		kept = e
		_, err := e.ReadMemory(ctx, MemoryRange{}, make([]byte, 1))
		return &FrameRulesAnswer{}, err
	}})
	e := &testEngine{memory: []byte{1}}
	if err := frameRules(c, time.Minute, e); err != nil {
		t.Fatal(err)
	}
	first := kept
	c.attachment = nil
	if err := frameRules(c, time.Minute, e); err != nil {
		t.Fatal(err)
	}
	if _, err := first.ReadMemory(t.Context(), MemoryRange{}, make([]byte, 1)); status.Code(errors.Unwrap(err)) != codes.Unavailable {
		t.Errorf("over the first stream: %v", err)
	}
}

func TestReadsEndWithTheEngine(t *testing.T) {
	checkLeaks(t)
	failed := make(chan error, 1)
	arch := &testArch{frameRules: func(_ context.Context, e Engine, _ *FrameRulesRequest) (*FrameRulesAnswer, error) {
		_, err := e.ReadMemory(context.Background(), MemoryRange{}, make([]byte, 1)) // the call's own context ends too
		failed <- err
		return nil, err
	}}
	c, conn := dialConn(t, &architectureServer{arch: arch, host: host{log: io.Discard}})
	e := &testEngine{block: make(chan struct{}), entered: make(chan struct{}, 1), finished: make(chan struct{}, 1)}
	go func() {
		<-e.entered
		_ = conn.Close()
	}()
	err := frameRules(c, time.Minute, e)
	if e := <-failed; err == nil || status.Code(errors.Unwrap(e)) != codes.Unavailable {
		t.Errorf("the read: %v, the call: %v", e, err)
	}
}

// FuzzEngineRequest: whatever a plugin asks for, the engine answers within bounds.
func FuzzEngineRequest(f *testing.F) {
	for _, p := range []*pb.EngineRequest{
		{}, memoryRequest(1, 1, 16), memoryRequest(1, 2, partSize),
		{Session: 1, Request: &pb.EngineRequest_ReadMemory{ReadMemory: &pb.ReadMemoryRequest{Size: 3, More: []uint64{1, 2, 1 << 63}}}},
		{Session: 1, Request: &pb.EngineRequest_ReadRegisters{ReadRegisters: &pb.ReadRegistersRequest{Numbers: []uint32{5, 5, 1}}}},
		{Session: 1, Request: &pb.EngineRequest_ReadSection{ReadSection: &pb.ReadSectionRequest{Object: 7, Name: []byte(".data")}}},
	} {
		f.Add(sureBytes(p))
	}
	e := &testEngine{memory: make([]byte, 64), section: make([]byte, partSize+5)}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.EngineRequest
		if len(b) > maxEngineRequest || proto.Unmarshal(b, &p) != nil {
			return
		}
		var engines engineServer
		_, id, end := engines.open(t.Context(), e)
		defer end()
		v := engines.use(id)
		defer v.reading.Done()
		check := func(a *pb.EngineAnswer) error {
			if size := proto.Size(a); size > 2*maxAnswer {
				t.Fatalf("an answer of %d bytes", size)
			}
			return nil
		}
		last, err := v.answer(&p, check)
		if err != nil {
			last = engineFailure(err)
			if code := codes.Code(last.GetError().GetCode()); code == codes.OK || code == codes.Internal {
				t.Fatalf("%v: %v", code, err)
			}
		}
		_ = check(last)
	})
}
