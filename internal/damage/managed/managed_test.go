// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// The classes tell apart what they are about.
func TestJudge(t *testing.T) {
	f := func(name string, line uint32) Frame { return Frame{name, "a.py", line} }
	whole := Outcome{Stacks: []Stack{{Name: "1", Frames: []Frame{f("c", 3), f("b", 2), f("a", 1)}}, {Name: "2", Frames: []Frame{f("e", 5)}}}}
	for want, frames := range map[string][]Frame{
		Same: {f("c", 3), f("b", 2), f("a", 1)}, Line: {f("c", 4), f("b", 2), f("a", 1)}, Text: {f("x", 3), f("b", 2), f("a", 1)},
		Wrong: {f("e", 5), f("b", 2), f("a", 1)}, Missing: {f("c", 3), f("a", 1)},
	} {
		damaged := Outcome{Stacks: []Stack{{Name: "1", Frames: frames}, whole.Stacks[1]}}
		if got := Judge(&whole, &damaged); got != want {
			t.Errorf("%v: %s, expected %s", frames, got, want)
		}
		damaged.Stacks[0].Problem = "it ends"
		if got := Judge(&whole, &damaged); want != Same && got != Marked {
			t.Errorf("%v with a problem: %s", frames, got)
		}
		damaged.Stacks[0].Problem, damaged.Stacks[1].Problem = "", "another stack's"
		if got := Judge(&whole, &damaged); got != want {
			t.Errorf("%v with a problem of another stack: %s, expected %s", frames, got, want)
		}
	}
	if got := Judge(&whole, &Outcome{Stacks: whole.Stacks[:1]}); got != Missing {
		t.Errorf("a stack less: %s", got)
	}
	more := Outcome{Stacks: append([]Stack{{Name: "3", Frames: []Frame{f("e", 5)}}}, whole.Stacks...)}
	if got := Judge(&whole, &more); got != Wrong {
		t.Errorf("a stack more: %s", got)
	}
}

func TestMemoryIsReadAcrossParts(t *testing.T) {
	m := Memory{{0x1000, []byte("ab")}, {0x1002, []byte("cd")}, {0x2000, []byte("e")}}
	for _, c := range []struct {
		address uint64
		want    string
		size    int
	}{{0x1001, "bcd", 3}, {0x1003, "d", 2}, {0x2000, "e", 1}, {0xfff, "", 1}, {0x1004, "", 1}, {^uint64(0), "", 1}} {
		buf := make([]byte, c.size)
		n, err := m.ReadMemory(t.Context(), sdk.MemoryRange{Address: c.address}, buf)
		if string(buf[:n]) != c.want || (err == nil) != (len(c.want) == c.size) {
			t.Errorf("%#x: %q, %v, expected %q", c.address, buf[:n], err, c.want)
		}
	}
}
