// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// GiveBack takes the pages of a part of the file out of this process. They count as its
// memory no more, and are mapped again when they are touched.
func (m *Mapping) GiveBack(from, to uint64) { m.advise(from, to, unix.MADV_DONTNEED) }

// advise says something of a part of the file to the kernel, which need not follow. The
// lock keeps the addresses from being those of something else.
func (m *Mapping) advise(from, to uint64, advice int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from &^= uint64(pageSize) - 1
	if to = min(to, uint64(len(m.data))); m.closed || from >= to {
		return
	}
	_ = unix.Madvise(m.data[from:to], advice)
}

// Reopen opens the file once more, for reads that leave no pages in this process. The
// error says that another file has its path now, or none.
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
