// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/object"
)

// The bounds of the archive.
const (
	maxDirectory = 64 << 20 // bytes of the directory, at least 46 for each member
	maxMember    = 1 << 30  // bytes of a member, decompressed
	maxInflated  = 4 << 30  // bytes of all members that are decompressed
	// A few zero pages may compress a thousandfold, a whole snapshot does not.
	inflatedFloor = 64 << 20
	inflatedRatio = 128
	// deflateRatio is the highest ratio of DEFLATE: a copy of 258 bytes takes at least 2
	// bits.
	deflateRatio = 1032
)

// The magic numbers of a ZIP file that begins with a member (APPNOTE 6.3.10,
// 4.3.7).
const localMagic = "PK\x03\x04"

// archive is a ZIP file. Its members are read when they are first needed: stored members are not
// copied, and deflated members are decompressed once and kept.
type archive struct {
	data    []byte
	members map[string]*member

	mu       sync.Mutex
	inflated uint64 // bytes of decompressed members, including refused ones
}

// member is a file in the archive.
type member struct {
	archive    *archive
	header     *zip.File // the first with its name
	isRepeated bool      // there are several with its name

	once sync.Once
	data []byte
	err  error
}

// directoryReader bounds the bytes that reading the directory of an unknown file takes.
type directoryReader struct {
	*bytes.Reader
	left int
}

var errDirectory = fmt.Errorf("its directory has more than %d bytes", maxDirectory)

func (d *directoryReader) ReadAt(p []byte, off int64) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, errDirectory
	}
	return d.Reader.ReadAt(p, off)
}

// openArchive reads the directory of a ZIP file.
func openArchive(data []byte) (*archive, error) {
	d := &directoryReader{bytes.NewReader(data), maxDirectory}
	z, err := zip.NewReader(d, int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("the directory of the ZIP file cannot be read: %w", err)
	}
	d.left = math.MaxInt
	a := &archive{data: data, members: make(map[string]*member, len(z.File))}
	for _, f := range z.File {
		if m := a.members[f.Name]; m != nil {
			m.isRepeated = true
			continue
		}
		a.members[f.Name] = &member{archive: a, header: f}
	}
	return a, nil
}

// member returns a member whose headers are valid.
func (a *archive) member(name string) (*member, error) {
	if m := a.members[name]; m != nil && !m.isRepeated && m.size() > maxMember {
		return nil, m.fail(fmt.Errorf("has %d bytes, expected at most %d", m.size(), uint64(maxMember)))
	}
	return a.find(name)
}

// document returns the member that is read as a stream, and may have any size.
func (a *archive) document() (*member, error) { return a.find(documentName) }

func (a *archive) find(name string) (*member, error) {
	m := a.members[name]
	switch {
	case m == nil:
		return nil, fmt.Errorf("the archive has no member %q", jsontext.Clip(name))
	case m.isRepeated:
		return nil, fmt.Errorf("the archive has several members %q", jsontext.Clip(name))
	}
	if err := m.check(); err != nil {
		return nil, m.fail(err)
	}
	return m, nil
}

// size returns the member's size by its header; reading a member of another size fails.
func (m *member) size() uint64 { return m.header.UncompressedSize64 }

// check reports an invalid header, or a member beyond the bounds.
func (m *member) check() error {
	h := m.header
	packed, size := h.CompressedSize64, h.UncompressedSize64
	switch {
	case h.Flags&1 != 0:
		return errors.New("is encrypted")
	case packed > uint64(len(m.archive.data)):
		return fmt.Errorf("has %d bytes in a file of %d", packed, len(m.archive.data))
	case h.Method == zip.Store && packed != size:
		return fmt.Errorf("is stored in %d bytes, expected its %d", packed, size)
	case h.Method == zip.Deflate && size > deflateRatio*packed:
		return fmt.Errorf("has %d bytes, which %d compressed ones cannot hold", size, packed)
	case h.Method != zip.Store && h.Method != zip.Deflate:
		return fmt.Errorf("compression method %d, expected %d (stored) or %d (deflated)", h.Method, zip.Store, zip.Deflate)
	}
	return nil
}

// bytes returns the member's bytes. They may lie in the file: the caller reads them inside
// object.Guard.
func (m *member) bytes() ([]byte, error) {
	m.once.Do(func() {
		err := object.Guard(func() (err error) { m.data, err = m.read(); return })
		if err != nil {
			m.data = nil
			m.err = m.fail(err)
		}
	})
	return m.data, m.err
}

