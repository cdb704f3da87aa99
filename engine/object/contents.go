// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/internal/inflate"
)

// Contents are the bytes that Section.Data returns, unpacked as far as they are needed: to know
// one function of a library takes a few units of its debug information, and the parts of sections
// before them. They may be used concurrently.
//
// The checksum of a stream is checked at its end, so that bytes before it may be damaged.
type Contents struct {
	section *Section
	data    []byte       // of the whole size
	ready   atomic.Int64 // bytes of data that are unpacked

	mu     sync.Mutex
	stream stream // nil: all was ready from the beginning
	err    error
}

// Contents returns the section's contents. Contents that are not packed, or that relocations
// change, are ready as a whole. The errors are Data's.
func (s *Section) Contents() (*Contents, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contents != nil && (s.contents.stream != nil || s.types == s.object.relocations.Load()) {
		return s.contents, nil
	}
	c, err := s.begin()
	if err != nil {
		return nil, s.failed(err)
	}
	if c == nil {
		data, err := s.all()
		if err != nil {
			return nil, err
		}
		c = &Contents{section: s, data: data}
		c.ready.Store(int64(len(data)))
	}
	s.contents = c
	return c, nil
}

// begin opens the stream of a section that can be unpacked piece by piece; nil where
// it cannot, or was unpacked before. The caller holds mu.
func (s *Section) begin() (c *Contents, err error) {
	if s.done || len(s.object.relocated) > 0 {
		return nil, nil
	}
	err = Guard(func() error {
		b, err := s.raw()
		if err != nil {
			return err
		}
		packed, size, open, err := s.packing(b)
		if err != nil || open == nil || size == 0 || size > plausibleSize(len(packed)) {
			return err
		}
		if err := s.object.grow(size); err != nil {
			return fmt.Errorf("offset %#x: %w", s.Offset, err)
		}
		stream, err := open(packed, size)
		if err != nil {
			return fmt.Errorf("offset %#x: decompressing: %w", s.Offset, err)
		}
		c = &Contents{section: s, data: make([]byte, size), stream: stream}
		return nil
	})
	return c, err
}

// Bytes returns the bytes of the whole section; only bytes that Need made ready may be read. They
// are read inside Guard.
func (c *Contents) Bytes() []byte { return c.data }

// Ready returns how many bytes are ready.
func (c *Contents) Ready() uint64 {
	if c == nil {
		return math.MaxUint64
	}
	return uint64(c.ready.Load())
}

// Need makes the bytes up to, not including, end ready, or all where there are fewer. Nil
// Contents need nothing.
func (c *Contents) Need(end uint64) error {
	if c == nil || end <= uint64(c.ready.Load()) {
		return nil
	}
	return c.extend(end)
}

// leastStep is the least number of bytes that are unpacked at once.
const leastStep = 16 << 10

func (c *Contents) extend(end uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, size := int(c.ready.Load()), len(c.data)
	want := int(min(end, uint64(size)))
	if c.err != nil || want <= have {
		return c.err
	}
	want = min(max(want, have+leastStep), size)
	err := Guard(func() error {
		n, err := c.stream.Extend(c.data, have, want)
		switch {
		case err != nil:
		case n < want:
			return fmt.Errorf("decompressed to %d bytes, expected %d", n, size)
		case n == size:
			err = c.stream.Finish(c.data)
		}
		if err != nil {
			return unpackError(err, uint64(size))
		}
		c.ready.Store(int64(n))
		c.section.object.keptBytes.Add(int64(n - have))
		return nil
	})
	if err != nil {
		c.err = c.section.failed(fmt.Errorf("offset %#x: %w", c.section.Offset, err))
	}
	return c.err
}

// whole returns all of the contents.
func (c *Contents) whole() ([]byte, error) {
	if err := c.Need(uint64(len(c.data))); err != nil {
		return nil, err
	}
	return c.data, nil
}

// plausibleSize returns how much is allocated before it is known that the packed bytes give as
// much: writers of debug information compress to a third or a tenth.
func plausibleSize(packed int) uint64 { return 64<<10 + 16*uint64(packed) }

// unpack makes exactly size bytes.
func (s *Section) unpack(packed []byte, size uint64, open openPacked) ([]byte, error) {
	err := s.object.grow(size)
	if err != nil {
		return nil, fmt.Errorf("offset %#x: %w", s.Offset, err)
	}
	r, err := open(packed, size)
	if err != nil {
		return nil, fmt.Errorf("offset %#x: decompressing: %w", s.Offset, err)
	}
	out, err := unpackStream(r, size, plausibleSize(len(packed)))
	if err != nil {
		return nil, fmt.Errorf("offset %#x: %w", s.Offset, err)
	}
	return out, nil
}

func unpackError(err error, size uint64) error {
	if errors.Is(err, inflate.ErrMore) {
		return fmt.Errorf("decompressed to more than the %d bytes that were expected", size)
	}
	return fmt.Errorf("decompressing: %w", err)
}
