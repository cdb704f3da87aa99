// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

// maxTLSIndex bounds the numbers of modules with thread-local storage.
const maxTLSIndex = 1 << 16

// windowsBlock returns the thread's block of a module of Windows.
func (w *walker) windowsBlock(ctx context.Context, m *target.Module) (uint64, error) {
	place, ok, err := m.Object.PE().TLSIndex()
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, errors.New("it has no TLS directory")
	}
	d := w.machine.Description
	known := m.Object.PE().Environment()
	register, ok := d.RegisterByName(known.Register)
	if !ok || m.Arch != w.thread.Arch {
		return 0, fmt.Errorf("in a thread of %s of Windows: %w", w.thread.Arch, locexpr.ErrNoContext)
	}
	environment, err := w.liveRegister(uint64(register.Number))
	if err != nil {
		return 0, fmt.Errorf("thread environment block: %w", err)
	}
	index, err := w.word(ctx, place+loadBias(m), 32)
	if err != nil {
		return 0, fmt.Errorf("number of the module: %w", err)
	}
	if index > maxTLSIndex {
		return 0, fmt.Errorf("the number of the module is %d, expected at most %d", index, maxTLSIndex)
	}
	blocks, err := w.word(ctx, environment+known.Blocks, d.AddressBits)
	if err != nil {
		return 0, fmt.Errorf("thread environment block: %w", err)
	}
	if blocks == 0 {
		return 0, errNotAllocated
	}
	block, err := w.word(ctx, blocks+index*uint64(d.AddressBits/8), d.AddressBits)
	if err == nil && block == 0 {
		err = errNotAllocated
	}
	return block, err
}
