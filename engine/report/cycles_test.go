// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// recursion is a stack of functions, each a letter: "i+f" is i inlined into f.
func recursion(functions ...string) *given {
	s := &trace.Stack{Thread: &trace.Thread{ID: "7", Crashed: true}, Stopped: trace.Stopped{Reason: trace.StopOutermost}}
	for i, chain := range functions {
		f := trace.Frame{PC: 0x1000 + uint64(i), FoundBy: trace.ByCFI}
		for _, name := range strings.Split(chain, "+") {
			f.Symbols = append(f.Symbols, trace.Symbol{Function: name})
		}
		s.Frames = append(s.Frames, f)
	}
	return reportOf(s)
}

// frameHeads are the lines of frames: their numbers and functions, and what stands for
// others.
func frameHeads(text string) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		switch words := strings.Fields(line); {
		case len(words) > 2 && strings.HasPrefix(words[0], "#"):
			lines = append(lines, words[0]+" "+words[2])
		case len(words) > 0 && words[0] == "...":
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func repeated(times int, functions ...string) []string { return slices.Repeat(functions, times) }

func TestRecursionsPrintAsTheirCycles(t *testing.T) {
	var differing []string // g calls itself more often each time
	for i := range 10 {
		differing = append(differing, "f")
		differing = append(differing, repeated(20+i, "g")...)
	}
	for _, c := range []struct {
		name   string
		frames []string
		want   []string
		cycles []Cycle
	}{
		{"one function", slices.Concat(repeated(1, "crash"), repeated(5000, "f"), repeated(1, "main")), []string{
			"#0 crash", "#1 f", "... the frame of f repeats 4,998 times (frames #2 to #4999)", "#5000 f", "#5001 main"},
			[]Cycle{{First: 1, Last: 5000, Frames: 1, Times: 5000}}},
		{"several", slices.Concat(repeated(100, "f", "g", "h"), repeated(1, "f", "main")), []string{
			"#0 f", "#1 g", "#2 h", "... the 3 frames of the cycle f < g < h repeat 98 times (frames #3 to #296)",
			"#297 f", "#298 g", "#299 h", "#300 f", "#301 main"},
			[]Cycle{{First: 0, Last: 299, Frames: 3, Times: 100}}},
		{"inlined calls", slices.Concat(repeated(50, "i+f", "g"), repeated(1, "main")), []string{
			"#0 i", "#1 f", "#2 g", "... the 3 frames of the cycle i < f < g repeat 48 times (frames #3 to #146)",
			"#147 i", "#148 f", "#149 g", "#150 main"},
			[]Cycle{{First: 0, Last: 149, Frames: 3, Times: 50}}},
		{"two after each other", slices.Concat(repeated(30, "f"), repeated(20, "g", "h"), repeated(1, "main")), []string{
			"#0 f", "... the frame of f repeats 28 times (frames #1 to #28)", "#29 f",
			"#30 g", "#31 h", "... the 2 frames of the cycle g < h repeat 18 times (frames #32 to #67)", "#68 g", "#69 h", "#70 main"},
			[]Cycle{{First: 0, Last: 29, Frames: 1, Times: 30}, {First: 30, Last: 69, Frames: 2, Times: 20}}},
		{"nested", slices.Concat(repeated(10, slices.Concat(repeated(1, "f"), repeated(20, "g"))...), repeated(1, "main")), []string{
			"#0 f", "#1 g", "... the frame of g repeats 18 times (frames #2 to #19)", "#20 g",
			"... the 21 frames of the cycle f < (g repeated) repeat 8 times (frames #21 to #188)",
			"#189 f", "#190 g", "... the frame of g repeats 18 times (frames #191 to #208)", "#209 g", "#210 main"},
			[]Cycle{{First: 0, Last: 209, Frames: 21, Times: 10}}},
		{"nested, and of several lengths", slices.Concat(differing, repeated(1, "main")), []string{
			"#0 f", "#1 g", "... the frame of g repeats 18 times (frames #2 to #19)", "#20 g",
			"... the cycle f < (g repeated) repeats 8 times (frames #21 to #224)",
			"#225 f", "#226 g", "... the frame of g repeats 27 times (frames #227 to #253)", "#254 g", "#255 main"},
			[]Cycle{{First: 0, Last: 254, Times: 10}}},
		{"few", repeated(minHidden+1, "f"), nil, nil},
		{"as few as are worth it", repeated(minHidden+2, "f"), []string{
			"#0 f", "... the frame of f repeats 16 times (frames #1 to #16)", "#17 f"},
			[]Cycle{{First: 0, Last: 17, Frames: 1, Times: 18}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := recursion(c.frames...)
			all := frameHeads(stackText(t, g, TextOptions{NoFold: true}))
			if c.want == nil {
				c.want = all
			}
			if d := cmp.Diff(c.want, frameHeads(stackText(t, g, TextOptions{}))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			// The text of the same frames one by one is equal.
			for _, line := range c.want {
				if line[0] == '#' && !slices.Contains(all, line) {
					t.Errorf("%s is none of the frames", line)
				}
			}
			if n := strings.Count(strings.Join(all, "\n"), "#"); n != len(all) {
				t.Errorf("%d of %d lines are frames where nothing is folded", n, len(all))
			}
			th := g.read(t).Threads[0]
			if d := cmp.Diff(c.cycles, th.Cycles); d != "" {
				t.Errorf("cycles of the JSON (-want +got):\n%s", d)
			}
			if len(th.Frames) != len(all) {
				t.Errorf("%d frames in the JSON, expected %d", len(th.Frames), len(all))
			}
		})
	}
}

// TestFramesThatDifferAreNoCycle has frames of one function, of which one is a guess, and
// those after it rest on it.
func TestFramesThatDifferAreNoCycle(t *testing.T) {
	g := recursion(repeated(60, "f")...)
	frames := g.stacks[0].Frames
	frames[20].FoundBy = trace.ByScan
	for i := 21; i < 60; i++ {
		frames[i].RestsOnGuess = true
	}
	want := []string{
		"#0 f", "... the frame of f repeats 18 times (frames #1 to #18)", "#19 f", "#20 f",
		"#21 f", "... the frame of f repeats 37 times (frames #22 to #58)", "#59 f",
	}
	if d := cmp.Diff(want, frameHeads(stackText(t, g, TextOptions{}))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestFramesLeftOutAreCounted has a stack of which the middle was not kept.
func TestFramesLeftOutAreCounted(t *testing.T) {
	g := recursion("f", "i+f", "f")
	s := g.stacks[0]
	s.Gap = trace.Gap{LeftOut: 261773, LeftOutCalls: 7, Outermost: []trace.Frame{{PC: 1, Symbols: []trace.Symbol{{Function: "main"}}, FoundBy: trace.ByCFI}}}
	want := []string{"#0 f", "#1 i", "#2 f", "#3 f", "... 261,773 frames left out", "#261784 main"}
	if d := cmp.Diff(want, frameHeads(stackText(t, g, TextOptions{}))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	th := g.read(t).Threads[0]
	if d := cmp.Diff([]LeftOut{{Index: 4, Frames: 261773}}, th.LeftOut); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if last := th.Frames[len(th.Frames)-1]; last.Index != 261784 || last.Function != "main" {
		t.Errorf("the last frame is %d, %s", last.Index, last.Function)
	}
	other := *s
	other.Thread, other.LeftOut = &trace.Thread{ID: "8", Crashed: true}, 3
	if text := stackText(t, reportOf(s, &other), TextOptions{}); !strings.Contains(text, "thread 8") {
		t.Error("stacks of different lengths are one")
	}
	s.HasGuess = true
	if text := stackText(t, g, TextOptions{}); !strings.Contains(text, "stopped: outermost: , if a guess among the frames left out, and those after it are right") {
		t.Errorf("the guess is not said:\n%s", text)
	}
}

func TestIDsThatFollowEachOtherAreARange(t *testing.T) {
	for _, c := range []struct{ ids, want string }{
		{"101 102 103 104 170", "101-104 170"},
		{"1 2 4 5 6", "1 2 4-6"},
		{"w0 w1 w2 x3 x4 x5 5", "w0-w2 x3-x5 5"},
		{"3 2 1", "3 2 1"},
		{"a b c", "a b c"},
		{"01 02 03 9 10 11", "01 02 03 9-11"},
		{"18446744073709551614 18446744073709551615 0 1", "18446744073709551614 18446744073709551615 0 1"},
		{"99999999999999999999999 99999999999999999999999", "99999999999999999999999 99999999999999999999999"},
	} {
		var l idList
		for _, id := range strings.Fields(c.ids) {
			l.add(id)
		}
		if got := l.String(); got != c.want || l.count != len(strings.Fields(c.ids)) {
			t.Errorf("%s: %s, %d, expected %s", c.ids, got, l.count, c.want)
		}
	}
}

// BenchmarkCycles has a stack of which nothing is a cycle, and one that overflowed.
func BenchmarkCycles(b *testing.B) {
	none := make([]string, 1<<16)
	for i := range none {
		none[i] = strconv.Itoa(i * i % 65521 % 100)
	}
	for name, functions := range map[string][]string{"none": none, "overflow": repeated(1<<16, "f")} {
		frames := recursion(functions...).stacks[0].Frames
		b.Run(fmt.Sprintf("%s/%d", name, len(frames)), func(b *testing.B) {
			for b.Loop() {
				cyclesOf(frames)
			}
		})
	}
}
