// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file reads crash reports as text, line by line.

// maxLine bounds the bytes of a line. Names of functions of Swift and C++ are long.
const maxLine = 1 << 16

// errNoThreads is the error of a text without threads.
var errNoThreads = errors.New("the report has no threads with frames")

// textReader reads the lines of a report.
type textReader struct {
	*Report
	thread *Thread // whose frames follow; nil: none
	// see reads the lines of a part up to a blank one; nil: none is open.
	see    func(line string)
	module string // of the messages that follow
	tool   string // that wrote the report
	// isMicro is true where stacks are microstackshots.
	isMicro bool
	names   map[string]string
	byID    map[string]int // indexes of threads
}

// readText reads a report as text.
func readText(data []byte) (*Report, error) {
	r := &textReader{Report: newReport(FormCrash), names: map[string]string{}, byID: map[string]int{}}
	eachLine(r.Report, data, r.line)
	r.endThread()
	if len(r.Threads) == 0 {
		if r.tool != "" {
			return nil, fmt.Errorf("%w: it is of %s", errNoThreads, r.tool)
		}
		return nil, errNoThreads
	}
	return r.finish(), nil
}

// eachLine calls see with the lines of a text.
func eachLine(r *Report, data []byte, see func(line string) bool) {
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(line) > maxLine {
			r.problem("line %d has %d bytes, expected at most %d: it is left out", number, len(line), maxLine)
			continue
		}
		if !see(strings.ToValidUTF8(strings.TrimRight(string(line), " \t\r"), "\ufffd")) {
			return
		}
	}
}

// line reads a line, and reports whether more of them belong to the report.
func (r *textReader) line(line string) bool {
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
		r.endThread()
		r.see = nil
	case trimmed == "Full Report", trimmed == "EOF":
		return false
	case r.threadLine(line):
	case r.thread != nil && r.frame(trimmed):
	case r.header(line):
	case r.see != nil:
		r.see(line)
	}
	return true
}

// endThread adds the thread whose frames were read.
func (r *textReader) endThread() {
	if t := r.thread; t != nil && (len(t.Frames) > 0 || !t.IsException) {
		if r.addThread(*t) && !t.IsException {
			r.byID[t.ID] = len(r.Threads) - 1
		}
	}
	r.thread = nil
}

// begin begins the frames of a thread.
func (r *textReader) begin(t Thread) {
	r.endThread()
	r.thread, r.see = &t, nil
}

// threadLine reads a line that begins or describes a thread: "Thread 0 Crashed:: Dispatch queue: NAME",
// "Thread 1 name:  NAME", "Last Exception Backtrace:", "Thread 0 crashed with ARM Thread State (64-bit):".
func (r *textReader) threadLine(line string) bool {
	switch {
	case strings.HasPrefix(line, "Last Exception Backtrace:"):
		r.begin(Thread{ID: exceptionID, Name: exceptionName, IsException: true})
		r.see = r.addresses
		return true
	case strings.HasPrefix(line, "Application Specific Backtrace"):
		r.begin(Thread{ID: "specific-" + strconv.Itoa(len(r.Threads)), Name: "application specific backtrace", IsException: true})
		return true
	}
	rest, ok := strings.CutPrefix(line, "Thread ")
	if !ok {
		return false
	}
	id, rest, _ := strings.Cut(rest, " ")
	id, isColon := strings.CutSuffix(strings.TrimSuffix(id, ":"), ":")
	isColon = isColon || strings.HasSuffix(strings.Fields(line)[1], ":")
	if _, err := strconv.ParseUint(id, 10, 32); err != nil {
		return false
	}
	rest = strings.TrimSpace(rest)
	switch {
	case strings.HasPrefix(rest, "name:"):
		r.names[id] = strings.TrimSpace(strings.TrimPrefix(rest, "name:"))
	case strings.Contains(rest, " Thread State") || strings.HasPrefix(rest, "crashed with"):
		r.endThread()
		r.see = func(line string) { r.registers(id, line) }
	case isColon:
		r.begin(Thread{ID: id, Name: r.nameOf(id, rest)})
	case strings.HasPrefix(rest, "Crashed:"):
		name := strings.TrimLeft(strings.TrimPrefix(rest, "Crashed:"), ": ")
		r.begin(Thread{ID: id, Name: r.nameOf(id, name), Crashed: true})
	case strings.HasPrefix(rest, "Highlighted:"), strings.HasPrefix(rest, "Attributed:"):
		r.begin(Thread{ID: id, Name: r.nameOf(id, "")})
	default:
		return false
	}
	return true
}

