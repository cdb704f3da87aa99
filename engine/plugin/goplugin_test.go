// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/sdk"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// serveByGoPlugin is a plugin that go-plugin serves, as package sdk did once. It makes
// its own certificate and says so in a sixth part of its line, and what it writes goes over
// go-plugin's service for that.
func serveByGoPlugin() {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{2: {"architecture": &servedByGoPlugin{}}},
		GRPCServer:       goplugin.DefaultGRPCServer,
	})
}

type servedByGoPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	pb.UnimplementedArchitectureServer
}

func (p *servedByGoPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterArchitectureServer(s, p)
	return nil
}

func (*servedByGoPlugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.ErrUnsupported
}

func (*servedByGoPlugin) Describe(context.Context, *pb.DescribeRequest) (*pb.Description, error) {
	return &pb.Description{
		Name: "test-" + string(byGoPlugin), Version: "1.0",
		Recognises:  []*pb.Recogniser{{ElfMachine: testMachine, OsAbi: -1}},
		AddressBits: 64,
		Registers:   []*pb.RegisterRange{{First: 0, Count: 2, Names: []string{"sp", "pc"}, Bits: 64}},
		Pc:          1, Sp: 0, Fp: ^uint32(0), ReturnAddress: 1, CallDistance: 1, MaxInstruction: 4, StackAlign: 8,
	}, nil
}

func (*servedByGoPlugin) Disassemble(_ context.Context, req *pb.DisassembleRequest) (*pb.DisassembleAnswer, error) {
	name, argument, _ := strings.Cut(req.GetProcessor(), " ")
	switch name {
	case "echo":
	case "say":
		fmt.Println("out", argument)
		fmt.Fprintln(os.Stderr, "err", argument)
	default:
		return nil, status.Errorf(codes.Unknown, "no command %q", name)
	}
	return &pb.DisassembleAnswer{
		Addresses: []uint64{req.GetAddress()}, Sizes: []uint32{1},
		Texts: &pb.Blobs{Data: []byte(argument), Lengths: []uint32{uint32(len(argument))}},
	}, nil
}

// TestUnservedCallsAreAnsweredByBase: the plugin serves Describe and Disassemble, and is asked
// for the rest as every other.
func TestUnservedCallsAreAnsweredByBase(t *testing.T) {
	m := manager(t, Options{InProcess: []sdk.Architecture{unserved{}}})
	inside, err := m.ForMachine(machine(testMachine + 1))
	if err != nil {
		t.Fatal(err)
	}
	for where, a := range map[string]*Arch{"process": testArchOf(t, byGoPlugin, Options{}), "in-process": inside} {
		if _, err := a.OpenObject(t.Context(), nil, &sdk.OpenObjectRequest{}); err != nil {
			t.Errorf("%s: OpenObject: %v", where, err)
		}
		if _, err := a.OpenTarget(t.Context(), nil, &sdk.OpenTargetRequest{}); err != nil {
			t.Errorf("%s: OpenTarget: %v", where, err)
		}
		rules, err := a.FrameRules(t.Context(), nil, functionNamed("f"))
		if err != nil || len(rules.Functions) != 1 || rules.Functions[0].Reason == "" {
			t.Errorf("%s: FrameRules: %+v %v", where, rules, err)
		}
		var state sdk.ThreadState
		state.Registers.Set(9, []byte{0xef, 0xbe, 0, 0, 0, 0, 0, 0})
		threads, err := a.BindThreads(t.Context(), nil, &sdk.BindThreadsRequest{Threads: []sdk.ThreadState{state}})
		if err != nil || len(threads.Threads) != 1 || threads.Threads[0].PC != 0xbeef || threads.Threads[0].Lanes != 1 {
			t.Errorf("%s: BindThreads: %+v %v", where, threads, err)
		}
		returns, err := a.ClassifyReturn(t.Context(), &sdk.ClassifyReturnRequest{PCs: []uint64{4}, Offsets: []uint32{0, 0}})
		if err != nil || len(returns.Classes) != 1 || returns.Classes[0] != sdk.UnknownReturn {
			t.Errorf("%s: ClassifyReturn: %+v %v", where, returns, err)
		}
		if _, err := a.Translate(t.Context(), nil, &sdk.TranslateRequest{}); !errors.Is(err, sdk.ErrNotImplemented) {
			t.Errorf("%s: Translate: %v", where, err)
		}
	}
}

// unserved answers ErrNotImplemented to each call of the test except ClassifyReturn.
type unserved struct{ sdk.Base }

func (unserved) Describe(context.Context) (*sdk.Description, error) {
	return testDescription(other), nil
}

func (unserved) OpenTarget(context.Context, sdk.Engine, *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	return nil, sdk.ErrNotImplemented
}

func (unserved) OpenObject(context.Context, sdk.Engine, *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return nil, sdk.ErrNotImplemented
}

func (unserved) FrameRules(context.Context, sdk.Engine, *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return nil, sdk.ErrNotImplemented
}
