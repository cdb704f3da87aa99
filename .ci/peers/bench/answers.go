// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// compared holds answers, in any order, against ours.
func compared(what string, ours, theirs []string) decision {
	left := map[string]int{}
	for _, a := range ours {
		left[a]++
	}
	same := 0
	for _, a := range theirs {
		if left[a] > 0 {
			left[a]--
			same++
		}
	}
	total := max(len(ours), len(theirs))
	return decision{what, total - same, total}
}

// inOrder holds answers to the same questions against ours, one by one.
func inOrder(what string, ours, theirs []string) decision {
	total := max(len(ours), len(theirs))
	v := decision{what, total - min(len(ours), len(theirs)), total}
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			v.differ++
		}
	}
	return v
}

// readLines calls f with each line of a file.
func readLines(path string, f func(line string)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			f(strings.TrimSuffix(line, "\n"))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// frame is the part of a frame that is compared.
type frame struct {
	PC       string
	Offset   string `json:"module_offset"`
	FoundBy  string `json:"found_by"`
	Inlined  bool
	Function string
	File     string
	Line     int
	Managed  *struct{ Kind string } // of a language's runtime
}

// stackDocument is the JSON of unwindd stack.
type stackDocument struct{ Threads []struct{ Frames []frame } }

// ourStacks returns the stacks of a command that prints them as JSON.
func ourStacks(argv []string) (*stackDocument, error) {
	cmd := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], "--format", "json")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	d := &stackDocument{}
	return d, json.Unmarshal(out, d)
}

// pcs are the stacks of threads as the PCs of their frames.
func (d *stackDocument) pcs() []string {
	return d.stacks(func(f frame) bool { return !f.Inlined })
}

// returns are those without the frames that tail calls left, which gdb alone has, too.
func (d *stackDocument) returns() []string {
	return d.stacks(func(f frame) bool { return !f.Inlined && f.FoundBy != "call-site" })
}

// calls are those with a PC for every inlined call.
func (d *stackDocument) calls() []string {
	return d.stacks(func(f frame) bool { return f.FoundBy != "call-site" })
}

func (d *stackDocument) stacks(has func(frame) bool) (list []string) {
	for _, t := range d.Threads {
		var stack []string
		for _, f := range t.Frames {
			if has(f) {
				stack = append(stack, hex(f.PC))
			}
		}
		list = append(list, strings.Join(stack, " "))
	}
	return list
}

// callers returns the PCs of frames except the top one, of which gdb prints none at the
// start of a line.
func (d *stackDocument) callers() (list []string) {
	for _, stack := range d.pcs() {
		_, rest, _ := strings.Cut(stack, " ")
		list = append(list, rest)
	}
	return list
}

// hex is a number without zeros before it.
func hex(text string) string { return "0x" + strings.TrimLeft(text, "0x") }

// How the frames of the peers begin, and the threads.
var (
	gdbPC = regexp.MustCompile(`^#\d+ +(0x[0-9a-f]+) in `)
	euPC  = regexp.MustCompile(`^#\d+ +(0x[0-9a-f]+)`)
)

// stackReader returns the frame of a line, "" where it has none, and whether a thread
// begins.
type stackReader func(line string) (frame string, thread bool)

// theirStacks reads what a peer printed. Without a line for its thread a stack is there,
// too.
func theirStacks(output string, read stackReader) ([]string, error) {
	var list, stack []string
	end := func() {
		if len(stack) > 0 {
			list = append(list, strings.Join(stack, " "))
		}
		stack = nil
	}
	err := readLines(output, func(line string) {
		f, thread := read(line)
		if thread {
			end()
		}
		if f != "" {
			stack = append(stack, f)
		}
	})
	end()
	return list, err
}

// byGDB reads `thread apply all bt`, except the top frames. Before the threads gdb prints
// the frame where the process stopped.
func byGDB() stackReader {
	begun := false
	return func(line string) (string, bool) {
		if strings.HasPrefix(line, "Thread ") && strings.HasSuffix(line, "):") {
			begun = true
			return "", true
		}
		if m := gdbPC.FindStringSubmatch(line); begun && m != nil && !strings.HasPrefix(line, "#0 ") {
			return hex(m[1]), false
		}
		return "", false
	}
}

// byEUStack reads eu-stack's frames, inlined calls included.
func byEUStack(line string) (string, bool) {
	if strings.HasPrefix(line, "TID ") {
		return "", true
	}
	if m := euPC.FindStringSubmatch(line); m != nil {
		return hex(m[1]), false
	}
	return "", false
}

// lldbPrints is a command of LLDB's that prints a line for each thread, PCS and the PCs of its
// frames. Those that it prints of inlined calls by itself are where their blocks begin.
const lldbPrints = `script [print('PCS', *[hex(f.FindRegister('rip').GetValueAsUnsigned()) for f in t if not f.IsInlined() and not f.IsArtificial()]) for t in lldb.process]`

// checkLLDB holds the frames that lldb has, asked by other arguments than those that are
// measured, against ours. It leaves out a function whose code there is of an inlined call
// alone, so that stacks as a whole cannot be compared.
func checkLLDB(ours func() ([]string, error), argv []string) func(string) (decision, error) {
	return func(string) (decision, error) {
		want, err := ours()
		if err != nil {
			return decision{}, err
		}
		out, err := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], "-o", lldbPrints)...).Output()
		if err != nil {
			return decision{}, err
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			if pcs, ok := strings.CutPrefix(strings.TrimSpace(line), "PCS "); ok {
				got = append(got, strings.Fields(pcs)...)
			}
		}
		return compared("frames", strings.Fields(strings.Join(want, " ")), got), nil
	}
}

// checkStacks holds stacks against those that ours() has.
func checkStacks(ours func() ([]string, error), read func() stackReader) func(string) (decision, error) {
	return func(output string) (decision, error) {
		want, err := ours()
		if err != nil {
			return decision{}, err
		}
		got, err := theirStacks(output, read())
		if err != nil {
			return decision{}, err
		}
		return compared("stacks", want, slices.DeleteFunc(got, func(s string) bool { return s == "" })), nil
	}
}
