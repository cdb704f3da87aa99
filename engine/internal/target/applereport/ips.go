// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file reads reports as JSON, which are in files that end in .ips: a line with an object about the
// report, and an object with its contents. Older ones have text behind the line.

// preface is the object in the first line of a file.
type preface struct{ kind, os string }

var prefaceFields = []jsontext.Field[preface]{
	{Name: "bug_type", Read: text(func(p *preface, s string) { p.kind = s })},
	{Name: "os_version", Read: text(func(p *preface, s string) { p.os = s })},
}

// kinds are the kinds of reports without stacks of threads that are read here, by the numbers in their
// prefaces.
var kinds = map[string]string{
	"210": "a panic of the kernel", "151": "a panic of the kernel", "298": "an event of memory that ran short (Jetsam)",
	"142": "an excess of wakeups", "202": "an excess of CPU time", "145": "an excess of writes", "211": "statistics of the system",
	"115": "a reset of the machine", "288": "the stacks of all processes (stackshot)", "188": "the stacks of all processes (stackshot)", "187": "a failure of a daemon",
}

// readIPS reads a report whose first line is an object.
func readIPS(data []byte) (*Report, error) {
	var p preface
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	first := &jsontext.Reader{Data: line}
	isAlone := jsontext.Members(first, &p, prefaceFields) != nil || first.End() != nil
	if isAlone {
		rest = data // the object with the contents, without a preface
	}
	offset := len(data) - len(rest)
	if trimmed := bytes.TrimLeft(rest, " \t\r\n"); !bytes.HasPrefix(trimmed, []byte("{")) {
		if len(trimmed) == 0 {
			return nil, fmt.Errorf("offset %#x: the file ends, expected the report behind its first line%s", offset, ofKind(p.kind))
		}
		r, err := readPlain(rest)
		if err != nil {
			return nil, fmt.Errorf("%w%s", err, ofKind(p.kind))
		}
		return r, nil
	}
	r := newReport(FormCrash)
	err := readBody(r, rest)
	if e := (*jsontext.Error)(nil); errors.As(err, &e) {
		e.Offset += offset
	}
	if len(r.Threads) == 0 {
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the report has no threads%s", ofKind(p.kind))
	}
	if err != nil {
		r.problem("the JSON behind offset %#x cannot be read to its end: %v: what comes behind is missing", offset, err)
	}
	if r.Facts.System.Version == "" {
		r.setSystem(p.os)
	}
	return r.finish(), nil
}

// ofKind names a kind of reports, for the end of a message.
func ofKind(kind string) string {
	if text := kinds[kind]; text != "" {
		return fmt.Sprintf(": it is about %s (bug_type %s)", text, kind)
	}
	if kind != "" {
		return fmt.Sprintf(": it has bug_type %s", jsontext.Clip(kind))
	}
	return ""
}

// readBody reads the object with the contents.
func readBody(r *Report, data []byte) error {
	body := &ipsBody{Report: r}
	reader := &jsontext.Reader{Data: data, Interned: map[string]string{}}
	err := jsontext.Members(reader, body, bodyFields)
	body.finish()
	return err
}

// ipsBody is the contents of a report.
type ipsBody struct {
	*Report
	os           ipsOS
	end          ipsTermination
	reason       string // of an exception of Objective-C
	bundle       ipsBundle
	region       string // the memory at the address
	isTranslated bool
}

type ipsOS struct{ train, build string }

type ipsBundle struct{ short, identifier string }

// ipsTermination is why the system ended a process.
type ipsTermination struct {
	space, indicator, process string
	code                      int64
	hasCode                   bool
	details                   []string
}

