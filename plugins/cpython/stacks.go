// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// This file puts Python's frames where the C function stands that executes them.

// stacks are the native stacks of a request, and the answer for each.
type stacks struct {
	*reader
	request *sdk.ManagedFramesRequest
	answer  []sdk.ManagedStack
	threads []*thread
	values  *values // nil: variables are not requested
}

func newStacks(r *reader, req *sdk.ManagedFramesRequest, answer []sdk.ManagedStack) *stacks {
	s := &stacks{reader: r, request: req, answer: answer}
	if req.Variables {
		s.values = newValues(r, req.Depth, req.Elements)
	}
	return s
}

// fill answers for all stacks.
func (s *stacks) fill() {
	all, err := s.reader.threads()
	s.assign(all)
	wanted := make(map[uint64]int, len(s.request.Threads)) // the index in the request
	for i := range s.request.Threads {
		wanted[s.request.Threads[i].Thread] = i
	}
	of := make([][]*thread, len(s.request.Threads))
	for _, t := range all {
		if i, isWanted := wanted[t.handle]; isWanted && t.hasHandle {
			s.threads = append(s.threads, t)
			of[i] = append(of[i], t)
		}
	}
	s.readFrames(s.threads)
	gils, gilErr := s.gils(s.threads)
	names := s.names(s.threads)
	for i := range of {
		s.place(i, of[i])
		s.setState(i, of[i], gils)
		for _, t := range of[i] {
			if s.answer[i].Name == "" {
				s.answer[i].Name = names[t]
			}
		}
		if gilErr != nil && len(of[i]) > 0 && s.answer[i].Problem == "" {
			s.answer[i].Problem = gilErr.Error()
		}
		if len(of[i]) == 0 && s.answer[i].Problem == "" && s.evals(&s.request.Threads[i]) > 0 {
			s.answer[i].Problem = cmp.Or(err, errNoThread).Error()
		}
	}
}

// errNoThread says that a thread of the operating system executes frames, and no state is its own.
var errNoThread = errors.New("it executes frames of Python, but no thread state is of it")

// group is the frames that one C function executes, innermost first.
type group struct {
	frames []*frame
	marker uint64 // the address of a variable of that function; 0: unknown
}

// groups returns the frames of a thread by the C function that executes them, innermost first.
func (s *stacks) groups(t *thread) (list []group, err error) {
	switch {
	case s.layout.minor >= 12:
		list, err = s.groupsByMarkers(t)
	case s.layout.minor == 11:
		list, err = s.groupsByEntries(t)
	case s.layout.minor == 10:
		list, err = s.groupsByCFrames(t)
	default:
		for _, f := range t.chain.frames {
			list = append(list, group{frames: []*frame{f}})
		}
	}
	if t.chain.err != nil {
		err = t.chain.err
	}
	return list, err
}

// groupsByMarkers returns the groups of 3.12 and later: each ends where a frame marks that the C
// function begins, which is a variable of that function.
func (s *stacks) groupsByMarkers(t *thread) (list []group, err error) {
	var g group
	for _, f := range t.chain.frames {
		if !f.isMarker {
			g.frames = append(g.frames, f)
			continue
		}
		if f.address-t.address < maxThreadState {
			continue // the outermost frame of 3.15, which is no variable of a function
		}
		g.marker = f.address
		list, g = append(list, g), group{}
	}
	if len(g.frames) > 0 {
		list = append(list, g)
		if t.chain.err == nil {
			err = fmt.Errorf("frame at %#x: %w", g.frames[len(g.frames)-1].address, errNoFrame)
		}
	}
	return list, err
}

// maxThreadState bounds the size of _PyThreadStateImpl, which has the outermost frame from 3.15 on.
const maxThreadState = 1 << 16

