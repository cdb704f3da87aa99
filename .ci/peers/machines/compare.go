// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// compare has a program end, and compares all that is left of it.
func (w *work) compare(p *program) error {
	exe, err := w.built(p.build)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(exe), strings.ReplaceAll(p.way, " ", "-")+"-")
	if err != nil {
		return err
	}
	if err := os.Link(exe, filepath.Join(dir, "program")); err != nil {
		return err
	}
	if *keep == "" {
		defer os.RemoveAll(dir)
	}
	e, err := w.runUnderGDB(p, dir)
	if err != nil {
		return err
	}
	if err := w.compareEnd(p, dir, e); err != nil || !p.signed {
		return err
	}
	// gdb is not told by qemu which bits are a signature: its stacks are those of a
	// processor that signs nothing, with the same addresses.
	signed := filepath.Join(dir, "signed")
	if err := os.Mkdir(signed, 0o755); err != nil {
		return err
	}
	if err := os.Link(exe, filepath.Join(signed, "program")); err != nil {
		return err
	}
	alone, err := w.runAlone(p, signed, "max")
	if err != nil {
		return err
	}
	alone.gdb = e.gdb
	return w.compareEnd(p, signed, alone)
}

// compareEnd compares the core of a process and its snapshot with what gdb says of it.
func (w *work) compareEnd(p *program, dir string, e *end) error {
	exe := filepath.Join(dir, "program")
	t, err := readTruth(e, exe)
	if err != nil {
		return err
	}
	args := []string{"--exe", exe, "--sysroot", w.rootOf(p.build)}
	if e.core != "" {
		ofCore, err := w.stacksOf(p, e.core, args...)
		if err != nil {
			return err
		}
		w.judge(p, "core", ofCore, e.gdb, t)
		if err := w.compareInProcess(p, e.core, args); err != nil {
			return err
		}
	}
	if e.snapshot != "" {
		ofSnapshot, err := w.stacksOf(p, e.snapshot)
		if err != nil {
			return err
		}
		w.judge(p, "snapshot", ofSnapshot, e.gdb, t)
	}
	return nil
}

// compareInProcess: the plugin's process makes no difference.
func (w *work) compareInProcess(p *program, core string, args []string) error {
	args = append(args, "--locals", "--registers")
	apart, err := w.run(p, core, args...)
	if err != nil {
		return err
	}
	within, err := w.run(p, core, append(args, "--in-process")...)
	if err == nil && !bytes.Equal(apart, within) {
		w.fail("%s: --in-process prints other bytes", p.name())
	}
	return err
}

// judge compares stacks, thread by thread.
func (w *work) judge(p *program, kind string, ours, gdb map[string]*stack, t *truth) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	key := p.machine.name + " " + p.language + ", " + kind
	sum := w.tally[key]
	if sum == nil {
		sum = &tally{}
		w.tally[key] = sum
	}
	sum.programs++
	if len(ours) != len(gdb) {
		w.failures = append(w.failures, fmt.Sprintf("%s (%s): %d threads, gdb has %d", p.name(), kind, len(ours), len(gdb)))
	}
	for thread, a := range ours {
		b := gdb[thread]
		if b == nil {
			b = alike(gdb, a)
		}
		if b == nil {
			b = &stack{}
		}
		d := &difference{program: p, kind: kind, thread: thread, ours: a, gdb: b}
		if p.way != "noexcept" { // whose functions are left while they are on the stack
			d.wrong, d.missing, d.isKnown = t.check(thread, a.isCrashed, a.pcs)
		}
		if d.wrong != "" && slices.ContainsFunc(a.found, isGuess) {
			d.guessed, d.wrong = d.wrong, ""
		}
		sum.count(d)
		class := d.class()
		if class != "" {
			w.classes[class]++
		}
		if d.isFailure() {
			w.failures = append(w.failures, d.String())
		} else if *verbose && class != "" {
			fmt.Printf("%s: %s\n", class, d)
		}
	}
}

// alike is the stack of another run, whose threads have other numbers: the one that has most
// frames in common.
func alike(gdb map[string]*stack, a *stack) (best *stack) {
	most := 0
	for _, b := range gdb {
		d := difference{ours: a, gdb: b}
		if n := d.common(); n > most {
			best, most = b, n
		}
	}
	return best
}

func (t *tally) count(d *difference) {
	t.threads++
	t.frames += len(d.ours.pcs)
	n := d.common()
	switch {
	case n == len(d.ours.pcs) && n == len(d.gdb.pcs):
		t.equal++
	case n == len(d.gdb.pcs):
		t.more++
	case n == len(d.ours.pcs):
		t.fewer++
	default:
		t.another++
	}
	if d.isKnown {
		t.known++
	}
	if d.wrong != "" {
		t.wrong++
	}
	if d.guessed != "" {
		t.guessed++
	}
	if d.missing != "" {
		t.missing++
	}
}