// The members of objects. A value of another kind than the expected one is left out.
var (
	bodyFields = []jsontext.Field[ipsBody]{
		{Name: "captureTime", Read: text(func(b *ipsBody, s string) { b.Facts.Process.Kept = moment(s) })},
		{Name: "procLaunch", Read: text(func(b *ipsBody, s string) { b.Facts.Process.Created = moment(s) })},
		{Name: "pid", Read: number(func(b *ipsBody, n int64) { b.Facts.Process.ID = max(n, 0) })},
		{Name: "userID", Read: number(func(b *ipsBody, n int64) { b.setUser(n) })},
		{Name: "procPath", Read: text(func(b *ipsBody, s string) { b.Facts.Process.Executable = s })},
		{Name: "procName", Read: text(func(b *ipsBody, s string) { b.Facts.Process.Command = s })},
		{Name: "modelCode", Read: text(func(b *ipsBody, s string) { b.Facts.System.CPU = s })},
		{Name: "cpuType", Read: text(func(b *ipsBody, s string) { b.Arch = archOf(s) })},
		{Name: "translated", Read: truth(func(b *ipsBody) { b.isTranslated = true })},
		{Name: "osVersion", Read: part(func(b *ipsBody) *ipsOS { return &b.os }, osFields)},
		{Name: "bundleInfo", Read: part(func(b *ipsBody) *ipsBundle { return &b.bundle }, bundleFields)},
		{Name: "exception", Read: part(func(b *ipsBody) *Report { return b.Report }, exceptionFields)},
		{Name: "exceptionReason", Read: part(func(b *ipsBody) *ipsBody { return b }, reasonFields)},
		{Name: "termination", Read: part(func(b *ipsBody) *ipsTermination { return &b.end }, terminationFields)},
		{Name: "faultingThread", Read: number(func(b *ipsBody, n int64) { b.crashed = int(min(max(n, -1), maxThreads)) })},
		{Name: "asi", Read: readASI},
		{Name: "asiBacktraces", Read: readBacktraces},
		{Name: "vmRegionInfo", Read: text(func(b *ipsBody, s string) { b.region = cmp.Or(b.region, vmRegion(s)) })},
		{Name: "vmregioninfo", Read: text(func(b *ipsBody, s string) { b.region = cmp.Or(b.region, vmRegion(s)) })},
		{Name: "ktriageinfo", Read: text(func(b *ipsBody, s string) { b.note("kernel triage", s) })},
		{Name: "reportNotes", Read: texts(func(b *ipsBody, s string) { b.note("note of the report", s) })},
		{Name: "fatalDyldError", Read: number(func(b *ipsBody, n int64) { b.note("dyld error", strconv.FormatInt(n, 10)) })},
		{Name: "lastExceptionBacktrace", Read: readException},
		{Name: "threads", Read: readThreads},
		{Name: "usedImages", Read: readImages},
	}
	osFields = []jsontext.Field[ipsOS]{
		{Name: "train", Read: text(func(o *ipsOS, s string) { o.train = s })},
		{Name: "build", Read: text(func(o *ipsOS, s string) { o.build = s })},
	}
	bundleFields = []jsontext.Field[ipsBundle]{
		{Name: "CFBundleShortVersionString", Read: text(func(b *ipsBundle, s string) { b.short = s })},
		{Name: "CFBundleIdentifier", Read: text(func(b *ipsBundle, s string) { b.identifier = s })},
	}
	exceptionFields = []jsontext.Field[Report]{
		{Name: "type", Read: text(func(r *Report, s string) { r.codes.typ = s })},
		{Name: "signal", Read: text(func(r *Report, s string) { r.codes.signal = s })},
		{Name: "subtype", Read: text(func(r *Report, s string) { r.codes.subtype = s })},
		{Name: "codes", Read: text(func(r *Report, s string) { r.codes.codes = s })},
		{Name: "message", Read: text(func(r *Report, s string) { r.note("exception message", s) })},
		{Name: "violations", Read: texts(func(r *Report, s string) { r.note("violation", s) })},
	}
	reasonFields = []jsontext.Field[ipsBody]{
		{Name: "composed_message", Read: text(func(b *ipsBody, s string) { b.reason = s })},
		{Name: "name", Read: text(func(b *ipsBody, s string) { b.note("exception name", s) })},
	}
	terminationFields = []jsontext.Field[ipsTermination]{
		{Name: "namespace", Read: text(func(t *ipsTermination, s string) { t.space = s })},
		{Name: "code", Read: number(func(t *ipsTermination, n int64) { t.code, t.hasCode = n, true })},
		{Name: "indicator", Read: text(func(t *ipsTermination, s string) { t.indicator = s })},
		{Name: "byProc", Read: text(func(t *ipsTermination, s string) { t.process = s })},
		{Name: "details", Read: texts(func(t *ipsTermination, s string) { t.add(s) })},
		{Name: "reasons", Read: texts(func(t *ipsTermination, s string) { t.add(s) })},
	}
	imageFields = []jsontext.Field[Image]{
		{Name: "base", Read: unsigned(func(i *Image, n uint64) { i.Base = n })},
		{Name: "size", Read: unsigned(func(i *Image, n uint64) { i.Size = n })},
		{Name: "uuid", Read: text(func(i *Image, s string) { i.UUID = parseUUID(s) })},
		{Name: "path", Read: text(func(i *Image, s string) { i.Path = s })},
		{Name: "name", Read: text(func(i *Image, s string) { i.Name = s })},
		{Name: "arch", Read: text(func(i *Image, s string) { i.Arch = s })},
		{Name: "CFBundleShortVersionString", Read: text(func(i *Image, s string) { i.Version = s })},
	}
	threadFields = []jsontext.Field[ipsThread]{
		{Name: "name", Read: text(func(t *ipsThread, s string) { t.Name = s })},
		{Name: "queue", Read: text(func(t *ipsThread, s string) { t.queue = s })},
		{Name: "triggered", Read: truth(func(t *ipsThread) { t.Crashed = true })},
		{Name: "threadState", Read: readState},
		{Name: "frames", Read: func(r *jsontext.Reader, t *ipsThread) error { return readFrames(r, t.report, &t.Thread, true) }},
	}
	frameFields = []jsontext.Field[Frame]{
		{Name: "imageOffset", Read: unsigned(func(f *Frame, n uint64) { f.Address = n })},
		{Name: "imageIndex", Read: number(func(f *Frame, n int64) { f.image = int32(min(max(n, -1), maxImages)) })}, //nolint:gosec // bounded
		{Name: "symbol", Read: text(func(f *Frame, s string) { f.Symbol = s })},
		{Name: "symbolLocation", Read: unsigned(func(f *Frame, n uint64) { f.Offset, f.HasOffset = n, true })},
		{Name: "sourceFile", Read: text(func(f *Frame, s string) { f.File = s })},
		{Name: "sourceLine", Read: number(func(f *Frame, n int64) { f.Line = int32(min(max(n, 0), 1<<31-1)) })}, //nolint:gosec // bounded
		{Name: "inline", Read: truth(func(f *Frame) { f.IsInlined = true })},
	}
)

