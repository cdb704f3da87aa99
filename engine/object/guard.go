// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
)

// live are the mappings that exist, sorted by address. They do not overlap.
var live struct {
	sync.RWMutex
	mappings []*Mapping
}

func addLive(m *Mapping) {
	live.Lock()
	defer live.Unlock()
	i := sort.Search(len(live.mappings), func(i int) bool { return live.mappings[i].start() >= m.start() })
	live.mappings = append(live.mappings, nil)
	copy(live.mappings[i+1:], live.mappings[i:])
	live.mappings[i] = m
}

func removeLive(m *Mapping) {
	live.Lock()
	defer live.Unlock()
	for i, other := range live.mappings {
		if other == m {
			live.mappings = append(live.mappings[:i], live.mappings[i+1:]...)
			return
		}
	}
}

// liveAt returns the path of the mapping that contains address, and the offset in it.
func liveAt(address uintptr) (path string, offset uint64, ok bool) {
	live.RLock()
	defer live.RUnlock()
	i := sort.Search(len(live.mappings), func(i int) bool { return live.mappings[i].start() > address }) - 1
	if i < 0 {
		return "", 0, false
	}
	m := live.mappings[i]
	// The last page is mapped whole.
	end := (uintptr(len(m.data)) + pageSize - 1) &^ (pageSize - 1)
	if address-m.start() >= end {
		return "", 0, false
	}
	return m.path, uint64(address - m.start()), true
}

// Shrunk returns an error that wraps ErrFileShrank for the mapped files that have become shorter
// meanwhile. Guard reports pages that are gone, but not the page in which a file ends now: behind
// that end it reads as zeros, which look like data. A file that is not found by its path any more
// is not looked at.
func Shrunk() error {
	live.RLock()
	mappings := slices.Clone(live.mappings)
	live.RUnlock()
	var errs []error
	for _, m := range mappings {
		if m.isElsewhere {
			continue
		}
		now, err := identify(m.path)
		if err == nil && now.fileID == m.id.fileID && now.size < m.id.size {
			errs = append(errs, fmt.Errorf("%s: %w: it has %d bytes of %d, and what was read of it may be wrong", m.path, ErrFileShrank, now.size, m.id.size))
		}
	}
	return errors.Join(errs...)
}

// addressed is the value of the runtime's panic on a fault at a known address.
type addressed interface {
	runtime.Error
	Addr() uintptr
}

// Guard runs f. When f faults on a page of a file that Map mapped, because the
// file was cut under it, Guard returns an error that wraps ErrFileShrank and
// names the file and the offset. Every other panic goes on. Guards nest; each
// covers the goroutine that it runs on, not goroutines that f starts.
func Guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(addressed); ok {
			if path, offset, ok := liveAt(fault.Addr()); ok {
				err = fmt.Errorf("%s: offset %#x: %w", path, offset, ErrFileShrank)
				return
			}
		}
		panic(r)
	}()
	return f()
}
