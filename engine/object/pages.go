package object

import "golang.org/x/sys/unix"

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
