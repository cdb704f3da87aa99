// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/schema"
)

// choices are the bytes that a job is made of; 0 behind their end.
type choices []byte

func (c *choices) below(n int) int {
	if len(*c) == 0 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return int(b) % n
}

// chosenNames are names of functions and of roles, few, so that stacks meet.
var chosenNames = []string{"main", "a", "b", "long::name<of, a, template>::function(int)", "", "x;y", "e\x1b[31m\n", "\xff", "wave of k", "goroutine of main.f"}

// job makes a job of the choices.
func (c *choices) job() *madeJob {
	m := &madeJob{part: comparison.New(comparison.Options{ByThread: c.below(8) == 7, CrashedOnly: c.below(8) == 7})}
	for range c.below(24) + 1 {
		rank := c.below(20)
		t := &comparison.Target{Path: fmt.Sprintf("/job/%d", c.below(30)), Labels: map[string]string{"rank": strconv.Itoa(rank)}, Host: "h" + strconv.Itoa(c.below(3)), PID: int64(c.below(40))}
		switch c.below(10) {
		case 0:
			t.Labels = nil
		case 1:
			t.Unread = t.Path + ": " + chosenNames[c.below(len(chosenNames))] + "?"
		case 2:
			t.Facts, t.Problems = []string{chosenNames[c.below(len(chosenNames))]}, []string{"p"}
		case 3:
			t.Modules = []trace.ModuleBuild{{Name: "m", BuildID: strconv.Itoa(c.below(4))}}
		case 4:
			t.Started, t.Taken = time.Unix(5, 0), time.Unix(int64(10+c.below(9)), 0)
		}
		for id := range c.below(6) {
			t.Threads = append(t.Threads, c.thread(id))
		}
		m.part.Add(t)
	}
	return m
}

func (c *choices) thread(id int) comparison.Thread {
	th := comparison.Thread{ID: strconv.Itoa(id), Role: chosenNames[c.below(len(chosenNames))], Crashed: c.below(9) == 8}
	for range c.below(9) {
		f := trace.ComparedFrame{Function: chosenNames[c.below(len(chosenNames))], Module: "m", IsGuess: c.below(9) == 8, IsWave: c.below(9) == 8}
		if line := c.below(4); line > 0 {
			f.File, f.Line = "/f.c", line
		}
		if f.Function == "" {
			f.Offset = uint64(c.below(3))
		}
		th.Frames = append(th.Frames, f)
	}
	if c.below(7) == 6 {
		th.Ends = "no-row"
	}
	return th
}

// FuzzFormsOfComparisons holds that every form of every comparison is whole, and that all count the same threads.
func FuzzFormsOfComparisons(f *testing.F) {
	described := schema.Docs(f, "compare.schema.json")
	for seed := range 12 {
		b := make([]byte, 400)
		for i := range b {
			b[i] = byte(seed*251+i*i*31) ^ byte(i>>2)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkForms(t, described, b) })
}

// checkForms writes the comparison that bytes stand for in every form.
func checkForms(t *testing.T, described schema.Schema, b []byte) {
	c := choices(b)
	m := c.job()
	for form, write := range comparisonForms {
		if text := m.written(t, write); strings.ContainsAny(text, "\x1b\r") {
			t.Errorf("%s is not escaped: %q", form, text)
		}
	}
	checkJSON(t, "json", described, []byte(m.written(t, (*Comparison).WriteJSON)))
	threads := 0
	for _, class := range m.comparison().Classes {
		for _, th := range class.Threads {
			threads += th.Threads
		}
	}
	if n := countFolded(t, m); n != threads {
		t.Errorf("folded: %d threads, expected %d", n, threads)
	}
	var packed bytes.Buffer
	_, _ = io.WriteString(&packed, m.written(t, (*Comparison).WritePprof))
	p, err := profile.Parse(&packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sample {
		threads -= int(s.Value[0])
	}
	if threads != 0 {
		t.Errorf("pprof: %d threads are missing", threads)
	}
}

// countFolded is the number of threads in folded stacks.
func countFolded(t *testing.T, m *madeJob) (threads int) {
	for line := range strings.Lines(m.written(t, (*Comparison).WriteFolded)) {
		n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]))
		if err != nil {
			t.Fatal(err)
		}
		threads += n
	}
	return threads
}