// groupsByEntries returns the groups of 3.11: the variable of each C function knows its innermost
// frame, and its last one is the frame for which it was called. Frames that throw() of a generator
// put between have no C function of their own, and belong to the one further out.
func (s *stacks) groupsByEntries(t *thread) (list []group, err error) {
	left := t.chain.frames
	for i, c := range t.cframes {
		if len(left) == 0 {
			break
		}
		if left[0].address != c.frame {
			return list, fmt.Errorf("CFrame %d at %#x: its frame is at %#x, expected %#x", i, c.address, c.frame, left[0].address)
		}
		n := len(left)
		if i+1 < len(t.cframes) {
			next := t.cframes[i+1]
			k := slices.IndexFunc(left[1:], func(f *frame) bool { return f.address == next.frame })
			switch {
			case k >= 0:
				n = k + 1
			case t.chain.err == nil:
				return list, fmt.Errorf("CFrame %d at %#x: its frame at %#x is not among those further out", i+1, next.address, next.frame)
			}
		}
		list = append(list, group{left[:n], c.address})
		if !left[n-1].isEntry && (n < len(left) || t.chain.err == nil) {
			return list, fmt.Errorf("frame at %#x: %w", left[n-1].address, errNoFrame)
		}
		left = left[n:]
	}
	if len(left) > 0 && t.chain.err == nil {
		err = fmt.Errorf("frame at %#x: no CFrame leads to it", left[0].address)
	}
	return list, err
}

// groupsByCFrames returns the groups of 3.10: one frame each. A C function that was just entered, or
// is about to return, has none.
func (s *stacks) groupsByCFrames(t *thread) (list []group, err error) {
	functions := t.cframes
	if extra := len(functions) - len(t.chain.frames); extra == 1 && t.chain.err == nil {
		functions = functions[1:]
	} else if extra != 0 && t.chain.err == nil {
		err = fmt.Errorf("it has %d frames, and %d C functions that execute them, expected the same", len(t.chain.frames), len(functions))
	}
	for i, f := range t.chain.frames {
		if i >= len(functions) {
			break
		}
		list = append(list, group{[]*frame{f}, functions[i].address})
	}
	return list, err
}

// evalFunction is the C function that executes frames.
const evalFunction = "_PyEval_EvalFrameDefault"

// isEval reports whether a native frame is of the C function that executes frames, or a part of it
// that the compiler moved elsewhere.
func isEval(f *sdk.NativeFrame) bool {
	rest, ok := strings.CutPrefix(f.Function, evalFunction)
	return ok && (rest == "" || rest[0] == '.')
}

// evals is how many frames of a native stack are of the C function that executes frames.
func (s *stacks) evals(stack *sdk.NativeStack) (n int) {
	for i := range stack.Frames {
		if isEval(&stack.Frames[i]) {
			n++
		}
	}
	return n
}

// place puts the frames of the states that a thread of the operating system has, one for each of its
// interpreters, into its native stack.
func (s *stacks) place(i int, threads []*thread) {
	stack, answer := &s.request.Threads[i], &s.answer[i]
	problem := func(err error) {
		if answer.Problem == "" && err != nil {
			answer.Problem = err.Error()
		}
	}
	var all []placed
	var uncounted []counted
	known := 0
	for _, t := range threads {
		groups, err := s.groups(t)
		problem(err)
		problem(s.addException(answer, t))
		switch {
		case s.layout.minor >= 10:
			known += len(groups)
			all = append(all, s.locate(stack, groups, problem)...)
		case len(groups) > 0:
			uncounted = append(uncounted, counted{groups, t.interpreter.id == 0})
		}
	}
	if n := s.evals(stack); s.layout.minor >= 10 && n > known+1 && len(threads) > 0 { // one may just begin, or end
		problem(fmt.Errorf("%d C functions execute %d lists of frames, expected the same", n, known))
	}
	if groups, err := inOrder(uncounted); err != nil {
		problem(err)
	} else if len(groups) > 0 {
		all = s.locateByCount(stack, groups, problem)
	}
	answer.Runs = s.runsOf(all, len(stack.Frames))
}

// counted are the frames that a thread of the operating system has of one interpreter.
type counted struct {
	groups []group
	isMain bool
}

// inOrder returns the groups of the interpreters of a thread, innermost first: the main interpreter,
// which none calls, is the outermost one.
func inOrder(list []counted) ([]group, error) {
	switch {
	case len(list) == 0:
		return nil, nil
	case len(list) == 1:
		return list[0].groups, nil
	case len(list) > 2 || list[0].isMain == list[1].isMain:
		return nil, fmt.Errorf("%d interpreters have frames of it: which is further in is not known", len(list))
	case list[0].isMain:
		list[0], list[1] = list[1], list[0]
	}
	return slices.Concat(list[0].groups, list[1].groups), nil
}

// placed is a group with the native frames that it stands for.
type placed struct {
	group
	first, count int
}

// maxEvalFrame bounds the variables of the C function that executes frames, in bytes.
const maxEvalFrame = 1 << 16

