// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// laneVariables are a variable as lanes have it, by the text of each lane's value; "" has
// none.
func laneVariables(name string, texts ...string) (list []trace.FrameVariable) {
	words := (len(texts) + 63) / 64
next:
	for lane, text := range texts {
		if text == "" {
			continue
		}
		for i := range list {
			if list[i].Text == text {
				list[i].Lanes[lane/64] |= 1 << (lane % 64)
				continue next
			}
		}
		v := trace.FrameVariable{Variable: trace.Variable{Kind: trace.KindLocal, Value: trace.Value{Name: name, Type: "int", Text: text, HasText: true, Status: trace.ValueOK}}}
		v.Lanes = make(trace.LaneSet, words)
		v.Lanes[lane/64] |= 1 << (lane % 64)
		list = append(list, v)
	}
	return list
}

// numbered are the texts of lanes, from some lane on.
func numbered(from, to int, text func(lane int) string) (texts []string) {
	texts = make([]string, 64)
	for lane := from; lane < to; lane++ {
		texts[lane] = text(lane)
	}
	return texts
}

func localsText(t *testing.T, list []trace.FrameVariable, all trace.LaneSet) string {
	t.Helper()
	s := waveStack("w")
	f := &s.Frames[0]
	f.Symbols = f.Symbols[1:]
	f.Details.Lanes = []trace.LaneGroup{{Lanes: all, State: trace.LaneActive, PC: f.PC, HasPC: true}}
	f.Details.Locals = [][]trace.FrameVariable{list}
	out := stackText(t, reportOf(s), TextOptions{})
	var lines []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, localsIndent) {
			lines = append(lines, strings.TrimPrefix(line, localsIndent))
		}
	}
	return strings.Join(lines, "")
}

// TestTextOfLanesValues is about 64 lanes: values that all of them have, a few, many.
func TestTextOfLanesValues(t *testing.T) {
	all := trace.LaneSet{^uint64(0)}
	for _, c := range []struct {
		name, want string
		list       []trace.FrameVariable
	}{
		{"one", "n = 5\n", laneVariables("n", numbered(0, 64, func(int) string { return "5" })...)},
		{"of some", "n lanes 8-63 = 5\n", laneVariables("n", numbered(8, 64, func(int) string { return "5" })...)},
		{"two", "w lanes 0-31 = 7\nw lanes 32-63 = 9\n", laneVariables("w", numbered(0, 64, func(lane int) string { return []string{"7", "9"}[lane/32] })...)},
		{"steps", "id lanes 0-63 = 0 to 63\n", laneVariables("id", numbered(0, 64, func(lane int) string { return fmt.Sprint(lane) })...)},
		{"steps down", "id lanes 0-63 = 0 to -126, -2 apart\n", laneVariables("id", numbered(0, 64, func(lane int) string { return fmt.Sprint(-2 * lane) })...)},
		{"addresses", "p lanes 16-31 = 0x7f00400 to 0x7f007c0, 0x40 apart\n",
			laneVariables("p", numbered(16, 32, func(lane int) string { return fmt.Sprintf("%#x", 0x7f00000+64*lane) })...)},
		{"many", `sum lanes 20-31 =  400  441  484  529  576  625  676  729  784  841  900  961
    lanes 32-47 = 1024 1089 1156 1225 1296 1369 1444 1521 1600 1681 1764 1849 1936 2025 2116 2209
    lanes 48-63 = 2304 2401 2500 2601 2704 2809 2916 3025 3136 3249 3364 3481 3600 3721 3844 3969
`, laneVariables("sum", numbered(20, 64, func(lane int) string { return fmt.Sprint(lane * lane) })...)},
		{"floats", "x lanes 0-11 =  0.1  1.1  2.1  3.1  4.1  5.1  6.1  7.1  8.1  9.1 10.1 11.1\n", laneVariables("x", numbered(0, 12, func(lane int) string { return fmt.Sprintf("%d.1", lane) })...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, localsText(t, c.list, all)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	two := append(laneVariables("x", "1", "2"), laneVariables("x", "3", "4")...)
	if diff := cmp.Diff("x lanes 0 = 1\nx lanes 1 = 2\nx lanes 0 = 3\nx lanes 1 = 4\n", localsText(t, two, trace.LaneSet{3})); diff != "" {
		t.Errorf("two variables of one name (-want +got):\n%s", diff)
	}
}

// waitingStack is that of a wave, with variables of the lanes that execute and of one that
// waits in an inlined call.
func waitingStack(id string, thread uint64) *trace.Stack {
	s := waveStack(id)
	d := s.Frames[0].Details
	d.Locals = [][]trace.FrameVariable{nil, laneVariables("w", "27")}
	d.Locals[1][0].Place = locexpr.RegisterLocation(3, locexpr.Scope{Thread: thread})
	d.Lanes[1].Locals = [][]trace.FrameVariable{laneVariables("wear", "", "18"), laneVariables("w", "", "18")}
	return s
}

func TestVariablesOfLanesThatWait(t *testing.T) {
	const want = `     lanes 0 active
     lanes 1 inactive at 0x7f0016c4 repair grade.cl:11:2, in grade grade.cl:23:3
     lanes 2 inactive
     lanes 3 not active on entry
        w = 27
     lanes 1 have in repair
        wear = 18
     lanes 1 have in grade
        w = 18
`
	if text := stackText(t, reportOf(waitingStack("w", 1)), TextOptions{}); !strings.Contains(text, want) {
		t.Errorf("expected\n%s in\n%s", want, text)
	}
	// Waves are equal though each has variables in registers of its own.
	if text := stackText(t, reportOf(waitingStack("w", 1), waitingStack("v", 2)), TextOptions{}); !strings.HasPrefix(text, "2 threads: w v\n") {
		t.Errorf("expected one stack of two waves:\n%s", text)
	}
	other := waitingStack("v", 2)
	other.Frames[0].Details.Lanes[1].Locals[0][0].Text = "19"
	if text := stackText(t, reportOf(waitingStack("w", 1), other), TextOptions{}); strings.HasPrefix(text, "2 threads") {
		t.Errorf("expected two stacks:\n%s", text)
	}
}
