// SPDX-License-Identifier: Apache-2.0

package stacktext

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// FoldedForm is the name of folded stacks.
const FoldedForm = "folded stacks"

// IsFolded reports whether a file with these first bytes has folded stacks: names with
// semicolons between them, and a count at the end of each line. isWhole: there are no more
// bytes.
func IsFolded(head []byte, isWhole bool) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	deep, lines := false, 0
	for _, line := range headLines(head, isWhole) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		stack, _, ok := cutCount(line)
		if !ok {
			return false
		}
		lines++
		deep = deep || bytes.IndexByte(stack, ';') > 0
	}
	return deep && lines > 0
}

// cutCount cuts a line into the stack and its count.
func cutCount(line []byte) (stack []byte, count float64, ok bool) {
	i := bytes.LastIndexAny(line, " \t")
	if i <= 0 {
		return nil, 0, false
	}
	text := line[i+1:]
	if len(text) == 0 || text[0] < '0' || text[0] > '9' || bytes.ContainsAny(text, "xXpP_iInN") {
		return nil, 0, false
	}
	count, err := strconv.ParseFloat(string(text), 64)
	return bytes.TrimSpace(line[:i]), count, err == nil && count >= 0 && count < math.MaxInt64
}

// foldedReader reads folded stacks.
type foldedReader struct {
	*stacktree.Builder
	known                    map[string]uint32 // frames, by their texts
	event                    int16
	stop                     uint16
	unread, firstUnread      int
	fractions, double, lines int
	deep                     int // frames
}

// ReadFolded reads folded stacks. A file with two counts in each line, of a comparison, is an
// error.
func ReadFolded(path string, data []byte) (*stacktree.File, error) {
	r := &foldedReader{Builder: stacktree.NewBuilder(path, FoldedForm), known: map[string]uint32{}}
	r.stop = r.Stop(stopText)
	r.event, _ = r.Event(trace.ProfileEvent{Name: "samples", Unit: "count"})
	eachLine(r.Builder, data, r.read)
	if r.lines > 1 && r.double == r.lines {
		return nil, fmt.Errorf("%s: each line has two counts, as difffolded.pl writes them: expected one; compare profiles with `unwindd diff`", path)
	}
	if r.unread > 0 {
		r.Problem("%d lines are no stack with a count, the first is line %d: they are left out", r.unread, r.firstUnread)
	}
	if r.deep > 0 {
		r.Problem("stacks have more than %d frames: %d outer ones are left out", maxFrames, r.deep)
	}
	if r.fractions > 0 {
		r.Problem("%d counts are no whole numbers: they are rounded", r.fractions)
	}
	return r.Finish(), nil
}

// read reads a line.
func (r *foldedReader) read(number int, line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' {
		return
	}
	stack, count, ok := cutCount(line)
	if !ok {
		if r.unread++; r.unread == 1 {
			r.firstUnread = number
		}
		return
	}
	r.lines++
	if _, _, again := cutCount(stack); again {
		r.double++
	}
	whole := math.Round(count)
	if whole != count {
		r.fractions++
	}
	name, frames := "", strings.Split(string(stack), ";")
	if isThreadName(frames[0]) {
		name, frames = frames[0], frames[1:]
	}
	thread := r.Thread(-1, -1, name)
	if n := len(frames) - maxFrames; n > 0 {
		r.deep += n
		frames = frames[n:]
	}
	r.Samples = append(r.Samples, trace.ProfileSample{
		Event: r.event, Thread: thread, Stop: r.stop, Weight: uint64(whole), Stack: r.tree(frames),
	})
}

// isThreadName reports whether the first name of a stack is a thread's, as in the files that
// flame graphs of processes are made from, and not a function's.
func isThreadName(name string) bool {
	return !strings.ContainsAny(name, "(<`") && !strings.Contains(name, "::") && !strings.HasSuffix(name, "]")
}

// tree returns the stack of names, outermost first. An inlined call follows the function that
// it is in.
func (r *foldedReader) tree(names []string) (stack uint32) {
	for start := 0; start < len(names); {
		end := start + 1
		for end < len(names) && strings.HasSuffix(names[end], inlinedMark) {
			end++
		}
		stack = r.Push(stack, r.frame(names[start:end], end == len(names)))
		start = end
	}
	return stack
}

// The marks of names, as stackcollapse-perf.pl and the project itself write them.
const (
	kernelMark  = "_[k]"
	inlinedMark = "_[i]"
	deviceMark  = "_[G]"
)

// otherMarks are marks that say nothing which frames have: code of a JIT compiler, a waker.
var otherMarks = []string{"_[j]", "_[w]"}

// frame returns the frame of a function and the calls that are inlined into it.
func (r *foldedReader) frame(names []string, isInnermost bool) uint32 {
	key := strings.Join(names, ";")
	_, _, hasAddress := cutAddress(names[0])
	if hasAddress && isInnermost {
		key += ";" // the address is looked up as it is
	}
	if f, ok := r.known[key]; ok {
		return f
	}
	f := stacktree.Frame{PID: -1, Dispatched: -1, Exact: isInnermost}
	for i := len(names) - 1; i >= 0; i-- {
		name := names[i]
		if text, ok := strings.CutSuffix(name, inlinedMark); ok && i > 0 {
			name = text
		}
		if text, ok := strings.CutSuffix(name, kernelMark); ok {
			name, f.Kernel = text, true
		}
		if text, ok := strings.CutSuffix(name, deviceMark); ok {
			name, f.Device = text, true
		}
		for _, mark := range otherMarks {
			name = strings.TrimSuffix(name, mark)
		}
		if object, address, ok := cutAddress(name); ok && i == 0 {
			f.Object, f.Address, f.HasAddress, f.Place = object, address, true, stacktree.PlaceObject
		} else if name != "[unknown]" && name != "" {
			f.Symbols = append(f.Symbols, trace.Symbol{Function: name, Inlined: i > 0})
		}
	}
	index := r.Frame(f)
	r.known[key] = index
	return index
}

// cutAddress cuts PATH+0xADDRESS, with or without brackets. Paths are absolute.
func cutAddress(name string) (object string, address uint64, ok bool) {
	if text, isOpen := strings.CutPrefix(name, "["); isOpen {
		name = strings.TrimSuffix(text, "]")
	}
	i := strings.LastIndex(name, "+0x")
	if i <= 0 || name[0] != '/' {
		return "", 0, false
	}
	address, err := strconv.ParseUint(name[i+3:], 16, 64)
	return name[:i], address, err == nil
}
