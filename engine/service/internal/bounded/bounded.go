// SPDX-License-Identifier: Apache-2.0

// Package bounded keeps folders of files within bounds: the least recently used files go
// first.
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

// Amount is a number of files and of their bytes.
type Amount struct{ Files, Bytes int64 }

// Plus returns the sum of two amounts.
func (a Amount) Plus(b Amount) Amount { return Amount{a.Files + b.Files, a.Bytes + b.Bytes} }

// Minus returns the difference of two amounts.
func (a Amount) Minus(b Amount) Amount { return Amount{a.Files - b.Files, a.Bytes - b.Bytes} }

// IsIn reports whether an amount is within bounds. 0 files as a bound is no bound.
func (a Amount) IsIn(most Amount) bool {
	return a.Bytes <= most.Bytes && (most.Files == 0 || a.Files <= most.Files)
}

// File is a file of a folder. It may have several names.
type File struct {
	Paths []string
	Size  int64
	Used  time.Time // when it was used last
}

// Evict removes files, the least recently used first, until more fits within bounds, and
// returns the amount of files that stay. A file that is gone already counts as removed; the
// error is about files that could not be removed.
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
