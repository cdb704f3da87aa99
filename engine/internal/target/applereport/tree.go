// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/filekind"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file reads the call trees of sample and of spindump. A line of a tree has a number of samples, a
// function and an address; it is called by the nearest line above whose number begins further left.

// treeHead is the number of bytes in which the kind of a tree is looked for.
const treeHead = 8 << 10

// IsTree reports whether a file has call trees.
func IsTree(data []byte) bool {
	head := data[:min(len(data), treeHead)]
	if !filekind.IsAppleReport(string(head[:min(len(head), filekind.HeadSize)])) {
		return false
	}
	head = pasted(head)
	if trimmed := bytes.TrimLeft(head, " \t\r\n"); bytes.HasPrefix(trimmed, []byte("{")) { // a preface, and text
		_, head, _ = bytes.Cut(trimmed, []byte("\n"))
		if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
			return false
		}
	}
	return isTree(head)
}

// isTree reports whether a text has call trees.
func isTree(data []byte) bool {
	head := data[:min(len(data), treeHead)]
	return bytes.Contains(head, []byte("Analysis of sampling ")) || isSpindump(head)
}

// isSpindump reports whether a text is of spindump.
func isSpindump(head []byte) bool {
	for _, key := range []string{"\nData Source:", "\nSteps:", "\nHeaviest stack for the", "\nDuration:", "\nNum samples:"} {
		if bytes.Contains(head, []byte(key)) {
			return true
		}
	}
	return false
}

// choice is which processes of a text with several are read.
type choice uint8

const (
	chosenProcess choice = iota // the one that the head of the text names, or else the first one
	firstProcess                // the first one that has stacks
	allProcesses
)

// treeReader reads trees.
type treeReader struct {
	textReader
	tree    *Thread
	columns []int  // of the calls that the last line is in
	part    string // the heading that the lines are under
	choice  choice
	about   trace.Process // the process that the head of the text names
	begun   int           // processes
	others  int           // processes that are left out
	isOther bool          // the lines are of one of these
	placed  int           // threads whose calls have their images
	images  int           // images of the processes before
}

// readTree reads the trees of a text: of the process that it is about.
func readTree(data []byte) (*Report, error) {
	r, err := readTreesOf(data, chosenProcess)
	if err != nil && r.others > 0 {
		about := r.about.Command
		if r, err = readTreesOf(data, firstProcess); err == nil {
			r.Problems = append(r.Problems, fmt.Sprintf("the text has no stacks of %s, which it is about", about))
		}
	}
	if err != nil {
		return nil, err
	}
	return r.Report, nil
}

// readTreesOf reads the trees of a text, of all processes or of one.
func readTreesOf(data []byte, c choice) (*treeReader, error) {
	form := FormSample
	if isSpindump(data[:min(len(data), treeHead)]) {
		form = FormSpindump
	}
	r := &treeReader{textReader: textReader{Report: newReport(form), names: map[string]string{}, byID: map[string]int{}}, choice: c}
	eachLine(r.Report, data, r.line)
	r.endProcess()
	if len(r.Threads) == 0 {
		return r, errNoThreads
	}
	if r.others > 0 {
		more := "another process"
		if r.others > 1 {
			more = fmt.Sprintf("%d more processes", r.others)
		}
		r.problem("the stacks of %s are left out: these are of %s (unwindd profile counts those of all)", more, r.Facts.Process.Command)
	}
	if r.isMicro {
		r.note("samples", microstackshots)
	}
	r.finish()
	return r, nil
}

// microstackshots explains the stacks of microstackshots.
const microstackshots = "microstackshots: each is of the one thread that executed when it was taken, so that the tree has all threads of the process, " +
	"and the stack is the most frequent one, of no thread at one moment"

// line reads a line of a text with trees.
func (r *treeReader) line(line string) bool {
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
		r.columns = r.columns[:0]
		r.see = nil
		return true
	case r.Form == FormSpindump && line == "Custom Output:": // of other tools
		return false
	case r.Form == FormSpindump && r.processLine(line), r.isOther:
		return true
	case strings.HasPrefix(trimmed, "Heaviest stack"), strings.HasPrefix(trimmed, "Total number in stack"), strings.HasPrefix(trimmed, "Sort by top of stack"):
		r.endTree()
		r.part = trimmed
		return true
	case strings.HasPrefix(trimmed, "Call graph:"):
		r.part = ""
		return true
	case strings.HasPrefix(trimmed, "Binary Images:"):
		r.endTree()
		r.part, r.see = "", r.image
		return true
	}
	if r.treeLine(line) || r.header(line) {
		return true
	}
	if r.see != nil {
		r.see(line)
	}
	return true
}

