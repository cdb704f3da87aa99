// SPDX-License-Identifier: Apache-2.0

// Package bounded keeps folders of files within bounds: what was not used for the longest time
// goes first.
package bounded

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// An Amount is how many files there are, and how many bytes they have together.
type Amount struct{ Files, Bytes int64 }

// Plus is the sum of two.
func (a Amount) Plus(b Amount) Amount { return Amount{a.Files + b.Files, a.Bytes + b.Bytes} }

// Minus is the difference of two.
func (a Amount) Minus(b Amount) Amount { return Amount{a.Files - b.Files, a.Bytes - b.Bytes} }

// IsIn says whether an amount is within bounds. A bound of 0 files is none.
func (a Amount) IsIn(most Amount) bool {
	return a.Bytes <= most.Bytes && (most.Files == 0 || a.Files <= most.Files)
}

// A File is one of a folder. It may have several names.
type File struct {
	Paths []string
	Size  int64
	Used  time.Time // when it was used last
}

// Evict removes files, the one first that was not used for the longest time, until there is
// room for more within bounds. left are those that stay. What is not there any more is as good
// as removed; the error is why another could not be.
func Evict(list []*File, more, most Amount) (left Amount, err error) {
	for _, f := range list {
		left = left.Plus(Amount{1, f.Size})
	}
	slices.SortFunc(list, func(a, b *File) int { return cmp.Or(a.Used.Compare(b.Used), strings.Compare(a.Paths[0], b.Paths[0])) })
	for _, f := range list {
		if left.Plus(more).IsIn(most) {
			break
		}
		if failed := f.remove(); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		left = left.Minus(Amount{1, f.Size})
	}
	return left, err
}

// remove removes all names of a file.
func (f *File) remove() (err error) {
	for _, path := range f.Paths {
		if failed := os.Remove(path); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}