// A difference is a thread's stack beside gdb's and the truth.
type difference struct {
	program        *program
	kind, thread   string
	ours, gdb      *stack
	wrong, missing string
	guessed        string // what is wrong behind a frame that is marked as a guess
	isKnown        bool
}

// common is how many frames are equal, from the innermost one.
func (d *difference) common() (n int) {
	for n < min(len(d.ours.pcs), len(d.gdb.pcs)) && d.ours.pcs[n] == d.gdb.pcs[n] {
		n++
	}
	return n
}

func (d *difference) isFailure() bool {
	return d.wrong != "" || strings.HasPrefix(d.class(), "?") || d.missing != "" && !d.mayMiss()
}

func (d *difference) String() string {
	n := d.common()
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s), thread %s: %d frames, gdb %d (%s), equal up to %d; ends %s", d.program.name(), d.kind, d.thread, len(d.ours.pcs), len(d.gdb.pcs), d.gdb.stopped, n, d.ours.stopped)
	if d.wrong != "" {
		fmt.Fprintf(&b, "\n\twrong: %s", d.wrong)
	}
	if d.missing != "" {
		fmt.Fprintf(&b, "\n\tmissing: %s", d.missing)
	}
	for i := max(n-2, 0); i < min(n+4, len(d.ours.pcs)); i++ {
		fmt.Fprintf(&b, "\n\tours %d %#x %s %s", i, d.ours.pcs[i], d.ours.found[i], d.ours.text[i])
	}
	for i := n; i < min(n+4, len(d.gdb.pcs)); i++ {
		fmt.Fprintf(&b, "\n\tgdb %d %#x", i, d.gdb.pcs[i])
	}
	return b.String()
}

// class is the reason of a difference; "": there is none.
func (d *difference) class() string {
	n := d.common()
	if n == len(d.ours.pcs) && n == len(d.gdb.pcs) {
		return ""
	}
	for _, c := range classes {
		if c.is(d, n) {
			return c.name
		}
	}
	return "? without a reason"
}

func isGuess(found string) bool { return found == "scan" || found == "frame-pointer" }

// classes are the reasons that are known: the first that holds.
var classes = []struct {
	name string
	is   func(d *difference, n int) bool
}{
	{"core of Go: the program went on after gdb had looked at it", func(d *difference, _ int) bool {
		return d.program.language == "Go" && d.kind == "core"
	}},
	{"Go without DWARF: gdb does not read the runtime's own tables", func(d *difference, _ int) bool {
		return d.program.language == "Go" && (d.program.name() != "" && strings.Contains(strings.Join(d.program.flags, " "), "-ldflags"))
	}},
	{"Go: gdb goes on where a stack begins, and ends at injected calls and signals", func(d *difference, _ int) bool { return d.program.language == "Go" }},
	{"signed addresses: a thread of a run without gdb stands elsewhere", func(d *difference, _ int) bool { return d.program.signed && d.program.way == "threads" }},
	{"a jump into the stack: gdb takes its words for a frame", func(d *difference, n int) bool { return d.program.way == "stackcall" && n <= 1 }},
	{"a jump through a bad pointer: gdb ends, or goes on with words of the stack", func(d *difference, n int) bool {
		return n <= 2 && slices.Contains([]string{"odd", "bad", "badjump", "datacall", "null", "nullmain", "nulldeep", "nulljump", "tail", "faultcall"}, d.program.way)
	}},
	{"snapshot: gdb kept the memory of the frames that it knows", func(d *difference, n int) bool { return d.lacksMemory() }},
	{"no call frame information: gdb knows no more, or takes the word above the last frame", func(d *difference, n int) bool {
		return (d.program.hasNoCFI() || d.program.isMusl()) && n < len(d.ours.pcs) || d.program.isMusl()
	}},
	{"no call frame information: the loop of a function that never returns is not read", func(d *difference, _ int) bool { return d.isEndless() }},
	{"gdb takes a row without a rule for the return address for the outermost frame", func(d *difference, n int) bool {
		return d.program.machine.plugin && n == len(d.gdb.pcs) && slices.ContainsFunc(d.ours.found[n:], isGuess)
	}},
}

func (d *difference) lacksMemory() bool {
	return d.kind == "snapshot" && d.program.hasNoCFI() && strings.HasPrefix(d.program.way, "fault") || d.kind == "snapshot" && (d.program.way == "handler" || d.program.way == "altstack")
}

func (d *difference) isEndless() bool { return d.program.hasNoCFI() && d.program.way == "threads" }

// mayMiss says that functions may be missing for a reason that is named: of Rust's abort, which
// keeps no return address because it never returns, gdb misses the same.
func (d *difference) mayMiss() bool {
	return d.class() != "" || d.program.language == "Rust" && d.common() == len(d.gdb.pcs)
}
