// SPDX-License-Identifier: Apache-2.0

package stacktext

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// ScriptForm is the name of the text of perf script.
const ScriptForm = "perf script"

// maxHeadLines is how many lines decide what a text is.
const maxHeadLines = 200

// IsScript reports whether a file with these first bytes is the text of perf script: samples
// with a line for each frame. isWhole: there are no more bytes.
func IsScript(head []byte, isWhole bool) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	headers := false
	lines := headLines(head, isWhole)
	for i, line := range lines {
		line = bytes.TrimSuffix(line, []byte("\r"))
		switch {
		case i > maxHeadLines:
			return headers
		case len(bytes.TrimSpace(line)) == 0 || line[0] == '#':
		case line[0] == '\t' || line[0] == ' ' && headers:
			if _, isCode := parseAddress(line); isCode {
				return true
			}
		default:
			h, ok := parseHeader(line)
			if !ok && !bytes.Contains(line, []byte(recordPrefix)) {
				return isComm(line) && i+1 < len(lines) && isFrame(lines[i+1])
			}
			if h.restIsCode && h.event != "" {
				return true
			}
			headers = true
		}
	}
	return headers
}

// isFrame reports whether a line is a frame with its address.
func isFrame(line []byte) bool {
	_, isCode := parseAddress(line)
	return isCode && line[0] == '\t'
}

// maxComm bounds the bytes of a thread's name, with the space behind it.
const maxComm = 16

// isComm reports whether a line may be the name of a thread, as a sample begins where it has no
// other field.
func isComm(line []byte) bool { return line[0] != ' ' && len(line) <= maxComm }

// scriptReader reads the text of perf script.
type scriptReader struct {
	*stacktree.Builder
	lines  map[string]uint32 // indices of frames, by text
	parsed []scriptFrame
	texts  []string          // of parsed
	known  map[string]uint32 // frames of the tree, by lines and process
	key    []byte

	isOpen bool     // a sample was begun
	header header   // of the sample
	stack  []uint32 // of the sample, indices of parsed, innermost first

	stop                         uint16
	unread, noPeriod             int
	firstUnread, others, tooMany int
	deep                         int // frames
}

// ReadScript reads the text of perf script.
func ReadScript(path string, data []byte) (*stacktree.File, error) {
	r := &scriptReader{Builder: stacktree.NewBuilder(path, ScriptForm), lines: map[string]uint32{}, known: map[string]uint32{}}
	r.stop = r.Stop(stopText)
	eachLine(r.Builder, data, r.read)
	r.flush()
	r.report()
	return r.Finish(), nil
}

// report adds the problems of the whole text.
func (r *scriptReader) report() {
	if r.unread > 0 {
		r.Problem("%d lines are neither a sample nor a frame, the first is line %d: they are left out", r.unread, r.firstUnread)
	}
	if r.noPeriod > 0 {
		r.Problem("%d of %d samples have no period (perf script -F +period): each counts once", r.noPeriod, len(r.Samples))
	}
	if r.tooMany > 0 {
		r.Problem("there are too many events: %d samples are left out", r.tooMany)
	}
	if r.deep > 0 {
		r.Problem("stacks have more than %d frames: %d outer ones are left out", maxFrames, r.deep)
	}
	if r.others > 0 {
		r.Problem("%d records are no samples, and are not shown", r.others)
	}
}

// read reads a line.
func (r *scriptReader) read(number int, line []byte) {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		if !r.isOpen || len(r.stack) > 0 {
			r.flush()
		}
	case line[0] == '#':
		r.comment(string(line))
	case line[0] == '\t':
		r.frame(line)
	case bytes.Contains(line, []byte(recordPrefix)):
		r.flush()
		r.record(line)
	default:
		r.other(number, line)
	}
}

// other reads a line that begins neither with a tabulator nor as a record.
func (r *scriptReader) other(number int, line []byte) {
	if h, ok := parseHeader(line); ok {
		r.flush()
		r.header, r.isOpen = h, true
		if h.restIsCode {
			r.frame(h.rest)
		}
		return
	}
	_, isCode := parseAddress(line)
	switch {
	case line[0] == ' ' && isCode:
		r.frame(line)
	case bytes.HasPrefix(line, []byte("  ")) && len(r.stack) > 0:
		r.source(line)
	case isComm(line):
		r.flush()
		r.header, r.isOpen = header{comm: string(bytes.TrimSpace(line)), pid: -1, tid: -1}, true
	default:
		if r.unread++; r.unread == 1 {
			r.firstUnread = number
		}
	}
}

// comment reads a line of perf script --header.
func (r *scriptReader) comment(line string) {
	if arch, ok := strings.CutPrefix(line, "# arch : "); ok {
		r.Arch = strings.TrimSpace(arch)
	}
}

