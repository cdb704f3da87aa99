// SPDX-License-Identifier: Apache-2.0

package compared

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file reads the JSON of `unwindd stack`: of each frame only the members that are compared.

// ErrNotReport is wrapped by the error for JSON that is not a report of stacks.
var ErrNotReport = errors.New("not a report of `unwindd stack --format json`")

// maxElements bounds the elements of one list of a report.
const maxElements = 1 << 22

// maxLabels bounds the labels of a report that are kept.
const maxLabels = 1 << 10

// MaxValue bounds the bytes of a single string or number of a report that is read as a stream.
const MaxValue = 1 << 20

// report is a report that is being read.
type report struct {
	process Process
	version uint64
	signal  int
	kind    string
	threads []*reportThread
	modules map[int]*reportModule
	has     struct{ target, threads bool }
}

type reportModule struct {
	id      int
	path    string
	name    string // of the path
	buildID string
}

type reportThread struct {
	Thread
	frames  []reportFrame
	leftOut []reportGap
	detail  string // of why the stack ends
}

type reportGap struct{ index int }

// reportFrame is a frame, with what a frame is not compared by.
type reportFrame struct {
	trace.ComparedFrame
	index          int
	thread         string
	foundBy        string
	module         int
	hasModule      bool
	isNative       bool
	isBehind       bool
	moduleOffset   uint64
	functionOffset int64
	hasStart       bool
}

// ReadReport reads the JSON of a report. The error wraps ErrNotReport for other JSON, and names the place in the
// text.
func ReadReport(r *jsontext.Reader) (*Process, error) {
	if r.Interned == nil {
		r.Interned = map[string]string{}
	}
	out := report{modules: map[int]*reportModule{}}
	if err := jsontext.Members(r, &out, reportFields); err != nil {
		return nil, cmp.Or(r.Err(), err)
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	switch {
	case !out.has.target || !out.has.threads:
		return nil, fmt.Errorf("%w: expected an object with the members target and threads", ErrNotReport)
	case out.version != reportVersion:
		return nil, fmt.Errorf("the report has version %d, expected %d: make it again with this version of unwindd", out.version, reportVersion)
	}
	return out.whole(), nil
}

// unread returns why no stack of the target was walked; "": one was.
func (r *report) unread() string {
	for _, th := range r.threads {
		if th.Ends != string(trace.StopPluginFailed) || len(th.frames) > 1 {
			return ""
		}
	}
	switch {
	case len(r.threads) > 0:
		return trace.ErrNotWalked.Error() + ": " + r.threads[0].detail
	case r.kind == string(trace.Snapshot):
		return "" // as one of a process that has no threads any more
	case len(r.process.Problems) > 0:
		return "no threads: " + r.process.Problems[0]
	}
	return "no threads"
}

// reportVersion is the version of the reports that are read.
const reportVersion = 1

// whole returns the process of a report that was read.
func (r *report) whole() *Process {
	p := &r.process
	for _, m := range r.modules {
		if m.name = ModuleName(m.path); m.buildID != "" && m.name != "" {
			p.Modules = append(p.Modules, trace.ModuleBuild{Name: m.name, BuildID: m.buildID})
		}
	}
	SortModules(&p.Modules)
	for _, th := range r.threads {
		r.place(th)
		p.Threads = append(p.Threads, &th.Thread)
	}
	p.SetSignal(r.signal)
	if p.Unread = r.unread(); p.Unread != "" {
		p.Threads = nil
	}
	return p
}

// SortModules sorts builds of modules, and removes those that come twice.
func SortModules(list *[]trace.ModuleBuild) {
	slices.SortFunc(*list, func(a, b trace.ModuleBuild) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return strings.Compare(a.BuildID, b.BuildID)
	})
	*list = slices.Compact(*list)
}