// ipsThread is a thread while it is read.
type ipsThread struct {
	Thread
	report *Report
	queue  string
}

func (t *ipsTermination) add(text string) {
	if len(t.details) < maxTexts {
		t.details = append(t.details, text)
	}
}

// text returns the reader of a member with a text, or with a number as a text.
func text[T any](set func(*T, string)) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) error {
		switch c := r.Next(); {
		case c == '"':
			s, err := r.Name()
			if err == nil {
				set(into, s)
			}
			return err
		case c >= '0' && c <= '9':
			b, err := r.Number()
			if err == nil {
				set(into, string(b))
			}
			return err
		}
		return r.Skip()
	}
}

// texts returns the reader of a member with a text, or with a list in which texts count.
func texts[T any](add func(*T, string)) func(*jsontext.Reader, *T) error {
	one := text(add)
	return func(r *jsontext.Reader, into *T) error {
		if r.Next() != '[' {
			return one(r, into)
		}
		return r.Array(func(int) error { return one(r, into) })
	}
}

// number returns the reader of a member with a whole number of 64 bits.
func number[T any](set func(*T, int64)) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) error {
		if c := r.Next(); c != '-' && (c < '0' || c > '9') {
			return r.Skip()
		}
		b, err := r.Number()
		if err != nil {
			return err
		}
		if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			set(into, n)
		}
		return nil
	}
}

