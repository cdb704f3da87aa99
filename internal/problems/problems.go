// SPDX-License-Identifier: Apache-2.0

// Package problems keeps what is wrong with an input within bounds: of a bad file
// there may be millions of problems.
package problems

// A List keeps the first problems, and counts the others. The zero List is empty.
type List[T any] struct {
	kept    []T
	dropped int
}

// HasRoom says whether fewer than most problems are kept. Where it says no, a
// problem was found that is not kept, and it is counted.
func (l *List[T]) HasRoom(most int) bool {
	if len(l.kept) < most {
		return true
	}
	l.dropped++
	return false
}

// Keep keeps a problem, for which HasRoom was asked.
func (l *List[T]) Keep(problem T) { l.kept = append(l.kept, problem) }

// Kept returns the problems that are kept, in the order in which they were found.
// The caller must not change them.
func (l *List[T]) Kept() []T { return l.kept[:len(l.kept):len(l.kept)] }

// Dropped is how many problems were not kept.
func (l *List[T]) Dropped() int { return l.dropped }
