// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// A head is what is read of a wave's record: the scalar registers that have
	// other names, the hardware registers and the trap temporaries. The rest of the record
	// stays where it is: it is a hundred times as much.
	headSize  = 256
	headBelow = 128 // bytes of it before the hardware registers
	// maxHeads is how many are read at once.
	maxHeads = 4096
	// maxFailedReads is how many heads that cannot be read are asked for one by one for
	// the reason, of all queues.
	maxFailedReads = 1 << 10
	// partSize is how much is read at once of what is large.
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
