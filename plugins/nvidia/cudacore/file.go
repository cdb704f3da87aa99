// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/unwindd/unwindd/sdk"
)

const (
	chunkSize = 1 << 20 // of the reads of large ranges
	batchSize = 2 << 20 // bytes that one batch of reads has
	gapSize   = 256     // bytes that are read in vain rather than by a read of their own
	smallSize = 8 << 10 // bytes: smaller reads go together
)

// file reads the bytes of the core. It reads one batch at a time.
type file struct {
	engine sdk.Engine
	size   uint64

	batch, small []byte // memory that batches use again
	list         []span
}

// buffer returns size bytes of memory that is kept for the next time.
func buffer(kept *[]byte, size uint64) []byte {
	if uint64(cap(*kept)) < size {
		*kept = make([]byte, size)
	}
	return (*kept)[:size]
}

// read fills buf.
func (f *file) read(ctx context.Context, offset uint64, buf []byte) error {
	if offset > f.size || uint64(len(buf)) > f.size-offset {
		return fmt.Errorf("%#x bytes at offset %#x pass the end of the file, which has %#x", len(buf), offset, f.size)
	}
	for len(buf) > 0 {
		part := buf[:min(len(buf), chunkSize)]
		n, err := f.engine.ReadMemory(ctx, sdk.MemoryRange{Space: sdk.FileSpace, Address: offset, Lane: -1}, part)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case n < len(part) && err == nil:
			err = fmt.Errorf("%d bytes of %d were read", n, len(part))
		}
		if err != nil {
			return fmt.Errorf("offset %#x: %w", offset, err)
		}
		buf, offset = buf[n:], offset+uint64(n) //nolint:gosec // at most len(part)
	}
	return nil
}

// part is a range of the file.
type part struct{ offset, size uint64 }

// span is a range that one read has: parts that follow each other closely.
type span struct {
	part
	count int // of parts
	data  []byte
}

// readAll calls each with the bytes of each part, in their order. Parts that could not be
// read come as nil, with the reason. The bytes are good until each returns.
func (f *file) readAll(ctx context.Context, parts []part, each func(i int, data []byte, err error)) error {
	for done := 0; done < len(parts); {
		spans, size := f.spans(parts[done:])
		buf := buffer(&f.batch, size)
		errs := f.readSpans(ctx, spans, buf)
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range spans {
			s := &spans[i]
			for range s.count {
				p := parts[done]
				if errs[i] != nil {
					each(done, nil, errs[i])
				} else {
					each(done, s.data[p.offset-s.offset:][:p.size], nil)
				}
				done++
			}
		}
	}
	return nil
}

// spans puts parts from the first on together into a batch, and returns its size. A batch
// has one part at least.
func (f *file) spans(parts []part) (spans []span, size uint64) {
	spans = f.list[:0]
	for _, p := range parts {
		if n := len(spans); n > 0 {
			s := &spans[n-1]
			end := s.offset + s.size
			if p.offset >= s.offset && p.offset <= end+gapSize && p.offset+p.size-s.offset <= chunkSize {
				if more := max(end, p.offset+p.size) - end; size+more <= batchSize {
					s.size, size = s.size+more, size+more
					s.count++
					continue
				}
			}
			if size+p.size > batchSize {
				break
			}
		}
		spans, size = append(spans, span{part: p, count: 1}), size+p.size
	}
	f.list = spans
	return spans, size
}

// readSpans reads spans into buf, small ones of about one size together.
func (f *file) readSpans(ctx context.Context, spans []span, buf []byte) []error {
	errs := make([]error, len(spans))
	small := map[uint64][]int{} // by the size of a read
	for i := range spans {
		s := &spans[i]
		s.data, buf = buf[:s.size:s.size], buf[s.size:]
		if size := uint64(1) << bits.Len64(s.size|15); s.size > 0 && size <= smallSize && s.offset <= f.size && size <= f.size-s.offset {
			small[size] = append(small[size], i)
		} else {
			errs[i] = f.read(ctx, s.offset, s.data)
		}
	}
	for size, list := range small {
		f.readSmall(ctx, spans, list, size, errs)
	}
	return errs
}

// readSmall reads some spans by reads of one size.
func (f *file) readSmall(ctx context.Context, spans []span, list []int, size uint64, errs []error) {
	offsets := make([]uint64, len(list))
	for i, j := range list {
		offsets[i] = spans[j].offset
	}
	buf := buffer(&f.small, uint64(len(list))*size)
	missing, err := sdk.ReadFileParts(ctx, f.engine, offsets, int(size), buf) //nolint:gosec // at most smallSize
	if err != nil && len(missing) == 0 {
		for _, j := range list {
			errs[j] = err
		}
		return
	}
	for i, j := range list {
		copy(spans[j].data, buf[uint64(i)*size:])
	}
	for _, i := range missing { // the file may end behind the span and within the read
		j := list[i]
		errs[j] = f.read(ctx, spans[j].offset, spans[j].data)
	}
}
