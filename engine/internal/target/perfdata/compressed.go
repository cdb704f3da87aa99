// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
)

const (
	// maxWindow is the window size of zstd's highest level.
	maxWindow = 128 << 20
	// maxRatio is more than stacks full of zeros reach.
	maxRatio = 1 << 10
	// maxSpill bounds the temporary file.
	maxSpill = 64 << 30
)

// payload reads the contents of an area's COMPRESSED records as one stream, as which
// perf compressed them.
type payload struct {
	area   *area
	offset uint64
	rest   []byte
	read   uint64
}

func (p *payload) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		var r record
		next, done, _ := p.area.next(p.offset, &r)
		if done {
			return 0, io.EOF
		}
		p.offset = next
		switch body := r.data[min(recordHeader, len(r.data)):]; r.kind {
		case recordCompressed:
			p.rest = body
		case recordCompressed2: // its size is before it, padding after it
			if len(body) >= 8 {
				size := p.area.order.u64(body)
				body = body[8:]
				p.rest = body[:min(size, uint64(len(body)))]
			}
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	p.read += uint64(n)
	return n, nil
}

// unpack unpacks the compressed records of an area into a temporary file, and scans
// it.
func (f *File) unpack(index int) {
	a := &f.areas[index]
	if a.packed == 0 {
		return
	}
	m, err := spill(&payload{area: a, offset: a.start}, f.unpacking)
	if err != nil {
		name := a.name
		if name != "" {
			name += ": "
		}
		f.problems.add("%s%d compressed records: %v", name, a.packed, err)
	}
	if m == nil {
		return
	}
	f.mapped = append(f.mapped, m)
	f.areas = append(f.areas, area{data: m.Data(), order: f.order, mapping: m, name: a.name, isLater: a.isLater, isUnpacked: true})
	f.scan(len(f.areas) - 1)
}

// spill unpacks a stream into what the options make, and maps it. With an error it returns the part that could
// be unpacked, or nil.
func spill(source *payload, o unpack.Options) (*object.Mapping, error) {
	d, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	sink, err := unpack.Create(o)
	if err != nil {
		return nil, err
	}
	output := io.NewOffsetWriter(sink, 0)
	written, problem := pour(output, d, source, o)
	if written == 0 || errors.Is(problem, unpack.ErrRefused) {
		sink.Drop()
		return nil, problem
	}
	m, err := mapSink(sink, int64(written)) //nolint:gosec // bounded by maxSpill
	if err != nil {
		sink.Drop()
		return nil, err
	}
	m.WhenClosed(sink.Drop)
	return m, problem
}

// mapSink maps the bytes that were written.
func mapSink(sink unpack.Sink, size int64) (*object.Mapping, error) {
	file, err := sink.Finish(size)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return object.MapFile(file, file.Name())
}

// pour copies a decoder's output, up to a plausible size.
func pour(output io.Writer, decoder io.Reader, source *payload, o unpack.Options) (written uint64, err error) {
	most := uint64(maxSpill)
	if o.MaxBytes > 0 {
		most = min(most, o.MaxBytes)
	}
	buf := make([]byte, 1<<20)
	for {
		n, err := decoder.Read(buf)
		if n > 0 {
			if _, err := output.Write(buf[:n]); err != nil {
				return written, err
			}
			written += uint64(n)
			if written > most || written > 1<<20+maxRatio*source.read {
				return written, fmt.Errorf("%w: more than %d bytes of %d", object.ErrTooLarge, written, source.read)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			// perf does not end its stream. An incomplete end shows as a truncated record.
			return written, nil
		default:
			return written, fmt.Errorf("after %d bytes, %d unpacked: %w", source.read, written, err)
		}
	}
}