// processLine reads a line that begins the stacks of a process: "Process: NAME [PID]", or "Powerstats for: NAME",
// which has one tree for all threads.
func (r *treeReader) processLine(line string) bool {
	key, value, _ := strings.Cut(line, ":")
	if key != "Process" && key != "Powerstats for" {
		return false
	}
	r.endProcess()
	if r.begun == 0 {
		r.about = r.Facts.Process
	}
	r.begun++
	r.part = ""
	name, pid := processOf(strings.TrimSpace(value))
	if r.isOther = !r.takes(name, pid); r.isOther {
		r.others++
		return true
	}
	r.Facts.Process.Command = name
	if pid > 0 || r.choice != chosenProcess {
		r.Facts.Process.ID = pid
	}
	if r.choice != allProcesses {
		r.Images = r.Images[:0] // of a process without stacks
	}
	if key != "Process" {
		r.tree = &Thread{ID: "all", Name: strings.Join(strings.Fields(line), " ")}
	}
	return true
}

// takes reports whether the stacks of a process are read.
func (r *treeReader) takes(name string, pid int64) bool {
	switch {
	case r.choice == allProcesses:
		return true
	case len(r.Threads) > 0:
		return false
	case r.choice == firstProcess, r.about.Command == "" && r.about.ID == 0:
		return true
	case pid > 0 && r.about.ID > 0:
		return pid == r.about.ID
	}
	return name == r.about.Command
}

// endProcess ends the stacks of a process: its images are known now.
func (r *treeReader) endProcess() {
	r.endTree()
	if r.choice == allProcesses {
		r.placeCalls(r.Threads[r.placed:], r.images)
	}
	r.placed, r.images = len(r.Threads), len(r.Images)
}

// treeLine reads a line of a tree, or the line that begins one.
func (r *treeReader) treeLine(line string) bool {
	if strings.Contains(r.part, "stack") {
		return false
	}
	if id, state, ok := threadOf(line); ok {
		r.endTree()
		r.tree = &Thread{ID: id, Name: state}
		r.columns = r.columns[:0]
		return true
	}
	if r.tree == nil {
		return false
	}
	call, column, ok := parseCall(line)
	if !ok {
		return false
	}
	for len(r.columns) > 0 && r.columns[len(r.columns)-1] >= column {
		r.columns = r.columns[:len(r.columns)-1]
	}
	if len(r.columns) >= maxDepth || !r.hasRoom() {
		return true
	}
	call.Depth = len(r.columns)
	r.columns = append(r.columns, column)
	r.tree.Tree = append(r.tree.Tree, call)
	return true
}

// maxDepth bounds the calls in each other.
const maxDepth = 1 << 12

// threadOf reads the line that begins the tree of a thread: "2540 Thread_1122 NAME", or "Thread 0x1a2b NAME".
func threadOf(line string) (id, name string, ok bool) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return "", "", false
	}
	if rest, is := strings.CutPrefix(words[1], "Thread_"); is {
		if _, err := strconv.ParseUint(words[0], 10, 64); err == nil {
			id, name, _ = strings.Cut(rest, ":")
			return id, strings.TrimSpace(name + " " + strings.Join(words[2:], " ")), id != ""
		}
	}
	if words[0] != "Thread" {
		return "", "", false
	}
	if words[1] == "<multiple>" { // threads that executed a queue one after the other
		return "multiple", spindumpName(line), true
	}
	if _, is := parseHex(words[1]); !is {
		return "", "", false
	}
	return words[1], spindumpName(line), true
}

// spindumpName returns the name and the queue in a line of spindump that begins a thread.
func spindumpName(line string) string {
	if _, rest, ok := strings.Cut(line, "Thread name \""); ok {
		if name, _, ok := strings.Cut(rest, "\""); ok {
			return name
		}
	}
	if _, rest, ok := strings.Cut(line, "DispatchQueue "); ok {
		fields := strings.Split(rest, "  ")
		return "DispatchQueue " + strings.TrimSpace(fields[0])
	}
	return ""
}

