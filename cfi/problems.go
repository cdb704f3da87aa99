package cfi

import (
	"fmt"
	"sync"
)

// maxProblems bounds how many problems are kept.
const maxProblems = 16

// problems are what was found wrong in a section.
type problems struct {
	mu    sync.Mutex
	kept  []error
	found int // those not kept included
}

// Problems returns what was found wrong so far that cost a lookup something: a
// header that was given up, entries that the index had to leave out. At most 16
// are kept.
func (p *problems) Problems() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]error(nil), p.kept...)
}

func (p *problems) problem(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found++
	if len(p.kept) < maxProblems {
		p.kept = append(p.kept, err)
	}
}

// without says that nothing covers pc, and what may be the reason.
func (p *problems) without(pc uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == 0 {
		return fmt.Sprintf("%#x", pc)
	}
	return fmt.Sprintf("%#x; the section has %d problems, the first: %v", pc, p.found, p.kept[0])
}
