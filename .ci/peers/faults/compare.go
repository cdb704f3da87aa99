// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// comparer compares an answer with the whole one: it may have less. isSaid: the command
// said something that it does not say otherwise. The error is the difference.
type comparer func(whole, got []byte, isSaid bool) (isLess bool, err error)

// frame is one of a stack or of a sample.
type frame struct {
	Thread   string // the one that it is of: a wave's stack goes on in its launcher's
	PC       string
	CFA      string
	FoundBy  string `json:"found_by"`
	Guess    bool   `json:"rests_on_guess"`
	Function string
	File     string
	Line     int
	Inlined  bool
	Lanes    []any
	Locals   []local
}

func (f *frame) isGuess() bool {
	return f.Guess || f.FoundBy == "scan" || f.FoundBy == "frame-pointer" || f.FoundBy == "function-body"
}

// local is a variable.
type local struct{ Name, Value, Status string }

// stack is one of a thread.
type stack struct {
	ID      string
	Frames  []frame
	Stopped struct{ Reason string }
}

func compareStacks(whole, got []byte, isSaid bool) (isLess bool, err error) {
	var a, b struct{ Threads []stack }
	if err := errors.Join(json.Unmarshal(whole, &a), json.Unmarshal(got, &b)); err != nil {
		return false, fmt.Errorf("the answer is no JSON: %w", err)
	}
	isSaid = isSaid || len(said(got, said(whole, nil))) > 0
	want := map[string]*stack{}
	for i := range a.Threads {
		want[a.Threads[i].ID] = &a.Threads[i]
	}
	for i := range b.Threads {
		w := want[b.Threads[i].ID]
		if w == nil {
			return false, fmt.Errorf("there is a thread %q, which the whole answer has not", b.Threads[i].ID)
		}
		one, err := compareStack(w, &b.Threads[i])
		if err != nil {
			return false, fmt.Errorf("thread %s: %w", w.ID, err)
		}
		isLess = isLess || one
	}
	isLess = isLess || len(b.Threads) < len(a.Threads)
	if isLess && !isSaid {
		return false, fmt.Errorf("there is less, and nothing says so: %s", firstDifference(whole, got))
	}
	return isLess, nil
}

// compareStack compares the frames of calls, and their members. A stack that continues in
// its launcher's does so too where its first part is cut short.
func compareStack(whole, got *stack) (isLess bool, err error) {
	a, b := physical(whole.Frames), physical(got.Frames)
	isShort := false
	for _, thread := range threadsOf(b) {
		if !slices.Contains(threadsOf(a), thread) {
			return false, fmt.Errorf("it goes on in thread %q", thread)
		}
	}
	for _, thread := range threadsOf(a) {
		others := func(f frame) bool { return f.Thread != thread }
		theirs, ours := slices.DeleteFunc(slices.Clone(a), others), slices.DeleteFunc(slices.Clone(b), others)
		one, err := compareFrames(theirs, ours)
		if err != nil {
			return false, err
		}
		isLess, isShort = isLess || one, isShort || len(ours) < len(theirs)
	}
	r := got.Stopped.Reason
	if isShort && (r == "outermost" || r == "") && !slices.ContainsFunc(b, func(f frame) bool { return f.isGuess() }) {
		return false, fmt.Errorf("it has %d frames of %d, and stops because of %q", len(b), len(a), r)
	}
	return isLess || isShort || len(got.Frames) < len(whole.Frames), nil
}

// threadsOf are the threads of frames, in their order.
func threadsOf(frames []frame) (list []string) {
	for _, f := range frames {
		list = append(list, f.Thread)
	}
	return slices.Compact(list)
}

// compareFrames compares the frames of one thread. One that lies behind a guess is part of it.
func compareFrames(a, b []frame) (isLess bool, err error) {
	isGuessed := false
	for i := range b {
		isGuessed = isGuessed || b[i].isGuess() && (i >= len(a) || !a[i].isGuess())
		if isGuessed {
			isLess = true // and marked as such
			continue
		}
		if i >= len(a) {
			return false, fmt.Errorf("frame %d at %s is more than the whole stack has", i, b[i].PC)
		}
		one, err := compareFrame(&a[i], &b[i], i+1 < len(b) && b[i+1].isGuess())
		if err != nil {
			return false, fmt.Errorf("frame %d: %w", i, err)
		}
		isLess = isLess || one
	}
	return isLess, nil
}

// physical are the frames that are no inlined calls.
func physical(frames []frame) []frame {
	return slices.DeleteFunc(slices.Clone(frames), func(f frame) bool { return f.Inlined })
}

// compareFrame compares a frame with the whole one, which may know more. Where its caller is a
// guess, its CFA is part of that.
func compareFrame(whole, got *frame, isGuessed bool) (isLess bool, err error) {
	if got.PC != whole.PC || got.CFA != "" && got.CFA != whole.CFA && !isGuessed {
		return false, fmt.Errorf("it has PC %s and CFA %s, expected %s and %s", got.PC, got.CFA, whole.PC, whole.CFA)
	}
	// A symbol table's name has no parameters, and may be another one of the same place.
	if got.Function != whole.Function && got.Function != "" && !strings.HasPrefix(whole.Function, got.Function) {
		return false, fmt.Errorf("it is in %q, expected %q", got.Function, whole.Function)
	}
	if got.File != "" && (got.File != whole.File || got.Line != whole.Line) {
		return false, fmt.Errorf("it is at %s:%d, expected %s:%d", got.File, got.Line, whole.File, whole.Line)
	}
	if len(got.Lanes) > 0 && !reflect.DeepEqual(got.Lanes, whole.Lanes) {
		isLess = true // lanes without names
		if len(got.Lanes) > len(whole.Lanes) {
			return false, fmt.Errorf("it has groups of lanes %v, expected %v", got.Lanes, whole.Lanes)
		}
	}
	less, err := compareLocals(whole.Locals, got.Locals)
	return isLess || less || got.Function != whole.Function || got.File != whole.File || len(got.Lanes) != len(whole.Lanes) || got.CFA != whole.CFA, err
}

