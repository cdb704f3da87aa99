// SPDX-License-Identifier: Apache-2.0

// Package selection selects parts of profiles: samples of threads, processors, times and
// functions, and the functions of their stacks.
package selection

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// Selector selects a part of profiles.
type Selector struct {
	selection             trace.ProfileSelection
	processes, threads    []namePattern
	cpus                  []cpuRange
	window                window
	focus, ignore, hidden []*regexp.Regexp
	callersExpression     *regexp.Regexp // nil: the name is none
}

// New prepares a selection. Its errors are in the words of flags of commands.
func New(selection trace.ProfileSelection) (*Selector, error) {
	s := &Selector{selection: selection}
	for _, list := range []struct {
		flag string
		from []string
		to   *[]*regexp.Regexp
	}{{"focus", selection.Focus, &s.focus}, {"ignore", selection.Ignore, &s.ignore}, {"hide", selection.Hide, &s.hidden}} {
		for _, text := range list.from {
			if text == "" {
				return nil, fmt.Errorf("--%s: expected a regular expression for the names of functions", list.flag)
			}
			expression, err := compile(list.flag, text)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, expression)
		}
	}
	var err error
	if s.processes, err = patterns("process", selection.Processes); err != nil {
		return nil, err
	}
	if s.threads, err = patterns("thread", selection.Threads); err != nil {
		return nil, err
	}
	if s.cpus, err = parseCPUs(selection.CPUs); err != nil {
		return nil, err
	}
	if s.window, err = parseWindow(selection.Time); err != nil {
		return nil, err
	}
	if selection.Callers != "" {
		// A name need not be an expression: "operator()(int" is none.
		s.callersExpression, _ = regexp.Compile(selection.Callers)
	}
	return s, nil
}

// compile compiles the regular expression of a flag.
func compile(flag, text string) (*regexp.Regexp, error) {
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: expected a regular expression (RE2): %w", flag, text, err)
	}
	return expression, nil
}

// Result is a selected part of a profile.
type Result struct {
	Profile *trace.Profile
	// Notes are sentences about parts of the selection that had no effect.
	Notes []string
}

// Select selects a part of a profile, which is not changed. unnamed returns the name of code that
// no symbol names. An error says which part of the selection matches nothing.
func (s *Selector) Select(p *trace.Profile, unnamed func(*trace.ProfileFrame) string) (*Result, error) {
	if s.selection.IsZero() || len(p.Samples) == 0 {
		return &Result{Profile: p}, nil
	}
	r := &Result{Profile: p}
	f := &filter{selector: s, p: p, functions: functions{p, unnamed}, kept: make([]bool, len(p.Samples)), result: r}
	for i := range f.kept {
		f.kept[i] = true
	}
	for _, step := range []func() error{f.processes, f.threads, f.cpus, f.time, f.focus, f.ignore, f.callers, f.hide} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(f.kept, true) {
		return nil, fmt.Errorf("%s: no sample is in all of: %s", p.Path, s.flags())
	}
	r.Profile = f.profile()
	return r, nil
}

// flags are the members that are set, in the words of flags.
func (s *Selector) flags() string {
	text, separator := "", ""
	add := func(flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				text += separator + "--" + flag + " " + value
				separator = ", "
			}
		}
	}
	add("process", s.selection.Processes...)
	add("thread", s.selection.Threads...)
	add("cpu", s.selection.CPUs)
	add("time", s.selection.Time)
	add("focus", s.selection.Focus...)
	add("ignore", s.selection.Ignore...)
	add("callers", s.selection.Callers)
	return text
}