func (r *textReader) nameOf(id, name string) string {
	if name == "" {
		return r.names[id]
	}
	return strings.Join(strings.Fields(name), " ")
}

// frame reads a line with a frame of the thread.
func (r *textReader) frame(line string) bool {
	f, ok := parseFrame(line)
	if ok && r.hasRoom() {
		r.thread.add(f, !r.thread.IsException)
	}
	return ok
}

// addresses reads the addresses in parentheses that are the stack of an exception on iOS.
func (r *textReader) addresses(line string) {
	if r.thread == nil {
		return
	}
	for _, word := range strings.Fields(strings.Trim(line, "() ")) {
		if a, ok := parseHex(word); ok && r.hasRoom() {
			r.thread.add(Frame{Address: a, image: -1}, false)
		}
	}
}

// addBacktrace adds a stack that a library left as text.
func (r *Report) addBacktrace(text string) {
	t := Thread{ID: "specific-" + strconv.Itoa(len(r.Threads)), Name: "application specific backtrace", IsException: true}
	for line := range strings.Lines(text) {
		if f, ok := parseFrame(strings.TrimSpace(line)); ok && r.hasRoom() {
			t.add(f, false)
		}
	}
	if len(t.Frames) > 0 {
		r.addThread(t)
	}
}

// parseFrame reads a frame: its number, the name of its image, its address, and the function with the offset in
// it, or the address of the image with the offset there. A position and a mark of an inlined call may follow.
func parseFrame(line string) (f Frame, ok bool) {
	number, rest, _ := strings.Cut(line, " ")
	if _, err := strconv.ParseUint(number, 10, 32); err != nil {
		return f, false
	}
	rest = strings.ReplaceAll(rest, "\t", " ")
	at := strings.Index(rest, " 0x")
	if at < 0 {
		return f, false
	}
	image := strings.TrimSpace(rest[:at])
	word, rest, _ := strings.Cut(rest[at+1:], " ")
	f.image = -1
	if f.Address, ok = parseHex(word); !ok {
		return f, false
	}
	f.setFunction(strings.TrimSpace(rest), image)
	return f, true
}

// setFunction sets the function and the position of a frame.
func (f *Frame) setFunction(text, image string) {
	text, f.IsInlined = strings.CutSuffix(text, "[inlined]")
	text = strings.TrimSpace(text)
	if open := strings.LastIndex(text, " ("); open >= 0 && strings.HasSuffix(text, ")") {
		if f.setPosition(text[open+2 : len(text)-1]) {
			text = strings.TrimSpace(text[:open])
		}
	}
	if place, named, ok := strings.Cut(text, "// "); ok && strings.HasPrefix(place, "0x") {
		text = strings.TrimSpace(named) // as tools for devices without Apple's write it
	}
	name := text
	if i := strings.LastIndex(text, " + "); i >= 0 {
		if n, err := strconv.ParseUint(text[i+3:], 0, 64); err == nil {
			name, f.Offset, f.HasOffset = strings.TrimSpace(text[:i]), n, true
		}
	}
	base, isAddress := parseHex(name)
	if isAddress && f.HasOffset && f.Address-base == f.Offset {
		f.base = base
	}
	if isAddress || name == "" || name == "0" || name == "???" || name == "(null)" || name == "<redacted>" || name == image {
		f.Offset, f.HasOffset = 0, false
		return
	}
	f.Symbol = name
}

// noPosition stands for a position that is not known.
const noPosition = ":-1"