func compareLocals(whole, got []local) (isLess bool, err error) {
	want := map[string]local{}
	for _, v := range whole {
		want[v.Name] = v
	}
	for _, v := range got {
		w, isThere := want[v.Name]
		if !isThere || v.Status == "ok" && v.Value != w.Value {
			return false, fmt.Errorf("variable %s is %q, expected %q", v.Name, v.Value, w.Value)
		}
		isLess = isLess || v != w
	}
	return isLess || len(got) < len(whole), nil
}

// sample is one of a profile.
type sample struct {
	Event   string
	PID     int
	TID     int
	Time    uint64
	Weight  uint64
	Frames  []int
	Stopped string
}

func compareProfiles(whole, got []byte, isSaid bool) (isLess bool, err error) {
	type profile struct {
		Samples []sample
		Frames  []frame
	}
	var a, b profile
	if err := errors.Join(json.Unmarshal(whole, &a), json.Unmarshal(got, &b)); err != nil {
		return false, fmt.Errorf("the answer is no JSON: %w", err)
	}
	stackOf := func(p *profile, s *sample) *stack {
		one := &stack{}
		one.Stopped.Reason = s.Stopped
		for _, i := range s.Frames {
			one.Frames = append(one.Frames, p.Frames[i])
		}
		return one
	}
	next := 0
	for i := range b.Samples {
		s := &b.Samples[i]
		for next < len(a.Samples) && a.Samples[next].Time != s.Time {
			next++ // it was lost
			isLess = true
		}
		if next == len(a.Samples) || a.Samples[next].Event != s.Event || a.Samples[next].TID != s.TID || a.Samples[next].Weight != s.Weight {
			return false, fmt.Errorf("sample %d, at time %d, is none of the whole profile", i, s.Time)
		}
		one, err := compareStack(stackOf(&a, &a.Samples[next]), stackOf(&b, s))
		if err != nil {
			return false, fmt.Errorf("sample %d: %w", i, err)
		}
		next++
		isLess = isLess || one
	}
	isLess = isLess || next < len(a.Samples)
	if isLess && !isSaid && len(said(got, said(whole, nil))) == 0 {
		return false, fmt.Errorf("there is less, and nothing says so: %s", firstDifference(whole, got))
	}
	return isLess, nil
}

func compareSymbols(whole, got []byte, isSaid bool) (isLess bool, err error) {
	type answer struct {
		Address string
		Symbol  []struct {
			FunctionName, FileName string
			Line                   int
		}
	}
	var a, b []answer
	if err := errors.Join(json.Unmarshal(whole, &a), json.Unmarshal(got, &b)); err != nil {
		return false, fmt.Errorf("the answer is no JSON: %w", err)
	}
	if len(a) != len(b) {
		return false, fmt.Errorf("%d addresses, expected %d", len(b), len(a))
	}
	for i := range b {
		for k, s := range b[i].Symbol {
			if k < len(a[i].Symbol) && s == a[i].Symbol[k] {
				continue
			}
			if s.FunctionName != "" && s.Line != 0 {
				return false, fmt.Errorf("address %s is in %v, expected %v", b[i].Address, b[i].Symbol, a[i].Symbol)
			}
			isLess = true
		}
		isLess = isLess || len(b[i].Symbol) < len(a[i].Symbol)
	}
	if isLess && !isSaid {
		return false, errors.New("there is less, and nothing says so")
	}
	return isLess, nil
}

// telling has the members in which JSON has missing parts, and the reasons.
var telling = map[string]bool{"problem": true, "problems": true, "detail": true, "reason": true, "error": true, "debug_info": true, "stopped": true, "Error": true}

// said returns the texts in which an answer reports missing parts, except some.
func said(answer []byte, but map[string]bool) map[string]bool {
	found := map[string]bool{}
	var value any
	_ = json.Unmarshal(answer, &value)
	var visit func(v any, tells bool)
	visit = func(v any, tells bool) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				visit(member, telling[name] || tells && name != "frames")
			}
		case []any:
			for _, one := range v {
				visit(one, tells)
			}
		case string:
			if tells && !but[v] && v != "" {
				found[v] = true
			}
		}
	}
	visit(value, false)
	return found
}

// saidOf is one text in which a run reports a missing part.
func saidOf(whole []byte, r *result) string {
	list := slices.Sorted(maps.Keys(said(r.answer, said(whole, nil))))
	slices.SortStableFunc(list, func(a, b string) int { return len(b) - len(a) })
	if len(list) > 0 {
		return list[0]
	}
	return lastLine(r.stderr)
}

// firstDifference is the first line in which two texts differ.
func firstDifference(whole, got []byte) string {
	a, b := strings.Split(string(whole), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, expected %q", i+1, strings.TrimSpace(b[i]), strings.TrimSpace(a[i]))
		}
	}
	return "it is shorter"
}
