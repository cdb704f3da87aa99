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

// ReadTrees reads the call trees of all threads as stacks with their numbers of samples. Frames have the functions
// that the text names, and the images of their process by which files with better names are found.
func ReadTrees(path string, data []byte) (*stacktree.File, error) {
	data = bytes.TrimLeft(pasted(data), " \t\r\n")
	if bytes.HasPrefix(data, []byte("{")) {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	r, err := readTreesOf(data, allProcesses)
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
	if r.isMicro {
		b.Problem("%s", microstackshots)
	}
	known := map[call]uint32{}
	for i := range r.Threads {
		t := &r.Threads[i]
		thread := b.Thread(int(max(t.pid, -1)), -1, cmp.Or(t.Name, t.process)) //nolint:gosec // 32 bits
		t.eachStack(b, r.Report, known, func(stack uint32, weight uint64) {
			b.Samples = append(b.Samples, trace.ProfileSample{Event: event, Thread: thread, Stop: stop, Weight: weight, Stack: stack})
		})
	}
	return b.Finish(), nil
}

// call tells frames of a profile apart.
type call struct {
	Frame
	owner int32 // as in Call
}

// eachStack yields the stacks of a tree with the samples that end in them.
func (t *Thread) eachStack(b *stacktree.Builder, r *Report, known map[call]uint32, yield func(stack uint32, weight uint64)) {
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
		c.Exact = i+1 == len(t.Tree) || t.Tree[i+1].Depth <= c.Depth
		path = append(path, open{stack: b.Push(caller, c.frameOf(b, r, known)), weight: c.Weight})
	}
	leave(0)
}

// frameOf returns the frame of a call, one for each address in an image.
func (c *Call) frameOf(b *stacktree.Builder, r *Report, known map[call]uint32) uint32 {
	key := call{c.Frame, c.owner}
	if index, ok := known[key]; ok {
		return index
	}
	f := stacktree.Frame{PID: -1, Dispatched: -1, Object: c.Object, Kernel: c.IsKernel, Exact: c.Exact}
	switch {
	case c.IsKernel:
	case c.owner >= 0:
		image := &r.Images[c.owner]
		f.Object = cmp.Or(image.Path, image.Name)
		f.Address, f.HasAddress, f.Place, f.BuildID = c.Address-image.Base, true, stacktree.PlaceImage, image.UUID
	case c.base != 0:
		f.Address, f.HasAddress, f.Place = c.Address-c.base, true, stacktree.PlaceImage
	}
	if c.Symbol != "" {
		f.Symbols = []trace.Symbol{c.symbol(false)}
	}
	index := b.Frame(f)
	known[key] = index
	return index
}
