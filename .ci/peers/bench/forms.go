// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/.ci/peers/waves"
)

// launchedFrames is about how many frames a wave has whose launcher is deep in calls.
const launchedFrames = 303

// forms are stacks as JSON and as a page beside the same stacks as text: of many waves, and of one
// thread.
func forms(b *bench) (list []*contest, err error) {
	for _, n := range b.sizes(10_000, 100_000, 1_000_000) {
		path := filepath.Join(b.dir, fmt.Sprintf("frames-%d.snapshot", n))
		if err := waves.Write(path, "deep", n/launchedFrames); err != nil {
			return nil, err
		}
		list = append(list, besideText(fmt.Sprintf("%d frames", n), n, []string{b.unwindd, "stack", "--no-fold", path})...)
	}
	program, err := b.compile("gcc", "bench/testdata/deep.c", "-O1")
	if err != nil {
		return nil, err
	}
	for _, n := range b.sizes(10_000, 100_000, 1_000_000) {
		core, err := b.core(fmt.Sprintf("forms-%d", n), "sh", "-c", `ulimit -s unlimited; exec "$0" "$1"`, program, strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		list = append(list, besideText(fmt.Sprintf("one thread, %d frames", n), n, []string{b.unwindd, "stack", "--no-fold", "--max-frames", "0", "--exe", program, core})...)
	}
	return list, nil
}

// besideText are other forms of the stacks that a command line writes as text.
func besideText(input string, size int, text []string) (list []*contest) {
	for _, form := range []string{"json", "html"} {
		list = append(list, &contest{
			input: input + ", " + form, size: float64(size),
			ours:   entry{tool: "unwindd", argv: append(slices.Clone(text), "--format", form)},
			theirs: []entry{{tool: "unwindd, as text", argv: text}},
			goals:  []goal{{figure: processors, tool: "unwindd, as text", most: 2}},
		})
	}
	return list
}
