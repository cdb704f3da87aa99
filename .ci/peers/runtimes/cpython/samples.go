// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// logged is a program that logs which functions it is in: its lines, and the functions by their order.
type logged struct {
	file      string
	lines     []string
	functions []string
}

// sampled counts what samples of an interpreter showed.
type sampled struct {
	samples, threads, frames int
	equal, missing, wrong    int // threads
	said                     int // threads without frames that say why
}

var definition = regexp.MustCompile(`^ *def (\w+)\(`)

// readLogged reads the program.
func readLogged(path string) (*logged, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := &logged{file: path, lines: strings.Split(string(text), "\n")}
	for _, line := range l.lines {
		if m := definition.FindStringSubmatch(line); m != nil {
			l.functions = append(l.functions, m[1])
		}
	}
	return l, nil
}

// sampleAll samples the program with every interpreter, and prints how many stacks are equal.
func (w *work) sampleAll(count int) error {
	l, err := readLogged(filepath.Join(w.data, "sampled.py"))
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tsamples\tthreads\tframes\tequal\tframes missing\tsaid so\twrong")
	for _, i := range w.interpreters {
		s, err := w.sample(i, l, count)
		if err != nil {
			w.fail("%s: %v", i.name, err)
			continue
		}
		fmt.Fprintf(out, "%-14s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", i.name, s.samples, s.threads, s.frames, s.equal, s.missing, s.said, s.wrong)
		out.Flush() // a run may be ended
	}
	out.Flush()
	for _, f := range w.failures {
		fmt.Println("failed:", f)
	}
	if len(w.failures) > 0 {
		return fmt.Errorf("%d failures", len(w.failures))
	}
	return nil
}

// sample stops the program at moments of chance, so that its log is of the same moment as its stacks.
func (w *work) sample(i *interpreter, l *logged, count int) (*sampled, error) {
	dir, err := w.folder(i, "sampled")
	if err != nil {
		return nil, err
	}
	_, env, _ := w.command(i, "sampled", dir)
	p, err := start(append(slices.Clone(i.argv), l.file), env, dir)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	if p.pid == 0 {
		log, _ := os.ReadFile(filepath.Join(dir, "stderr"))
		return nil, fmt.Errorf("it ended: %s", lastLine(string(log)))
	}
	s := &sampled{}
	for range count {
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		if err := freeze(p.pid); err != nil {
			return nil, err
		}
		words, err := os.ReadFile(filepath.Join(dir, "calls.log"))
		if err != nil {
			return nil, err
		}
		found := w.look(strconv.Itoa(p.pid))
		if err := syscall.Kill(p.pid, syscall.SIGCONT); err != nil {
			return nil, err
		}
		if found.err != nil {
			return nil, found.err
		}
		s.samples++
		w.check(i, l, s, words, found)
	}
	return s, nil
}

// freeze stops all threads of a process.
func freeze(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for range 2000 {
		running := false
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, t := range tasks {
			text, err := os.ReadFile(t)
			if end := strings.LastIndex(string(text), ") "); err == nil && end >= 0 && text[end+2] != 'T' && text[end+2] != 't' {
				running = true
			}
		}
		if !running {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("process %d was not stopped", pid)
}

// check compares the stacks of one moment with the log.
func (w *work) check(i *interpreter, l *logged, s *sampled, words []byte, found looked) {
	const size = 64 * 8
	for ; len(words) >= size; words = words[size:] {
		word := func(n int) int { return int(binary.LittleEndian.Uint64(words[8*n:])) }
		id, depth := word(63), min(word(0), 60)
		if id == 0 {
			continue
		}
		var log []string // innermost first
		for n := depth; n > 0; n-- {
			if f := word(n); f > 0 && f <= len(l.functions) {
				log = append(log, l.functions[f-1])
			}
		}
		s.threads++
		var have []frame
		if t := found.threads[id]; t != nil {
			have = t.frames
		}
		s.frames += len(have)
		switch problem := l.compare(log, have); {
		case problem == "":
			s.equal++
		case problem == "missing":
			s.missing++
			if found.problems[id] != "" || len(found.said) > 0 {
				s.said++
			}
			if *verbose {
				fmt.Printf("%s: missing: log %v, frames %v %v\n", i.name, log, have, found.said)
			}
		default:
			s.wrong++
			w.fail("%s: %s: log %v, frames %v", i.name, problem, log, have)
		}
	}
}

// compare says how the frames of a thread differ from its log: "" where they do not, "missing" where frames are not
// there. The innermost frame need not be in the log where its line is outside.
func (l *logged) compare(log []string, frames []frame) string {
	var have []frame
	for _, f := range frames {
		if f.file == l.file && f.function[0] != '<' {
			have = append(have, f)
		}
	}
	if len(have) == 0 {
		return "missing"
	}
	for n, f := range have {
		if f.line < 1 || f.line > len(l.lines) || !l.within(f) {
			return "the line is of another function"
		}
		if text := l.lines[f.line-1]; n > 0 && !calls(text, have[n-1].function) {
			return "the line does not call the function of the frame within"
		}
	}
	if len(have) == len(log)+1 {
		if text := l.lines[have[0].line-1]; !strings.Contains(text, "# outside") && !definition.MatchString(text) {
			return "a frame that is not in the log"
		}
		have = have[1:]
	}
	for n := range min(len(have), len(log)) {
		if h, want := have[len(have)-1-n].function, log[len(log)-1-n]; h != want {
			return "another function"
		}
	}
	switch {
	case len(have) > len(log):
		return "frames that are not in the log"
	case len(have) < len(log):
		return "missing"
	}
	return ""
}

// calls reports whether a line says that it calls a function.
func calls(line, function string) bool {
	_, list, isCall := strings.Cut(line, "# -> ")
	return isCall && slices.Contains(strings.Fields(list), function)
}

// within reports whether the line of a frame is in its function.
func (l *logged) within(f frame) bool {
	for n := f.line - 1; n >= 0; n-- {
		if m := definition.FindStringSubmatch(l.lines[n]); m != nil {
			return m[1] == f.function
		}
	}
	return false
}
