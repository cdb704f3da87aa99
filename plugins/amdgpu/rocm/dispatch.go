// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/unwindd/unwindd/sdk"
)

const (
	packetSize    = 64 // of AQL
	maxDispatches = 1 << 14

	packetInvalid = 1 // the type that the hardware gives a packet that it has begun
	packetKernel  = 2
)

// dispatch returns the dispatch of the packet at an index in the queue's ring, or
// nil.
func (q *queueReader) dispatch(ctx context.Context, index uint32) *sdk.TargetDispatch {
	list := &q.reader.answer.Dispatches
	if i, ok := q.packets[index]; ok {
		return &(*list)[i]
	}
	d, err := q.readDispatch(ctx, index)
	if err != nil {
		q.noDispatch.add(err)
		return nil
	}
	q.packets[index] = len(*list)
	*list = append(*list, *d)
	return &(*list)[len(*list)-1]
}

func (q *queueReader) readDispatch(ctx context.Context, index uint32) (*sdk.TargetDispatch, error) {
	if len(q.reader.answer.Dispatches) == maxDispatches {
		return nil, fmt.Errorf("there are more than %d dispatches", maxDispatches)
	}
	if err := q.checkPacket(index); err != nil {
		return nil, err
	}
	var b [packetSize]byte
	if err := q.reader.memory.read(ctx, q.queue.ring+uint64(index)*packetSize, b[:]); err != nil {
		return nil, fmt.Errorf("packet %d of its ring could not be read: %w", index, err)
	}
	if kind := b[0]; kind != packetInvalid && kind != packetKernel {
		return nil, fmt.Errorf("packet %d of its ring is of type %d, expected %d, a dispatch, or %d, one that has begun",
			index, kind, packetKernel, packetInvalid)
	}
	le := binary.LittleEndian
	d := &sdk.TargetDispatch{
		ID: strconv.Itoa(len(q.reader.answer.Dispatches) + 1), Queue: q.id,
		Grid:   [3]uint32{le.Uint32(b[12:]), le.Uint32(b[16:]), le.Uint32(b[20:])},
		Group:  [3]uint32{uint32(le.Uint16(b[4:])), uint32(le.Uint16(b[6:])), uint32(le.Uint16(b[8:]))},
		Signal: le.Uint64(b[56:]),
	}
	q.privateSizes[d.ID] = uint64(le.Uint32(b[24:]))
	descriptor := le.Uint64(b[32:])
	if offset, err := q.reader.memory.uint64(ctx, descriptor+16); err == nil && descriptor != 0 {
		d.Entry = descriptor + offset
	}
	d.Kernel = q.reader.kernelAt(ctx, descriptor)
	return d, nil
}

// checkPacket checks that the packet at an index is among the queue's current
// packets: from the oldest unfinished one to the last that was submitted.
func (q *queueReader) checkPacket(index uint32) error {
	count := uint64(q.queue.ringSize) / packetSize
	if uint64(index) >= count {
		return fmt.Errorf("its trap temporaries name packet %d of a ring of %d", index, count)
	}
	if !q.hasIDs {
		return nil
	}
	id := uint64(index) + q.readID/count*count
	if id < q.readID && q.readID%count >= q.writeID%count {
		id += count
	}
	if id < q.readID || id >= q.writeID {
		return fmt.Errorf("its trap temporaries name packet %d of its ring, number %d, expected one from %d up to %d", index, id, q.readID, q.writeID)
	}
	return nil
}
