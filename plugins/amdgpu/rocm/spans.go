// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// A head is the part of a wave's record that is read: the scalar registers that have
	// other names, the hardware registers and the trap temporaries. The rest, a hundred
	// times as much, stays where it is.
	headSize  = 256
	headBelow = 128 // bytes of it before the hardware registers
	// maxHeads bounds the heads that are read at once.
	maxHeads = 4096
	// maxFailedReads bounds the heads of all queues that are read again one by one for
	// the reason of a failure.
	maxFailedReads = 1 << 10
	// partSize is the size of the reads of large data.
	partSize = 1 << 20
)

// heads reads the heads of records, and calls each for every record. head is nil where it
// could not be read.
func (r *reader) heads(ctx context.Context, records []record, each func(record *record, head []byte, why error)) error {
	for len(records) > 0 {
		n := min(len(records), maxHeads)
		if err := r.readHeads(ctx, records[:n], each); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func (r *reader) readHeads(ctx context.Context, records []record, each func(*record, []byte, error)) error {
	addresses := make([]uint64, len(records))
	for i := range records {
		addresses[i] = records[i].control - headBelow
	}
	buf := make([]byte, len(records)*headSize)
	missing, err := sdk.ReadParts(ctx, r.memory.engine, addresses, headSize, buf)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	isNone := err != nil && len(missing) == 0
	for i := range records {
		head, why := buf[i*headSize:][:headSize:headSize], err
		switch {
		case isNone:
			head = nil
		case len(missing) == 0 || missing[0] != i:
			why = nil
		default:
			missing = missing[1:]
			if r.failedReads++; r.failedReads <= maxFailedReads {
				why = r.memory.readDirect(ctx, addresses[i], head)
			}
			if why != nil {
				head = nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		each(&records[i], head, why)
	}
	return nil
}