// unsigned returns the reader of a member with a number from 0 on of 64 bits.
func unsigned[T any](set func(*T, uint64)) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) error {
		if c := r.Next(); c < '0' || c > '9' {
			return r.Skip()
		}
		b, err := r.Number()
		if err != nil {
			return err
		}
		if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
			set(into, n)
		}
		return nil
	}
}

// truth returns the reader of a member that counts where it is true.
func truth[T any](set func(*T)) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) error {
		if r.Word("true") {
			set(into)
			return nil
		}
		return r.Skip()
	}
}

// part returns the reader of a member with an object.
func part[T, U any](member func(*T) *U, fields []jsontext.Field[U]) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) error {
		if r.Next() != '{' {
			return r.Skip()
		}
		return jsontext.Members(r, member(into), fields)
	}
}

// moment reads a time as reports write it; the zero time where it is none.
func moment(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05 -0700", strings.TrimSpace(text))
	if err != nil {
		return time.Time{}
	}
	return t
}

func (r *Report) setUser(n int64) {
	if n >= 0 && n < 1<<32 {
		user := uint32(n) //nolint:gosec // checked
		r.Facts.Process.User = &user
	}
}

// setSystem sets the operating system by a text as "macOS 12.1 (21C52)" or "iPhone OS 15.2.1 (19C63)".
func (r *Report) setSystem(text string) {
	name, build, _ := strings.Cut(text, " (")
	s := &r.Facts.System
	s.Build = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSpace(build), ")"), "Build ")
	i := strings.LastIndexByte(strings.TrimSpace(name), ' ')
	if i < 0 {
		s.Version = strings.TrimSpace(name)
		return
	}
	s.OS, s.Version = strings.TrimSpace(name[:i]), name[i+1:]
	if known := systems[s.OS]; known != "" {
		s.OS = known
	}
}

// systems are the names of systems that reports name differently.
var systems = map[string]string{"iPhone OS": "iOS", "Mac OS X": "macOS", "OS X": "macOS", "Watch OS": "watchOS"}

// readASI reads what libraries left for the report: lists of texts by the names of images.
func readASI(r *jsontext.Reader, b *ipsBody) error {
	if r.Next() != '{' {
		return r.Skip()
	}
	return r.Object(func(name []byte) error {
		module := string(name)
		return texts(func(b *ipsBody, s string) { b.message(module, s) })(r, b)
	})
}

// readBacktraces reads stacks that libraries left for the report, as text.
func readBacktraces(r *jsontext.Reader, b *ipsBody) error {
	return texts(func(b *ipsBody, s string) { b.addBacktrace(s) })(r, b)
}

// readException reads the stack of the exception that ended the process. All of its addresses follow calls.
func readException(r *jsontext.Reader, b *ipsBody) error {
	t := Thread{ID: exceptionID, Name: exceptionName, IsException: true}
	err := readFrames(r, b.Report, &t, false)
	if len(t.Frames) > 0 {
		b.addThread(t)
	}
	return err
}

// The ID and the name of the stack of an exception, which is no thread of its own.
const (
	exceptionID   = "last-exception"
	exceptionName = "last exception backtrace"
)

func readThreads(r *jsontext.Reader, b *ipsBody) error {
	if r.Next() != '[' {
		return r.Skip()
	}
	return r.Array(func(i int) error {
		t := ipsThread{report: b.Report}
		err := jsontext.Members(r, &t, threadFields)
		t.ID = strconv.Itoa(i)
		if t.Name == "" && t.queue != "" {
			t.Name = "Dispatch queue: " + t.queue
		}
		b.addThread(t.Thread)
		return err
	})
}

