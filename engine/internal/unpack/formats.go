// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxWindow bounds the memory that a packed stream may ask for: the limit of zstd's own
// command, and twice that of `xz -9`.
const maxWindow = 128 << 20

// maxLayers bounds how often a target may be packed: a packed report may contain a packed
// core.
const maxLayers = 4

// format is one packed format of targets.
type format struct {
	name   string
	is     func(head []byte) bool
	unpack func(p *peeler, r *bufio.Reader) (io.Reader, error)
}

// formats lists the packed formats that are read.
var formats []format

func init() { // not in the declaration: the reader of reports refers to formats
	formats = []format{
		{"gzip", begins("\x1f\x8b\x08"), func(_ *peeler, r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
		{"xz", begins(xzMagic), func(_ *peeler, r *bufio.Reader) (io.Reader, error) { return newXZ(r), nil }},
		{"zstd", isZstandard, func(_ *peeler, r *bufio.Reader) (io.Reader, error) { return newZstandard(r) }},
		{"bzip2", isBzip2, func(_ *peeler, r *bufio.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
		{"lz4", isLZ4, func(_ *peeler, r *bufio.Reader) (io.Reader, error) { return newLZ4(r) }},
		{"report", isReport, func(p *peeler, r *bufio.Reader) (io.Reader, error) { return p.openReport(r) }},
	}
}

// begins returns a function that reports whether a stream begins with a magic.
func begins(magic string) func(head []byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// isBzip2 knows the first bytes of a stream, up to the magic of its first block or of its end:
// text may begin like the first four.
func isBzip2(head []byte) bool {
	if len(head) < 10 || !bytes.HasPrefix(head, []byte("BZh")) || head[3] < '1' || head[3] > '9' {
		return false
	}
	return string(head[4:10]) == "\x31\x41\x59\x26\x53\x59" || string(head[4:10]) == "\x17\x72\x45\x38\x50\x90"
}

// isSkippable reports whether a frame follows that readers of Zstandard (RFC 8878, 3.1.2)
// and of LZ4 alike have to skip.
func isSkippable(head []byte) bool {
	return len(head) > 8 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
}

// isZstandard takes a skippable frame for Zstandard's unless LZ4 follows: pzstd writes one
// in front.
func isZstandard(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) || isSkippable(head) && !isLZ4(head)
}

// isLZ4 knows today's frames, which systemd-coredump and lz4 write, and the legacy frames
// of `lz4 -l`.
func isLZ4(head []byte) bool {
	for isSkippable(head) {
		size := uint64(head[4]) | uint64(head[5])<<8 | uint64(head[6])<<16 | uint64(head[7])<<24
		if size+8 > uint64(len(head)) {
			return false
		}
		head = head[8+size:]
	}
	return bytes.HasPrefix(head, []byte("\x04\x22\x4d\x18")) || bytes.HasPrefix(head, []byte("\x02\x21\x4c\x18"))
}

// newZstandard reads frames one after another on this goroutine alone.
func newZstandard(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

func newLZ4(r io.Reader) (io.Reader, error) {
	z := lz4.NewReader(r)
	return z, z.Apply(lz4.ConcurrencyOption(1))
}

// formatOf returns the format of a stream by its first bytes, nil where it is not packed.
func formatOf(head []byte) *format {
	for i := range formats {
		if formats[i].is(head) {
			return &formats[i]
		}
	}
	return nil
}

// peeler unpacks a target, layer by layer, and collects the reports it meets.
type peeler struct{ reports []*report }

// peel returns the target in a stream.
func (p *peeler) peel(r *bufio.Reader) (*bufio.Reader, error) {
	for n := 0; ; n++ {
		head, _ := r.Peek(headSize) // an error comes again when the stream is read
		f := formatOf(head)
		if f == nil {
			return r, nil
		}
		if n == maxLayers {
			return nil, fmt.Errorf("it is packed more than %d times", maxLayers)
		}
		inner, err := f.unpack(p, r)
		if err != nil {
			return nil, &layerError{f.name, cut(err)}
		}
		r = bufio.NewReaderSize(&layer{name: f.name, r: inner}, 64<<10)
	}
}

// labels returns the labels of the reports that were read. isWhole: the target in them was
// read to its end.
func (p *peeler) labels(isWhole bool) (list []Label) {
	for _, r := range p.reports {
		if isWhole {
			_ = r.finish() // the target is whole, whatever is wrong after it
		}
		list = append(list, r.labels...)
	}
	return list
}

// layer reads an unpacked stream. Its first error stays.
type layer struct {
	name string
	r    io.Reader
	err  error
}

func (l *layer) Read(b []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.r.Read(b)
	switch {
	case err == nil, errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		l.err = err
	case errors.As(err, new(*layerError)):
		l.err = err // an outer layer's
	default:
		l.err = &layerError{l.name, err}
	}
	return n, l.err
}

// layerError is an error in a packed stream.
type layerError struct {
	name string
	err  error
}

func (e *layerError) Error() string {
	if errors.Is(e.err, io.ErrUnexpectedEOF) {
		return e.name + ": the stream is cut"
	}
	return e.name + ": " + strings.TrimPrefix(e.err.Error(), e.name+": ") // libraries name themselves
}

func (e *layerError) Unwrap() error { return e.err }
