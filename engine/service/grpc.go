// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// maxPart bounds the bytes of a report in a message, maxMessage the bytes of a message that
// is received: the largest are batches of addresses, which have ten bytes each at most.
const (
	maxPart    = 64 << 10
	maxMessage = maxAddresses*10 + 1<<20
)

// newGRPC makes the server of gRPC, which shares the connections of HTTP.
func (s *Server) newGRPC() *grpc.Server {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.StreamInterceptor(throughGate))
	pb.RegisterUnwinddServer(g, &calls{server: s})
	grpc_health_v1.RegisterHealthServer(g, health.NewServer())
	reflection.Register(g)
	return g
}

// clientStreams returns the paths of calls that take more than one message.
func clientStreams(g *grpc.Server) map[string]bool {
	paths := map[string]bool{}
	for service, info := range g.GetServiceInfo() {
		for _, m := range info.Methods {
			paths["/"+service+"/"+m.Name] = m.IsClientStream
		}
	}
	return paths
}

// calls answers by gRPC.
type calls struct {
	pb.UnimplementedUnwinddServer
	server *Server
}

// counted records that a call is under way, and how it ended.
func (c *calls) counted(ctx context.Context, kind string, answer func(req *request) error) error {
	req := requestOf(ctx)
	leave, err := c.server.enter()
	if err == nil {
		defer leave()
		err = answer(req)
	}
	if err == nil {
		c.server.end(req, kind, nil)
		return nil
	}
	p := problemOf(err)
	c.server.end(req, kind, p)
	return p.status()
}

// stream is a call that receives the parts of a file, and sends the parts of a report.
type stream[In any] interface {
	Recv() (In, error)
	Send(*pb.Report) error
	Context() context.Context
}

// part is a part of a file, or the options that come first.
type part[O any] interface {
	GetOptions() O
	GetData() []byte
}

// reportOf answers a call with the report of a job on the file that is sent.
func reportOf[O proto.Message, In part[O]](c *calls, kind string, st stream[In]) error {
	return c.counted(st.Context(), kind, func(req *request) error {
		first, err := st.Recv()
		if err != nil || !first.GetOptions().ProtoReflect().IsValid() {
			return orProblem(err, badRequest.new("the first message has no options"))
		}
		s := c.server
		work, err := s.work(first.GetOptions())
		if err != nil {
			return err
		}
		input, err := s.newInput(s.budget.of(req.caller), req.caller, s.now().Body)
		if err != nil {
			return err
		}
		defer input.Close()
		if err := receiveParts(st.Context(), s, input, func() ([]byte, error) {
			m, err := st.Recv()
			if err != nil {
				return nil, err
			}
			return m.GetData(), nil
		}); err != nil {
			return err
		}
		a, err := s.beginOn(st.Context(), req, work, input)
		if err != nil {
			return err
		}
		defer a.Close()
		defer input.closeAfter(a)
		return sendParts(s, a, st.Send)
	})
}

// orProblem returns the error of a message that did not come, where that has a reason, or another.
func orProblem(err error, other *problem) error {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	return other
}

// receiveParts writes the parts of a file to w. It fails when they take too long.
func receiveParts(ctx context.Context, s *Server, w io.Writer, next func() ([]byte, error)) error {
	requestOf(ctx).gate.setPace(bytesInTime)
	return s.within(ctx, "receive", func(context.Context, trace.Span) error { return copyParts(s, w, next) })
}

