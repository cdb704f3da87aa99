// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// tally counts threads and frames of an interpreter by one way to look at its processes.
type tally struct {
	processes, errors                    int
	threads, equal, differ, missing      int
	frames, right, columns, wrongColumns int
	names                                int // of threads, that are equal
	unsaid                               int // threads that lack frames without a word
}

// judge compares the frames that were found in a process with the truth.
func (w *work) judge(i *interpreter, program string, t *truth, looks map[string]looked) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, way := range slices.Sorted(maps.Keys(looks)) {
		key := fmt.Sprintf("%-18s %s", i.name, way)
		if w.tally[key] == nil {
			w.tally[key] = &tally{}
		}
		c := comparison{w: w, i: i, program: program, view: way, look: looks[way], tally: w.tally[key]}
		c.tally.processes++
		if c.look.err != nil {
			c.tally.errors++
			c.note("", "the tool failed", c.look.err.Error())
			continue
		}
		if len(t.program) > 0 {
			c.threads(t.program, false)
		}
		if len(t.dump) > 0 && (len(t.program) == 0 || !strings.Contains(way, "py")) {
			c.threads(t.dump, true)
		}
	}
}

// comparison holds the frames that one view of a process has against the truth.
type comparison struct {
	w             *work
	i             *interpreter
	program, view string
	look          looked
	tally         *tally
}

// isPeer reports whether another tool found the frames.
func (c *comparison) isPeer() bool { return strings.HasPrefix(c.view, "py") }

// threads compares all threads.
func (c *comparison) threads(list []thread, isDump bool) {
	for n := range list {
		want := &list[n]
		c.tally.threads++
		c.tally.frames += len(want.frames)
		have := c.look.threads[want.native]
		if have == nil {
			c.tally.missing++
			c.note("", "the thread is missing", fmt.Sprintf("thread %d of %d frames", want.native, len(want.frames)))
			continue
		}
		c.stack(want, have, isDump)
		if !isDump && !c.isPeer() && want.name != "" {
			c.name(want, have)
		}
	}
}

// name compares the names of a thread.
func (c *comparison) name(want, have *thread) {
	if want.name == have.name {
		c.tally.names++
		return
	}
	c.note("program", "? the thread has another name", fmt.Sprintf("expected %q, got %q", want.name, have.name))
}

// stack compares the frames of a thread.
func (c *comparison) stack(want, have *thread, isDump bool) {
	equal := 0
	for equal < min(len(want.frames), len(have.frames)) && c.same(want.frames[equal], have.frames[equal], isDump) {
		if equal > 0 || !want.current { // it calls one function for the truth, and stops in another one
			c.column(want.frames[equal], have.frames[equal])
		}
		equal++
	}
	c.tally.right += equal
	if equal == len(want.frames) && (equal == len(have.frames) || want.isCut) {
		c.tally.equal++
		return
	}
	c.tally.differ++
	expected, got := "none", "none"
	if equal < len(want.frames) {
		expected = want.frames[equal].String()
	}
	if equal < len(have.frames) {
		got = have.frames[equal].String()
	}
	kind := c.kind(want, have, equal, isDump)
	source := "program"
	if isDump {
		source = "faulthandler"
	}
	c.note(source, kind, fmt.Sprintf("thread %d, frame %d of %d: expected %s, got %s (of %d) %s", want.native, equal, len(want.frames), expected, got, len(have.frames), c.look.problems[want.native]))
	if equal == len(have.frames) && c.look.problems[want.native] == "" {
		c.tally.unsaid++
	}
}

// same reports whether two frames are equal: the first one is the truth.
func (c *comparison) same(want, have frame, isDump bool) bool {
	if isDump {
		name := escaped(have.function)
		return (name == want.function || escaped(have.qualified) == want.function) && escaped(have.file) == want.file && have.line == want.line
	}
	if want.file != have.file || want.line != have.line {
		return false
	}
	if want.qualified != "" && !c.isPeer() {
		return want.qualified == have.qualified
	}
	return want.function == have.function || want.function == have.qualified || want.qualified == have.qualified
}

// column counts whether columns are equal, where both are known.
func (c *comparison) column(want, have frame) {
	switch {
	case want.column == 0 || c.isPeer():
	case want.column == have.column:
		c.tally.columns++
	default:
		c.tally.wrongColumns++
		c.note("program", "? the column is another one", fmt.Sprintf("expected %s, got %s", want, have))
	}
}

// kind is the class of a difference.
func (c *comparison) kind(want, have *thread, index int, isDump bool) string {
	for _, known := range knownClasses {
		if known.is(c, want, have, index, isDump) {
			return known.name
		}
	}
	switch {
	case index >= len(have.frames):
		return "? frames are missing"
	case index >= len(want.frames):
		return "? there are more frames"
	}
	w, h := want.frames[index], have.frames[index]
	switch {
	case w.file == h.file && (w.function == h.function):
		if w.line != h.line {
			return "? the line is another one"
		}
		return "? the qualified name is another one"
	case w.file == h.file && w.line == h.line:
		return "? the name is another one"
	}
	return "? the frame is another one"
}

// note counts a difference, and keeps an example of its class.
func (c *comparison) note(source, kind, text string) {
	name := kind
	if c.isPeer() {
		name = strings.Fields(c.view)[0] + ": " + strings.TrimPrefix(kind, "? ")
	}
	text = strings.Join(strings.Fields(c.i.name+" "+c.program+" "+c.view+" "+source+": "+text), " ")
	if c.w.classes[name] == nil {
		c.w.classes[name] = &class{example: text}
	}
	c.w.classes[name].count++
	if *verbose {
		fmt.Println(name+":", text)
	}
	if !c.isPeer() && (kind[0] == '?' || strings.HasPrefix(kind, "the t")) {
		c.w.unknown++
	}
}

// report prints the table, the classes and what failed.
func (w *work) report() error {
	out := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tprocesses\terrors\tthreads\tequal\tdiffer\tmissing\tframes\tequal\tcolumns equal\tdiffer\tnames equal\tmissing without a word")
	for _, name := range slices.Sorted(maps.Keys(w.tally)) {
		t := w.tally[name]
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, t.processes, t.errors, t.threads, t.equal, t.differ, t.missing, t.frames, t.right, t.columns, t.wrongColumns, t.names, t.unsaid)
	}
	out.Flush()
	names := slices.SortedFunc(maps.Keys(w.classes), func(a, b string) int {
		return cmp.Or(w.classes[b].count-w.classes[a].count, cmp.Compare(a, b))
	})
	for _, name := range names {
		fmt.Printf("%6d %s\n       %s\n", w.classes[name].count, name, w.classes[name].example)
	}
	slices.Sort(w.leftOut)
	for _, l := range w.leftOut {
		fmt.Println("left out:", l)
	}
	slices.Sort(w.failures)
	for _, f := range w.failures {
		fmt.Println("failed:", f)
	}
	if n := len(w.failures) + w.unknown; n > 0 {
		return fmt.Errorf("%d failures", n)
	}
	return nil
}
