// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/internal/panics"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// host is the plugin's side of a connection, of either kind.
type host struct {
	log io.Writer // gets entries of hclog's JSON, a line each

	mu     sync.Mutex
	engine *engineConn // nil: not open
}

// ServeEngine connects to the engine. The newest connection counts.
func (s *host) ServeEngine(stream grpc.BidiStreamingServer[pb.EngineAnswer, pb.EngineRequest]) error {
	c := newEngineConn(stream)
	s.mu.Lock()
	old := s.engine
	s.engine = c
	s.mu.Unlock()
	if old != nil {
		old.close(status.Error(codes.Unavailable, "the engine opened another stream"))
	}
	err := c.run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == c {
		s.engine = nil
	}
	return err
}

// engineOf returns the engine of a session.
func (s *host) engineOf(session uint64) RuntimeEngine {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session == 0 || s.engine == nil {
		return noEngine{}
	}
	return &engineClient{conn: s.engine, session: session}
}

// answer runs a method of the plugin: it decodes the request, makes the
// call, and encodes the answer. A panic in any of them becomes an error of this
// call alone.
func answer[P, Q, A, R any](s *host, call string, p P,
	decode func(P) (*Q, error), method func(*Q) (*A, error), encode func(*A) (R, error),
) (answer R, err error) {
	var none R
	defer func() {
		if r := recover(); r != nil {
			s.logPanic(call, fmt.Sprint(r))
			answer, err = none, panicError(call, fmt.Sprint(r), panics.Place())
		}
	}()
	req, err := decode(p)
	if err != nil {
		return none, status.Error(codes.InvalidArgument, headerText(err.Error()))
	}
	a, err := method(req)
	if err == nil && a == nil {
		err = errors.New("neither an answer nor an error")
	}
	if err != nil {
		return none, architectureError(call, err)
	}
	answer, err = encode(a)
	if err != nil {
		return none, architectureError(call, err)
	}
	return answer, nil
}

// logPanic logs the panic that is being recovered from.
func (s *host) logPanic(call, value string) {
	line, err := json.Marshal(panicEntry{
		Level: "error", Message: "the plugin panicked", Time: time.Now(),
		Call: call, Panic: value, Stack: string(debug.Stack()),
	})
	if err == nil {
		_, _ = s.log.Write(append(line, '\n')) // it is in the call's error, too
	}
}

// panicEntry is an entry of hclog's JSON.
type panicEntry struct {
	Level   string    `json:"@level"`
	Message string    `json:"@message"`
	Time    time.Time `json:"@timestamp"`
	Call    string    `json:"call"`
	Panic   string    `json:"panic"`
	Stack   string    `json:"stack"`
}

// bounded returns an encoder that refuses answers too big to send.
func bounded[A any, R proto.Message](most int, encode func(*A) (R, error)) func(*A) (R, error) {
	return func(a *A) (R, error) {
		r, err := encode(a)
		if err == nil {
			if size := proto.Size(r); size > most {
				err = fmt.Errorf("an answer of %d bytes, expected at most %d", size, most)
			}
		}
		return r, err
	}
}

// sure returns an encoder with an error result from one without.
func sure[A, R any](encode func(*A) R) func(*A) (R, error) {
	return func(a *A) (R, error) { return encode(a), nil }
}

// architectureServer serves an Architecture over gRPC.
type architectureServer struct {
	pb.UnimplementedArchitectureServer
	host
	arch Architecture
}

// ServeEngine is the host's.
func (s *architectureServer) ServeEngine(stream grpc.BidiStreamingServer[pb.EngineAnswer, pb.EngineRequest]) error {
	return s.host.ServeEngine(stream)
}

func (s *architectureServer) Describe(ctx context.Context, p *pb.DescribeRequest) (*pb.Description, error) {
	return answer(&s.host, "Describe", p,
		func(p *pb.DescribeRequest) (*uint32, error) { return &p.Feature, nil },
		func(feature *uint32) (*Description, error) {
			d, err := s.arch.Describe(context.WithValue(ctx, engineFeature{}, *feature))
			if err != nil || d == nil {
				return nil, err
			}
			described := *d
			described.Feature = Feature
			return &described, nil
		},
		bounded(maxDescription, sure(encodeDescription)))
}

func (s *architectureServer) OpenTarget(p *pb.OpenTargetRequest, stream grpc.ServerStreamingServer[pb.OpenTargetPart]) error {
	_, err := answer(&s.host, "OpenTarget", p, decodeOpenTargetRequest,
		func(req *OpenTargetRequest) (*OpenTargetAnswer, error) {
			return s.arch.OpenTarget(stream.Context(), s.engineOf(p.GetSession()), req)
		},
		func(a *OpenTargetAnswer) (struct{}, error) { return struct{}{}, sendTarget(a, stream.Send) })
	return err
}

// partThreads and partLanes are how many threads, and lanes with a state of their own, go in
// one message.
const (
	partThreads = 4096
	partLanes   = 1 << 16
)

