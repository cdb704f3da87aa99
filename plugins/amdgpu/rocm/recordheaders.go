// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// A header is the part of a wave's record that is read: the scalar registers that have
	// other names, the hardware registers and the trap temporaries. The rest, a hundred
	// times as much, stays where it is.
	recordHeaderSize  = 256
	recordHeaderBelow = 128 // bytes of it before the hardware registers
	// maxRecordHeaders bounds the headers that are read at once.
	maxRecordHeaders = 4096
	// maxFailedReads bounds the headers of all queues that are read again one by one for
	// the reason of a failure.
	maxFailedReads = 1 << 10
	// partSize is the size of the reads of large data.
	partSize = 1 << 20
)

// recordHeaders reads the headers of records, and calls each for every record. header is nil where
// it could not be read.
func (r *reader) recordHeaders(ctx context.Context, records []record, each func(record *record, header []byte, why error)) error {
	for len(records) > 0 {
		n := min(len(records), maxRecordHeaders)
		if err := r.readRecordHeaders(ctx, records[:n], each); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func (r *reader) readRecordHeaders(ctx context.Context, records []record, each func(*record, []byte, error)) error {
	addresses := make([]uint64, len(records))
	for i := range records {
		addresses[i] = records[i].control - recordHeaderBelow
	}
	buf := make([]byte, len(records)*recordHeaderSize)
	missing, err := sdk.ReadParts(ctx, r.memory.engine, addresses, recordHeaderSize, buf)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	isNone := err != nil && len(missing) == 0
	for i := range records {
		header, why := buf[i*recordHeaderSize:][:recordHeaderSize:recordHeaderSize], err
		switch {
		case isNone:
			header = nil
		case len(missing) == 0 || missing[0] != i:
			why = nil
		default:
			missing = missing[1:]
			if r.failedReads++; r.failedReads <= maxFailedReads {
				why = r.memory.readDirect(ctx, addresses[i], header)
			}
			if why != nil {
				header = nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		each(&records[i], header, why)
	}
	return nil
}
