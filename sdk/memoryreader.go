// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
)

const (
	// readerPage is how many bytes a MemoryReader reads at a time.
	readerPage = 4096
	// readerPages bounds the pages that a MemoryReader keeps.
	readerPages = 1 << 14
)

// MemoryReader reads numbers, bytes and text of a target's default address space. It keeps the
// pages that it has read, so it belongs to one call of a plugin: a target may have changed at
// the next. It must not be used concurrently.
type MemoryReader struct {
	ctx     context.Context
	engine  Engine
	order   binary.ByteOrder
	pointer int
	pages   map[uint64][]byte // by address; nil: not all of the page is there
}

// NewMemoryReader returns a reader of memory with a byte order and addresses of 32 or 64 bits.
func NewMemoryReader(ctx context.Context, e Engine, order ByteOrder, addressBits uint32) *MemoryReader {
	r := &MemoryReader{ctx: ctx, engine: e, order: binary.LittleEndian, pointer: int(addressBits / 8), pages: map[uint64][]byte{}}
	if order == BigEndian {
		r.order = binary.BigEndian
	}
	return r
}

// PointerSize is the size of an address in bytes.
func (r *MemoryReader) PointerSize() uint64 { return uint64(r.pointer) } //nolint:gosec // 4 or 8

// Err is the error of the context: nothing else is read once it is set.
func (r *MemoryReader) Err() error { return r.ctx.Err() }

// Prefetch reads the pages that have size bytes at each address, in as few requests as possible.
// Missing memory is reported by the calls that read it.
func (r *MemoryReader) Prefetch(addresses []uint64, size uint64) {
	var list []uint64
	for _, a := range addresses {
		last := a + max(size, 1) - 1
		if last < a {
			continue
		}
		for page := a &^ (readerPage - 1); page <= last && len(list) < readerPages; page += readerPage {
			if _, isKnown := r.pages[page]; !isKnown {
				list = append(list, page)
			}
			if page+readerPage == 0 {
				break
			}
		}
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) > 0 {
		r.load(list)
	}
}

// load reads pages, and forgets the others where there are too many.
func (r *MemoryReader) load(list []uint64) {
	if len(r.pages)+len(list) > readerPages {
		clear(r.pages)
	}
	data := make([]byte, len(list)*readerPage)
	missing, err := ReadParts(r.ctx, r.engine, list, readerPage, data)
	if err != nil && len(missing) == 0 {
		return
	}
	for i, page := range list {
		r.pages[page] = data[i*readerPage:][:readerPage:readerPage]
	}
	for _, i := range missing {
		r.pages[list[i]] = nil
	}
}

// Bytes reads size bytes at an address. They must not be changed.
func (r *MemoryReader) Bytes(address, size uint64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	if address+size-1 < address || size > readerPage*readerPages/2 {
		return nil, fmt.Errorf("%d bytes at %#x: expected less, in the address space", size, address)
	}
	page, within := address&^(readerPage-1), address&(readerPage-1)
	if within+size <= readerPage {
		if _, isKnown := r.pages[page]; !isKnown {
			r.load([]uint64{page})
		}
		if data := r.pages[page]; data != nil {
			return data[within:][:size:size], nil
		}
		return r.read(address, size) // a part of the page is there
	}
	r.Prefetch([]uint64{address}, size)
	out := make([]byte, 0, size)
	for left := size; left > 0; {
		n := min(left, readerPage-within)
		data := r.pages[page]
		if data == nil {
			return r.read(address, size)
		}
		out = append(out, data[within:][:n]...)
		page, within, left = page+readerPage, 0, left-n
	}
	return out, nil
}

// read reads bytes that are not kept.
func (r *MemoryReader) read(address, size uint64) ([]byte, error) {
	buf := make([]byte, size)
	n, err := r.engine.ReadMemory(r.ctx, MemoryRange{Space: locexpr.DefaultSpace, Address: address, Lane: -1}, buf)
	if n == len(buf) {
		return buf, nil
	}
	if err == nil {
		err = fmt.Errorf("%d bytes of %d at %#x are there", n, size, address)
	}
	return nil, err
}

// Uint reads an unsigned number of 1, 2, 4 or 8 bytes.
func (r *MemoryReader) Uint(address, size uint64) (uint64, error) {
	b, err := r.Bytes(address, size)
	if err != nil {
		return 0, err
	}
	return r.Number(b), nil
}

// Pointer reads an address.
func (r *MemoryReader) Pointer(address uint64) (uint64, error) {
	return r.Uint(address, r.PointerSize())
}

// Number returns the unsigned number in 1, 2, 4 or 8 bytes; 0 for others.
func (r *MemoryReader) Number(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(r.order.Uint16(b))
	case 4:
		return uint64(r.order.Uint32(b))
	case 8:
		return r.order.Uint64(b)
	}
	return 0
}

// Text reads the bytes at an address up to a NUL, which is one of the first most bytes.
func (r *MemoryReader) Text(address, most uint64) (string, error) {
	var text []byte
	for at, left := address, most; left > 0; {
		n := min(left, readerPage-at&(readerPage-1))
		part, err := r.Bytes(at, n)
		if err != nil && n > 1 {
			n = 1 // a part of the page is there
			part, err = r.Bytes(at, n)
		}
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(text, part[:end]...)), nil
		}
		text = append(text, part...)
		if at, left = at+n, left-n; at < address {
			break
		}
	}
	return "", fmt.Errorf("text at %#x has no end in %d bytes", address, most)
}
