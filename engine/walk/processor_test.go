// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// threadsOnly is a target of threads.
type threadsOnly struct {
	target.Target
	threads []*trace.Thread
}

func (t threadsOnly) Threads() []*trace.Thread { return t.threads }

func TestProcessorOfAModule(t *testing.T) {
	for _, c := range []struct {
		name    string
		module  string
		threads [][2]string // architecture and processor
		want    string
	}{
		{"the target says it of the module", "b", [][2]string{{"gpu", "a"}}, "b"},
		{"all threads are of one", "", [][2]string{{"cpu", "x"}, {"gpu", "a"}, {"gpu", "a"}}, "a"},
		{"threads are of several", "", [][2]string{{"gpu", "a"}, {"gpu", "b"}}, ""},
		{"of one thread it is not known", "", [][2]string{{"gpu", "a"}, {"gpu", ""}}, ""},
		{"no thread is of the architecture", "", [][2]string{{"cpu", "x"}}, ""},
	} {
		var state threadsOnly
		for _, s := range c.threads {
			state.threads = append(state.threads, &trace.Thread{Arch: s[0], Processor: s[1]})
		}
		p := &Process{state: state, list: target.ListThreads(state.threads)}
		if got := cmp.Or(c.module, p.processorOf(&target.Module{Module: trace.Module{Arch: "gpu", Processor: c.module}})); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
