// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
)

// This file decides whether the file at a recorded path is the one that was mapped: a record of
// a mapping without a build ID has the device and the inode (perf_event_open(2),
// PERF_RECORD_MMAP2), which identify it on the machine that was recorded. perf takes the build
// IDs of a recording's header from the paths, after the processes have ended: for a process in
// a container or a chroot they belong to the host's files.

// sameness is how sure it is that a file at the path of a mapping is the mapped one.
type sameness int

const (
	unknownFile sameness = iota
	sameFile             // it was mapped, and not written to since
	mayBeOther           // it has another inode, on a file system that does not report the mapping's
	otherFile
)

// checkMapped returns the file found for a mapping, or none if it is not the one that was
// mapped.
func (r *recording) checkMapped(finder *object.Finder, m *perfdata.Mapping, found object.Found) object.Found {
	if found.Object != nil && isCached(finder, found.Path) {
		r.checkCached(m, found.Path)
		return found
	}
	if found.Object == nil || !isAtPath(finder, m, found.Path) {
		return found
	}
	h, ok := lookAt(found.Path)
	if !ok {
		return found
	}
	about := fmt.Sprintf("it is inode %d of device %x:%x, and inode %d of %x:%x was mapped",
		h.inode, h.major, h.minor, m.Inode, m.Major, m.Minor)
	switch r.compare(m, found.Path, &h) {
	case sameFile:
		if !found.Checked {
			found.Checked, found.Problem = true, ""
		}
	case mayBeOther:
		r.problem("%s: it may be another file than was mapped: %s%s", found.Path, about, adviceOnFiles)
	case otherFile:
		if h.inode == m.Inode {
			about = fmt.Sprintf("its inode, %d, was that of the file which was mapped and is gone", h.inode)
		}
		if found.Checked && h.born.After(r.ended()) {
			return found // it was replaced by a file with the build ID of the recording
		}
		_ = found.Object.Close()
		reason := "it is another file than was mapped: " + about
		text := fmt.Sprintf("%s was not used: %s%s", found.Path, reason, adviceOnFiles)
		r.problem("%s", text)
		return object.Found{Problem: text, Tried: append(found.Tried, object.Attempt{Path: found.Path, Reason: reason, Kind: object.Mismatched})}
	}
	return found
}

// isCached reports whether a file was found in a cache of perf.
func isCached(finder *object.Finder, file string) bool {
	return slices.ContainsFunc(finder.BuildIDDirs, func(dir string) bool {
		rest, ok := strings.CutPrefix(file, filepath.Clean(dir))
		return ok && strings.HasPrefix(rest, string(filepath.Separator))
	})
}

// checkCached compares a file of perf's cache with a mapping whose build ID perf took at the
// path. perf links the file into its cache where that is on the same device, so another inode is
// a copy of that build that was cached before, or another file.
func (r *recording) checkCached(m *perfdata.Mapping, file string) {
	h, ok := lookAt(file)
	if ok && m.Inode != 0 && r.isOfThisHost() && h.major != 0 && h.major == m.Major && h.minor == m.Minor && h.inode != m.Inode {
		r.problem("%s: it has the build ID that perf read at %s, but may be another file than was mapped, inode %d%s", file, m.Path, m.Inode, adviceOnFiles)
	}
}

// adviceOnFiles is advice about a file of another root.
const adviceOnFiles = "; `perf record --buildid-mmap` records the build IDs of what is mapped, and --root or --sysroot says where the files of the process are, --module NAME=FILE which one it is"

// hostFile is a file of this machine.
type hostFile struct {
	inode          uint64
	generation     uint64 // 0: not known
	major, minor   uint32 // its device
	modified, born time.Time
}

// isAtPath reports whether a file was found at the recorded path of a mapping, rather than
// provided by the user.
func isAtPath(finder *object.Finder, m *perfdata.Mapping, file string) bool {
	return m.Inode != 0 && file == m.Path && (finder.Sysroot == "" || finder.Sysroot == "/") && finder.Exe != file &&
		finder.Provided[m.Path] == "" && finder.Provided[m.Path[strings.LastIndexByte(m.Path, '/')+1:]] == ""
}

// compare compares a file of this machine with a mapping's.
func (r *recording) compare(m *perfdata.Mapping, file string, h *hostFile) sameness {
	host, err := os.Hostname()
	if err != nil || host != r.file.Features().Hostname {
		return unknownFile
	}
	isSameDevice := h.major == m.Major && h.minor == m.Minor
	isSameInode := h.inode == m.Inode
	switch {
	case isSameDevice && isSameInode && m.Generation != 0 && h.generation != 0 && m.Generation != h.generation:
		return otherFile // which got the inode of a file that was removed
	case isSameDevice && isSameInode && h.modified.Before(r.ended()):
		return sameFile
	case isSameInode: // on a file system with another name for its device, or from another boot
		return unknownFile
	case m.Major == 0 && m.Minor == 0: // the device was not recorded
		return mayBeOther
	}
	// Numbers of devices without a disk, and inodes of overlayfs, which may be the numbers of
	// the file beneath, prove less.
	isPlain := h.major != 0
	if isPlain && isSameDevice || isSameDevice && r.isOfThisBoot() && !isOverlay(file) || isPlain && r.isOfThisBoot() {
		return otherFile
	}
	return mayBeOther
}

// ended returns when the recording was written.
func (r *recording) ended() time.Time {
	info, err := os.Stat(r.file.Path())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// maxNamedFiles is how many files a sentence names.
const maxNamedFiles = 4

// uncheckedFiles names the files of modules without any evidence that they were mapped; "" for
// none.
func (r *recording) uncheckedFiles(modules map[*code.Module]bool) string {
	var names []string
	for m := range modules {
		if r.unchecked[m] && !slices.Contains(names, m.File) {
			names = append(names, m.File)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), maxNamedFiles)], ", ")
	if more := len(names) - maxNamedFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s: the build ID could not be checked, so names may be of another build; `perf record --buildid-mmap` records build IDs", text)
}
