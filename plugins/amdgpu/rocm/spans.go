package rocm

import "context"

const (
	// A head is what is read of a wave's record: the scalar registers that have
	// other names, the hardware registers and the trap temporaries.
	headSize  = 256
	headBelow = 128 // bytes of it before the hardware registers
	// spanSize is how much is read at once. Heads that are at most spanGap apart are
	// read together with what is between them, which takes no longer than a read.
	spanSize = 1 << 20
	spanGap  = 48 << 10
	// maxFailedReads is how many heads that cannot be read with others are tried one by
	// one, of all queues.
	maxFailedReads = 1 << 10
)

// heads reads the heads of records, which come in the order of falling addresses,
// and calls each for every record. head is nil where it could not be read.
func (r *reader) heads(ctx context.Context, records []record, each func(record *record, head []byte, why error)) error {
	for len(records) > 0 {
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
		if err := r.readSpan(ctx, records[:n], low, high, each); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func (r *reader) readSpan(ctx context.Context, records []record, low, high uint64, each func(*record, []byte, error)) error {
	if r.span == nil {
		r.span = make([]byte, spanSize)
	}
	span := r.span[:high-low]
	err := r.memory.readDirect(ctx, low, span)
	for i := range records {
		at := records[i].control - headBelow
		head := span[at-low:][:headSize:headSize]
		why := err
		if err != nil && len(records) > 1 && r.failedReads < maxFailedReads {
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
		each(&records[i], head, why)
	}
	return nil
}
