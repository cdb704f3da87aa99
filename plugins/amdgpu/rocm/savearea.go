// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
)

const (
	saveHeaderSize = 40 // kfd_context_save_area_header
	// maxControlStack is far more than drivers write for a million waves. It bounds the
	// sum of all control stacks.
	maxControlStack = 16 << 20
	maxWaves        = 1 << 18
	maxXCCs         = 64
	// packetWords are the words before the first of the control stack: the packets
	// that restore it.
	packetWords = 2
)

// saveArea is the area where the waves of a queue on one XCC were saved.
type saveArea struct {
	address              uint64
	stack, waves, end    uint64 // the control stack begins, ends where the waves' records begin, and those end
	controlStackContents []byte
}

// readSaveArea reads the header and the control stack. A queue that had no waves
// has neither.
func (m *memory) readSaveArea(ctx context.Context, address, size uint64) (*saveArea, error) {
	if size > math.MaxUint64-address {
		return nil, fmt.Errorf("its %#x bytes pass the end of the address space", size)
	}
	h, err := m.readSaveHeader(ctx, address)
	if err != nil {
		return nil, err
	}
	if h.isEmpty() {
		return &saveArea{address: address}, nil
	}
	err = h.check()
	switch {
	case err != nil:
		return nil, err
	case h.waves > size:
		return nil, fmt.Errorf("its waves end at offset %#x, which is not within its %#x bytes", h.waves, size)
	case h.stackSize%dword != 0 || h.stackSize > uint64(maxControlStack-m.stacks):
		return nil, fmt.Errorf("its control stack has %#x bytes, expected whole words and, with those before, at most %#x", h.stackSize, maxControlStack)
	}
	m.stacks += int(h.stackSize)
	waves := address + h.stack + h.stackSize
	a := &saveArea{address: address, stack: address + h.stack, waves: waves, end: waves + h.wavesSize}
	a.controlStackContents = make([]byte, h.stackSize)
	if err := m.readParts(ctx, a.stack, a.controlStackContents); err != nil {
		return nil, fmt.Errorf("its control stack: %w", err)
	}
	return a, nil
}

// readParts reads large data in parts, so that a false size in a file costs no
// time beyond the memory that exists.
func (m *memory) readParts(ctx context.Context, address uint64, buf []byte) error {
	for len(buf) > 0 {
		n := min(len(buf), partSize)
		if err := m.readDirect(ctx, address, buf[:n]); err != nil {
			return err
		}
		buf, address = buf[n:], address+uint64(n)
	}
	return nil
}

// record is the place of a wave's state: the addresses of its parts, which
// follow each other upwards in this order.
type record struct {
	vectors, acc, scalars, control     uint64
	lanes                              uint32
	vectorCount, accCount, scalarCount uint32
	sharedSize                         uint32 // bytes of vector registers that the halves of the wave share
	localAddress                       uint64 // of the group's local memory
	localSize                          uint32 // 0: it is not known, or there is none
	word                               uint32
	isFirst                            bool
	hasGroup                           bool // the first wave of its group was seen
}

// records walks a control stack, whose waves' records end at end and begin at
// begin. It stops after most of them.
func (f *family) records(stack []byte, begin, end uint64, most int) ([]record, error) {
	var found []record
	var state uint32
	var localAddress uint64
	var localSize uint32
	hasGroup := false
	words := len(stack) / dword
	for i := packetWords; i < words; i++ {
		word := binary.LittleEndian.Uint32(stack[i*dword:])
		switch {
		case word&(1<<30) != 0: // an event
			continue
		case word&(1<<31) != 0:
			state = word
			i += f.stateWords - 1
			continue
		case len(found) == most:
			return found, errTooMany
		}
		r := f.describe(state, word)
		size, lds := r.sizes(f)
		if size+lds > end-begin {
			return nil, fmt.Errorf("word %d of its control stack: a wave's record of %#x bytes ends at %#x, where those of all begin at %#x",
				i, size+lds, end, begin)
		}
		r.place(f, end-f.gap-lds)
		if r.isFirst {
			localAddress, localSize, hasGroup = end-f.gap-lds, uint32(lds), true //nolint:gosec // a field of a few bits
		}
		r.localAddress, r.localSize, r.hasGroup = localAddress, localSize, hasGroup
		if f.last.of(word) != 0 {
			localAddress, localSize, hasGroup = 0, 0, false
		}
		found = append(found, r)
		end = r.vectors
	}
	if end != begin {
		return nil, fmt.Errorf("the records of its %d waves begin at %#x, expected %#x, where its control stack ends", len(found), end, begin)
	}
	return found, nil
}

// describe decodes a state word and a wave's word into its record.
func (f *family) describe(state, word uint32) record {
	r := record{word: word, lanes: wave64, isFirst: f.first.of(word) != 0}
	if f.only32 || f.isWave32.of(state) != 0 {
		r.lanes = wave32
	}
	r.vectorCount = (f.vectors.of(state) + 1) * f.block[r.lanes/wave64]
	switch f.acc {
	case likeVectors:
		r.accCount = r.vectorCount
	case restAccumulation:
		all := r.vectorCount
		r.vectorCount = (f.boundary.of(state) + 1) * 4
		if all > r.vectorCount {
			r.accCount = all - r.vectorCount
		}
	}
	r.scalarCount = 128
	if f.scalars.bits != 0 {
		r.scalarCount = f.scalars.of(state) * 16
	}
	if r.isFirst {
		r.localSize = f.local.of(state) * f.localBlock
		if f.whole.of(state) != 0 {
			r.localSize = 128 << 10
		}
	}
	r.sharedSize = f.shared.of(state) * 8 * wave32 * dword
	return r
}

// sizes returns the bytes of the record without the group's local memory, with the
// gap above, and the bytes of that memory.
func (r *record) sizes(f *family) (size, local uint64) {
	registers := uint64(r.vectorCount+r.accCount) * uint64(r.lanes) * dword
	return f.gap + f.control + uint64(r.scalarCount)*dword + uint64(r.sharedSize) + registers, uint64(r.localSize)
}

// place sets the addresses of a record that ends at end.
func (r *record) place(f *family, end uint64) {
	r.control = end - f.control
	r.scalars = r.control - uint64(r.scalarCount)*dword
	r.acc = r.scalars - uint64(r.sharedSize) - uint64(r.accCount)*uint64(r.lanes)*dword
	r.vectors = r.acc - uint64(r.vectorCount)*uint64(r.lanes)*dword
}
