// SPDX-License-Identifier: Apache-2.0

package rocm

import "fmt"

// maxProblems bounds the problems that are listed.
const maxProblems = 64

// problems collects problems, of which one kind may have many.
type problems struct {
	list []string
	more int
}

func (p *problems) add(format string, args ...any) {
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// all returns the problems, and how many more there are.
func (p *problems) all() []string {
	if p.more == 0 {
		return p.list
	}
	return append(p.list, fmt.Sprintf("%d more problems", p.more))
}

// tally counts the cases of one problem among the waves of a queue, with the
// text of the first.
type tally struct {
	count int
	first error
}

func (t *tally) add(err error) {
	if t.count == 0 {
		t.first = err
	}
	t.count++
}

// addf formats only the text of the first case: there may be a million.
func (t *tally) addf(format string, args ...any) {
	if t.count == 0 {
		t.first = fmt.Errorf(format, args...)
	}
	t.count++
}

// waves returns "1 wave" or "N waves".
func waves(n int) string {
	if n == 1 {
		return "1 wave"
	}
	return fmt.Sprintf("%d waves", n)
}