// place makes the frames of a thread, whose modules are known now.
func (r *report) place(th *reportThread) {
	th.Frames = make([]trace.ComparedFrame, 0, len(th.frames))
	gaps := th.leftOut
	for i := range th.frames {
		f := &th.frames[i]
		if len(gaps) > 0 && f.index >= gaps[0].index {
			th.Frames = append(th.Frames, leftOut)
			gaps = gaps[1:]
		}
		if f.isBehind {
			continue
		}
		f.IsWave = th.IsWave && f.thread == th.ID
		f.IsGuess = f.IsGuess || trace.FoundBy(f.foundBy).IsGuess()
		if m := r.modules[f.module]; m != nil && f.hasModule && (f.Runtime == "" || f.isNative) {
			f.Module = m.name
		}
		if f.Function == "" && f.Module != "" && !f.IsInlined {
			f.Offset = f.moduleOffset
			if f.hasStart {
				f.Offset -= uint64(f.functionOffset) //nolint:gosec // it wraps as addresses do
			}
		}
		th.Frames = append(th.Frames, f.ComparedFrame)
	}
	if len(gaps) > 0 {
		th.Frames = append(th.Frames, leftOut)
	}
	th.frames, th.leftOut = nil, nil
}

type (
	text  = jsontext.Reader
	field = jsontext.Field[report]
)

var reportFields = []field{
	{Name: "version", Read: func(r *text, into *report) (err error) { into.version, err = r.Integer(math.MaxInt32); return }},
	{Name: "target", Read: func(r *text, into *report) error {
		into.has.target = true
		return jsontext.Members(r, into, targetFields)
	}},
	{Name: "modules", Read: func(r *text, into *report) error {
		return jsontext.Each(r, maxElements, moduleFields, func(m *reportModule) error {
			own := *m
			into.modules[m.id] = &own
			return nil
		})
	}},
	{Name: "threads", Read: func(r *text, into *report) error {
		into.has.threads = true
		return jsontext.Each(r, maxElements, threadFields, func(th *reportThread) error {
			own := *th
			own.Ends = ending(own.Ends)
			into.threads = append(into.threads, &own)
			return nil
		})
	}},
}

var targetFields = []field{
	{Name: "kind", Read: jsontext.SetName(func(r *report) *string { return &r.kind })},
	{Name: "signal", Read: func(r *text, into *report) (err error) { into.signal, err = integer(r); return }},
	{Name: "fact", Read: func(r *text, into *report) (err error) { into.process.Fact, err = anyText(r); return }},
	{Name: "crash", Read: func(r *text, into *report) error { return jsontext.Members(r, &into.process.Crash, crashFields) }},
	{Name: "first_crash", Read: func(r *text, into *report) error { return jsontext.Members(r, &into.process.First, nameOnly) }},
	{Name: "process", Read: func(r *text, into *report) error { return jsontext.Members(r, &into.process, processFields) }},
	{Name: "labels", Read: func(r *text, into *report) error {
		into.process.Labels = map[string]string{}
		return r.Object(func(name []byte) error {
			key := string(name)
			value, err := anyText(r)
			if len(into.process.Labels) < maxLabels && len(key) <= maxName {
				into.process.Labels[key] = value
			}
			return err
		})
	}},
	{Name: "problems", Read: func(r *text, into *report) error { return texts(r, &into.process.Problems) }},
	{Name: "deadlocks", Read: func(r *text, into *report) error {
		return r.Array(func(int) error {
			var ids []string
			err := texts(r, &ids)
			into.process.Deadlocks = append(into.process.Deadlocks, ids)
			return err
		})
	}},
}

var crashFields = []jsontext.Field[Crash]{
	{Name: "name", Read: jsontext.SetName(func(c *Crash) *string { return &c.Name })},
	{Name: "assertion", Read: func(r *text, into *Crash) (err error) { into.Assertion, err = anyText(r); return }},
	{Name: "requested", Read: func(r *text, into *Crash) (err error) { into.IsRequest, err = r.Boolean(); return }},
}

var nameOnly = []jsontext.Field[string]{{Name: "name", Read: jsontext.SetName(func(s *string) *string { return s })}}

var processFields = []jsontext.Field[Process]{
	{Name: "pid", Read: func(r *text, into *Process) (err error) {
		n, err := r.Integer(math.MaxInt64)
		into.PID = int64(n) //nolint:gosec // checked
		return err
	}},
	{Name: "executable", Read: func(r *text, into *Process) (err error) { into.Executable, err = anyText(r); return }},
	{Name: "command", Read: func(r *text, into *Process) (err error) { into.Command, err = anyText(r); return }},
	{Name: "host", Read: jsontext.SetName(func(p *Process) *string { return &p.Host })},
	{Name: "started", Read: func(r *text, into *Process) error { return moment(r, &into.Started) }},
	{Name: "taken", Read: func(r *text, into *Process) error { return moment(r, &into.Taken) }},
	{Name: "time", Read: func(r *text, into *Process) error {
		if into.Taken.IsZero() { // of older reports, which have whole seconds alone
			return moment(r, &into.Taken)
		}
		return r.Skip()
	}},
}

