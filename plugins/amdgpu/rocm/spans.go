package rocm

import (
	"context"
	"sync"
)

const (
	// A head is what is read of a wave's record: the scalar registers that have
	// other names, the hardware registers and the trap temporaries.
	headSize  = 256
	headBelow = 128 // bytes of it before the hardware registers
	// Heads that are at most spanGap apart are read together with what is between
	// them, which takes no longer than a read, up to spanSize bytes.
	spanSize = 1 << 20
	spanGap  = 8 << 10
	// Spans are read many at once, of up to batchSize bytes: most of the time that a
	// read from the engine takes, nobody computes.
	batchSpans = 64
	batchSize  = 8 << 20
	// maxFailedReads is how many heads that cannot be read with others are tried one by
	// one, of all queues.
	maxFailedReads = 1 << 10
)

// A span is memory that has the heads of some records.
type span struct {
	records []record
	address uint64
	bytes   []byte
	err     error
}

// heads reads the heads of records, which come in the order of falling addresses,
// and calls each for every record. head is nil where it could not be read.
func (r *reader) heads(ctx context.Context, records []record, each func(record *record, head []byte, why error)) error {
	for len(records) > 0 {
		var batch []span
		for size := 0; len(records) > 0 && len(batch) < batchSpans && size < batchSize; {
			s := nextSpan(records)
			records = records[len(s.records):]
			size += len(s.bytes)
			batch = append(batch, s)
		}
		var reading sync.WaitGroup
		for i := range batch {
			s := &batch[i]
			reading.Go(func() { s.err = r.memory.readDirect(ctx, s.address, s.bytes) })
		}
		reading.Wait()
		for i := range batch {
			if err := r.deliver(ctx, &batch[i], each); err != nil {
				return err
			}
		}
	}
	return nil
}

// nextSpan is what is read for the first of the records.
func nextSpan(records []record) span {
	n, low := 1, records[0].control-headBelow
	high := low + headSize
	for n < len(records) {
		next := records[n].control - headBelow
		if low-(next+headSize) > spanGap || high-next > spanSize {
			break
		}
		low = next
		n++
	}
	return span{records: records[:n], address: low, bytes: make([]byte, high-low)}
}

// deliver hands the heads of a span on. Those of one that could not be read are
// tried one by one.
func (r *reader) deliver(ctx context.Context, s *span, each func(*record, []byte, error)) error {
	for i := range s.records {
		at := s.records[i].control - headBelow
		head := s.bytes[at-s.address:][:headSize:headSize]
		why := s.err
		if why != nil && len(s.records) > 1 && r.failedReads < maxFailedReads {
			if why = r.memory.readDirect(ctx, at, head); why != nil {
				r.failedReads++
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if why != nil {
			head = nil
		}
		each(&s.records[i], head, why)
	}
	return nil
}
