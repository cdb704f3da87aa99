// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
)

// This file finds files in caches of perf (perf-buildid-cache(1)): .build-id/xx/rest in such a
// directory is a link to PATH/BUILDID, a directory with the files elf, debug, vdso and kallsyms.
// Until Linux 4.8 it is a link to the file itself.

// The names of files for a build ID in a cache of perf.
var (
	cachedCode  = []string{"elf", "vdso", ""}
	cachedDebug = []string{"debug"}
)

// cachedPlaces returns the places for the files of a build ID in caches of perf.
func (f *Finder) cachedPlaces(id []byte, names []string) (list []place) {
	if len(id) < minRemoteID {
		return nil
	}
	link := fmt.Sprintf(".build-id/%x/%x", id[:1], id[1:])
	for _, dir := range f.BuildIDDirs {
		if _, err := os.Stat(filepath.Join(dir, link)); err != nil {
			continue // not among the places that were tried
		}
		for _, name := range names {
			rest := path.Join(link, name)
			p := f.placeAs(filepath.Join(dir, rest), path.Join(DebugDir, rest))
			p.guess = true
			list = append(list, p)
		}
	}
	return list
}

// CachedKallsyms yields the copies of /proc/kallsyms that perf kept of the kernel of a build ID
// in BuildIDDirs: beside code, or with the kernel's memory (perf-buildid-cache(1) --kcore).
func (f *Finder) CachedKallsyms(id []byte) iter.Seq[string] {
	return func(yield func(file string) bool) {
		if len(id) < minRemoteID {
			return
		}
		link, rest := fmt.Sprintf(".build-id/%x/%x", id[:1], id[1:]), fmt.Sprintf("%x", id)
		for _, dir := range f.BuildIDDirs {
			list := []string{
				filepath.Join(dir, link, "kallsyms"), filepath.Join(dir, link),
				filepath.Join(dir, "[kernel.kallsyms]", rest, "kallsyms"), filepath.Join(dir, "[kernel.kallsyms]", rest),
			}
			cores := filepath.Join(dir, "[kernel.kcore]", rest)
			entries, _ := os.ReadDir(cores)
			for _, e := range entries[:min(len(entries), maxFolderEntries)] {
				list = append(list, filepath.Join(cores, e.Name(), "kallsyms"))
			}
			for _, file := range list {
				if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && !yield(file) {
					return
				}
			}
		}
	}
}