// setPosition sets the position of a frame: FILE:LINE or FILE:LINE,COLUMN. It reports whether the text is one.
func (f *Frame) setPosition(text string) bool {
	i := strings.LastIndexByte(text, ':')
	if text == noPosition {
		return true
	}
	if i <= 0 {
		return false
	}
	digits, _, _ := strings.Cut(text[i+1:], ",")
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 31)
	if err != nil {
		return false
	}
	if n > 0 {
		f.File, f.Line = text[:i], int32(n) //nolint:gosec // 31 bits
	}
	return true
}

// registers reads a line with registers: NAME: 0xVALUE, again and again.
func (r *textReader) registers(id, line string) {
	index, ok := r.byID[id]
	if !ok {
		return
	}
	t, words := &r.Threads[index], strings.Fields(line)
	for k := 0; k+1 < len(words) && len(t.Registers) < maxRegisters; k++ {
		name, isName := strings.CutSuffix(words[k], ":")
		if value, ok := parseHex(words[k+1]); ok && isName {
			t.Registers = append(t.Registers, trace.NamedRegister{Name: name, Bits: 64, Value: value})
			k++
		}
	}
}

// header reads a line of the head: KEY: VALUE. It reports whether the key is known.
func (r *textReader) header(line string) bool {
	if line[0] == ' ' || line[0] == '\t' {
		return false
	}
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		return false
	}
	set := headers[key]
	if set == nil {
		return false
	}
	r.endThread()
	r.see = nil
	set(r, strings.TrimSpace(value))
	return true
}

// headers read the values of the keys.
var headers = map[string]func(r *textReader, value string){
	"Process":                          (*textReader).setProcess,
	"Command":                          func(r *textReader, s string) { r.Facts.Process.Command = s },
	"Path":                             func(r *textReader, s string) { r.Facts.Process.Executable = s },
	"Identifier":                       func(r *textReader, s string) { r.note("bundle", s) },
	"Code Type":                        (*textReader).setArch,
	"Architecture":                     (*textReader).setArch,
	"Hardware Model":                   func(r *textReader, s string) { r.Facts.System.CPU = s },
	"Hardware model":                   func(r *textReader, s string) { r.Facts.System.CPU = s },
	"Date/Time":                        func(r *textReader, s string) { r.Facts.Process.Kept = moment(s) },
	"Launch Time":                      func(r *textReader, s string) { r.Facts.Process.Created = moment(s) },
	"OS Version":                       func(r *textReader, s string) { r.setSystem(s) },
	"User ID":                          func(r *textReader, s string) { r.setUserText(s) },
	"PID":                              func(r *textReader, s string) { r.Facts.Process.ID, _ = strconv.ParseInt(s, 10, 32) },
	"Exception Type":                   (*textReader).setType,
	"Exception Codes":                  (*textReader).setCodes,
	"Exception Subtype":                func(r *textReader, s string) { r.codes.subtype = s },
	"Exception Message":                func(r *textReader, s string) { r.note("exception message", s) },
	"Exception Note":                   func(*textReader, string) {},
	"Exception Reason":                 func(r *textReader, s string) { r.message("", s) },
	"Termination Reason":               func(r *textReader, s string) { r.lines(s, func(s string) { r.note("termination", s) }) },
	"Termination Signal":               func(r *textReader, s string) { r.note("termination", s) },
	"Termination Description":          func(r *textReader, s string) { r.note("termination", s) },
	"Terminating Process":              func(r *textReader, s string) { r.note("ended by", s) },
	"Triggered by Thread":              (*textReader).setCrashed,
	"Crashed Thread":                   (*textReader).setCrashed,
	"Application Specific Information": func(r *textReader, s string) { r.lines(s, r.said) },
	"Dyld Error Message":               func(r *textReader, s string) { r.lines(s, func(s string) { r.message("dyld", s) }) },
	"VM Region Info":                   func(r *textReader, s string) { r.note("memory", s) },
	"Kernel Triage":                    func(r *textReader, s string) { r.lines(s, func(s string) { r.note("kernel triage", s) }) },
	"Data Source":                      func(r *textReader, s string) { r.isMicro = s == "Microstackshots" },
	"Analysis Tool":                    func(r *textReader, s string) { r.tool = clip(s) },
	"Binary Images":                    func(r *textReader, _ string) { r.see = r.image },
	"External Modification Summary":    func(*textReader, string) {},
	"VM Region Summary":                func(*textReader, string) {},
	"Error Formulating Crash Report":   func(r *textReader, s string) { r.lines(s, func(s string) { r.note("note of the report", s) }) },
}

