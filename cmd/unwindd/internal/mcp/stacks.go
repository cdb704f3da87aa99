// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/trace"
)

// Bounds on the arguments, and the defaults.
const (
	usualThreads, mostThreads   = 16, 200
	usualFrames, mostFrames     = 30, 200
	mostFrame                   = 1 << 16 // the index of a frame
	usualDepth, mostDepth       = 3, 8
	usualElements, mostElements = 20, 1000
	usualCode, mostCode         = 15, 100
)

// maxReport bounds the JSON that is made of stacks, before an answer is made of it.
const maxReport = 32 << 20

// errTooMuch is the error of a report that is longer than maxReport.
var errTooMuch = errors.New("there is too much: ask for one thread, fewer frames, or less depth and fewer elements")

// limited is a buffer of maxReport bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxReport {
		return 0, errTooMuch
	}
	return l.Buffer.Write(p)
}

// object is a JSON object.
type object = map[string]any

// list returns a member that is a list.
func list(o object, name string) []any {
	l, _ := o[name].([]any)
	return l
}

// text returns a member that is a text.
func text(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

// number returns a member that is a number; -1 where there is none.
func number(o object, name string) int {
	n, _ := o[name].(json.Number)
	if i, err := n.Int64(); err == nil {
		return int(i)
	}
	return -1
}

// stackArguments are the arguments of the tool stack.
type stackArguments struct {
	Path       string `json:"path"`
	Thread     string `json:"thread"`
	Threads    int    `json:"threads"`
	Frames     int    `json:"frames"`
	Goroutines bool   `json:"goroutines"`
}

// stack answers with stacks of threads, the crashed ones first.
func stack(ctx context.Context, s *Server, arguments json.RawMessage) (*answer, error) {
	var a stackArguments
	if err := decode(arguments, &a); err != nil {
		return nil, err
	}
	if err := errors.Join(bounded("threads", &a.Threads, usualThreads, mostThreads), bounded("frames", &a.Frames, usualFrames, mostFrames)); err != nil {
		return nil, err
	}
	f, err := s.roots.open(a.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := newJob(a.Thread)
	j.Most, j.Top = a.Threads, uint32(a.Frames) //nolint:gosec // in range
	if a.Goroutines {
		j.Goroutines = &a.Goroutines
	}
	t, err := s.open(f, &j)
	if err != nil {
		return nil, err
	}
	defer s.targets.release(t)
	doc, leftOut, err := stackReport(ctx, t, &j)
	if err != nil {
		return nil, err
	}
	shorten(doc, leftOut)
	j.Format = "text"
	b, err := write(ctx, t, &j, nil)
	if err != nil {
		return nil, err
	}
	return &answer{doc, s.textOf(b.String(), doc, f.path)}, nil
}

// newJob makes the job of a report about stacks. A goroutine or a task is a thread only where all are.
func newJob(thread string) job.Stack {
	j := job.NewStack()
	j.Format, j.Thread = "json", thread
	if isScheduled(thread) {
		all := true
		j.Goroutines = &all
	}
	return j
}

// isScheduled reports whether an id is that of a thread that a runtime schedules: it is a word, such
// as goroutine or task, and a number.
func isScheduled(thread string) bool {
	word, _, isTwo := strings.Cut(thread, " ")
	return isTwo && strings.Trim(word, "0123456789.:") != ""
}

// open opens a file as a target with the options of a job. No source is read by the engine: the
// paths in debug information are the program's, and lead anywhere.
func (s *Server) open(f *file, j *job.Stack) (*target, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	return s.targets.open(f, func(o engine.Options) engine.Options {
		o = j.Engine(o)
		o.SourceLines, o.Lanes = 0, true
		return o
	})
}

// write writes the report of a job. left receives the number of threads that are not in it.
func write(ctx context.Context, t *target, j *job.Stack, left *int) (*limited, error) {
	stacks, err := j.Of(ctx, t.Target)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, threadsOf(t))
	}
	defer stacks.Close()
	var b limited
	if err := stacks.WriteReport(ctx, &b, job.WriteOptions{}); err != nil {
		return nil, err
	}
	if left != nil {
		*left = stacks.LeftOut()
	}
	return &b, errors.Join(ctx.Err(), stacks.Err())
}