func copyParts(s *Server, w io.Writer, next func() ([]byte, error)) error {
	for {
		data, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.metrics.received(int64(len(data)))
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
}

// sendParts sends a report while it comes, and its end.
func sendParts(s *Server, a *answer, send func(*pb.Report) error) error {
	for {
		buf := make([]byte, maxPart) // the receiver owns a message
		n, err := a.Read(buf)
		if n > 0 {
			if err := send(&pb.Report{Part: &pb.Report_Data{Data: buf[:n]}}); err != nil {
				return err
			}
			s.metrics.sent(n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	<-a.done
	return send(&pb.Report{Part: &pb.Report_End{End: a.end()}})
}

// end describes a report that is whole.
func (a *answer) end() *pb.ReportEnd {
	f := &a.facts
	end := &pb.ReportEnd{Unwalked: f.Unwalked, Stacks: uint64(max(f.Stacks, 0)), Frames: uint64(max(f.Frames, 0)), Problems: f.Problems}
	if s := a.snapshot; s != nil {
		end.Frames, end.Modules, end.Memory = uint64(max(s.Frames, 0)), uint64(max(s.Modules, 0)), uint64(max(s.Memory, 0))
	}
	if p := a.profile; p != nil {
		end.Stacks, end.Summary = uint64(max(p.Samples, 0)), p.Summary
		for _, s := range p.Sections {
			end.Sections = append(end.Sections, &pb.ReportSection{Name: strings.ToValidUTF8(s.Name, "?"), Size: uint64(max(s.Size, 0))})
		}
	}
	return end
}

// Stack implements servicepb.UnwinddServer.
func (c *calls) Stack(st grpc.BidiStreamingServer[pb.StackRequest, pb.Report]) error {
	return reportOf(c, "stack", st)
}

// Profile implements servicepb.UnwinddServer.
func (c *calls) Profile(st grpc.BidiStreamingServer[pb.ProfileRequest, pb.Report]) error {
	return reportOf(c, "profile", st)
}

// Snapshot implements servicepb.UnwinddServer.
func (c *calls) Snapshot(st grpc.BidiStreamingServer[pb.SnapshotRequest, pb.Report]) error {
	return reportOf(c, "snapshot", st)
}

// SymbolizeProfile implements servicepb.UnwinddServer.
func (c *calls) SymbolizeProfile(st grpc.BidiStreamingServer[pb.SymbolizeProfileRequest, pb.Report]) error {
	return reportOf(c, "symbolize", st)
}

// Evaluate implements servicepb.UnwinddServer.
func (c *calls) Evaluate(st grpc.BidiStreamingServer[pb.EvaluateRequest, pb.Report]) error {
	return reportOf(c, "eval", st)
}

// Symbolize implements servicepb.UnwinddServer.
func (c *calls) Symbolize(st grpc.BidiStreamingServer[pb.SymbolizeRequest, pb.SymbolizeResponse]) error {
	return c.counted(st.Context(), "symbolize", func(req *request) error {
		b := &batches{server: c.server, req: req}
		defer b.close()
		for {
			batch, err := st.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			answer, err := b.answer(st.Context(), batch)
			if err != nil {
				return err
			}
			if err := st.Send(answer); err != nil {
				return err
			}
			b.sent()
		}
	})
}

// batches are the batches of addresses of a call. All are looked up as the first one says.
type batches struct {
	server  *Server
	req     *request
	work    *worker.Request // nil before the first
	current int64           // memory of the current answer
	leaving int64           // memory of the one before, which may not have left yet
}

// answer answers a batch.
func (b *batches) answer(ctx context.Context, batch *pb.SymbolizeRequest) (answer *pb.SymbolizeResponse, err error) {
	addresses := batch.Addresses
	if batch.Addresses = nil; b.work == nil {
		if b.work, err = b.server.work(batch); err != nil {
			return nil, err
		}
	}
	var lines [][]byte
	b.req.gate.release() // what waits for memory has none
	if lines, b.current, err = b.server.symbolLines(ctx, b.req, b.work, fromParameter(addresses)); err != nil {
		return nil, err
	}
	answer = &pb.SymbolizeResponse{}
	for i, line := range lines {
		one, err := symbolized(addresses[i], line)
		if err != nil {
			return nil, err
		}
		answer.Addresses = append(answer.Addresses, one)
	}
	return answer, nil
}

// sent records that an answer is on its way. The one before has left: gRPC passes on one at a time.
func (b *batches) sent() {
	b.server.memory.of(b.req.caller).give(b.leaving)
	b.leaving, b.current = b.current, 0
}

// close returns the memory of all.
func (b *batches) close() { b.server.memory.of(b.req.caller).give(b.current + b.leaving) }

// symbolized parses a line of llvm-symbolizer's JSON.
func symbolized(address uint64, line []byte) (*pb.SymbolizedAddress, error) {
	var answer struct {
		Symbol []struct {
			FunctionName, FileName, StartFileName, StartAddress string
			Line, Column, Discriminator, StartLine              uint32
		}
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("the answer to address %#x: %w", address, err)
	}
	out := &pb.SymbolizedAddress{Address: address}
	for _, f := range answer.Symbol {
		if f.FunctionName == "" && f.FileName == "" {
			continue // nothing is known
		}
		start, _ := strconv.ParseUint(f.StartAddress, 0, 64) // it may be absent
		out.Frames = append(out.Frames, &pb.SymbolizedFrame{
			Function: f.FunctionName, File: f.FileName, Line: f.Line, Column: f.Column, Discriminator: f.Discriminator,
			StartAddress: start, StartFile: f.StartFileName, StartLine: f.StartLine,
		})
	}
	return out, nil
}

// PutObject implements servicepb.UnwinddServer.
func (c *calls) PutObject(st grpc.ClientStreamingServer[pb.PutObjectRequest, pb.PutObjectResponse]) error {
	return c.counted(st.Context(), "objects", func(req *request) error {
		first, err := st.Recv()
		if err != nil || len(first.GetBuildId()) == 0 {
			return orProblem(err, badRequest.new("the first message has no build ID"))
		}
		_, was, err := c.server.put(st.Context(), req, sentObject{name: unnamedObject, id: first.GetBuildId()}, func(w io.Writer) error {
			return receiveParts(st.Context(), c.server, w, func() ([]byte, error) {
				m, err := st.Recv()
				if err != nil {
					return nil, err
				}
				return m.GetData(), nil
			})
		})
		if err != nil {
			return err
		}
		return st.SendAndClose(&pb.PutObjectResponse{WasThere: was})
	})
}

// DeleteObject implements servicepb.UnwinddServer.
func (c *calls) DeleteObject(ctx context.Context, r *pb.DeleteObjectRequest) (out *pb.DeleteObjectResponse, err error) {
	err = c.counted(ctx, "objects", func(req *request) error {
		if n := len(r.BuildId); n < objects.MinID || n > objects.MaxID {
			return badRequest.new(fmt.Sprintf("a build ID of %d bytes, expected %d to %d", n, objects.MinID, objects.MaxID))
		}
		out = &pb.DeleteObjectResponse{}
		return c.server.remove(ctx, req.caller, r.BuildId)
	})
	return out, err
}

// maxFound bounds the build IDs of one request.
const maxFound = 1 << 14

// FindObjects implements servicepb.UnwinddServer.
func (c *calls) FindObjects(ctx context.Context, r *pb.FindObjectsRequest) (out *pb.FindObjectsResponse, err error) {
	err = c.counted(ctx, "objects", func(req *request) error {
		if len(r.BuildIds) > maxFound {
			return badRequest.new(fmt.Sprintf("%d build IDs, expected at most %d", len(r.BuildIds), maxFound))
		}
		out = &pb.FindObjectsResponse{}
		for _, id := range r.BuildIds {
			out.Objects = append(out.Objects, c.server.kept(req.caller, id))
		}
		return nil
	})
	return out, err
}