// locate finds the native frames that groups stand for. Frames whose C function is outside the
// outermost native frame are put there.
func (s *stacks) locate(stack *sdk.NativeStack, groups []group, problem func(error)) (list []placed) {
	next := 0
	for _, g := range groups {
		if len(g.frames) == 0 {
			continue
		}
		if g.marker == 0 {
			continue // its end is not known
		}
		k := next
		for k < len(stack.Frames) && (!stack.Frames[k].HasCFA || stack.Frames[k].CFA <= g.marker) {
			k++
		}
		switch {
		case k == len(stack.Frames):
			list = append(list, placed{g, k, 0})
			next = k
			if !stack.IsCut {
				problem(fmt.Errorf("the C function that executes the frame at %#x is not in the native stack", g.frames[0].address))
			}
			continue
		case stack.Frames[k].CFA-g.marker > maxEvalFrame || !stack.Frames[k].InModule:
			problem(fmt.Errorf("frame at %#x: the variable at %#x of the C function that executes it is in none of the module's", g.frames[0].address, g.marker))
			return list
		}
		first, end := s.around(stack.Frames, k, next)
		list = append(list, placed{g, first, end - first})
		next = end
	}
	return list
}

// around returns the native frames that a group stands for: that of the C function that executes its
// frames, further in the function that has the current instruction where each has its own, and
// further out the trampoline that perf knows the Python function by.
func (s *stacks) around(frames []sdk.NativeFrame, k, least int) (first, end int) {
	first, end = k, k+1
	if s.isTailCall && k > least {
		if f := &frames[k-1]; f.InModule && (f.Function == "" || strings.HasPrefix(f.Function, "_TAIL_CALL_")) {
			first--
		}
	}
	if end < len(frames) && isTrampoline(&frames[end]) {
		end++
		if end < len(frames) && frames[end].Function == "py_trampoline_evaluator" {
			end++
		}
	}
	return first, end
}

// isTrampoline reports whether a native frame is a trampoline that perf knows a Python function by.
func isTrampoline(f *sdk.NativeFrame) bool {
	return !f.InModule && strings.HasPrefix(f.Function, "py::")
}

// locateByCount finds the native frames that groups without variables stand for, in 3.8 and 3.9: one
// C function executes one frame.
func (s *stacks) locateByCount(stack *sdk.NativeStack, groups []group, problem func(error)) (list []placed) {
	var evals []int
	for k := range stack.Frames {
		if isEval(&stack.Frames[k]) {
			evals = append(evals, k)
		}
	}
	switch extra := len(evals) - len(groups); {
	case extra == 1:
		evals = evals[1:] // it was just entered, or is about to return
	case extra > 1:
		problem(fmt.Errorf("%d C functions execute %d frames, expected the same", len(evals), len(groups)))
		return nil
	case extra < 0 && !stack.IsCut:
		problem(fmt.Errorf("%d C functions are in the native stack that execute %d frames, expected the same", len(evals), len(groups)))
	}
	for i, g := range groups {
		if i >= len(evals) {
			list = append(list, placed{g, len(stack.Frames), 0})
			continue
		}
		first, end := s.around(stack.Frames, evals[i], 0)
		list = append(list, placed{g, first, end - first})
	}
	return list
}

// runsOf makes the runs of an answer: those outside the outermost native frame are one.
func (s *stacks) runsOf(all []placed, native int) (runs []sdk.ManagedRun) {
	for _, p := range all {
		frames := managedFrames(p.frames, s.values)
		if len(frames) == 0 {
			continue
		}
		if n := len(runs); n > 0 && p.first == native && int(runs[n-1].First) == native {
			runs[n-1].Frames = append(runs[n-1].Frames, frames...)
			continue
		}
		runs = append(runs, sdk.ManagedRun{First: uint32(p.first), Count: uint32(p.count), Frames: frames}) //nolint:gosec // below the number of frames
	}
	return runs
}

// managedFrames describes frames of Python, with their variables where values are there. Those that the
// interpreter made for itself are left out.
func managedFrames(frames []*frame, values *values) (list []sdk.ManagedFrame) {
	for _, f := range frames {
		if f.resolved.isShim {
			continue
		}
		m := sdk.ManagedFrame{
			Function: f.resolved.function(), File: f.resolved.file,
			Line: f.position.line, Column: f.position.column, Kind: sdk.Interpreted,
		}
		if values != nil {
			m.Variables = values.locals(f)
		}
		list = append(list, m)
	}
	return list
}
