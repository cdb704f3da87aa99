// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"maps"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

const (
	// stillPage is how many bytes are read together, from a multiple of it on.
	stillPage = 4096
	// maxStill bounds the pages that are kept.
	maxStill = 64 << 20 / stillPage
)

// still is the memory of a process while its threads stand still. Pages that were read are kept, and
// can be read again when they go on.
type still struct {
	lead int

	mu      sync.Mutex
	pages   map[uint64][]byte // by address; nil: it cannot be read
	isOver  bool              // the threads go on
	missing map[uint64]bool   // pages that were needed when it was over
}

func newStill(lead int) *still { return &still{lead: lead, pages: map[uint64][]byte{}} }

// end ends the reading: from now on only pages that were read are there.
func (s *still) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isOver = true
}

// read reads memory, and returns how many bytes are there.
func (s *still) read(address uint64, buf []byte) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(buf) && address+uint64(n) >= address {
		at := address + uint64(n)
		page := s.page(at &^ (stillPage - 1))
		offset := at & (stillPage - 1)
		if uint64(len(page)) <= offset {
			break
		}
		n += copy(buf[n:], page[offset:])
	}
	return n
}

// page returns the page at an address; nil where it cannot be read.
func (s *still) page(address uint64) []byte {
	page, isKnown := s.pages[address]
	switch {
	case isKnown || len(s.pages) >= maxStill:
		return page
	case s.isOver:
		if s.missing == nil {
			s.missing = map[uint64]bool{}
		}
		s.missing[address] = true
		return nil
	}
	s.fetch([]uint64{address})
	return s.pages[address]
}

// fetch reads pages, as few system calls as it takes: the threads stand still meanwhile.
func (s *still) fetch(addresses []uint64) {
	for len(addresses) > 0 {
		next := addresses[:min(len(addresses), maxVector)]
		buf := make([]byte, len(next)*stillPage)
		remote := make([]unix.RemoteIovec, len(next))
		for i, address := range next {
			remote[i] = unix.RemoteIovec{Base: uintptr(address), Len: stillPage}
		}
		local := unix.Iovec{Base: &buf[0]}
		local.SetLen(len(buf))
		n, err := unix.ProcessVMReadv(s.lead, []unix.Iovec{local}, remote, 0)
		if err != nil {
			n = 0
		}
		done := n / stillPage
		for i := range done {
			s.pages[next[i]] = buf[i*stillPage : (i+1)*stillPage : (i+1)*stillPage]
		}
		if done < len(next) { // the kernel stops at the first byte that it cannot read
			s.pages[next[done]] = nil
			done++
		}
		addresses = addresses[done:]
	}
}

// Pages are the addresses of pages that were read, in ascending order.
func (t *Target) Pages() []uint64 {
	t.still.mu.Lock()
	defer t.still.mu.Unlock()
	return slices.Sorted(maps.Keys(t.still.pages))
}

// Fetch reads pages while the threads stand still.
func (t *Target) Fetch(pages []uint64) {
	t.still.mu.Lock()
	defer t.still.mu.Unlock()
	t.still.fetch(pages[:min(len(pages), maxStill)])
}

// Missing returns the addresses of pages that were needed when the threads went on, and had not been read.
func (t *Target) Missing() []uint64 {
	t.still.mu.Lock()
	defer t.still.mu.Unlock()
	return slices.Sorted(maps.Keys(t.still.missing))
}

// ReadMemory reads the copy, read-only parts of mapped files, and pages that were read while the threads
// stood still.
func (t *Target) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	n, err := t.Core.ReadMemory(space, address, buf)
	if err == nil || t.still == nil || space != locexpr.DefaultSpace {
		return n, err
	}
	if n += t.still.read(address+uint64(n), buf[n:]); n == len(buf) { //nolint:gosec // a length
		return n, nil
	}
	return n, err
}

// MemorySize is an upper bound of the bytes of memory that the target has.
func (t *Target) MemorySize() uint64 {
	size := t.Core.MemorySize()
	if t.still != nil {
		size += t.mapped
	}
	return size
}

// ReadOn makes the memory of the process as it is from now on a part of the target's. Its threads
// go on: reads are of no moment.
func (t *Target) ReadOn() { t.still = newStill(t.lead) }

var _ target.Sized = (*Target)(nil)
