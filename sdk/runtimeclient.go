// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// RuntimeClient is a Runtime in another process, as a Client is an Architecture.
type RuntimeClient struct {
	link
	rpc pb.RuntimeClient
}

var _ Runtime = (*RuntimeClient)(nil)

// NewRuntimeClient returns the runtime at the other end of a connection. The arguments are
// NewClient's.
func NewRuntimeClient(gone context.Context, conn grpc.ClientConnInterface, ready time.Duration) *RuntimeClient {
	rpc := pb.NewRuntimeClient(conn)
	return &RuntimeClient{link: link{serve: rpc.ServeEngine, gone: gone, ready: ready}, rpc: rpc}
}

// Describe asks for the description, which is not validated.
func (c *RuntimeClient) Describe(ctx context.Context) (*RuntimeDescription, error) {
	u := unaryCall[*pb.DescribeRequest, *pb.RuntimeDescription, RuntimeDescription]{
		name: "Describe", request: &pb.DescribeRequest{Feature: Feature}, rpc: c.rpc.Describe, maxAnswer: maxDescription, decode: decodeRuntimeDescription,
	}
	return u.do(ctx, &c.link)
}

// OpenRuntime makes the call of Runtime.
func (c *RuntimeClient) OpenRuntime(ctx context.Context, e RuntimeEngine, req *OpenRuntimeRequest) (*OpenRuntimeAnswer, error) {
	p := encodeOpenRuntimeRequest(req)
	u := unaryCall[*pb.OpenRuntimeRequest, *pb.OpenRuntimeAnswer, OpenRuntimeAnswer]{
		name: "OpenRuntime", engine: e, request: p, session: &p.Session, rpc: c.rpc.OpenRuntime, maxAnswer: maxAnswer, decode: decodeOpenRuntimeAnswer,
	}
	return u.do(ctx, &c.link)
}

// CodeRules makes the call of Runtime.
func (c *RuntimeClient) CodeRules(ctx context.Context, e RuntimeEngine, req *CodeRulesRequest) (*CodeRulesAnswer, error) {
	p := encodeCodeRulesRequest(req)
	u := unaryCall[*pb.CodeRulesRequest, *pb.CodeRulesAnswer, CodeRulesAnswer]{
		name: "CodeRules", engine: e, request: p, session: &p.Session, rpc: c.rpc.CodeRules, maxAnswer: maxAnswer, decode: decodeCodeRulesAnswer,
	}
	return u.do(ctx, &c.link)
}

// ManagedFrames makes the call of Runtime.
func (c *RuntimeClient) ManagedFrames(ctx context.Context, e RuntimeEngine, req *ManagedFramesRequest) (*ManagedFramesAnswer, error) {
	p := encodeManagedFramesRequest(req)
	u := unaryCall[*pb.ManagedFramesRequest, *pb.ManagedFramesAnswer, ManagedFramesAnswer]{
		name: "ManagedFrames", engine: e, request: p, session: &p.Session, rpc: c.rpc.ManagedFrames, maxAnswer: maxAnswer, decode: decodeManagedFramesAnswer,
	}
	return u.do(ctx, &c.link)
}

// ManagedThreads makes the call of Runtime.
func (c *RuntimeClient) ManagedThreads(ctx context.Context, e RuntimeEngine, req *ManagedThreadsRequest) (*ManagedThreadsAnswer, error) {
	a, isFirst := &ManagedThreadsAnswer{}, true
	p := encodeManagedThreadsRequest(req)
	s := streamCall[*pb.ManagedThreadsRequest, pb.ManagedThreadsPart]{
		name: "ManagedThreads", engine: e, request: p, session: &p.Session, rpc: c.rpc.ManagedThreads,
		add: func(part *pb.ManagedThreadsPart) error {
			before := len(a.Threads) + len(a.Problems)
			if err := addManagedThreads(a, part); err != nil {
				return err
			}
			if !isFirst && len(a.Threads)+len(a.Problems) == before {
				return fmt.Errorf("%w: ManagedThreadsPart: it is empty", ErrMalformed)
			}
			isFirst = false
			return nil
		},
	}
	if err := s.do(ctx, &c.link); err != nil {
		return nil, err
	}
	return a, nil
}

// FindFunctions makes the request of RuntimeEngine.
func (e *engineClient) FindFunctions(ctx context.Context, addresses []uint64) ([]FunctionPlace, error) {
	if len(addresses) > MaxFindFunctions {
		return nil, fmt.Errorf("FindFunctions: %d addresses, expected at most %d", len(addresses), MaxFindFunctions)
	}
	w, err := e.conn.ask(ctx, &pb.EngineRequest{Session: e.session, Request: &pb.EngineRequest_FindFunctions{
		FindFunctions: &pb.FindFunctionsRequest{Addresses: addresses},
	}})
	if err != nil {
		return nil, engineError(ctx, "FindFunctions", err)
	}
	if w.answer.GetFindFunctions() == nil {
		return nil, otherAnswer("FindFunctions")
	}
	places, err := decodeFunctionPlaces(w.answer.GetFindFunctions())
	if err == nil && len(places) != len(addresses) {
		err = fmt.Errorf("%w: FindFunctionsAnswer: %d functions, expected %d", ErrMalformed, len(places), len(addresses))
	}
	if err != nil {
		return nil, fmt.Errorf("FindFunctions: %w", err)
	}
	return places, nil
}

// FindFunctions answers that there is no engine.
func (noEngine) FindFunctions(context.Context, []uint64) ([]FunctionPlace, error) {
	return nil, errNoEngine
}

// errNoFunctions is the answer to a FindFunctions of an architecture's plugin.
var errNoFunctions = errors.New("FindFunctions is for the plugins of runtimes")

// findFunctions answers a plugin's request.
func (v *session) findFunctions(p *pb.FindFunctionsRequest) (*pb.FindFunctionsAnswer, error) {
	e, ok := v.engine.(RuntimeEngine)
	switch n := len(p.GetAddresses()); {
	case !ok:
		return nil, errNoFunctions
	case n > MaxFindFunctions:
		return nil, fmt.Errorf("FindFunctionsRequest.addresses: %d, expected at most %d", n, MaxFindFunctions)
	}
	places, err := e.FindFunctions(v.ctx, p.GetAddresses())
	return encodeFunctionPlaces(places), err
}

func encodeFunctionPlaces(list []FunctionPlace) *pb.FindFunctionsAnswer {
	return &pb.FindFunctionsAnswer{
		Names:    blobs(list, func(f *FunctionPlace) string { return f.Name }),
		Starts:   column(list, func(f *FunctionPlace) uint64 { return f.Start }),
		HasStart: column(list, func(f *FunctionPlace) bool { return f.HasStart }),
	}
}

func decodeFunctionPlaces(p *pb.FindFunctionsAnswer) ([]FunctionPlace, error) {
	d := decoder{message: "FindFunctionsAnswer"}
	n := d.entries("starts", len(p.GetStarts()))
	names := d.texts("names", p.GetNames(), n)
	d.length("has_start", len(p.GetHasStart()), n)
	places := listOf(&d, n, func(i int) FunctionPlace {
		return FunctionPlace{Name: names.next(), Start: p.Starts[i], HasStart: p.HasStart[i]}
	})
	return places, d.err
}
