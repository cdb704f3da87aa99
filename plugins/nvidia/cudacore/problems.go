// SPDX-License-Identifier: Apache-2.0

package cudacore

import "fmt"

const (
	maxProblems = 64   // are listed
	maxProblem  = 2000 // bytes of one
)

// problems collects problems. Of each kind, which the format tells, the first one is
// listed and the others are counted: there may be a million.
type problems struct {
	list  []string
	kinds map[string]int // the index in counts
	count []int
	more  int
}

func (p *problems) add(format string, args ...any) {
	if i, ok := p.kinds[format]; ok {
		p.count[i]++
		return
	}
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	if p.kinds == nil {
		p.kinds = map[string]int{}
	}
	p.kinds[format] = len(p.list)
	p.count = append(p.count, 0)
	p.list = append(p.list, fmt.Sprintf("%.*s", maxProblem, fmt.Sprintf(format, args...)))
}

// all returns the problems, and how many more there are.
func (p *problems) all() []string {
	var all []string
	for i, text := range p.list {
		if p.count[i] > 0 {
			text = fmt.Sprintf("%s (and %d more of this kind)", text, p.count[i])
		}
		all = append(all, text)
	}
	if p.more > 0 {
		all = append(all, fmt.Sprintf("%d more problems", p.more))
	}
	return all
}
