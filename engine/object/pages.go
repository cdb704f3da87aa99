// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ReleasePages removes the pages of a part of the file from this process. They do not count as its
// memory any more, and are mapped again when they are touched.
func (m *Mapping) ReleasePages(start, end uint64) { m.advise(start, end, unix.MADV_DONTNEED) }

// advise gives the kernel advice on a part of the file, which it need not follow. The lock keeps the
// file mapped.
func (m *Mapping) advise(start, end uint64, advice int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	start &^= uint64(pageSize) - 1
	if end = min(end, uint64(len(m.data))); m.closed || start >= end {
		return
	}
	_ = unix.Madvise(m.data[start:end], advice)
}

// Reopen opens the file once more, for reads that leave no pages in this process. The
// error is that another file has its path now, or none.
func (m *Mapping) Reopen() (*os.File, error) {
	file, err := os.OpenFile(m.path, openFlags, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(int(file.Fd()), &st) }); err != nil || identityOf(&st) != m.id {
		file.Close()
		return nil, fmt.Errorf("%s: it is another file now: %w", m.path, fs.ErrNotExist)
	}
	return file, nil
}
