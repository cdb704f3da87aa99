// SPDX-License-Identifier: Apache-2.0

// Package problems keeps the problems of an input within bounds: a bad file may
// have millions.
package problems

// List keeps the first problems, and counts the others. The zero List is empty.
type List[T any] struct {
	kept    []T
	dropped int
}

// HasRoom reports whether fewer than most problems are kept. Where it returns
// false, it counts a problem that is not kept.
func (l *List[T]) HasRoom(most int) bool {
	if len(l.kept) < most {
		return true
	}
	l.dropped++
	return false
}

// Keep keeps a problem, after HasRoom returned true.
func (l *List[T]) Keep(problem T) { l.kept = append(l.kept, problem) }

// Kept returns the problems that are kept, in the order in which they were found.
// The caller must not change them.
func (l *List[T]) Kept() []T { return l.kept[:len(l.kept):len(l.kept)] }

// Dropped returns how many problems were not kept.
func (l *List[T]) Dropped() int { return l.dropped }
