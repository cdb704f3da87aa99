// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"math"
	"slices"
)

// Validate checks the description of a runtime, and returns an error for its first invalid
// field.
func (d *RuntimeDescription) Validate() error {
	for _, l := range []struct {
		name string
		size int
	}{{"Recognises", len(d.Recognises)}, {"Symbols", len(d.Symbols)}, {"Types", len(d.Types)}, {"Constants", len(d.Constants)}} {
		if l.size > MaxDescriptionList {
			return fmt.Errorf("RuntimeDescription.%s: %d entries, expected at most %d", l.name, l.size, MaxDescriptionList)
		}
	}
	if err := first(
		checkIdentifier("Name", d.Name), checkText("Version", d.Version, MaxName), checkText("ThreadKind", d.ThreadKind, MaxName),
		each("Recognises", d.Recognises, (*RuntimeRecogniser).validate),
		checkTexts("Symbols", d.Symbols),
		each("Types", d.Types, (*RuntimeType).validate),
		each("Constants", d.Constants, func(c *RuntimeConstants) error {
			if c.Prefix == "" {
				return fmt.Errorf("Prefix: empty, expected the beginning of names")
			}
			return first(checkText("Unit", c.Unit, MaxText), checkText("Prefix", c.Prefix, MaxName))
		})); err != nil {
		return fmt.Errorf("RuntimeDescription.%w", err)
	}
	if len(d.Recognises) == 0 {
		return fmt.Errorf("RuntimeDescription.Recognises: empty, expected what the modules of the runtime have")
	}
	return nil
}

// maxBuildID is the length of the longest build ID in bytes.
const maxBuildID = 64

func (r *RuntimeRecogniser) validate() error {
	switch {
	case r.Section == "" && r.Symbol == "" && len(r.BuildID) == 0:
		return fmt.Errorf("Section: empty, as Symbol and BuildID: it recognises every module")
	case len(r.BuildID) > maxBuildID:
		return fmt.Errorf("BuildID: %d bytes, expected at most %d", len(r.BuildID), maxBuildID)
	}
	return first(checkText("Section", r.Section, MaxName), checkText("Symbol", r.Symbol, MaxText))
}

func (t *RuntimeType) validate() error {
	switch {
	case t.Name == "":
		return fmt.Errorf("Name: empty, expected the name of a type")
	case len(t.Members) > MaxDescriptionList:
		return fmt.Errorf("Members: %d, expected at most %d", len(t.Members), MaxDescriptionList)
	}
	return first(checkText("Unit", t.Unit, MaxText), checkText("Name", t.Name, MaxText), checkTexts("Members", t.Members))
}

// The methods below check the answers of a runtime, as far as its description and the request
// go. Rows and registers are an architecture's: see ValidateRows and ValidateRegisters.

// Validate checks an answer to OpenRuntime.
func (a *OpenRuntimeAnswer) Validate(_ *RuntimeDescription, req *OpenRuntimeRequest) error {
	err := first(checkText("Version", a.Version, MaxName), checkText("Fatal", a.Fatal, MaxText), checkProblems(a.Problems))
	end := uint64(0)
	if err == nil {
		err = each("Code", a.Code, func(c *RuntimeCode) error {
			if c.Start < end || c.End <= c.Start {
				return fmt.Errorf("Start: %#x to %#x behind %#x, expected ranges in order, apart from each other", c.Start, c.End, end)
			}
			end = c.End
			return checkText("Name", c.Name, MaxText)
		})
	}
	known := make(handles, len(req.Threads))
	for i := range req.Threads {
		known[req.Threads[i].Thread] = struct{}{}
	}
	if err == nil {
		err = first(known.ascend("Threads", a.Threads), known.validateLocks(a.Locks))
	}
	if err != nil {
		return fmt.Errorf("OpenRuntimeAnswer.%w", err)
	}
	return nil
}

// handles are handles of a request's threads.
type handles map[uint64]struct{}

// ascend checks that handles ascend, and are the request's.
func (known handles) ascend(list string, threads []uint64) error {
	for i, t := range threads {
		switch _, isKnown := known[t]; {
		case !isKnown:
			return fmt.Errorf("%s[%d]: %d is the handle of no thread", list, i, t)
		case i > 0 && t <= threads[i-1]:
			return fmt.Errorf("%s[%d]: %d behind %d, expected ascending handles", list, i, t, threads[i-1])
		}
	}
	return nil
}

