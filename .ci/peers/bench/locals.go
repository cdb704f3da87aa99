// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/waves"
)

// withoutValues is unwindd with the same question, without variables.
const withoutValues = "unwindd, without values"

// locals are stacks of cores of processes with many threads, with the variables of all frames.
// gdb's are compared value by value in .ci/peers/values.
func locals(b *bench) (list []*contest, err error) {
	program, err := b.compile("g++", threadsSource, threadsFlags...)
	if err != nil {
		return nil, err
	}
	for _, n := range b.sizes(20, 200, 1000) {
		core, err := b.core(fmt.Sprintf("locals-%d", n), program, strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		without := []string{b.unwindd, "stack", "--no-fold", "--max-frames", "0", "--exe", program, core}
		c := &contest{input: fmt.Sprintf("%d threads", n+1), size: float64(n + 1)}
		c.ours = entry{tool: "unwindd", argv: append(slices.Clone(without), "--locals")}
		gdb := append([]string{"gdb"}, gdbFlags...)
		gdb[len(gdb)-1] += " full"
		c.theirs = []entry{{tool: withoutValues, argv: without}, {tool: "gdb", argv: append(gdb, program, core)}}
		c.goals = []goal{{figure: processors, tool: withoutValues, most: 2}}
		list = append(list, c)
	}
	return list, nil
}

// waveLocals are snapshots of waves whose variables differ in their lanes. No other tool reads
// them.
func waveLocals(b *bench) (list []*contest, err error) {
	for _, kind := range []string{"places", "vectors"} {
		for _, n := range b.sizes(100, 1_000, 10_000) {
			path := filepath.Join(b.dir, fmt.Sprintf("%s-%d.snapshot", kind, n))
			if err := waves.Write(path, kind, n); err != nil {
				return nil, err
			}
			c := &contest{input: fmt.Sprintf("%d waves, %s", n, waveKinds[kind])}
			if kind == "vectors" {
				c.size = float64(n) // growth is of one kind
			}
			c.ours = entry{tool: "unwindd", argv: []string{b.unwindd, "stack", "--locals", path}}
			c.theirs = []entry{{tool: withoutValues, argv: []string{b.unwindd, "stack", path}}}
			if n == 10_000 {
				c.goals = []goal{{figure: processors, most: float64(time.Second)}, {figure: byClock, most: float64(time.Second)}}
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// waveKinds say how waves of a kind differ.
var waveKinds = map[string]string{"places": "in one kernel", "vectors": "with vector registers of their own"}
