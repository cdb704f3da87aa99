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

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target/jsontext"
)

// The bounds of the archive.
const (
	maxDirectory = 64 << 20 // bytes of the directory, which has 46 and more for each member
	maxMember    = 1 << 30  // bytes of a member, decompressed
	maxInflated  = 4 << 30  // bytes of all members that are decompressed
	// A few zero pages may compress a thousandfold, a whole snapshot does not.
	inflatedFloor = 64 << 20
	inflatedRatio = 128
	// deflateRatio is what DEFLATE can reach: a copy of 258 bytes takes 2 bits
	// at least.
	deflateRatio = 1032
)

// The magic numbers of a ZIP file that begins with a member (APPNOTE 6.3.10,
// 4.3.7).
const localMagic = "PK\x03\x04"

// An archive is a ZIP file. Its members are read when they are first asked for:
// those that are stored lie in the file's own bytes, those that are deflated
// are decompressed once and kept.
type archive struct {
	data    []byte
	members map[string]*member

	mu       sync.Mutex
	inflated uint64 // bytes that members took, or would have taken
}

// A member is a file in the archive.
type member struct {
	archive    *archive
	header     *zip.File // of several with one name the first
	isRepeated bool      // there are several

	once sync.Once
	data []byte
	err  error
}

// A directoryReader bounds what is read before anything is known of a file.
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

// member finds a member that can be read, as far as its headers say.
func (a *archive) member(name string) (*member, error) {
	if m := a.members[name]; m != nil && !m.isRepeated && m.size() > maxMember {
		return nil, m.fail(fmt.Errorf("has %d bytes, expected at most %d", m.size(), uint64(maxMember)))
	}
	return a.find(name)
}

// document finds the member that is read as a stream, and may have any size.
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

// size is how many bytes the member has, as its header says; reading it fails
// where that is not so.
func (m *member) size() uint64 { return m.header.UncompressedSize64 }

// check says what of the member's header cannot be right or is too much.
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

// bytes returns the member's bytes. They may lie in the file: the caller holds
// object.Guard while it reads them.
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

// packed returns the member's bytes as they are in the file, and where.
func (m *member) packed() (data []byte, at int64, err error) {
	at, err = m.header.DataOffset()
	if err != nil {
		return nil, 0, err
	}
	packed := m.header.CompressedSize64
	if at < 0 || uint64(at) > uint64(len(m.archive.data)) || packed > uint64(len(m.archive.data))-uint64(at) {
		return nil, 0, fmt.Errorf("offset %#x: %d bytes reach past the file's end at %#x", at, packed, len(m.archive.data))
	}
	return m.archive.data[at:][:packed:packed], at, nil
}

func (m *member) read() ([]byte, error) {
	data, at, err := m.packed()
	if err != nil {
		return nil, err
	}
	if m.header.Method == zip.Deflate {
		if data, err = m.inflate(data); err != nil {
			return nil, fmt.Errorf("offset %#x: %w", at, err)
		}
	}
	if sum := crc32.ChecksumIEEE(data); sum != m.header.CRC32 {
		return nil, fmt.Errorf("offset %#x: CRC-32 is %#x, expected %#x", at, sum, m.header.CRC32)
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
	// One that failed is not used again; nor does one keep the snapshot's bytes.
	if z.Reset(bytes.NewReader(nil), nil) == nil {
		inflaters.Put(z)
	}
	return out, nil
}

// An inflater is a reader of DEFLATE that can be used again.
type inflater interface {
	io.Reader
	flate.Resetter
}

// inflaters keep the 40 KB that each needs, as snapshots have many small members.
// klauspost's reader, which is the faster one, takes the same input.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)).(inflater) }}

// limit is how much may be made of the file: of its members that are decompressed,
// and of what snapshot.json describes.
func (a *archive) limit() uint64 {
	return min(inflatedFloor+inflatedRatio*uint64(len(a.data)), maxInflated, math.MaxInt/2)
}

// grow takes n bytes of what all members together may have.
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

// A memberStream is a member that is decompressed as it is read. Its size and its sum
// are checked at its end: what was read before may be wrong.
type memberStream struct {
	member *member
	at     int64 // offset of the member's bytes
	from   io.Reader
	size   uint64 // bytes so far
	sum    uint32 // of them
}

// stream reads the member from its beginning.
func (m *member) stream() (*memberStream, error) {
	data, at, err := m.packed()
	if err != nil {
		return nil, m.fail(err)
	}
	s := &memberStream{member: m, at: at, from: bytes.NewReader(data)}
	if m.header.Method == zip.Deflate {
		s.from = flate.NewReader(s.from)
	}
	return s, nil
}

// fail says of which member an error is.
func (m *member) fail(err error) error {
	return fmt.Errorf("member %q: %w", jsontext.Clip(m.header.Name), err)
}

// Read implements io.Reader.
func (s *memberStream) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
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
	return n, s.member.fail(fmt.Errorf("offset %#x: %w", s.at, err))
}