// endTree adds the thread whose tree was read. Its frames are the path that the most samples have.
func (r *treeReader) endTree() {
	t := r.tree
	r.tree = nil
	r.columns = r.columns[:0]
	if t == nil || len(t.Tree) == 0 {
		return
	}
	total, path := t.heaviest()
	for i := len(path) - 1; i >= 0; i-- {
		f := t.Tree[path[i]].Frame
		f.Exact = len(t.Frames) == 0
		if r.hasRoom() {
			t.Frames = append(t.Frames, f)
		}
	}
	t.process, t.pid = r.Facts.Process.Command, r.Facts.Process.ID
	t.State = fmt.Sprintf("%d of %d samples are in this stack", t.Tree[path[len(path)-1]].Weight, total)
	r.addThread(*t)
}

// heaviest returns the number of samples of a thread, and the calls of its heaviest path, from the outermost on: it
// ends where more samples end than go on in any one call.
func (t *Thread) heaviest() (total uint64, path []int) {
	root := len(t.Tree)
	inside, best := make([]uint64, root+1), make([]int, root+1)
	callers := []int{root}
	for i := range t.Tree {
		c := &t.Tree[i]
		callers = append(callers[:c.Depth+1], i)
		caller := callers[c.Depth]
		inside[caller] = saturated(inside[caller], c.Weight)
		if b := best[caller]; b == 0 || c.Weight > t.Tree[b-1].Weight {
			best[caller] = i + 1
		}
	}
	for at := root; best[at] > 0; {
		next := best[at] - 1
		if at != root {
			if c := &t.Tree[at]; c.Weight > inside[at] && c.Weight-inside[at] > t.Tree[next].Weight {
				break
			}
		}
		path = append(path, next)
		at = next
	}
	return inside[root], path
}

func saturated(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

// parseCall reads a line of a tree: marks of the tree, a number of samples, the function and its image, and the
// address in brackets. column is where the number begins.
func parseCall(line string) (c Call, column int, ok bool) {
	text := strings.TrimLeft(line, " +!:|\t")
	if strings.HasPrefix(text, "*") { // code of the kernel
		text, c.IsKernel = text[1:], true
	}
	number, rest, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return c, 0, false
	}
	c.Weight, c.image = n, -1
	column = len(line) - len(strings.TrimLeft(line, " +!:|\t*"))
	open := strings.LastIndex(rest, "[0x")
	if open < 0 {
		return c, 0, false
	}
	addresses, behind, isClosed := strings.Cut(rest[open+1:], "]")
	if !isClosed {
		return c, 0, false
	}
	word, _, _ := strings.Cut(addresses, ",")
	if c.Address, ok = parseHex(strings.TrimSuffix(word, "...")); !ok {
		return c, 0, false
	}
	c.function(strings.TrimSpace(rest[:open]), strings.TrimSpace(behind))
	return c, column, true
}

// function reads the function of a call: "NAME  (in IMAGE) + N", with a position behind the address, as sample
// writes it, or "NAME + N (IMAGE + N)" or "NAME + N (FILE:LINE in IMAGE + N)", as spindump does.
func (c *Call) function(text, behind string) {
	if before, rest, ok := strings.Cut(text, "  (in "); ok {
		object, offset, _ := strings.Cut(rest, ")")
		c.Object = object
		if _, place, ok := strings.Cut(offset, "load address "); ok {
			base, _, _ := strings.Cut(place, " ")
			c.setBase(base)
			offset = ""
		}
		offset, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(offset), "+ "), ",")
		c.setName(before, offset)
		c.setPosition(behind)
		return
	}
	open := strings.LastIndex(text, " (")
	if open < 0 || !strings.HasSuffix(text, ")") {
		c.setName(text, "")
		return
	}
	inside := text[open+2 : len(text)-1]
	if position, object, ok := strings.Cut(inside, " in "); ok {
		c.setPosition(position)
		inside = object
	}
	if i := strings.LastIndex(inside, " + "); i >= 0 {
		if n, err := strconv.ParseUint(inside[i+3:], 10, 64); err == nil && n <= c.Address {
			c.base = c.Address - n
		}
		inside = inside[:i]
	}
	c.Object = inside
	name, offset := text[:open], ""
	if i := strings.LastIndex(name, " + "); i >= 0 {
		name, offset = name[:i], name[i+3:]
	}
	c.setName(name, offset)
}

// setBase sets the base of the image of a call.
func (c *Call) setBase(text string) {
	if base, ok := parseHex(text); ok && base <= c.Address {
		c.base = base
	}
}

// setName sets the function of a call, unless it is unknown, and the offset in it.
func (c *Call) setName(name, offset string) {
	name = strings.TrimSpace(name)
	if name == "" || name == "???" {
		return
	}
	c.Symbol = name
	if n, err := strconv.ParseUint(offset, 10, 64); err == nil {
		c.Offset, c.HasOffset = n, true
	}
}
