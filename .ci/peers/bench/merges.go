// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/unwindd/unwindd/.ci/peers/waves"
)

// merged is how many targets are compared.
const merged = 10

// mostGrowth is how much a figure for one thread may grow with their number.
const mostGrowth = 1.1

// merges are comparisons of the stacks of many threads, which no other tool makes.
func merges(b *bench) (list []*contest, err error) {
	for _, n := range b.sizes(10_000, 100_000, 1_000_000) {
		argv := []string{b.unwindd, "compare"}
		for i := range merged {
			path := filepath.Join(b.dir, fmt.Sprintf("merge-%d-%d.snapshot", n, i))
			if err := waves.Write(path, "places", n/merged); err != nil {
				return nil, err
			}
			argv = append(argv, path)
		}
		row := &contest{input: fmt.Sprintf("%d threads", n), size: float64(n), ours: entry{tool: "unwindd", argv: argv}}
		if len(list) > 0 { // it grows with the threads
			row.goals = []goal{{figure: processors, smaller: list[0].input, most: mostGrowth}}
		}
		list = append(list, row)
	}
	deep, err := deepMerges(b)
	return append(list, deep...), err
}

// deepMerges are comparisons of waves whose launcher is deep in calls. Memory is of the distinct stacks.
func deepMerges(b *bench) (list []*contest, err error) {
	for _, n := range b.sizes(1_000, 4_000, 20_000) {
		path := filepath.Join(b.dir, fmt.Sprintf("merge-deep-%d.snapshot", n))
		if err := waves.Write(path, "deep", n); err != nil {
			return nil, err
		}
		row := &contest{input: fmt.Sprintf("%d waves of %d frames", n, launchedFrames), size: float64(n), ours: entry{tool: "unwindd", argv: []string{b.unwindd, "compare", path, path}}}
		if len(list) > 0 {
			row.goals = []goal{{figure: processors, smaller: list[0].input, most: mostGrowth}, {figure: memory, smaller: list[0].input, most: mostGrowth}}
		}
		list = append(list, row)
	}
	return list, nil
}