// sendTarget divides an answer into messages, and sends each before it makes the next one.
func sendTarget(a *OpenTargetAnswer, send func(*pb.OpenTargetPart) error) error {
	head := encodeOpenTargetAnswer(a)
	if size := proto.Size(head); size > maxAnswer {
		return fmt.Errorf("an answer of %d bytes, expected at most %d", size, maxAnswer)
	}
	if err := send(&pb.OpenTargetPart{Part: &pb.OpenTargetPart_Answer{Answer: head}}); err != nil {
		return err
	}
	total := 0
	for list := a.Threads; len(list) > 0; {
		n, data, lanes := 0, 0, 0
		for n < len(list) && n < partThreads && (n == 0 || data+len(list[n].Registers.Data) <= partSize && lanes+len(list[n].LaneStates) <= partLanes) {
			data += len(list[n].Registers.Data)
			for i := range list[n].LaneStates {
				data += len(list[n].LaneStates[i].Registers.Data)
			}
			lanes += len(list[n].LaneStates)
			n++
		}
		if total += data; total > MaxRegisterData {
			return fmt.Errorf("registers of more than %d bytes", MaxRegisterData)
		}
		threads, err := encodeTargetThreads(list[:n])
		if err != nil {
			return err
		}
		if size := proto.Size(threads); size > maxAnswer {
			return fmt.Errorf("%d threads of %d bytes, expected at most %d", n, size, maxAnswer)
		}
		if err := send(&pb.OpenTargetPart{Part: &pb.OpenTargetPart_Threads{Threads: threads}}); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func (s *architectureServer) OpenObject(p *pb.OpenObjectRequest, stream grpc.ServerStreamingServer[pb.OpenObjectPart]) error {
	var tables []RowTable
	head, err := answer(&s.host, "OpenObject", p, decodeOpenObjectRequest,
		func(req *OpenObjectRequest) (*OpenObjectAnswer, error) {
			return s.arch.OpenObject(stream.Context(), s.engineOf(p.GetSession()), req)
		},
		bounded(maxAnswer, func(a *OpenObjectAnswer) (*pb.OpenObjectAnswer, error) {
			tables = a.Tables
			return encodeOpenObjectAnswer(a)
		}))
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.OpenObjectPart{Part: &pb.OpenObjectPart_Answer{Answer: head}}); err != nil {
		return err
	}
	for i := range tables {
		for rows := tables[i].Rows; len(rows) > 0; {
			n := min(len(rows), partRows)
			part := &pb.TableRows{Table: uint32(i), Rows: encodeRows(rows[:n])}
			if err := stream.Send(&pb.OpenObjectPart{Part: &pb.OpenObjectPart_Rows{Rows: part}}); err != nil {
				return err
			}
			rows = rows[n:]
		}
	}
	return nil
}

func (s *architectureServer) FrameRules(ctx context.Context, p *pb.FrameRulesRequest) (*pb.FrameRulesAnswer, error) {
	return answer(&s.host, "FrameRules", p, decodeFrameRulesRequest,
		func(req *FrameRulesRequest) (*FrameRulesAnswer, error) {
			return s.arch.FrameRules(ctx, s.engineOf(p.GetSession()), req)
		},
		bounded(maxAnswer, sure(encodeFrameRulesAnswer)))
}

func (s *architectureServer) BindThreads(ctx context.Context, p *pb.BindThreadsRequest) (*pb.BindThreadsAnswer, error) {
	return answer(&s.host, "BindThreads", p, decodeBindThreadsRequest,
		func(req *BindThreadsRequest) (*BindThreadsAnswer, error) {
			return BindThreads(ctx, s.arch, s.engineOf(p.GetSession()), req)
		},
		bounded(maxAnswer, sure(encodeBindThreadsAnswer)))
}

func (s *architectureServer) Translate(ctx context.Context, p *pb.TranslateRequest) (*pb.TranslateAnswer, error) {
	return answer(&s.host, "Translate", p, decodeTranslateRequest,
		func(req *TranslateRequest) (*TranslateAnswer, error) {
			return s.arch.Translate(ctx, s.engineOf(p.GetSession()), req)
		},
		bounded(maxAnswer, sure(encodeTranslateAnswer)))
}

func (s *architectureServer) ClassifyReturn(ctx context.Context, p *pb.ClassifyReturnRequest) (*pb.ClassifyReturnAnswer, error) {
	return answer(&s.host, "ClassifyReturn", p, decodeClassifyReturnRequest,
		func(req *ClassifyReturnRequest) (*ClassifyReturnAnswer, error) {
			return s.arch.ClassifyReturn(ctx, req)
		},
		bounded(maxAnswer, sure(encodeClassifyReturnAnswer)))
}

func (s *architectureServer) Disassemble(ctx context.Context, p *pb.DisassembleRequest) (*pb.DisassembleAnswer, error) {
	return answer(&s.host, "Disassemble", p, decodeDisassembleRequest,
		func(req *DisassembleRequest) (*DisassembleAnswer, error) {
			return s.arch.Disassemble(ctx, req)
		},
		bounded(maxAnswer, sure(encodeDisassembleAnswer)))
}
