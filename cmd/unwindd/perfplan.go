// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// perfPlan is how perf records here.
type perfPlan struct {
	path   string
	event  string
	graph  string   // of --call-graph
	hasIDs bool     // build IDs are recorded with mappings
	but    []string // what there is not, each with the reason
}

const (
	// stackSize is how much of a stack perf copies: more than most need, and a record of it has
	// room for all registers.
	stackSize = 16384
	// perfPatience bounds the question which version perf is.
	perfPatience = 5 * time.Second
)

// planPerf finds out how perf can record a subject. The error says why it cannot.
func planPerf(ctx context.Context, subject *recordSubject) (*perfPlan, error) {
	path, err := exec.LookPath("perf")
	if err != nil {
		return nil, fmt.Errorf("perf is not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, perfPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	major, minor, ok := perfVersion(string(out))
	if err != nil || !ok {
		return nil, fmt.Errorf("%s does not say which version it is, as where it is not the kernel's", path)
	}
	p := &perfPlan{path: path}
	target := 0
	if len(subject.pids) > 0 {
		target = subject.pids[0]
	}
	if err := p.probe(target); err != nil {
		return nil, err
	}
	p.hasIDs = p.hasIDs && (major > 5 || major == 5 && minor >= 12)
	return p, nil
}

// perfVersion parses the output of perf --version: "perf version 6.1.192".
func perfVersion(text string) (major, minor int, ok bool) {
	number, isPerf := strings.CutPrefix(text, "perf version ")
	parts := strings.FieldsFunc(number, func(c rune) bool { return c < '0' || c > '9' })
	if !isPerf || len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	minor, minorErr := strconv.Atoi(parts[1])
	return major, minor, err == nil && minorErr == nil
}

// arguments are the words of perf's command line, for a recording that is written to a path.
func (p *perfPlan) arguments(subject *recordSubject, f *recordFlags, path string) []string {
	args := []string{
		"record", "-e", p.event, "-F", strconv.Itoa(f.samplesPerSecond()), "--call-graph", p.graph,
		// The time of the day is known by this clock, and runtimes write it into jitdumps.
		"-k", "CLOCK_MONOTONIC",
		"-o", path,
	}
	if p.hasIDs {
		args = append(args, "--buildid-mmap")
	} else {
		args = append(args, "--no-buildid-cache") // nothing is copied into the user's folder
	}
	switch {
	case len(subject.program) > 0:
		// perf has the program's standard error: it is not to write there.
		return append(append(args, "--quiet", "--", subject.path), subject.program[1:]...)
	case len(f.tids) > 0:
		args = append(args, "--tid", numbers(f.tids))
	default:
		args = append(args, "--pid", numbers(subject.pids))
	}
	if f.duration > 0 { // from when it has prepared, which only perf knows
		args = append(args, "--", "sleep", strconv.FormatFloat(f.duration.Seconds(), 'f', 3, 64))
	}
	return args
}

// numbers writes numbers as perf's lists.
func numbers(list []int) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

// samplesPerSecond is perf's frequency.
func (f *recordFlags) samplesPerSecond() int {
	if f.frequency > 0 {
		return f.frequency
	}
	return defaultFrequency
}

// words describe the plan in a message.
func (p *perfPlan) words(f *recordFlags) string {
	text := fmt.Sprintf("by perf: %s at %d Hz, stacks by %s", p.event, f.samplesPerSecond(), p.graph)
	if len(p.but) > 0 {
		text += " (" + strings.Join(p.but, "; ") + ")"
	}
	return text
}
