// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
