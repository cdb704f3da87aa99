// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pythonSource is a program of Python's with many threads.
const pythonSource = "bench/testdata/threads.py"

// languages are stacks of Python's threads, in living processes and in cores. Ours have the
// frames of C, too.
func languages(b *bench) (list []*contest, err error) {
	// Version managers put scripts before it that ask for the version.
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return nil, err
	}
	python := strings.TrimSpace(string(out))
	source, err := filepath.Abs(pythonSource)
	if err != nil {
		return nil, err
	}
	for _, n := range b.sizes(10, 100, 1000) {
		threads := strconv.Itoa(n)
		cmd := exec.Command(python, source, threads, "wait")
		if err := b.startWaiting(cmd); err != nil {
			return nil, err
		}
		core, err := b.core("python-"+threads, python, source, threads)
		if err != nil {
			return nil, err
		}
		pid := strconv.Itoa(cmd.Process.Pid)
		living, dead := b.pythonContest(threads+" threads, living", pid), b.pythonContest(threads+" threads, a core", core)
		living.series, living.size, dead.series = "living", float64(n), "core"
		living.theirs = []entry{
			{tool: "py-spy", argv: []string{b.built(pySpy), "dump", "--pid", pid}, check: checkStacks(b.pythonStacks(pid), byPySpy)},
			{tool: "py-spy, with native frames", argv: []string{b.built(pySpy), "dump", "--native", "--pid", pid}},
			{tool: "pystack", argv: []string{b.built(pystack), "remote", pid}, check: checkPystack(b.pythonStacks(pid))},
		}
		dead.theirs = []entry{{tool: "pystack", argv: []string{b.built(pystack), "core", core, python}, check: checkPystack(b.pythonStacks(core))}}
		list = append(list, living, dead)
	}
	return list, nil
}

// pythonContest asks unwindd for the stacks of a target.
func (b *bench) pythonContest(input, target string) *contest {
	return &contest{input: input, ours: entry{tool: "unwindd", argv: b.allStacks(target)}}
}

func (b *bench) allStacks(target string) []string {
	return []string{b.unwindd, "stack", "--no-fold", "--max-frames", "0", target}
}

// pythonStacks returns what reads our stacks of Python's frames alone.
func (b *bench) pythonStacks(target string) func() ([]string, error) {
	return func() (list []string, err error) {
		d, err := ourStacks(b.allStacks(target))
		if err != nil {
			return nil, err
		}
		for _, t := range d.Threads {
			var stack []string
			for _, f := range t.Frames {
				if f.Managed != nil && f.Managed.Kind == "interpreted" {
					stack = append(stack, pythonFrame(f.Function, f.File, strconv.Itoa(f.Line)))
				}
			}
			list = append(list, strings.Join(stack, " "))
		}
		return list, nil
	}
}

// pythonFrame is a frame as all tools have it: not all know the classes of methods.
func pythonFrame(function, file, line string) string {
	return function[strings.LastIndexByte(function, '.')+1:] + ":" + filepath.Base(file) + ":" + line
}

// How the frames of Python's peers are written.
var (
	pySpyFrame   = regexp.MustCompile(`^    (\S+) \((.*):(\d+)\)$`)
	pystackFrame = regexp.MustCompile(`^    \(Python\) File "(.*)", line (\d+), in (\S+)`)
)

// byPySpy reads frames of py-spy.
func byPySpy() stackReader {
	return func(line string) (string, bool) {
		if m := pySpyFrame.FindStringSubmatch(line); m != nil {
			return pythonFrame(m[1], m[2], m[3]), false
		}
		return "", strings.HasPrefix(line, "Thread ")
	}
}

// byPystack reads frames of pystack, the outermost first.
func byPystack(line string) (string, bool) {
	if m := pystackFrame.FindStringSubmatch(line); m != nil {
		return pythonFrame(m[3], m[1], m[2]), false
	}
	return "", strings.HasPrefix(line, "Traceback for thread ")
}

// checkPystack is checkStacks of pystack.
func checkPystack(ours func() ([]string, error)) func(string) (decision, error) {
	return checkStacks(func() ([]string, error) {
		list, err := ours()
		for i, stack := range list {
			frames := strings.Fields(stack)
			slices.Reverse(frames)
			list[i] = strings.Join(frames, " ")
		}
		return list, err
	}, func() stackReader { return byPystack })
}