// lines reads a value that begins behind its key, or goes on in the lines that follow.
func (r *textReader) lines(first string, add func(string)) {
	if first != "" {
		add(first)
	}
	r.see = func(line string) { add(strings.TrimSpace(line)) }
}

// said adds a line of what libraries left for the report.
func (r *textReader) said(line string) { r.message(r.module, line) }

// setProcess reads NAME [PID].
func (r *textReader) setProcess(s string) {
	r.Facts.Process.Command, r.Facts.Process.ID = processOf(s)
}

// processOf reads NAME [PID], behind which more may follow; the PID is 0 where there is none.
func processOf(s string) (name string, pid int64) {
	name, id, ok := strings.Cut(s, " [")
	if !ok {
		return name, 0
	}
	id, _, _ = strings.Cut(id, "]")
	if pid, err := strconv.ParseInt(id, 10, 32); err == nil && pid > 0 {
		return name, pid
	}
	return name, 0
}

func (r *textReader) setArch(s string) {
	if r.Arch == "" {
		r.Arch = archOf(s)
	}
	if strings.Contains(s, "(Translated)") {
		r.note("translation", "the code of x86-64 was executed by Rosetta")
	}
}

func (r *Report) setUserText(s string) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		r.setUser(n)
	}
}

// setType reads TYPE (SIGNAL).
func (r *textReader) setType(s string) {
	r.codes.typ, r.codes.signal, _ = strings.Cut(s, " (")
	r.codes.signal = strings.TrimSuffix(r.codes.signal, ")")
}

// setCodes reads the codes, which older reports have in words.
func (r *textReader) setCodes(s string) {
	if isConstant(s) {
		r.codes.subtype = s
		return
	}
	r.codes.codes = s
}

func (r *textReader) setCrashed(s string) {
	word, _, _ := strings.Cut(s, " ")
	if n, err := strconv.ParseUint(word, 10, 16); err == nil {
		r.crashed = int(n)
	}
}

// image reads an image: START - END NAME ARCH (VERSION) <UUID> PATH, of which the machine and the version may be
// missing.
func (r *textReader) image(line string) {
	if i, ok := parseImage(line); ok {
		r.addImage(i)
	}
}

// parseImage reads a line of the list of images.
func parseImage(line string) (i Image, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimLeft(line, " \t*"), " ")
	if i.Base, ok = parseHex(first); !ok {
		return i, false
	}
	rest, ok = strings.CutPrefix(strings.TrimSpace(rest), "-")
	if !ok {
		return i, false
	}
	last, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if end, isHex := parseHex(last); isHex && end >= i.Base && end-i.Base < 1<<48 {
		i.Size = end - i.Base + 1
	} else if last != "???" && !isHex {
		return i, false
	}
	rest = strings.TrimSpace(rest)
	if open := strings.LastIndex(rest, " <"); open >= 0 {
		id, path, isClosed := strings.Cut(rest[open+2:], ">")
		if isClosed {
			i.UUID, i.Path, rest = parseUUID(id), strings.TrimSpace(path), rest[:open]
		}
	} else if slash := strings.Index(rest, " /"); slash >= 0 {
		rest, i.Path = rest[:slash], strings.TrimSpace(rest[slash:])
	}
	rest = strings.TrimSpace(rest)
	if open := strings.LastIndex(rest, " ("); open >= 0 && strings.HasSuffix(rest, ")") {
		i.Version, rest = rest[open+2:len(rest)-1], rest[:open]
	}
	i.Name = strings.TrimPrefix(strings.TrimSpace(rest), "+")
	if space := strings.LastIndexByte(i.Name, ' '); space > 0 && archOf(i.Name[space+1:]) != "" {
		i.Arch, i.Name = i.Name[space+1:], strings.TrimSpace(i.Name[:space])
	}
	return i, true
}
