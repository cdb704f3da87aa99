// SPDX-License-Identifier: Apache-2.0

package bundled_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The stack of a wave of examples/python-gpu leads from the kernel to the lines of Python that launched it.
func TestPythonAboveAKernel(t *testing.T) {
	target, err := newEngine(t).Open("../../examples/python-gpu/train.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"grade grade.cl", "tensor::Stream::synchronize", "tensor::Dispatcher::call", "tensor::ops::grade", "tensor_grade",
		"Grader.forward train.py 15 cpython", "train_step train.py 19 cpython", "train train.py 26 cpython", "<module> train.py 38 cpython", "_start",
	}
	waves := 0
	for s := range target.Stacks(t.Context()) {
		if s.Thread.Wave == nil {
			continue
		}
		waves++
		frames := slices.Clone(s.Frames)
		for _, l := range s.Launchers {
			frames = append(frames, l.Frames...)
		}
		var got []string
		left := want
		for i := range frames {
			f := &frames[i]
			if len(f.Symbols) == 0 {
				continue
			}
			outer := &f.Symbols[len(f.Symbols)-1]
			line := outer.Function + " " + outer.File
			if m := f.Managed(); m != nil {
				line = fmt.Sprintf("%s %s %d %s", outer.Function, outer.File, outer.Line, m.Runtime)
			}
			line = strings.ReplaceAll(line, "/example/", "")
			got = append(got, line)
			if len(left) > 0 && strings.HasPrefix(line, left[0]) {
				left = left[1:]
			}
		}
		if len(left) > 0 {
			t.Errorf("wave %s lacks %q: %q; %q", s.Thread.ID, left, got, target.Problems())
		}
	}
	if waves != 2 {
		t.Errorf("%d waves, expected 2", waves)
	}
}