// maxIDs bounds the threads that an error names.
const maxIDs = 20

// threadsOf names threads of a target, for the error of one that is not there.
func threadsOf(t *target) string {
	var ids []string
	for _, th := range t.Threads() {
		if len(ids) == maxIDs {
			ids = append(ids, "...")
			break
		}
		ids = append(ids, th.ID)
	}
	return "; its threads are " + strings.Join(ids, ", ") + `, and goroutines are "goroutine N"`
}

// stackReport returns the JSON of a job, and the number of threads that are not in it.
func stackReport(ctx context.Context, t *target, j *job.Stack) (doc object, leftOut int, err error) {
	b, err := write(ctx, t, j, &leftOut)
	if err != nil {
		return nil, 0, err
	}
	return doc, leftOut, parse(&b.Buffer, &doc)
}

// parse reads a JSON value. Numbers stay as they are written.
func parse(b *bytes.Buffer, v any) error {
	d := json.NewDecoder(b)
	d.UseNumber()
	return d.Decode(v)
}

// maxText bounds the texts within an answer: names of functions have thousands of characters.
const maxText = 400

// shorten makes a report fit into an answer: modules that no frame is in, long texts and, where
// they are too many, the last threads are left out, and counted.
func shorten(doc object, leftOut int) {
	threads := list(doc, "threads")
	all := list(doc, "modules")
	for kept := len(threads); ; kept = kept * 3 / 4 {
		doc["threads"] = threads[:kept]
		doc["modules"] = modulesOf(threads[:kept], all)
		clipAll(doc)
		b, _ := json.Marshal(doc)
		if len(b) <= maxAnswer || kept <= 1 {
			leftOut += len(threads) - kept
			break
		}
	}
	if leftOut > 0 {
		doc["threads_left_out"] = leftOut
	}
	if n := len(all) - len(list(doc, "modules")); n > 0 {
		doc["modules_left_out"] = n
	}
}

// modulesOf returns the modules that frames of threads are in, without their segments.
func modulesOf(threads, modules []any) []any {
	used := map[int]bool{}
	for _, th := range threads {
		th, _ := th.(object)
		for _, f := range list(th, "frames") {
			f, _ := f.(object)
			used[number(f, "module")] = true
		}
	}
	kept := []any{}
	for _, m := range modules {
		if m, _ := m.(object); used[number(m, "id")] {
			m["segments"] = []any{}
			kept = append(kept, m)
		}
	}
	return kept
}

// clipAll cuts long texts within a JSON value.
func clipAll(v any) any {
	switch v := v.(type) {
	case string:
		return clip(v, maxText)
	case []any:
		for i := range v {
			v[i] = clipAll(v[i])
		}
	case object:
		for name := range v {
			v[name] = clipAll(v[name])
		}
	}
	return v
}

// textOf completes the text about the stacks of a crash: with the source line where the program
// failed, and the number of threads that are left out.
func (s *Server) textOf(all string, doc object, crash string) string {
	var b strings.Builder
	b.WriteString(clip(all, maxAnswer/2))
	if len(all) > maxAnswer/2 {
		b.WriteString("\n(the text is cut off here: ask for one thread)\n")
	}
	if n, ok := doc["threads_left_out"].(int); ok {
		fmt.Fprintf(&b, "(%d threads left out: ask for more threads, or for one by its id)\n", n)
	}
	if line := s.failedLine(doc, crash); line != "" {
		b.WriteString("\n" + line)
	}
	return b.String()
}

// place names a frame of a thread.
type place struct {
	Path   string `json:"path"`
	Thread string `json:"thread"`
	Frame  int    `json:"frame"`
}