// moment reads a time.
func moment(r *text, into *time.Time) error {
	s, err := r.Name()
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return r.Fail(r.Offset(), "the time %s, expected one as in RFC 3339: 2006-01-02T15:04:05Z", jsontext.Clip(s))
	}
	*into = t.UTC()
	return nil
}

var moduleFields = []jsontext.Field[reportModule]{
	{Name: "id", Read: func(r *text, into *reportModule) (err error) { into.id, err = integer(r); return }},
	{Name: "path", Read: jsontext.SetName(func(m *reportModule) *string { return &m.path })},
	{Name: "build_id", Read: jsontext.SetName(func(m *reportModule) *string { return &m.buildID })},
}

type threadField = jsontext.Field[reportThread]

var threadFields = []threadField{
	{Name: "id", Read: jsontext.SetName(func(th *reportThread) *string { return &th.ID })},
	{Name: "name", Read: jsontext.SetName(func(th *reportThread) *string { return &th.Name })},
	{Name: "arch", Read: jsontext.SetName(func(th *reportThread) *string { return &th.Arch })},
	{Name: "crashed", Read: func(r *text, into *reportThread) (err error) { into.Crashed, err = r.Boolean(); return }},
	{Name: "frames", Read: func(r *text, into *reportThread) error {
		return jsontext.List(r, &into.frames, maxElements, frameFields)
	}},
	{Name: "stopped", Read: func(r *text, into *reportThread) error { return jsontext.Members(r, into, stoppedFields) }},
	{Name: "stop", Read: func(r *text, into *reportThread) error { return jsontext.Members(r, &into.Stop, reasonOnly) }},
	{Name: "wave", Read: func(r *text, into *reportThread) error {
		into.IsWave = true
		return jsontext.Members(r, &into.Kernel, []jsontext.Field[string]{{Name: "kernel", Read: jsontext.SetName(func(s *string) *string { return s })}})
	}},
	{Name: "executes", Read: func(r *text, into *reportThread) error { into.Executes = true; return r.Skip() }},
	{Name: "goroutine", Read: func(r *text, into *reportThread) error {
		into.Word = goroutine
		return jsontext.Members(r, &into.Thread, scheduledFields)
	}},
	{Name: "managed_thread", Read: func(r *text, into *reportThread) error {
		return jsontext.Members(r, &into.Thread, scheduledFields)
	}},
	{Name: "runtimes", Read: func(r *text, into *reportThread) error {
		return jsontext.Each(r, maxElements, runtimeFields, func(x *reportRuntime) error {
			if x.name != "" {
				into.Named = append(into.Named, x.name)
			}
			if into.Raised == "" {
				into.Raised = x.raised
			}
			return nil
		})
	}},
	{Name: "left_out", Read: func(r *text, into *reportThread) error {
		return jsontext.List(r, &into.leftOut, maxElements, []jsontext.Field[reportGap]{
			{Name: "index", Read: func(r *text, into *reportGap) (err error) { into.index, err = integer(r); return }},
		})
	}},
}

var stoppedFields = []threadField{
	{Name: "reason", Read: jsontext.SetName(func(th *reportThread) *string { return &th.Ends })},
	{Name: "detail", Read: func(r *text, into *reportThread) (err error) { into.detail, err = anyText(r); return }},
}

var reasonOnly = []jsontext.Field[string]{{Name: "reason", Read: jsontext.SetName(func(s *string) *string { return s })}}

var scheduledFields = []jsontext.Field[Thread]{
	{Name: "kind", Read: jsontext.SetName(func(th *Thread) *string { return &th.Word })},
	{Name: "started_at", Read: func(r *text, into *Thread) error {
		return jsontext.Members(r, &into.Entry, []jsontext.Field[string]{
			{Name: "function", Read: func(r *text, into *string) (err error) { *into, err = anyText(r); return }},
		})
	}},
}

type reportRuntime struct{ name, raised string }

var runtimeFields = []jsontext.Field[reportRuntime]{
	{Name: "name", Read: func(r *text, into *reportRuntime) (err error) { into.name, err = anyText(r); return }},
	{Name: "exception", Read: func(r *text, into *reportRuntime) error {
		return jsontext.Members(r, &into.raised, []jsontext.Field[string]{
			{Name: "type", Read: func(r *text, into *string) (err error) { *into, err = anyText(r); return }},
		})
	}},
}