// validateLocks checks that locks differ, and that their threads are the request's.
func (known handles) validateLocks(locks []RuntimeLock) error {
	seen := make(map[uint64]struct{}, len(locks))
	return each("Locks", locks, func(l *RuntimeLock) error {
		if _, isTwice := seen[l.Address]; isTwice {
			return fmt.Errorf("Address: %#x is another lock's", l.Address)
		}
		seen[l.Address] = struct{}{}
		if _, isKnown := known[l.Holder]; l.HasHolder && !isKnown {
			return fmt.Errorf("Holder: %d is the handle of no thread", l.Holder)
		}
		return first(checkText("Name", l.Name, MaxText), known.ascend("Waiters", l.Waiters))
	})
}

// Validate checks an answer to CodeRules.
func (a *CodeRulesAnswer) Validate(_ *RuntimeDescription, req *CodeRulesRequest) error {
	if len(a.Code) != len(req.PCs) {
		return fmt.Errorf("CodeRulesAnswer.Code: %d entries, expected %d, one for each PC", len(a.Code), len(req.PCs))
	}
	for i := range a.Code {
		if err := a.Code[i].validate(req.PCs[i]); err != nil {
			return fmt.Errorf("CodeRulesAnswer.Code[%d].%w", i, err)
		}
	}
	return nil
}

func (r *CodeRules) validate(pc uint64) error {
	if err := first(checkText("Reason", r.Reason, MaxText), each("Frames", r.Frames, (*ManagedFrame).validate)); err != nil {
		return err
	}
	switch {
	case r.Start == 0 && r.End == 0 && len(r.Rows) == 0 && len(r.Frames) == 0:
		return nil
	case pc < r.Start || pc >= r.End:
		return fmt.Errorf("Start: %#x to %#x, expected a range with %#x", r.Start, r.End, pc)
	}
	return nil
}

// ValidateRows checks the rows against the architecture of the code.
func (r *CodeRules) ValidateRows(d *Description) error {
	return newChecker(d).rows("Rows", r.Rows, r.Start, r.End-r.Start)
}

const (
	// maxManagedFrames is how many frames of the language one stack may have, and one traceback.
	maxManagedFrames = 1 << 16
	// maxManagedLocks is how many locks a thread may hold and wait for.
	maxManagedLocks = 1 << 12
)

// Validate checks an answer to ManagedFrames.
func (a *ManagedFramesAnswer) Validate(_ *RuntimeDescription, req *ManagedFramesRequest) error {
	if len(a.Stacks) != len(req.Threads) {
		return fmt.Errorf("ManagedFramesAnswer.Stacks: %d entries, expected %d, one for each thread", len(a.Stacks), len(req.Threads))
	}
	for i := range a.Stacks {
		if err := a.Stacks[i].validate(len(req.Threads[i].Frames)); err != nil {
			return fmt.Errorf("ManagedFramesAnswer.Stacks[%d].%w", i, err)
		}
	}
	return nil
}

// validate checks the state of a thread, and the frames of its stack of a number of native frames.
func (s *ManagedStack) validate(native int) error {
	if len(s.Locks) > maxManagedLocks {
		return fmt.Errorf("Locks: %d, expected at most %d", len(s.Locks), maxManagedLocks)
	}
	return first(
		checkText("Problem", s.Problem, MaxText), checkText("Name", s.Name, MaxText), checkText("State", s.State, MaxText),
		each("Locks", s.Locks, func(l *ManagedLock) error { return checkText("Name", l.Name, MaxText) }),
		s.Exception.validate(), s.validateRuns(native))
}

func (e *ManagedException) validate() error {
	if e == nil {
		return nil
	}
	err := first(checkText("Type", e.Type, MaxText), checkText("Text", e.Text, MaxText), each("Frames", e.Frames, (*ManagedFrame).validate))
	switch {
	case err != nil:
	case e.Type == "":
		err = fmt.Errorf("Type: empty, expected the exception's type")
	case len(e.Frames) > maxManagedFrames:
		err = fmt.Errorf("Frames: %d, expected at most %d", len(e.Frames), maxManagedFrames)
	default:
		return nil
	}
	return fmt.Errorf("Exception.%w", err)
}