// readFrames reads a list of frames. isThread: the first one is where the thread stopped.
func readFrames(r *jsontext.Reader, report *Report, t *Thread, isThread bool) error {
	if r.Next() != '[' {
		return r.Skip()
	}
	return r.Array(func(int) error {
		f := Frame{image: -1}
		if err := jsontext.Members(r, &f, frameFields); err != nil {
			return err
		}
		if report.hasRoom() {
			t.add(f, isThread)
		}
		return nil
	})
}

// add adds a frame to a thread. Calls inlined into the first one are where it stopped, too.
func (t *Thread) add(f Frame, isThread bool) {
	f.Exact = isThread
	if n := len(t.Frames); n > 0 {
		last := &t.Frames[n-1]
		f.Exact = last.Exact && last.IsInlined
	}
	t.Frames = append(t.Frames, f)
}

func readImages(r *jsontext.Reader, b *ipsBody) error {
	if r.Next() != '[' {
		return r.Skip()
	}
	return r.Array(func(int) error {
		var i Image
		if r.Next() != '{' { // frames count all elements
			b.addImage(i)
			return r.Skip()
		}
		err := jsontext.Members(r, &i, imageFields)
		b.addImage(i)
		return err
	})
}

// readState reads the registers of a thread: objects with a value, by their names, and lists of the numbered
// ones.
func readState(r *jsontext.Reader, t *ipsThread) error {
	if r.Next() != '{' {
		return r.Skip()
	}
	return r.Object(func(name []byte) error {
		register := string(name)
		switch r.Next() {
		case '{':
			return readRegister(r, &t.Thread, register)
		case '[':
			return r.Array(func(i int) error { return readRegister(r, &t.Thread, register+strconv.Itoa(i)) })
		}
		return r.Skip()
	})
}

// maxRegisters bounds the registers of a thread.
const maxRegisters = 128

func readRegister(r *jsontext.Reader, t *Thread, name string) error {
	if r.Next() != '{' {
		return r.Skip()
	}
	var value struct {
		n  uint64
		is bool
	}
	err := r.Object(func(member []byte) error {
		if string(member) != "value" {
			return r.Skip()
		}
		return unsigned(func(_ *struct{}, n uint64) { value.n, value.is = n, true })(r, &struct{}{})
	})
	if value.is && len(t.Registers) < maxRegisters {
		t.Registers = append(t.Registers, trace.NamedRegister{Name: name, Bits: 64, Value: value.n})
	}
	return err
}

// finish makes the facts of the parts that were read.
func (b *ipsBody) finish() {
	if b.os.train != "" {
		b.setSystem(b.os.train + " (" + b.os.build + ")")
	}
	b.note("memory", b.region)
	if b.bundle.identifier != "" {
		b.note("bundle", strings.TrimSpace(b.bundle.identifier+" "+b.bundle.short))
	}
	if b.isTranslated {
		b.note("translation", "the code of x86-64 was executed by Rosetta")
	}
	if b.reason != "" {
		b.Facts.Messages = append([]trace.Message{{Module: "libobjc.A.dylib", Text: clip(b.reason)}}, b.Facts.Messages...)
	}
	if text := b.end.text(); text != "" {
		b.note("termination", text)
	}
	b.note("ended by", b.end.process)
}

// text describes a termination in the words of the report.
func (t *ipsTermination) text() string {
	if t.space == "" && t.indicator == "" && len(t.details) == 0 {
		return ""
	}
	parts := []string{}
	if t.space != "" {
		parts = append(parts, "namespace "+t.space)
	}
	if t.hasCode {
		parts = append(parts, "code "+strconv.FormatInt(t.code, 10))
	}
	head := strings.Join(parts, ", ")
	texts := []string{}
	for _, s := range append([]string{head, t.indicator}, t.details...) {
		if s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, ": ")
}

// vmRegion returns the sentence that begins the description of the memory around an address.
func vmRegion(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
