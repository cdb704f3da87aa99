// SPDX-License-Identifier: Apache-2.0

package rocm

import "fmt"

// maxProblems is how many problems are listed.
const maxProblems = 64

// problems are those found so far. Those of one kind may be many.
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

// all are the problems, with how many there are besides.
func (p *problems) all() []string {
	if p.more == 0 {
		return p.list
	}
	return append(p.list, fmt.Sprintf("%d more problems", p.more))
}

// A tally counts what happened to many waves of a queue, with the first case.
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

// addf makes the text of the first case alone: there may be a million.
func (t *tally) addf(format string, args ...any) {
	if t.count == 0 {
		t.first = fmt.Errorf(format, args...)
	}
	t.count++
}

// waves is "1 wave" or "N waves".
func waves(n int) string {
	if n == 1 {
		return "1 wave"
	}
	return fmt.Sprintf("%d waves", n)
}