type frameField = jsontext.Field[reportFrame]

// frameFields has the most frequent members first.
var frameFields = []frameField{
	{Name: "index", Read: func(r *text, into *reportFrame) (err error) { into.index, err = integer(r); return }},
	{Name: "thread", Read: jsontext.SetName(func(f *reportFrame) *string { return &f.thread })},
	{Name: "found_by", Read: jsontext.SetName(func(f *reportFrame) *string { return &f.foundBy })},
	{Name: "module", Read: func(r *text, into *reportFrame) (err error) {
		into.hasModule = true
		into.module, err = integer(r)
		return err
	}},
	{Name: "module_offset", Read: func(r *text, into *reportFrame) error {
		n, err := r.Hex()
		into.moduleOffset = n.Value
		return err
	}},
	{Name: "function", Read: func(r *text, into *reportFrame) (err error) { into.Function, err = anyText(r); return }},
	{Name: "short_name", Read: func(r *text, into *reportFrame) (err error) { into.Short, err = anyText(r); return }},
	{Name: "function_offset", Read: readFunctionOffset},
	{Name: "file", Read: func(r *text, into *reportFrame) (err error) { into.File, err = anyText(r); return }},
	{Name: "line", Read: func(r *text, into *reportFrame) (err error) { into.Line, err = integer(r); return }},
	{Name: "column", Read: func(r *text, into *reportFrame) (err error) { into.Column, err = integer(r); return }},
	{Name: "inlined", Read: func(r *text, into *reportFrame) (err error) { into.IsInlined, err = r.Boolean(); return }},
	{Name: "managed", Read: func(r *text, into *reportFrame) error { return jsontext.Members(r, into, managedFields) }},
	{Name: "behind_managed", Read: func(r *text, into *reportFrame) (err error) { into.isBehind, err = r.Boolean(); return }},
	{Name: "rests_on_guess", Read: guessed(func(r *text) (bool, error) { return r.Boolean() })},
	{Name: "scope_from", Read: guessed(func(r *text) (bool, error) {
		s, err := r.Name()
		return s == "source-module", err
	})},
}

var managedFields = []frameField{
	{Name: "runtime", Read: jsontext.SetName(func(f *reportFrame) *string { return &f.Runtime })},
	{Name: "native", Read: func(r *text, into *reportFrame) (err error) { into.isNative, err = r.Boolean(); return }},
}

// guessed reads a member that may mark a frame as a guess.
func guessed(read func(r *text) (bool, error)) func(*text, *reportFrame) error {
	return func(r *text, into *reportFrame) error {
		is, err := read(r)
		into.IsGuess = into.IsGuess || is
		return err
	}
}

// readFunctionOffset reads the distance of a PC from its function's beginning: "0x12", or "-0x12".
func readFunctionOffset(r *text, into *reportFrame) error {
	s, err := r.Text()
	if err != nil {
		return err
	}
	digits, isBefore := strings.CutPrefix(string(s), "-")
	n, err := strconv.ParseUint(strings.TrimPrefix(digits, "0x"), 16, 63)
	if err != nil || !strings.HasPrefix(digits, "0x") {
		return r.Fail(r.Offset()-len(s), "the offset %s, expected a hexadecimal number as 0x12", jsontext.Clip(string(s)))
	}
	into.hasStart, into.functionOffset = true, int64(n) //nolint:gosec // 63 bits
	if isBefore {
		into.functionOffset = -into.functionOffset
	}
	return nil
}

func integer(r *text) (int, error) {
	n, err := r.Integer(math.MaxInt32)
	return int(n), err //nolint:gosec // checked
}

// anyText reads a text, and cuts one that is very long.
func anyText(r *text) (string, error) {
	b, err := r.Text()
	if err != nil {
		return "", err
	}
	if s, ok := r.Interned[string(b)]; ok {
		return s, nil
	}
	s := clip(string(b))
	if len(b) <= maxName && len(r.Interned) < maxNames {
		r.Interned[s] = s
	}
	return s, nil
}

// texts reads a list of texts.
func texts(r *text, into *[]string) error {
	return r.Array(func(int) error {
		s, err := anyText(r)
		*into = append(*into, s)
		return err
	})
}
