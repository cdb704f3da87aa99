// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// stackOf makes frames of names, outermost first: "main a:3" has a at line 3.
func stackOf(names string) (list []trace.ComparedFrame) {
	for name := range strings.FieldsSeq(names) {
		f := trace.ComparedFrame{Function: name, Module: "program"}
		if function, line, ok := strings.Cut(name, ":"); ok {
			f.Function, f.File = function, "a.c"
			fmt.Sscan(line, &f.Line)
		}
		if function, module, ok := strings.Cut(f.Function, "@"); ok {
			f.Function, f.Module = function, module
		}
		list = append(list, f)
	}
	return list
}

// targetOf makes a target of its rank and of threads: "1 main: main a".
func targetOf(rank int, threads ...string) *Target {
	t := &Target{Path: fmt.Sprintf("job/rank%d.snap", rank), Labels: map[string]string{"rank": fmt.Sprint(rank)}}
	for _, text := range threads {
		head, frames, _ := strings.Cut(text, ": ")
		id, role, _ := strings.Cut(head, " ")
		role, isCrashed := strings.CutSuffix(role, "!")
		t.Threads = append(t.Threads, Thread{ID: id, Role: role, Crashed: isCrashed, Frames: stackOf(frames)})
	}
	return t
}

func resultOf(list ...*Target) *trace.Comparison {
	p := New(Options{})
	for _, t := range list {
		p.Add(t)
	}
	return p.Result()
}

func encoded(tb testing.TB, c *trace.Comparison) []byte {
	tb.Helper()
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func reread(tb testing.TB, p *Part) *Part {
	tb.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		tb.Fatal(err)
	}
	q, err := Read(&b)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// The class of the one rank that stands elsewhere is the first.
func TestTheRankThatStandsElsewhereIsFirst(t *testing.T) {
	var list []*Target
	for rank := range 100 {
		where := "main train barrier wait"
		if rank == 37 {
			where = "main train load sleep"
		}
		list = append(list, targetOf(rank, "1 main: "+where, "2 worker: start loop poll", "3 worker: start loop poll"))
	}
	c := resultOf(list...)
	if len(c.Classes) != 2 || c.Classes[0].Labels["rank"] != "37" || c.Classes[1].Labels["rank"] != "0-36,38-99" {
		t.Fatalf("%s", encoded(t, c))
	}
	p := c.Classes[0].PartsAt
	name := func(n int) string { return c.Functions[n].Frame.Function }
	if p == nil || p.Role != "main" || name(p.Node) != "sleep" || name(p.Last) != "train" || name(p.Here) != "load" ||
		len(p.There) != 1 || name(p.There[0].Node) != "barrier" || p.There[0].Targets != 99 || p.There[0].Threads != 99 || p.More != 0 {
		t.Errorf("%+v", p)
	}
	if c.Classes[1].PartsAt != nil {
		t.Errorf("the largest class parts at %+v", c.Classes[1].PartsAt)
	}
}
