// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/stacks"
)

// compare has a program end, and compares all that is left of it.
func (w *work) compare(p *program) error {
	exe, err := w.built(p.build)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(exe), strings.ReplaceAll(p.variant, " ", "-")+"-")
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
	// gdb is not told by qemu which bits are a signature: its stacks come from a
	// processor without signatures, with the same addresses.
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
	var ofCore map[string]*stacks.Stack
	if e.core != "" {
		ofCore, err = w.stacksOf(p, e.core, args...)
		if err != nil {
			return err
		}
		w.judge(p, "core", ofCore, nil, e.gdb, t)
		if err := w.compareInProcess(p, e.core, args); err != nil {
			return err
		}
	}
	if e.snapshot != "" {
		ofSnapshot, err := w.stacksOf(p, e.snapshot)
		if err != nil {
			return err
		}
		w.judge(p, "snapshot", ofSnapshot, ofCore, e.gdb, t)
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

// judge compares stacks, thread by thread; a snapshot's also with the core's that the
// same process left.
func (w *work) judge(p *program, kind string, ours, ofCore, gdb map[string]*stacks.Stack, t *truth) {
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
			b = &stacks.Stack{}
		}
		d := &difference{program: p, kind: kind, thread: thread, ours: a, gdb: b}
		if d.core = ofCore[thread]; d.core != nil {
			_, missing, isKnown := t.check(thread, d.core)
			d.isCoreProved = isKnown && missing == ""
		}
		d.wrong, d.missing, d.isKnown = t.check(thread, a)
		if d.wrong != "" && slices.ContainsFunc(a.Found, stacks.IsGuess) {
			d.guessed, d.wrong = d.wrong, ""
		}
		sum.count(d)
		class := d.class()
		if class != "" {
			w.classes[class]++
		}
		if d.isFailure() {
			w.failures = append(w.failures, d.String())
		} else if class != "" && (*verbose || d.guessed+d.missing != "") {
			fmt.Printf("%s: %s\n", class, d)
		}
	}
}

// alike is the stack of another run, whose threads have other numbers: the one that has most
// frames in common, from either end.
func alike(gdb map[string]*stacks.Stack, a *stacks.Stack) (best *stacks.Stack) {
	most := 0
	for _, b := range gdb {
		d := difference{ours: a, gdb: b}
		if n := max(d.common(), d.commonEnd()); n > most {
			best, most = b, n
		}
	}
	return best
}