// packed returns the member's bytes as they are in the file, and their offset.
func (m *member) packed() (data []byte, offset int64, err error) {
	offset, err = m.header.DataOffset()
	if err != nil {
		return nil, 0, err
	}
	packed := m.header.CompressedSize64
	if offset < 0 || uint64(offset) > uint64(len(m.archive.data)) || packed > uint64(len(m.archive.data))-uint64(offset) {
		return nil, 0, fmt.Errorf("offset %#x: %d bytes reach past the file's end at %#x", offset, packed, len(m.archive.data))
	}
	return m.archive.data[offset:][:packed:packed], offset, nil
}

func (m *member) read() ([]byte, error) {
	data, offset, err := m.packed()
	if err != nil {
		return nil, err
	}
	if m.header.Method == zip.Deflate {
		if data, err = m.inflate(data); err != nil {
			return nil, fmt.Errorf("offset %#x: %w", offset, err)
		}
	}
	if sum := crc32.ChecksumIEEE(data); sum != m.header.CRC32 {
		return nil, fmt.Errorf("offset %#x: CRC-32 is %#x, expected %#x", offset, sum, m.header.CRC32)
	}
	return data, nil
}

// inflate decompresses DEFLATE (RFC 1951) to exactly the member's size.
func (m *member) inflate(packed []byte) ([]byte, error) {
	size := m.size()
	if err := m.archive.grow(size); err != nil {
		return nil, err
	}
	z := inflaters.Get().(inflater)
	if err := z.Reset(bytes.NewReader(packed), nil); err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	out := make([]byte, size)
	n, err := io.ReadFull(z, out)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	if uint64(n) < size {
		return nil, fmt.Errorf("decompressed to %d bytes, expected %d", n, size)
	}
	var more [1]byte
	switch n, err := io.ReadFull(z, more[:]); {
	case n != 0:
		return nil, fmt.Errorf("decompressed to more than the %d bytes that were expected", size)
	case err != io.EOF:
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	// A failed reader is not reused, and a reused one does not keep the snapshot's bytes.
	if z.Reset(bytes.NewReader(nil), nil) == nil {
		inflaters.Put(z)
	}
	return out, nil
}

// inflater is a reader of DEFLATE that can be reused.
type inflater interface {
	io.Reader
	flate.Resetter
}

// inflaters saves allocating 40 KB for each of the many small members of snapshots. klauspost's
// reader is faster than the standard library's, and accepts the same input.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)).(inflater) }}

// limit returns the bound of the memory that the decompressed members may take, and that the
// content of snapshot.json may take.
func (a *archive) limit() uint64 {
	return min(inflatedFloor+inflatedRatio*uint64(len(a.data)), maxInflated, math.MaxInt/2)
}

// grow counts n bytes of decompressed members against the limit.
func (a *archive) grow(n uint64) error {
	limit := a.limit()
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > limit-a.inflated {
		return fmt.Errorf("%w: %d bytes after %d, expected at most %d from a file of %d bytes",
			object.ErrTooLarge, n, a.inflated, limit, len(a.data))
	}
	a.inflated += n
	return nil
}

// memberStream is a member that is decompressed as it is read. Its size and its checksum are
// checked at its end: bytes read before may be wrong.
type memberStream struct {
	member *member
	offset int64 // of the member's bytes
	source io.Reader
	size   uint64 // bytes so far
	sum    uint32 // their CRC-32
}

// stream reads the member from its beginning.
func (m *member) stream() (*memberStream, error) {
	data, offset, err := m.packed()
	if err != nil {
		return nil, m.fail(err)
	}
	s := &memberStream{member: m, offset: offset, source: bytes.NewReader(data)}
	if m.header.Method == zip.Deflate {
		s.source = flate.NewReader(s.source)
	}
	return s, nil
}

// fail adds the member's name to an error.
func (m *member) fail(err error) error {
	return fmt.Errorf("member %q: %w", jsontext.Clip(m.header.Name), err)
}

// Read implements io.Reader.
func (s *memberStream) Read(p []byte) (int, error) {
	n, err := s.source.Read(p)
	s.size, s.sum = s.size+uint64(n), crc32.Update(s.sum, crc32.IEEETable, p[:n]) //nolint:gosec // n is not negative
	want := s.member.size()
	switch {
	case s.size > want:
		err = fmt.Errorf("decompressed to more than the %d bytes that were expected", want)
	case errors.Is(err, io.EOF) && s.size < want:
		err = fmt.Errorf("decompressed to %d bytes, expected %d", s.size, want)
	case errors.Is(err, io.EOF) && s.sum != s.member.header.CRC32:
		err = fmt.Errorf("CRC-32 is %#x, expected %#x", s.sum, s.member.header.CRC32)
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	default:
		err = fmt.Errorf("decompressing: %w", err)
	}
	return n, s.member.fail(fmt.Errorf("offset %#x: %w", s.offset, err))
}
