// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// runtimeServer serves a Runtime over gRPC.
type runtimeServer struct {
	pb.UnimplementedRuntimeServer
	host
	runtime Runtime
}

// ServeEngine is the host's.
func (s *runtimeServer) ServeEngine(stream grpc.BidiStreamingServer[pb.EngineAnswer, pb.EngineRequest]) error {
	return s.host.ServeEngine(stream)
}

func (s *runtimeServer) Describe(ctx context.Context, p *pb.DescribeRequest) (*pb.RuntimeDescription, error) {
	return answer(&s.host, "Describe", p,
		func(p *pb.DescribeRequest) (*uint32, error) { return &p.Feature, nil },
		func(feature *uint32) (*RuntimeDescription, error) {
			d, err := s.runtime.Describe(context.WithValue(ctx, engineFeature{}, *feature))
			if err != nil || d == nil {
				return nil, err
			}
			described := *d
			described.Feature = Feature
			return &described, nil
		},
		bounded(maxDescription, sure(encodeRuntimeDescription)))
}

func (s *runtimeServer) OpenRuntime(ctx context.Context, p *pb.OpenRuntimeRequest) (*pb.OpenRuntimeAnswer, error) {
	return answer(&s.host, "OpenRuntime", p, decodeOpenRuntimeRequest,
		func(req *OpenRuntimeRequest) (*OpenRuntimeAnswer, error) {
			return s.runtime.OpenRuntime(ctx, s.engineOf(p.GetSession()), req)
		},
		bounded(maxAnswer, sure(encodeOpenRuntimeAnswer)))
}

func (s *runtimeServer) CodeRules(ctx context.Context, p *pb.CodeRulesRequest) (*pb.CodeRulesAnswer, error) {
	return answer(&s.host, "CodeRules", p, decodeCodeRulesRequest,
		func(req *CodeRulesRequest) (*CodeRulesAnswer, error) {
			return s.runtime.CodeRules(ctx, s.engineOf(p.GetSession()), req)
		},
		bounded(maxAnswer, encodeCodeRulesAnswer))
}

func (s *runtimeServer) ManagedFrames(ctx context.Context, p *pb.ManagedFramesRequest) (*pb.ManagedFramesAnswer, error) {
	return answer(&s.host, "ManagedFrames", p, decodeManagedFramesRequest,
		func(req *ManagedFramesRequest) (*ManagedFramesAnswer, error) {
			return s.runtime.ManagedFrames(ctx, s.engineOf(p.GetSession()), req)
		},
		bounded(maxAnswer, encodeManagedFramesAnswer))
}

func (s *runtimeServer) ManagedThreads(p *pb.ManagedThreadsRequest, stream grpc.ServerStreamingServer[pb.ManagedThreadsPart]) error {
	parts, err := answer(&s.host, "ManagedThreads", p, decodeManagedThreadsRequest,
		func(req *ManagedThreadsRequest) (*ManagedThreadsAnswer, error) {
			return s.runtime.ManagedThreads(stream.Context(), s.engineOf(p.GetSession()), req)
		}, managedThreadsParts)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := stream.Send(part); err != nil {
			return err
		}
	}
	return nil
}

// managedThreadsParts divides an answer into messages.
func managedThreadsParts(a *ManagedThreadsAnswer) ([]*pb.ManagedThreadsPart, error) {
	parts := []*pb.ManagedThreadsPart{{AnswerProblems: texts(a.Problems)}}
	for list := a.Threads; len(list) > 0; {
		n := min(len(list), partThreads)
		part, err := encodeManagedThreads(list[:n])
		if err != nil {
			return nil, err
		}
		if size := proto.Size(part); size > maxAnswer {
			return nil, fmt.Errorf("%d threads of %d bytes, expected at most %d", n, size, maxAnswer)
		}
		parts, list = append(parts, part), list[n:]
	}
	return parts, nil
}