// frame adds a frame to the stack of the sample. Texts without the fields of a sample have
// samples, too.
func (r *scriptReader) frame(line []byte) {
	if !r.isOpen {
		r.header, r.isOpen = header{pid: -1, tid: -1}, true
	}
	if len(r.stack) == maxFrames {
		r.deep++
		return
	}
	r.stack = append(r.stack, r.line(line, nil))
}

// source adds a line of source to the last frame.
func (r *scriptReader) source(line []byte) {
	last := &r.stack[len(r.stack)-1]
	*last = r.line([]byte(r.texts[*last]), line)
}

// line returns the index of a frame by its text, and the text of its line of source.
func (r *scriptReader) line(text, source []byte) uint32 {
	r.key = append(append(append(r.key[:0], text...), '\n'), source...)
	if i, ok := r.lines[string(r.key)]; ok {
		return i
	}
	f := parseFrame(text)
	if source != nil {
		f.setSource(string(source))
	}
	i := uint32(len(r.parsed)) //nolint:gosec // fewer than the bytes of the file
	r.lines[string(r.key)] = i
	r.parsed, r.texts = append(r.parsed, f), append(r.texts, string(text))
	return i
}

// flush adds the sample that was read.
func (r *scriptReader) flush() {
	if !r.isOpen {
		return
	}
	h := &r.header
	r.isOpen = false
	e := trace.ProfileEvent{Name: h.event, Unit: "count"}
	switch base, _, _ := strings.Cut(h.event, ":"); base {
	case "":
		e.Name = "samples"
	case "cpu-clock", "task-clock":
		if h.hasPeriod {
			e.Unit = "nanoseconds"
		}
	}
	event, ok := r.Event(e)
	if !ok {
		r.tooMany++
		r.stack = r.stack[:0]
		return
	}
	s := trace.ProfileSample{Event: event, Time: h.time, Weight: h.period, Stop: r.stop, Thread: r.Thread(h.pid, h.tid, h.comm), CPU: h.cpu, HasCPU: h.hasCPU}
	if !h.hasPeriod {
		s.Weight = 1
		r.noPeriod++
	}
	s.Stack = r.tree()
	r.Samples = append(r.Samples, s)
	r.stack = r.stack[:0]
}

// tree adds the stack of the sample to the tree. Inlined calls come before the function that
// they are in, with the same address.
func (r *scriptReader) tree() (stack uint32) {
	owner := r.header.pid
	if owner < 0 {
		owner = r.header.tid
	}
	for end := len(r.stack); end > 0; {
		start := end - 1
		address := r.parsed[r.stack[start]].address
		for start > 0 && r.parsed[r.stack[start-1]].isInlined && r.parsed[r.stack[start-1]].address == address {
			start--
		}
		stack = r.Push(stack, r.treeFrame(r.stack[start:end], owner, start == 0))
		end = start
	}
	return stack
}

// userAddresses is where addresses of processes begin that are no offsets of files.
const userAddresses = 1 << 32

// treeFrame returns the frame of the tree for lines of one address.
func (r *scriptReader) treeFrame(lines []uint32, owner int, isExact bool) uint32 {
	own := &r.parsed[lines[len(lines)-1]]
	// Where names are known, all processes share frames; where addresses are the process's
	// own, they tell where its code was.
	if own.address < userAddresses || !own.hasAddress || isKernelObject(own.object) {
		owner = -1
	}
	r.key = binary.LittleEndian.AppendUint32(r.key[:0], uint32(owner)) //nolint:gosec // any bits
	if isExact {
		r.key = append(r.key, 1)
	} else {
		r.key = append(r.key, 0)
	}
	for _, l := range lines {
		r.key = binary.LittleEndian.AppendUint32(r.key, l)
	}
	if f, ok := r.known[string(r.key)]; ok {
		return f
	}
	f := stacktree.Frame{
		Object: own.object, Address: own.address, HasAddress: own.hasAddress, Exact: isExact, PID: owner, Dispatched: -1,
		SymbolOffset: own.offset, HasSymbolOffset: own.hasOffset,
		Kernel: isKernelObject(own.object) || own.object == "" && own.address >= kernelAddresses,
	}
	if own.hasInside {
		f.Address, f.HasAddress, f.Place = own.inObject, true, stacktree.PlaceOffset
	}
	for i, l := range lines {
		p := &r.parsed[l]
		if p.function != "" {
			f.Symbols = append(f.Symbols, trace.Symbol{Function: p.function, File: p.file, Line: p.line, Inlined: i+1 < len(lines)})
		}
	}
	index := r.Frame(f)
	r.known[string(r.key)] = index
	return index
}

// kernelAddresses is where addresses of the kernel begin, on machines with 64 bits.
const kernelAddresses = 0xffff_8000_0000_0000
