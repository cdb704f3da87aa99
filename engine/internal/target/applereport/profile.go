// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"bytes"
	"cmp"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// treeForm is the user's name of call trees.
const treeForm = "call trees of macOS"

// stopTree is why the stacks of a tree end.
var stopTree = trace.Stopped{Reason: trace.StopOutermost, Detail: "the tree has no call outside it"}

// ReadTrees reads the call trees of all threads as stacks with their numbers of samples. Functions are named as
// the report does.
func ReadTrees(path string, data []byte) (*stacktree.File, error) {
	data = bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(data, []byte("{")) {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	r, err := readTreesOf(data, true)
	if err != nil {
		return nil, err
	}
	b := stacktree.NewBuilder(path, treeForm)
	b.Arch = r.Arch
	for _, p := range r.Problems {
		b.Problem("%s", p)
	}
	event, _ := b.Event(trace.ProfileEvent{Name: "samples", Unit: "count"})
	stop := b.Stop(stopTree)
	known := map[Frame]uint32{}
	for i := range r.Threads {
		t := &r.Threads[i]
		thread := b.Thread(int(max(t.pid, -1)), -1, cmp.Or(t.Name, t.process)) //nolint:gosec // 32 bits
		t.eachStack(b, known, func(stack uint32, weight uint64) {
			b.Samples = append(b.Samples, trace.ProfileSample{Event: event, Thread: thread, Stop: stop, Weight: weight, Stack: stack})
		})
	}
	return b.Finish(), nil
}

// eachStack yields the stacks of a tree with the samples that end in them.
func (t *Thread) eachStack(b *stacktree.Builder, known map[Frame]uint32, yield func(stack uint32, weight uint64)) {
	type open struct {
		stack        uint32
		weight, into uint64
	}
	var path []open
	leave := func(depth int) {
		for len(path) > depth {
			last := path[len(path)-1]
			if path = path[:len(path)-1]; last.weight > last.into {
				yield(last.stack, last.weight-last.into)
			}
		}
	}
	for i := range t.Tree {
		c := &t.Tree[i]
		leave(c.Depth)
		caller := uint32(0)
		if n := len(path); n > 0 {
			caller = path[n-1].stack
			path[n-1].into = saturated(path[n-1].into, c.Weight)
		}
		path = append(path, open{stack: b.Push(caller, c.frameOf(b, known)), weight: c.Weight})
	}
	leave(0)
}

// frameOf returns the frame of a call, one for each address.
func (c *Call) frameOf(b *stacktree.Builder, known map[Frame]uint32) uint32 {
	if index, ok := known[c.Frame]; ok {
		return index
	}
	f := stacktree.Frame{PID: -1, Dispatched: -1, Object: c.Object, Kernel: c.IsKernel}
	if c.base != 0 && c.Symbol == "" {
		f.Address, f.HasAddress, f.Place = c.Address-c.base, true, stacktree.PlaceObject
	}
	if c.Symbol != "" {
		f.Symbols = []trace.Symbol{c.symbol(false)}
	}
	index := b.Frame(f)
	known[c.Frame] = index
	return index
}
