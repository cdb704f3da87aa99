// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// contest is one question to several tools, about one input.
type contest struct {
	input  string
	series string  // inputs of one kind, each larger than the one before; "": all of the section
	size   float64 // of the input, in what its section counts
	ours   entry
	theirs []entry
	goals  []goal
}

// goal is a bound of a figure: by a peer's in the same run, by ours of a smaller input, or of
// ours alone.
type goal struct {
	figure  figure
	tool    string  // whose figure ours is divided by; "": none
	smaller string  // an input of the section, by whose figure for one of its size ours is divided; "": none
	most    float64 // a ratio; without a tool and a smaller input nanoseconds or KiB
}

// entry is how a tool is asked.
type entry struct {
	tool  string
	argv  []string
	stdin string
	// exit is a status, beside 0, with which it ends although it has answered.
	exit int
	// measure measures it, with an answer in a file or nowhere; nil: argv is run. What it is given
	// is argv[0].
	measure func(executable, output string) (*cost.Cost, error)
	// check holds its output, which is in a file, against ours.
	check func(output string) (decision, error)
	// most is the share of differing answers up to which the answers count as the same;
	// docs/performance.md says whose fault they are.
	most float64
}

// decision has the numbers of answers that are equal and that differ.
type decision struct {
	what          string
	differ, total int
}

func (v decision) String() string {
	switch {
	case v.what == "":
		return ""
	case v.differ == 0:
		return fmt.Sprintf("%d %s, the same", v.total, v.what)
	}
	return fmt.Sprintf("%d of %d %s differ", v.differ, v.total, v.what)
}

// result has the measurements of a tool.
type result struct {
	tool     string
	runs     []*cost.Cost // in the order of the rounds
	decision decision
	failed   string // why there is no figure
	own, all int64  // KiB that it has at least, of a short run; 0: not weighed
}

// outcome is a contest that has ended; its first result is ours.
type outcome struct {
	*contest
	results []*result
}

// referee runs contests.
type referee struct {
	dir         string
	least, most int           // rounds
	patience    time.Duration // for the rounds of one contest behind the least
	limit       time.Duration // of the processors, for one run
	short       time.Duration // a tool that takes less is weighed
	slow        time.Duration // a tool that took so long is not asked again, nor a larger question
	leftOut     map[string]string
	wrong       []string // answers that differ too often
	progress    func(format string, args ...any)
}

// judge asks all tools once and compares the answers, and then measures those that
// answered, in turn.
func (r *referee) judge(section string, c *contest) (*outcome, error) {
	o := &outcome{contest: c}
	running := map[*result]*entry{}
	for i := range append([]entry{c.ours}, c.theirs...) {
		e := &c.ours
		if i > 0 {
			e = &c.theirs[i-1]
		}
		res := &result{tool: e.tool}
		o.results = append(o.results, res)
		if _, err := exec.LookPath(e.argv[0]); err != nil {
			res.failed = "not at hand"
			continue
		}
		name := section + " " + c.series + " " + e.tool
		if res.failed = r.leftOut[name]; res.failed != "" {
			continue
		}
		r.progress("%s, %s: %s", section, c.input, e.tool)
		took, err := r.first(e, res)
		switch {
		case err != nil && i == 0:
			return nil, err
		case err != nil:
			res.failed = err.Error()
			r.leftOut[name] = "a smaller one: " + res.failed
		case took.CPU > r.slow:
			res.runs = append(res.runs, took)
			if i > 0 {
				r.leftOut[name] = fmt.Sprintf("left out: %s took %s", c.input, seconds(took.CPU))
			}
		default:
			running[res] = e
			if err := r.weigh(e, res, took); err != nil {
				return nil, err
			}
		}
		if float64(res.decision.differ) > e.most*float64(res.decision.total) {
			r.wrong = append(r.wrong, fmt.Sprintf("%s, %s, %s: %s", section, c.input, e.tool, res.decision))
			// What a wrong answer takes says nothing.
			res.failed, res.runs = res.decision.String(), nil
			delete(running, res)
		}
	}
	return o, r.rounds(o, running)
}

// weigh notes the memory of a tool that took little time.
func (r *referee) weigh(e *entry, res *result, took *cost.Cost) (err error) {
	if took.CPU >= r.short {
		return nil
	}
	if res.own, res.all, err = (&cost.Command{Argv: e.argv, Stdin: e.stdin}).Weigh(); err != nil {
		return fmt.Errorf("%s: %w", res.tool, err)
	}
	return nil
}

// rounds measures, each tool once a round.
func (r *referee) rounds(o *outcome, running map[*result]*entry) error {
	began := time.Now()
	for round := 0; round < r.least || round < r.most && time.Since(began) < r.patience; round++ {
		for _, res := range o.results {
			e := running[res]
			if e == nil {
				continue
			}
			took, err := r.once(e, "")
			if err != nil {
				return fmt.Errorf("%s: %w", res.tool, err)
			}
			took.Own, took.All = max(took.Own, res.own), max(took.All, res.all)
			res.runs = append(res.runs, took)
		}
	}
	return nil
}

// first runs a tool with its output in a file, and has that checked.
func (r *referee) first(e *entry, res *result) (*cost.Cost, error) {
	output := filepath.Join(r.dir, "output")
	took, err := r.once(e, output)
	if err != nil || e.check == nil {
		return took, err
	}
	if res.decision, err = e.check(output); err != nil {
		return nil, fmt.Errorf("its answer: %w", err)
	}
	return took, nil
}

// once runs a tool, with its output in a file or nowhere.
func (r *referee) once(e *entry, output string) (*cost.Cost, error) {
	output = cmp.Or(output, os.DevNull)
	if e.measure != nil {
		return e.measure(e.argv[0], output)
	}
	out, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	took, err := (&cost.Command{Argv: e.argv, Stdin: e.stdin, Limit: r.limit}).Of(out)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return took, err
	}
	status := exit.Sys().(syscall.WaitStatus)
	switch {
	case e.exit != 0 && status.ExitStatus() == e.exit:
		return took, nil
	case status.Signaled() && status.Signal() == syscall.SIGKILL && took.CPU > r.limit:
		return nil, fmt.Errorf("more than %s", seconds(r.limit))
	case status.Signaled():
		return nil, fmt.Errorf("%s", status.Signal())
	}
	return nil, fmt.Errorf("%s: %w", strings.Join(e.argv, " "), err)
}
