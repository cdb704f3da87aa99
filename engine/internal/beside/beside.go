// SPDX-License-Identifier: Apache-2.0

// Package beside finds files of one process in a folder, by the process ID and the time in their names:
// core.4242, core_1767225600_node7_4242.nvcudmp, cuda_coredump_node7.4242.1767225600.
package beside

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Bounds on a folder.
const (
	maxNames = 100_000 // names that are read
	maxFiles = 64      // files that are returned
)

// File is a regular file of a folder.
type File struct {
	Path string
	// Written is the time in its name, in seconds since 1970; of a name without one, when the file was
	// changed last.
	Written time.Time
}

// Numbers returns the decimal numbers in a name, in order. Digits that are too many for a number are
// none.
func Numbers(name string) (list []int64) {
	for i := 0; i < len(name); {
		end := i
		for end < len(name) && '0' <= name[end] && name[end] <= '9' {
			end++
		}
		if n, err := strconv.ParseInt(name[i:end], 10, 64); err == nil {
			list = append(list, n)
		}
		i = end + 1
	}
	return list
}

// isMoment reports whether a number is seconds since 1970 in a time of such files, from 2001 to 2286:
// a process ID has at most seven digits.
func isMoment(n int64) bool { return 1e9 <= n && n < 1e10 }

// Moment returns the time in a name; ok is false where there is none.
func Moment(name string) (t time.Time, ok bool) {
	for _, n := range Numbers(name) {
		if isMoment(n) {
			return time.Unix(n, 0), true
		}
	}
	return time.Time{}, false
}

// Written is the time in a file's name, or when the file was changed last.
func Written(path string) time.Time {
	if t, ok := Moment(filepath.Base(path)); ok {
		return t
	}
	if info, err := os.Stat(path); err == nil {
		return info.ModTime()
	}
	return time.Time{}
}

// Files returns the regular files of a folder whose names isWanted accepts by their numbers and as they
// are, those first that were written next to a moment.
func Files(dir string, moment time.Time, isWanted func(name string, numbers []int64) bool) []File {
	return filesOf(namesIn(dir), dir, moment, isWanted)
}

// namesIn returns the names in a folder, in order.
func namesIn(dir string) []string {
	folder, err := os.Open(cmp.Or(dir, "."))
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(maxNames)
	slices.Sort(names)
	return names
}

// Folders remembers the names of the files of one kind in folders, for many targets that lie in the same ones.
// Files that come later are not seen.
type Folders struct {
	isOfKind func(path string) bool
	mu       sync.Mutex
	known    map[string][]string
}

// NewFolders returns Folders of the files for which isOfKind is true.
func NewFolders(isOfKind func(path string) bool) *Folders {
	return &Folders{isOfKind: isOfKind, known: map[string][]string{}}
}

// Files is the function Files, for files of the kind. A nil f has the files of all kinds, as they are now.
func (f *Folders) Files(dir string, moment time.Time, isWanted func(name string, numbers []int64) bool) []File {
	if f == nil {
		return Files(dir, moment, isWanted)
	}
	return filesOf(f.names(dir), dir, moment, isWanted)
}

func (f *Folders) names(dir string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if names, ok := f.known[dir]; ok {
		return names
	}
	names := slices.DeleteFunc(namesIn(dir), func(name string) bool { return !f.isOfKind(filepath.Join(dir, name)) })
	f.known[dir] = names
	return names
}

func filesOf(names []string, dir string, moment time.Time, isWanted func(name string, numbers []int64) bool) (list []File) {
	for _, name := range names {
		if !isWanted(name, Numbers(name)) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			list = append(list, File{path, Written(path)})
		}
	}
	away := func(f File) time.Duration { return f.Written.Sub(moment).Abs() }
	slices.SortStableFunc(list, func(a, b File) int { return cmp.Compare(away(a), away(b)) })
	return list[:min(len(list), maxFiles)]
}
