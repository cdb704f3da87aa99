// SPDX-License-Identifier: Apache-2.0

package wavecheck

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/internal/gcn"
)

// Table gathers the counts of parallel tests by processor and level.
type Table struct {
	mutex  sync.Mutex
	counts map[string]*Counts
}

// Add adds the counts of a judge, and reports its problems as errors.
func (table *Table) Add(t testing.TB, p gcn.Processor, level string, j *Judge) {
	t.Helper()
	for _, problem := range j.Problems {
		t.Error(problem)
	}
	table.mutex.Lock()
	defer table.mutex.Unlock()
	if table.counts == nil {
		table.counts = map[string]*Counts{}
	}
	for _, key := range []string{p.Name + " " + level, "all"} {
		if table.counts[key] == nil {
			table.counts[key] = &Counts{}
		}
		table.counts[key].add(&j.Counts)
	}
}

// Judge prints the table and the causes of unknown values, and fails where more
// than 1% of return addresses or 5% of frames' registers are not.
func (table *Table) Judge(t testing.TB) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(table.counts)) {
		t.Logf("%-12s %s", key, table.counts[key])
	}
	all := table.counts["all"]
	if all == nil {
		return // no test was chosen
	}
	for _, cause := range slices.Sorted(maps.Keys(all.causes)) {
		t.Logf("%9d × %s", all.causes[cause], cause)
	}
	if all.Unknown*100 > all.Frames {
		t.Errorf("%d of %d return addresses are not known, expected at most 1%%", all.Unknown, all.Frames)
	}
	if all.unknownPairs*20 > all.pairs {
		t.Errorf("registers of %d of %d frames are not known, expected at most 5%%", all.unknownPairs, all.pairs)
	}
}

// ExecuteAll executes all kernels of an object, and walks them. after is called
// at the end of each.
func (j *Judge) ExecuteAll(seed uint64, items int, atEnd func() error) error {
	for i, launch := range gcn.Launches(j.Object, seed, items) {
		if err := j.execute(j.Object.Kernels[i], launch, gcn.MaxSteps); err != nil {
			return err
		}
		if err := atEnd(); err != nil {
			return err
		}
	}
	return nil
}