func (t *tally) count(d *difference) {
	t.threads++
	t.frames += len(d.ours.PCs)
	n := d.common()
	switch {
	case n == len(d.ours.PCs) && n == len(d.gdb.PCs):
		t.equal++
	case n == len(d.gdb.PCs):
		t.more++
	case n == len(d.ours.PCs):
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

// difference is a thread's stack beside gdb's and the truth.
type difference struct {
	program        *program
	kind, thread   string
	ours, gdb      *stacks.Stack
	wrong, missing string
	guessed        string // the error behind a frame that is marked as a guess
	isKnown        bool
	core           *stacks.Stack // of a snapshot: ours of the core of the same process
	isCoreProved   bool
}

// common is how many frames are equal, from the innermost one.
func (d *difference) common() int { return stacks.Common(d.ours.PCs, d.gdb.PCs) }

// isFailure: an error counts behind a guess, too, unless nothing can be known.
func (d *difference) isFailure() bool {
	class := d.class()
	isShort := class == systemStack || d.core != nil && d.isCoreProved && strings.HasPrefix(class, "snapshot:")
	return d.wrong != "" || d.guessed != "" && class != overwritten || strings.HasPrefix(class, "?") || d.missing != "" && !d.mayMiss() && !isShort
}

// isProved says that the program itself says that the stack is right, and all of it is there.
func (d *difference) isProved() bool {
	return d.isKnown && d.wrong+d.guessed+d.missing == ""
}

// isPrefix says that all of gdb's frames, n of which are equal, are ours, too, and that we have more.
func (d *difference) isPrefix(n int) bool {
	return n == len(d.gdb.PCs) && n < len(d.ours.PCs)
}

// function is the name of the function of one of our frames.
func (d *difference) function(i int) string {
	name, _, _ := strings.Cut(d.ours.Text[i], " in ")
	return strings.TrimSuffix(name, ".abi0")
}

func (d *difference) String() string {
	n := d.common()
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s), thread %s: %d frames, gdb %d (%s), equal up to %d; ends %s", d.program.name(), d.kind, d.thread, len(d.ours.PCs), len(d.gdb.PCs), d.gdb.Stopped, n, d.ours.Stopped)
	if d.wrong != "" {
		fmt.Fprintf(&b, "\n\twrong: %s", d.wrong)
	}
	if d.guessed != "" {
		fmt.Fprintf(&b, "\n\twrong, by a guess: %s", d.guessed)
	}
	if d.missing != "" {
		fmt.Fprintf(&b, "\n\tmissing: %s", d.missing)
	}
	for i := max(n-2, 0); i < min(n+4, len(d.ours.PCs)); i++ {
		fmt.Fprintf(&b, "\n\tours %d %#x %s %s", i, d.ours.PCs[i], d.ours.Found[i], d.ours.Text[i])
	}
	for i := n; i < min(n+4, len(d.gdb.PCs)); i++ {
		fmt.Fprintf(&b, "\n\tgdb %d %#x", i, d.gdb.PCs[i])
	}
	return b.String()
}

// class is the reason of a difference; "": there is none.
func (d *difference) class() string {
	n := d.common()
	if n == len(d.ours.PCs) && n == len(d.gdb.PCs) {
		return ""
	}
	for _, c := range classes {
		if c.is(d, n) {
			return c.name
		}
	}
	return "? without a reason"
}

// Two classes have frames that are wrong or missing.
const (
	// clang saves no return address in a function before it calls one that never returns, if nothing asks for
	// call frame information: it is nowhere. gdb finds the same frame again.
	overwritten = "no call frame information: the call of abort has overwritten the only return address; what follows is a guess"
	systemStack = "Go: the goroutine that called runtime.systemstack is missing"
)

// classes are the reasons that are known: the first that holds. Each has the difference
// and the evidence, other than gdb, that we are right.
var classes = []struct {
	name string
	is   func(d *difference, n int) bool
}{
	{"a jump to what is no code: gdb ends there, or goes on with words of the stack", func(d *difference, n int) bool {
		i := slices.IndexFunc(d.ours.Text, func(text string) bool { return !strings.Contains(text, " in ") })
		return i >= 0 && n == i+1 && len(d.ours.PCs) > n && stacks.IsGuess(d.ours.Found[n]) && d.isProved()
	}},
	{"signed addresses: a run without gdb has a thread elsewhere in its loop, or another stack address to jump to", func(d *difference, n int) bool {
		isOther := d.program.variant == "threads" || d.program.variant == "stackcall" && n == 0
		return d.program.signed && isOther && d.kind == "core" && d.isProved() && (d.commonEnd() >= 2 || d.program.variant == "stackcall")
	}},
	{"Go: gdb ends at a function that is marked as the first of a stack", func(d *difference, n int) bool {
		return d.isGo() && d.isPrefix(n) && d.gdb.Stopped == "outermost" && (d.isProved() || n+1 == len(d.ours.PCs) && d.function(n) == "runtime.clone" && d.function(n-1) == "runtime.mstart")
	}},
	{"Go: gdb loses the stack behind the call of runtime.sigpanic that a handler made", func(d *difference, n int) bool {
		return d.isGo() && n > 0 && slices.ContainsFunc(d.ours.Text[:n], func(text string) bool { return strings.HasPrefix(text, "runtime.sigpanic in ") }) && d.isProved()
	}},
	{"Go: gdb goes on where the scheduler's stack begins", func(d *difference, n int) bool {
		return d.isGo() && n == len(d.ours.PCs) && slices.Contains([]string{"runtime.mcall", "runtime.systemstack", "runtime.morestack"}, d.function(n-1)) && strings.HasPrefix(d.ours.Stopped, "outermost: a stack begins")
	}},
	{"snapshot: gdb kept no memory behind its last frame; in the core we go on", func(d *difference, n int) bool {
		size := len(d.ours.PCs)
		return d.isPrefix(n) && d.isCoreProved && len(d.core.PCs) > size && slices.Equal(d.core.PCs[:size], d.ours.PCs)
	}},
	{overwritten, func(d *difference, n int) bool {
		return d.isPrefix(n) && strings.HasPrefix(d.gdb.Stopped, "previous frame identical") && n > 1 && d.function(n-2) == "abort" && stacks.IsGuess(d.ours.Found[n])
	}},
	{systemStack, func(d *difference, n int) bool {
		core := cmp.Or(d.core, d.ours)
		return d.isGo() && d.isPrefix(n) && d.gdb.Stopped == "outermost" && strings.HasPrefix(core.Stopped, "outermost: a stack begins in runtime.systemstack") &&
			slices.Equal(core.PCs[:len(d.ours.PCs)], d.ours.PCs)
	}},
	{"gdb ends in code that has no call frame information; behind it a thread begins, by that of its own", func(d *difference, n int) bool {
		return d.isPrefix(n) && len(d.ours.PCs) == n+1 && d.gdb.Stopped == "outermost" && d.ours.Found[n] == "frame-pointer" &&
			strings.HasPrefix(d.ours.Stopped, "outermost: the return address is undefined") && d.isProved()
	}},
	{"gdb ends, or goes wrong, in a function of a library that has no call frame information", func(d *difference, n int) bool {
		isLibrary := n > 0 && n < len(d.ours.PCs) && !ownName.MatchString(d.function(n-1)) && d.function(n-1) != "main"
		return isLibrary && d.isProved() && (d.program.isMusl() || d.program.machine == riscv64 && len(d.gdb.PCs) == n)
	}},
	{"Rust: gdb finds main again and again, which has no call frame information; behind it we end at _start by that of the C library", func(d *difference, n int) bool {
		if d.program.language != "Rust" || n < 1 || n >= min(len(d.ours.PCs), len(d.gdb.PCs)) || d.function(n-1) != "main" {
			return false
		}
		isAgain := !slices.ContainsFunc(d.gdb.PCs[n:], func(pc uint64) bool { return pc != d.ours.PCs[n-1] })
		return isAgain && d.function(len(d.ours.PCs)-1) == "_start" && !slices.ContainsFunc(d.ours.Found, stacks.IsGuess)
	}},
	{"musl: gdb takes a word for the caller of the function that calls main, and never returns", func(d *difference, n int) bool {
		return d.program.isMusl() && n == len(d.ours.PCs) && n > 1 && d.function(n-2) == "main" && d.isProved()
	}},
}

func (d *difference) isGo() bool { return d.program.language == "Go" }

// commonEnd is how many frames are equal, from the outermost one.
func (d *difference) commonEnd() (n int) {
	a, b := d.ours.PCs, d.gdb.PCs
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// mayMiss says that functions may be missing: of Rust's abort, which keeps no return address
// because it never returns, gdb misses the same.
func (d *difference) mayMiss() bool {
	last := len(d.ours.PCs) - 1
	return d.program.language == "Rust" && d.class() == "" && strings.Contains(d.function(last), "abort")
}
