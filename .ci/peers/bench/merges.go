// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/unwindd/unwindd/.ci/peers/waves"
)

// merged is how many targets are compared.
const merged = 10

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
		list = append(list, &contest{input: fmt.Sprintf("%d threads", n), size: float64(n), ours: entry{tool: "unwindd", argv: argv}})
	}
	return list, nil
}
