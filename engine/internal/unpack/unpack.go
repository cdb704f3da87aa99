// SPDX-License-Identifier: Apache-2.0

// Package unpack opens the files of targets as they come: as they are, packed (gzip, xz,
// Zstandard, bzip2, LZ4), within an apport report, or from a pipe.
//
// A file that is a target already is mapped. Everything else is unpacked once, from front
// to back, into a temporary file without a name, which is gone when its mapping is closed
// or the process ends, however it ends. Blocks of zeros are holes in it: a core of 2 GB
// that is mostly zeros takes little of the disk.
//
// The type of a file follows from its first bytes, never from its name. A stream that is
// cut or damaged yields the bytes before the damage, and a problem; so does one that
// unpacks to more than is allowed.
package unpack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

// Options bound the unpacking. The bounds of the zero value fit cores of real programs.
type Options struct {
	// MaxBytes bounds the bytes of an unpacked target, holes included. 0 stands for
	// DefaultMaxBytes, and bounds the bytes written to the disk: by half of its free bytes,
	// and by spare + ratio times the bytes of the packed file.
	MaxBytes uint64
	// Dir is where temporary files are made; "" is $TMPDIR, /var/tmp or /tmp, the first
	// that can be used. Files as large as cores belong into /var/tmp (Filesystem
	// Hierarchy Standard 3.0, 5.15), since /tmp may be memory.
	Dir string
	// Create, where it is not nil, makes what takes the bytes, instead of a temporary file. The bounds of the zero value
	// hold then, too, whatever MaxBytes is.
	Create func() (Sink, error)
}

// DefaultMaxBytes bounds the bytes of an unpacked target by default.
const DefaultMaxBytes = 64 << 30

// A file may plausibly unpack to a thousand times its size in bytes that are not zero: a
// heap that a debugging allocator filled. A larger one is a bomb, or needs --max-unpacked.
const (
	ratio = 1000
	spare = 1 << 30
)

// headSize is the number of bytes by which a stream's format is recognized.
const headSize = 4096

// Input is a target's file, ready to be read.
type Input struct {
	// Mapping is of the target itself. Its path is the name that the file was opened by.
	// Closing it frees the disk space that unpacking took.
	Mapping *object.Mapping
	// Problems describe damage of the file that the target came in, each a sentence with
	// the name.
	Problems []string
	// Labels are texts that were kept beside the target's own bytes.
	Labels []Label
}

// Label is a text that the program that kept a target put beside it: an extended attribute
// of systemd-coredump ("coredump.exe"), or a field of a report ("ExecutablePath").
type Label struct{ Name, Value string }

// Open opens the regular file at a path.
func Open(path string, o Options) (*Input, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path, o)
}

// open opens a regular file for reading. Opening a device may act on it, so the type is
// checked before.
func open(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w (%s)", path, object.ErrNotRegular, kindOf(info.Mode()))
	}
	return os.OpenFile(path, os.O_RDONLY|host.WithoutWaiting, 0)
}

// kindOf names the type of a file that is not regular.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a file of an unknown type"
}

// Read opens the target in an open file, regular or a pipe, from its current offset; name
// is for messages. A regular file that is not packed is mapped as a whole. The file stays
// open.
func Read(f *os.File, name string, o Options) (*Input, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	input := &Input{Labels: attributes(f)}
	if info.Mode().IsRegular() {
		if offset, err := f.Seek(0, io.SeekCurrent); err == nil && offset == 0 && !isPacked(f) {
			input.Mapping, err = object.MapFile(f, name)
			return input.orError(err)
		}
	}
	counted := &counter{r: f}
	p := &peeler{}
	r, err := p.peel(bufio.NewReaderSize(counted, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s, err := newSpool(o)
	if err != nil {
		return nil, fmt.Errorf("%s: a temporary file to unpack it into: %w", name, err)
	}
	err = s.fill(r, counted)
	if err != nil && (s.size == 0 || errors.Is(err, ErrRefused)) {
		s.sink.Drop()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		input.Problems = append(input.Problems, fmt.Sprintf("%s: read as far as %d bytes, from %d bytes of the file: %v", name, s.size, counted.n, err))
	}
	input.Labels = append(input.Labels, p.labels(err == nil)...)
	input.Mapping, err = s.mapped(name)
	return input.orError(err)
}

// mapped ends the writing, and maps the file.
func (s *spool) mapped(name string) (*object.Mapping, error) {
	f, err := s.finish()
	if err != nil {
		s.sink.Drop()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	m, err := object.MapFile(f, name)
	if err != nil {
		s.sink.Drop()
		return nil, err
	}
	m.WhenClosed(s.sink.Drop)
	return m, nil
}

func (input *Input) orError(err error) (*Input, error) {
	if err != nil {
		return nil, err
	}
	return input, nil
}

// IsPacked reports whether the regular file at a path has to be unpacked.
func IsPacked(path string) bool {
	f, err := open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return isPacked(f)
}

// isPacked reports whether a regular file has to be unpacked.
func isPacked(f *os.File) bool {
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	return (err == nil || errors.Is(err, io.EOF)) && formatOf(head[:n]) != nil
}

// Head returns the first bytes, at most 64, that the regular file at a path unpacks to.
func Head(path string) ([]byte, error) { return HeadOf(path, 64) }

// HeadOf returns the first bytes, at most n, that the regular file at a path unpacks to. n is at most 4096.
func HeadOf(path string, n int) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &peeler{}
	r, err := p.peel(bufio.NewReaderSize(f, headSize))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	head, err := r.Peek(n)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return head, nil
}

// counter counts the bytes that are read from a file.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}
