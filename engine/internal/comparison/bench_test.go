// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// large makes targets that resemble the ranks of a job: one in 1,000 differs. In each target, every fourth thread stands
// alone.
type large struct {
	threads, frames int
	stacks          [][]trace.ComparedFrame
	modules         []trace.ModuleBuild
	start           time.Time
	// isDifferent makes each stack another one.
	isDifferent bool
	target      Target
}

func newLarge(threads, frames int) *large {
	l := &large{threads: threads, frames: frames, start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for i := range threads + 1 {
		l.stacks = append(l.stacks, l.stack(i/4))
	}
	for i := range 200 {
		l.modules = append(l.modules, trace.ModuleBuild{Name: fmt.Sprintf("lib%d.so", i), BuildID: fmt.Sprintf("%040x", i)})
	}
	return l
}

// stack is a stack that has some frames in common with others.
func (l *large) stack(number int) (list []trace.ComparedFrame) {
	for depth := range l.frames {
		name := fmt.Sprintf("common_function_at_depth_%d", depth)
		if depth > l.frames/4 {
			name = fmt.Sprintf("function_%d_at_depth_%d", number, depth)
		}
		list = append(list, trace.ComparedFrame{Function: name, Module: "libtorch_cpu.so", File: "/usr/src/a/source.cc", Line: depth})
	}
	return list
}

// rank makes the target of a rank. It is valid until the next one is made.
func (l *large) rank(rank int) *Target {
	t := &l.target
	*t = Target{
		Path: fmt.Sprintf("/snapshots/node%d/rank%d.snap", rank/8, rank), Labels: map[string]string{"rank": fmt.Sprint(rank), "host": fmt.Sprint("node", rank/8)},
		Host: fmt.Sprint("node", rank/8), PID: int64(1000 + rank), Started: l.start, Taken: l.start.Add(time.Hour), Modules: l.modules,
		Threads: t.Threads[:0],
	}
	for i := range l.threads {
		stack := l.stacks[i]
		if i == 0 && rank%1000 == 13 {
			stack = l.stacks[l.threads]
		}
		if l.isDifferent {
			stack = l.stack(rank*l.threads + i)
		}
		role := "worker"
		if i == 0 {
			role = "main"
		}
		t.Threads = append(t.Threads, Thread{ID: fmt.Sprint(100000 + rank*l.threads + i), Role: role, Frames: stack})
	}
	return t
}

func (l *large) part(first, n int) *Part {
	p := New(Options{})
	for rank := range n {
		p.Add(l.rank(first + rank))
	}
	return p
}

// retained is how many bytes are in use by a value.
func retained[T any](value func() T) (T, uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := value()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return v, after.HeapAlloc - before.HeapAlloc
}

func BenchmarkAdd(b *testing.B) {
	l := newLarge(30, 20)
	p := l.part(0, 100)
	b.ReportAllocs()
	t := l.rank(5)
	for b.Loop() {
		p.Add(t)
	}
}

func benchmarkPart(b *testing.B, l *large, n int) {
	for b.Loop() {
		start := time.Now()
		p, size := retained(func() *Part { return l.part(0, n) })
		b.ReportMetric(time.Since(start).Seconds(), "add-s")
		q := l.part(n, n)
		start = time.Now()
		p.Merge(q)
		b.ReportMetric(time.Since(start).Seconds(), "merge-s")
		start = time.Now()
		c, result := retained(p.Result)
		b.ReportMetric(time.Since(start).Seconds(), "result-s")
		var out bytes.Buffer
		start = time.Now()
		if err := p.Write(&out); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "write-s")
		written := out.Len()
		start = time.Now()
		if _, err := Read(&out); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "read-s")
		b.ReportMetric(float64(size)/float64(n), "part-B/target")
		b.ReportMetric(float64(result)/float64(2*n), "result-B/target")
		b.ReportMetric(float64(written)/float64(2*n), "written-B/target")
		b.ReportMetric(float64(len(c.Classes)), "classes")
		b.ReportMetric(0, "ns/op")
	}
}

func BenchmarkTargets10000(b *testing.B)  { benchmarkPart(b, newLarge(30, 20), 10000) }
func BenchmarkTargets100000(b *testing.B) { benchmarkPart(b, newLarge(30, 20), 100000) }

func BenchmarkAllDifferent(b *testing.B) {
	l := newLarge(30, 20)
	l.isDifferent = true
	benchmarkPart(b, l, 2000)
}

// Recursions of a different depth in each target.
func BenchmarkDepths(b *testing.B) {
	for b.Loop() {
		p := New(Options{})
		frames := newLarge(1, 10000).stacks[0]
		for rank := range 5000 {
			p.Add(&Target{Path: fmt.Sprint(rank), Threads: []Thread{{ID: "1", Role: "main", Frames: frames[:5000+rank]}}})
		}
		start := time.Now()
		c, size := retained(p.Result)
		b.ReportMetric(time.Since(start).Seconds(), "result-s")
		b.ReportMetric(float64(size), "result-B")
		b.ReportMetric(float64(len(c.Classes)), "classes")
	}
}

func BenchmarkThreads10000(b *testing.B) {
	for b.Loop() {
		l := newLarge(10000, 20)
		t := l.rank(0)
		start := time.Now()
		p := New(Options{})
		p.Add(t)
		b.ReportMetric(time.Since(start).Seconds(), "add-s")
		start = time.Now()
		c := p.Result()
		b.ReportMetric(time.Since(start).Seconds(), "result-s")
		b.ReportMetric(float64(len(c.Classes)), "classes")
		b.ReportMetric(float64(len(c.Targets)), "targets")
	}
}
