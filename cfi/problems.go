// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/internal/problems"
)

// maxProblems bounds how many problems are kept.
const maxProblems = 16

// sectionProblems are the problems of a section that lookups met.
type sectionProblems struct {
	mu   sync.Mutex
	list problems.List[error]
}

// Problems returns the problems so far that cost a lookup something: a header that was
// abandoned, entries that the index had to leave out. At most 16 are kept.
func (p *sectionProblems) Problems() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list.Kept())
}

func (p *sectionProblems) problem(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list.HasRoom(maxProblems) {
		p.list.Keep(err)
	}
}

// without returns the text of an error: nothing covers pc, with a possible reason.
func (p *sectionProblems) without(pc uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.list.Kept()
	if len(kept) == 0 {
		return fmt.Sprintf("%#x", pc)
	}
	return fmt.Sprintf("%#x; the section has %d problems, the first: %v", pc, len(kept)+p.list.Dropped(), kept[0])
}
