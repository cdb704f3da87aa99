// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"fmt"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// checkFunctions compares what EachFunction, Covers, Lines and EachLine give with Frames, at some
// addresses.
func checkFunctions(t *testing.T, f *File, addresses []uint64) {
	t.Helper()
	expected := map[uint64]string{}
	err := f.EachFunction(func(fn *symbol.FunctionCode) bool {
		for _, r := range fn.Ranges {
			for a := r.Start; a < r.End; a++ {
				expected[a] = describe(fn, a)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[uint64]string{}
	last := uint64(0)
	err = f.EachLine(func(r *symbol.LineRow) bool {
		if r.Start < last && r.End > last {
			t.Errorf("a row from %#x to %#x behind one that ends at %#x", r.Start, r.End, last)
		}
		last = r.End
		for a := r.Start; a < r.End; a++ {
			rows[a] = lines(r.Frames)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, a := range addresses {
		frames, _ := f.Frames(nil, a)
		covered, end := f.Covers(a)
		if covered != (expected[a] != "") || end <= a {
			t.Errorf("%#x: covered: %v, up to %#x, expected %v", a, covered, end, !covered)
		}
		if expected[a] != "" {
			compared++
			if got := describeFrames(frames); got != expected[a] {
				t.Errorf("%#x:\nFrames       %s\nEachFunction %s", a, got, expected[a])
			}
		}
		if got := lines(frames); rows[a] != got && !(rows[a] == "" && frames != nil && frames[len(frames)-1].File == "") {
			t.Errorf("%#x:\nFrames   %s\nEachLine %s", a, got, rows[a])
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// describe is what a function says of an address.
func describe(fn *symbol.FunctionCode, address uint64) string {
	contains := func(r symbol.CodeRange) bool { return r.Start <= address && address < r.End }
	out := fn.Function
	for _, c := range fn.Calls {
		if slices.ContainsFunc(c.Ranges, contains) {
			out += fmt.Sprintf(" %s:%d: %d: %s", c.CallFile, c.CallLine, c.Depth, c.Function)
		}
	}
	for _, l := range fn.Lines {
		if contains(l.CodeRange) {
			out += fmt.Sprintf(" %s:%d", l.File, l.Line)
		}
	}
	return out
}

// describeFrames is describe of frames.
func describeFrames(frames []trace.Symbol) string {
	if len(frames) == 0 {
		return ""
	}
	last := len(frames) - 1
	out := frames[last].Function
	for i := last; i > 0; i-- {
		out += fmt.Sprintf(" %s:%d: %d: %s", frames[i].File, frames[i].Line, last-i, frames[i-1].Function)
	}
	if frames[0].File == "" && frames[0].Line == 0 {
		return out
	}
	return out + fmt.Sprintf(" %s:%d", frames[0].File, frames[0].Line)
}

func lines(frames []trace.Symbol) (out string) {
	for i := range frames {
		out += fmt.Sprintf("%s:%d:%d ", frames[i].File, frames[i].Line, frames[i].Column)
	}
	return out
}
