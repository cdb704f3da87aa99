// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/unwindd/unwindd/.ci/peers/waves"
)

// launchedFrames is about how many frames a wave has whose launcher is deep in calls.
const launchedFrames = 303

// forms are stacks as JSON and as a page beside the same stacks as text.
func forms(b *bench) (list []*contest, err error) {
	for _, n := range b.sizes(10_000, 100_000, 1_000_000) {
		path := filepath.Join(b.dir, fmt.Sprintf("frames-%d.snapshot", n))
		if err := waves.Write(path, "deep", n/launchedFrames); err != nil {
			return nil, err
		}
		text := []string{b.unwindd, "stack", "--no-fold", path}
		for _, form := range []string{"json", "html"} {
			list = append(list, &contest{
				input: fmt.Sprintf("%d frames, %s", n, form), size: float64(n),
				ours:   entry{tool: "unwindd", argv: append(slices.Clone(text), "--format", form)},
				theirs: []entry{{tool: "unwindd, as text", argv: text}},
				goals:  []goal{{figure: processors, tool: "unwindd, as text", most: 2}},
			})
		}
	}
	return list, nil
}
