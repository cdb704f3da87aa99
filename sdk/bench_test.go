// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// benchArch reads from the engine as its requests order: the PC of the first function
// says what, its Start how often.
type benchArch struct{ Base }

// benchReads are the orders, each with what one read of it is.
var benchReads = []struct {
	name string
	size int // bytes of one read
	read func(ctx context.Context, e Engine, buf []byte) error
}{
	{"8", 8, readOnce},
	{"4096", 4096, readOnce},
	{"1MiB", 1 << 20, readOnce},
	{"parts", 1000 * 64, func(ctx context.Context, e Engine, buf []byte) error {
		addresses := make([]uint64, 1000)
		for i := range addresses {
			addresses[i] = uint64(i) * 512
		}
		_, err := ReadParts(ctx, e, addresses, 64, buf)
		return err
	}},
	{"8threads", 8 * 8, func(ctx context.Context, e Engine, buf []byte) error {
		var wg sync.WaitGroup
		var errs [8]error
		for i := range errs {
			wg.Go(func() { errs[i] = readOnce(ctx, e, buf[i*8:][:8]) })
		}
		wg.Wait()
		return errs[0]
	}},
	{"registers", 0, func(ctx context.Context, e Engine, _ []byte) error {
		_, err := e.ReadRegisters(ctx, 1, []uint32{1, 2, 3})
		return err
	}},
	{"section", 16 << 20, func(ctx context.Context, e Engine, buf []byte) error {
		b, err := e.ReadSection(ctx, 7, ".data")
		if err == nil && len(b) != len(buf) {
			err = fmt.Errorf("%d bytes", len(b))
		}
		return err
	}},
}

func readOnce(ctx context.Context, e Engine, buf []byte) error {
	_, err := e.ReadMemory(ctx, MemoryRange{Address: 0x100}, buf)
	return err
}

func (*benchArch) Describe(context.Context) (*Description, error) { return testDescription(), nil }

func (*benchArch) FrameRules(ctx context.Context, e Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
	order := benchReads[req.Functions[0].PC]
	buf := make([]byte, order.size)
	for range req.Functions[0].Start {
		if err := order.read(ctx, e, buf); err != nil {
			return nil, err
		}
	}
	return &FrameRulesAnswer{Functions: make([]FrameRules, 1)}, nil
}

// BenchmarkEngineReads is one read of a plugin in another process, connected as
// the engine connects it but for TLS.
func BenchmarkEngineReads(b *testing.B) {
	c := start(b, "bench", nil).client
	e := &testEngine{memory: make([]byte, 2<<20), section: make([]byte, 16<<20)}
	for i, order := range benchReads {
		b.Run(order.name, func(b *testing.B) {
			b.SetBytes(int64(order.size))
			req := &FrameRulesRequest{Functions: []CodeRange{{PC: uint64(i), Start: uint64(b.N)}}}
			if _, err := c.FrameRules(b.Context(), e, req); err != nil {
				b.Fatal(err)
			}
		})
	}
}
