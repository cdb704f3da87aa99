// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"io/fs"
	"os"
)

// ReleasePages removes the pages of a part of the file from this process. They do not count as its
// memory any more, and are mapped again when they are touched.
func (m *Mapping) ReleasePages(start, end uint64) {
	if m == nil {
		return
	}
	m.mu.Lock() // the file stays mapped
	defer m.mu.Unlock()
	start &^= uint64(pageSize) - 1
	if end = min(end, uint64(len(m.data))); m.closed || start >= end {
		return
	}
	removePages(m.data[start:end])
}

// Reopen opens the file once more, for reads that leave no pages in this process. The
// error is that another file has its path now, or none.
func (m *Mapping) Reopen() (*os.File, error) {
	file, err := os.OpenFile(m.path, openFlags, 0)
	if err != nil {
		return nil, err
	}
	if id, err := identityOfFile(file); err != nil || id != m.id {
		file.Close()
		return nil, fmt.Errorf("%s: it is another file now: %w", m.path, fs.ErrNotExist)
	}
	return file, nil
}
