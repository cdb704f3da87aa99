// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// An engineClient is the engine as the plugin's process sees it, for one call.
type engineClient struct {
	rpc     pb.EngineClient
	session uint64
}

func (e *engineClient) ReadMemory(ctx context.Context, m MemoryRange, buf []byte) (int, error) {
	read := 0
	for read < len(buf) {
		size := min(len(buf)-read, partSize)
		p, err := e.rpc.ReadMemory(ctx, &pb.ReadMemoryRequest{
			Session: e.session,
			Space:   uint64(m.Space), Address: m.Address + uint64(read),
			Thread: m.Thread, Lane: m.Lane, Size: uint32(size),
		})
		if err != nil {
			return read, engineError(ctx, "ReadMemory", err)
		}
		n := copy(buf[read:read+size], p.GetData())
		read += n
		if p.GetError() != "" {
			return read, errors.New(p.GetError())
		}
		if n < size {
			return read, fmt.Errorf("ReadMemory: %w: %d bytes, expected %d or an error", ErrMalformed, n, size)
		}
	}
	return read, nil
}

func (e *engineClient) ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (Registers, error) {
	p, err := e.rpc.ReadRegisters(ctx, &pb.ReadRegistersRequest{Session: e.session, Thread: thread, Numbers: numbers})
	if err != nil {
		return Registers{}, engineError(ctx, "ReadRegisters", err)
	}
	states, err := decodeRegisters(p.GetRegisters(), 1)
	if err != nil {
		return Registers{}, fmt.Errorf("ReadRegisters: %w", err)
	}
	return states[0], nil
}

func (e *engineClient) ReadSection(ctx context.Context, object uint64, name string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := e.rpc.ReadSection(ctx, &pb.ReadSectionRequest{Session: e.session, Object: object, Name: []byte(name)})
	if err != nil {
		return nil, engineError(ctx, "ReadSection", err)
	}
	var data []byte
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, engineError(ctx, "ReadSection", err)
		}
		data = append(data, part.GetData()...)
	}
}

// noEngine is the engine of a call whose caller offers none.
type noEngine struct{}

var errNoEngine = errors.New("the caller offers no engine")

func (noEngine) ReadMemory(context.Context, MemoryRange, []byte) (int, error) { return 0, errNoEngine }

func (noEngine) ReadRegisters(context.Context, uint64, []uint32) (Registers, error) {
	return Registers{}, errNoEngine
}

func (noEngine) ReadSection(context.Context, uint64, string) ([]byte, error) { return nil, errNoEngine }
