// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"path/filepath"
	"testing"
)

// TestExceptionTexts holds the class and the text of exceptions to the ones that str() returns.
func TestExceptionTexts(t *testing.T) {
	want := map[string][2]string{
		"x1": {"ValueError", "bad"}, "x2": {"KeyError", "'k'"}, "x3": {"__main__.Failure", "(1, 2)"}, "x5": {"StopIteration", ""},
	}
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := readFixture(t, path)
			m := &memory{pages: f.Pages}
			p, ok := New().(*plugin)
			if !ok {
				t.Fatal("another plugin")
			}
			if _, err := p.OpenRuntime(t.Context(), m, &f.Request); err != nil {
				t.Fatal(err)
			}
			g, err := p.find(f.Request.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			r := newReader(t.Context(), m, g)
			threads, err := r.threads()
			if err != nil {
				t.Fatal(err)
			}
			r.readFrames(threads)
			found := 0
			for _, l := range keptLocals(t, r, threads) {
				expected, isWanted := want[l.name]
				if !isWanted {
					continue
				}
				found++
				x, err := r.exceptionOf(0, l.value, 0)
				if err != nil {
					t.Errorf("%s: %v", l.name, err)
				} else if x.Type != expected[0] || x.Text != expected[1] {
					t.Errorf("%s is %s: %q, expected %s: %q", l.name, x.Type, x.Text, expected[0], expected[1])
				}
			}
			if found != len(want) {
				t.Errorf("%d exceptions, expected %d", found, len(want))
			}
			if raised, err := r.raised(threads[0].address); err != nil || raised != nil {
				t.Errorf("raised %v, %v, expected none", raised, err)
			}
		})
	}
}

// keptLocals are the variables of the function kept.
func keptLocals(t *testing.T, r *reader, threads []*thread) []local {
	t.Helper()
	for _, thread := range threads {
		for _, f := range thread.chain.frames {
			if f.resolved != nil && f.resolved.name == "kept" {
				list, err := newValues(r, 1, 1).placed(f)
				if err != nil {
					t.Fatal(err)
				}
				return list
			}
		}
	}
	t.Fatal("the function kept is not there")
	return nil
}
