// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/host"
)

// lookAt looks at a file of this machine. It was created when its file system recorded that, or
// else at its last change.
func lookAt(file string) (h hostFile, ok bool) {
	var st unix.Stat_t
	if unix.Stat(file, &st) != nil {
		return h, false
	}
	dev := uint64(st.Dev) //nolint:unconvert // its type depends on the machine
	h = hostFile{
		inode: st.Ino, generation: generationOf(file), major: unix.Major(dev), minor: unix.Minor(dev),
		modified: time.Unix(st.Mtim.Unix()), born: time.Unix(st.Ctim.Unix()),
	}
	var x unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, file, 0, unix.STATX_BTIME, &x) == nil && x.Mask&unix.STATX_BTIME != 0 {
		h.born = time.Unix(x.Btime.Sec, int64(x.Btime.Nsec))
	}
	return h, true
}

// getVersion is FS_IOC_GETVERSION of linux/fs.h where longs have 64 bits.
const getVersion = 0x80087601

// generationOf returns the generation of a file's inode; 0 where its file system does not tell.
func generationOf(file string) uint64 {
	if st, err := os.Lstat(file); err != nil || !st.Mode().IsRegular() || strconv.IntSize != 64 {
		return 0 // opening it may have effects, or other machines have another request
	}
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	generation, err := unix.IoctlGetUint32(int(f.Fd()), getVersion)
	if err != nil {
		return 0
	}
	return uint64(generation)
}

// isOfThisBoot reports whether the recording was made since this machine was started, when
// devices got their numbers.
func (r *recording) isOfThisBoot() bool {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return false
	}
	started := time.Now().Add(-time.Duration(info.Uptime) * time.Second)
	return r.file.Features().OSRelease == host.Release() && r.ended().After(started)
}

// isOverlay reports whether a file is on overlayfs.
func isOverlay(file string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(file, &fs) != nil || int64(fs.Type) == unix.OVERLAYFS_SUPER_MAGIC //nolint:unconvert // its type depends on the machine
}
