// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// blockSize is the size of the reads of small, scattered data: a read from the
	// engine costs as much as copying many kilobytes.
	blockSize = 4 << 10
	maxBlocks = 1 << 10 // are remembered
	// maxReads bounds the reads of scattered data: far more than any process has
	// code objects, queues and kernels.
	maxReads = 1 << 16
)

var errManyReads = fmt.Errorf("more than %d reads were made before", maxReads)

// memory reads the core's memory, by blocks that it remembers.
type memory struct {
	engine sdk.Engine
	blocks map[uint64][]byte // by address: as much of each as could be read
	reads  int               // of scattered data
	stacks int               // bytes of control stacks
}

// read fills buf.
func (m *memory) read(ctx context.Context, address uint64, buf []byte) error {
	if uint64(len(buf)) > math.MaxUint64-address {
		return fmt.Errorf("%#x bytes at %#x pass the end of the address space", len(buf), address)
	}
	for len(buf) > 0 {
		offset := address % blockSize
		block := m.block(ctx, address-offset)
		if offset >= uint64(len(block)) {
			// The memory may begin within the block.
			if m.reads++; m.reads > maxReads {
				return errManyReads
			}
			return m.readDirect(ctx, address, buf)
		}
		n := copy(buf, block[offset:])
		buf = buf[n:]
		address += uint64(n)
	}
	return nil
}

func (m *memory) block(ctx context.Context, address uint64) []byte {
	if block, ok := m.blocks[address]; ok {
		return block
	}
	if m.reads++; m.reads > maxReads {
		return nil
	}
	if len(m.blocks) >= maxBlocks || m.blocks == nil {
		m.blocks = make(map[uint64][]byte)
	}
	block := make([]byte, blockSize)
	n, _ := m.engine.ReadMemory(ctx, sdk.MemoryRange{Address: address}, block)
	block = block[:min(max(n, 0), blockSize)]
	m.blocks[address] = block
	return block
}

// readDirect fills buf without remembering anything.
func (m *memory) readDirect(ctx context.Context, address uint64, buf []byte) error {
	n, err := m.engine.ReadMemory(ctx, sdk.MemoryRange{Address: address}, buf)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && n < len(buf):
		return fmt.Errorf("%d bytes of %d at %#x are there", n, len(buf), address)
	}
	return err
}

func (m *memory) uint64(ctx context.Context, address uint64) (uint64, error) {
	var b [8]byte
	err := m.read(ctx, address, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

func (m *memory) uint32(ctx context.Context, address uint64) (uint32, error) {
	var b [4]byte
	err := m.read(ctx, address, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// text reads a string that a zero byte ends, of at most limit bytes.
func (m *memory) text(ctx context.Context, address uint64, limit int) (string, error) {
	var b []byte
	for len(b) <= limit {
		var c [1]byte
		if err := m.read(ctx, address+uint64(len(b)), c[:]); err != nil {
			return "", err
		}
		if c[0] == 0 {
			return string(b), nil
		}
		b = append(b, c[0])
	}
	return "", fmt.Errorf("the string at %#x has more than %d bytes", address, limit)
}