func (s *ManagedStack) validateRuns(native int) error {
	next, frames := uint64(0), 0
	return each("Runs", s.Runs, func(r *ManagedRun) error {
		frames += len(r.Frames)
		end := uint64(r.First) + uint64(r.Count)
		switch {
		case uint64(r.First) < next:
			return fmt.Errorf("First: %d, expected at least %d, in the order of the stack", r.First, next)
		case end > uint64(native): //nolint:gosec // a length
			return fmt.Errorf("Count: %d frames from %d on, expected at most %d, the native frames", r.Count, r.First, native)
		case len(r.Frames) == 0:
			return fmt.Errorf("Frames: none, expected one at least")
		case frames > maxManagedFrames:
			return fmt.Errorf("Frames: more than %d in all runs", maxManagedFrames)
		}
		next = end
		return each("Frames", r.Frames, (*ManagedFrame).validate)
	})
}

func (f *ManagedFrame) validate() error {
	switch {
	case f.Kind > Entry:
		return fmt.Errorf("Kind: %d is not a kind", f.Kind)
	case f.Line > math.MaxInt32 || f.Column > math.MaxInt32:
		return fmt.Errorf("Line: %d, column %d, expected at most %d", f.Line, f.Column, math.MaxInt32)
	}
	return first(checkText("Function", f.Function, MaxText), checkText("File", f.File, MaxText),
		each("Variables", f.Variables, func(v *ManagedVariable) error { return v.validate(1) }))
}

func (v *ManagedVariable) validate(depth int) error {
	switch {
	case depth > MaxVariableDepth:
		return fmt.Errorf("Children: more than %d levels", MaxVariableDepth)
	case v.Status > ValueUnreadable:
		return fmt.Errorf("Status: %d is not a status", v.Status)
	}
	return first(checkText("Name", v.Name, MaxText), checkText("Type", v.Type, MaxText), checkText("Text", v.Text, MaxText),
		each("Children", v.Children, func(child *ManagedVariable) error { return child.validate(depth + 1) }))
}

// Validate checks an answer to ManagedThreads.
func (a *ManagedThreadsAnswer) Validate(_ *RuntimeDescription, _ *ManagedThreadsRequest) error {
	numbers := make(map[uint64]struct{}, len(a.Threads))
	err := each("Threads", a.Threads, func(t *ManagedThread) error {
		if _, isTwice := numbers[t.Number]; isTwice {
			return fmt.Errorf("Number: %d is another thread's", t.Number)
		}
		numbers[t.Number] = struct{}{}
		return t.validate()
	})
	if err = first(err, checkProblems(a.Problems)); err != nil {
		return fmt.Errorf("ManagedThreadsAnswer.%w", err)
	}
	return nil
}

// maxWaitsFor is how many threads a thread may wait for.
const maxWaitsFor = 1 << 12

func (t *ManagedThread) validate() error {
	switch {
	case t.StackLow > t.StackHigh:
		return fmt.Errorf("StackLow: %#x, expected at most StackHigh, %#x", t.StackLow, t.StackHigh)
	case len(t.WaitsFor) > maxWaitsFor:
		return fmt.Errorf("WaitsFor: %d, expected at most %d", len(t.WaitsFor), maxWaitsFor)
	case slices.Contains(t.WaitsFor, t.Number):
		return fmt.Errorf("WaitsFor: %d, the thread itself", t.Number)
	}
	return first(
		checkText("Name", t.Name, MaxText), checkText("State", t.State, MaxName), checkText("Reason", t.Reason, MaxText),
		checkText("Carrier", t.Carrier, MaxName), checkText("Problem", t.Problem, MaxText),
		each("Frames", t.Frames, (*ManagedFrame).validate), t.Registers.Validate())
}

// ValidateRegisters checks the registers of threads against the architecture of the module
// that has the runtime.
func (a *ManagedThreadsAnswer) ValidateRegisters(d *Description) error {
	c := newChecker(d)
	return each("Threads", a.Threads, func(t *ManagedThread) error { return c.targetRegisters(&t.Registers) })
}
