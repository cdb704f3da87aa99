// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/sdk"
)

// emptyEngine is a target from which nothing can be read.
type emptyEngine struct{}

var (
	errMemory    = errors.New("address is not in the target")
	errThread    = errors.New("there is no such thread")
	errNoSection = errors.New("there is no such section")
)

func (emptyEngine) ReadMemory(context.Context, sdk.MemoryRange, []byte) (int, error) {
	return 0, errMemory
}

func (emptyEngine) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errThread
}

func (emptyEngine) ReadSection(context.Context, uint64, string) ([]byte, error) {
	return nil, errNoSection
}

// garbageEngine reads meaningless bytes, everywhere.
type garbageEngine struct{ bytes []byte }

func (e garbageEngine) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	for i := range buf {
		buf[i] = e.bytes[(m.Address+uint64(i))%uint64(len(e.bytes))]
	}
	return len(buf), nil
}

func (e garbageEngine) ReadRegisters(_ context.Context, _ uint64, numbers []uint32) (sdk.Registers, error) {
	var r sdk.Registers
	for _, n := range numbers {
		r.Set(n, e.bytes[:3])
	}
	return r, nil
}

func (e garbageEngine) ReadSection(context.Context, uint64, string) ([]byte, error) {
	return e.bytes, nil
}

// slowEngine reads nothing until the context of the read ends.
type slowEngine struct{}

func (slowEngine) ReadMemory(ctx context.Context, _ sdk.MemoryRange, _ []byte) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (slowEngine) ReadRegisters(ctx context.Context, _ uint64, _ []uint32) (sdk.Registers, error) {
	<-ctx.Done()
	return sdk.Registers{}, ctx.Err()
}

func (slowEngine) ReadSection(ctx context.Context, _ uint64, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
