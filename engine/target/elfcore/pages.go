package elfcore

import "golang.org/x/sys/unix"

// ReleasePages gives back the pages of the core's file that were read. The kernel
// has them in its cache as long as it likes, and maps them again when they are read.
func (c *Core) ReleasePages() {
	if c.mapping == nil || len(c.mapping.Data()) == 0 {
		return
	}
	// Nothing was written to the mapping, so nothing is lost. Where it fails, the
	// pages stay.
	_ = unix.Madvise(c.mapping.Data(), unix.MADV_DONTNEED)
}