// framed are the facts about a frame in an answer.
type framed struct {
	Thread   string `json:"thread"`
	Frame    int    `json:"frame"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// frameOf writes a report about one frame with options that change sets, and returns the frame.
func (s *Server) frameOf(ctx context.Context, p place, change func(j *job.Stack)) (object, framed, error) {
	var about framed
	if p.Frame < 0 || p.Frame > mostFrame {
		return nil, about, fmt.Errorf("frame is %d: expected the index of a frame in stack, 0 being the innermost", p.Frame)
	}
	f, err := s.roots.open(p.Path)
	if err != nil {
		return nil, about, err
	}
	defer f.Close()
	j := newJob(p.Thread)
	j.Top = uint32(p.Frame) + 1 //nolint:gosec // in range
	change(&j)
	t, err := s.open(f, &j)
	if err != nil {
		return nil, about, err
	}
	defer s.targets.release(t)
	if j.Thread == "" {
		th := firstThread(t)
		if th == nil {
			return nil, about, fmt.Errorf("%s has no threads", p.Path)
		}
		j.Thread = th.ID
	}
	doc, _, err := stackReport(ctx, t, &j)
	if err != nil {
		return nil, about, err
	}
	threads := list(doc, "threads")
	if len(threads) == 0 {
		return nil, about, errors.New("the target has no threads")
	}
	th, _ := threads[0].(object)
	frames := list(th, "frames")
	for _, f := range frames {
		f, _ := f.(object)
		if number(f, "index") == p.Frame {
			about = framed{text(th, "id"), p.Frame, clip(text(f, "function"), maxText), text(f, "file"), max(number(f, "line"), 0)}
			return f, about, nil
		}
	}
	return nil, about, fmt.Errorf("thread %s has no frame %d: stack lists its frames, %d of them up to this one", text(th, "id"), p.Frame, len(frames))
}

// firstThread is the first thread that crashed, else the first one; nil where there is none.
func firstThread(t *target) *trace.Thread {
	threads := t.Threads()
	for _, th := range threads {
		if th.Crashed {
			return th
		}
	}
	if len(threads) == 0 {
		return nil
	}
	return threads[0]
}

// variablesArguments are the arguments of the tool variables.
type variablesArguments struct {
	place
	Depth    int `json:"depth"`
	Elements int `json:"elements"`
}

// variablesAnswer is the answer of the tool variables.
type variablesAnswer struct {
	framed
	Variables []any `json:"variables"`
	LeftOut   int   `json:"left_out,omitempty"`
}

// variables answers with the variables of a frame.
func variables(ctx context.Context, s *Server, arguments json.RawMessage) (*answer, error) {
	var a variablesArguments
	if err := decode(arguments, &a); err != nil {
		return nil, err
	}
	if err := errors.Join(bounded("depth", &a.Depth, usualDepth, mostDepth), bounded("elements", &a.Elements, usualElements, mostElements)); err != nil {
		return nil, err
	}
	f, about, err := s.frameOf(ctx, a.place, func(j *job.Stack) {
		j.Locals, j.Depth, j.Elements = true, uint32(a.Depth), uint32(a.Elements) //nolint:gosec // in range
	})
	if err != nil {
		return nil, err
	}
	out := variablesAnswer{framed: about, Variables: list(f, "locals")}
	if out.Variables == nil {
		out.Variables = []any{}
	}
	clipAll(out.Variables)
	all := len(out.Variables)
	for len(out.Variables) > 0 {
		if b, _ := json.Marshal(out); len(b) <= maxAnswer {
			break
		}
		out.Variables = out.Variables[:len(out.Variables)/2]
	}
	out.LeftOut = all - len(out.Variables)
	if all > 0 && len(out.Variables) == 0 {
		return nil, errTooMuch
	}
	return &answer{value: out}, nil
}

// codeArguments are the arguments of the tool code.
type codeArguments struct {
	place
	Lines int `json:"lines"`
}

// codeAnswer is the answer of the tool code.
type codeAnswer struct {
	framed
	Instructions []any          `json:"instructions"`
	Problem      string         `json:"problem,omitempty"`
	Registers    map[string]any `json:"registers"`
}

// code answers with the instructions around the PC of a frame, and its registers.
func code(ctx context.Context, s *Server, arguments json.RawMessage) (*answer, error) {
	var a codeArguments
	if err := decode(arguments, &a); err != nil {
		return nil, err
	}
	if err := bounded("lines", &a.Lines, usualCode, mostCode); err != nil {
		return nil, err
	}
	f, about, err := s.frameOf(ctx, a.place, func(j *job.Stack) {
		j.Code, j.Registers = uint32(a.Lines), true //nolint:gosec // in range
	})
	if err != nil {
		return nil, err
	}
	if inlined, _ := f["inlined"].(bool); inlined {
		return nil, fmt.Errorf("frame %d is a call that was inlined: its code is that of the next frame that is not", a.Frame)
	}
	if m, ok := f["managed"].(object); ok && m["native"] != true {
		return nil, fmt.Errorf("frame %d is of the language runtime %s: it has no code of the machine", a.Frame, text(m, "runtime"))
	}
	out := codeAnswer{framed: about, Instructions: list(f, "code"), Problem: text(f, "code_problem")}
	out.Registers, _ = f["registers"].(object)
	if out.Registers == nil {
		out.Registers = object{}
	}
	if out.Instructions == nil {
		out.Instructions = []any{}
	}
	clipAll(out.Instructions)
	return &answer{value: out}, nil
}

// evalArguments are the arguments of the tool eval.
type evalArguments struct {
	place
	Expression string `json:"expression"`
	Depth      int    `json:"depth"`
	Elements   int    `json:"elements"`
}

// maxExpression bounds the bytes of an expression.
const maxExpression = 4 << 10

// evalAnswer is the answer of the tool eval.
type evalAnswer struct {
	framed
	Variable object `json:"variable"`
}

// eval answers with a variable of a frame, or a part of one.
func eval(ctx context.Context, s *Server, arguments json.RawMessage) (*answer, error) {
	var a evalArguments
	if err := decode(arguments, &a); err != nil {
		return nil, err
	}
	if a.Expression == "" || len(a.Expression) > maxExpression {
		return nil, fmt.Errorf(`expression has %d bytes: expected a variable, or a part of one, such as "list->next[0].name"`, len(a.Expression))
	}
	if err := errors.Join(bounded("depth", &a.Depth, usualDepth, mostDepth), bounded("elements", &a.Elements, usualElements, mostElements)); err != nil {
		return nil, err
	}
	f, err := s.roots.open(a.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := newJob(a.Thread)
	t, err := s.open(f, &j)
	if err != nil {
		return nil, err
	}
	defer s.targets.release(t)
	in := t.Target
	if isScheduled(a.Thread) {
		in = t.WithGoroutines(ctx)
		defer in.Close()
	}
	th, err := threadOf(in, a.Thread)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, threadsOf(t))
	}
	at, err := frameAt(in.Walk(ctx, th), a.Frame)
	if err != nil {
		return nil, err
	}
	if m := at.frame.Managed(); m != nil && !m.IsNative {
		return nil, fmt.Errorf("frame %d is of the language runtime %s: variables lists what it has, and eval reads variables of native frames", a.Frame, m.Runtime)
	}
	return evaluate(ctx, in, th, at, &a)
}

// evaluate reads the variable in a frame.
func evaluate(ctx context.Context, t *engine.Target, th *trace.Thread, frame *frameAtIndex, a *evalArguments) (*answer, error) {
	e := job.NewEvaluate()
	e.Format, e.Thread, e.Var = "json", th.ID, a.Expression
	e.Frame, e.Depth, e.Elements = uint32(frame.physical), uint32(a.Depth), uint32(a.Elements) //nolint:gosec // in range
	if err := e.Check(true); err != nil {
		return nil, err
	}
	found, err := e.Variable(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("%s: variables lists the variables of the frame", strings.TrimPrefix(err.Error(), "--var "))
	}
	var b limited
	if err := errors.Join(found.WriteJSON(&b), ctx.Err()); err != nil {
		return nil, err
	}
	out := evalAnswer{framed: frame.about(th.ID, a.Frame)}
	if err := parse(&b.Buffer, &out.Variable); err != nil {
		return nil, err
	}
	clipAll(out.Variable)
	if whole, _ := json.Marshal(out); len(whole) > maxAnswer {
		return nil, errTooMuch
	}
	return &answer{value: out}, nil
}

// threadOf returns a thread by its id; the first crashed one where that is "".
func threadOf(t *engine.Target, id string) (*trace.Thread, error) {
	for _, th := range t.Threads() {
		if th.ID == id || id == "" && th.Crashed {
			return th, nil
		}
	}
	if id == "" && len(t.Threads()) > 0 {
		return t.Threads()[0], nil
	}
	return nil, fmt.Errorf("no thread %q", clip(id, 100))
}
