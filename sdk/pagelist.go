// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"maps"
	"slices"
	"sync"
)

// maxPageList bounds the pages of a PageList: 8 MiB of memory.
const maxPageList = 1 << 11

// PageList has the addresses of the pages that a plugin read of a target in its last call. The
// next call begins with them: most of what it needs is there after one request. The zero value is
// empty. It may be used concurrently.
type PageList struct {
	mu    sync.Mutex
	pages []uint64
}

// Prefetch reads the pages of the last call.
func (l *PageList) Prefetch(r *MemoryReader) {
	l.mu.Lock()
	pages := l.pages
	l.mu.Unlock()
	r.Prefetch(pages, 1)
}

// Keep remembers the pages that a reader has, for the next call.
func (l *PageList) Keep(r *MemoryReader) {
	pages := slices.Sorted(maps.Keys(r.pages))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages = pages[:min(len(pages), maxPageList)]
}
