// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// tally is how the runs of a kind ended.
type tally struct {
	Runs, Failed int
	Statuses     map[int]int
	Longest      time.Duration // of processors
	LongestRun   string
	Largest      int64 // bytes
	LargestRun   string
}

// table has the tallies of all kinds.
type table map[string]*tally

// loadTable reads what save wrote; an empty path, or one without a file, is an empty table.
func loadTable(path string) (table, error) {
	t := table{}
	if path == "" {
		return t, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	return t, err
}

func (t table) save(path string) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

func (t table) add(r result) {
	k := t[r.kind]
	if k == nil {
		k = &tally{Statuses: map[int]int{}}
		t[r.kind] = k
	}
	k.Runs++
	k.Statuses[r.status]++
	if r.problem != "" {
		k.Failed++
	}
	if r.took > k.Longest {
		k.Longest, k.LongestRun = r.took, r.name
	}
	if r.memory > k.Largest {
		k.Largest, k.LargestRun = r.memory, r.name
	}
}

// print writes a line for each kind, and one for all.
func (t table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "kind\truns\tdone\tno input (1)\tno architecture (3)\tfailed\tlongest, s\tlargest, MB\t")
	all := tally{Statuses: map[int]int{}}
	line := func(name string, k *tally) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.2f\t%d\t\n", name, k.Runs, k.Statuses[0], k.Statuses[1], k.Statuses[3], k.Failed, k.Longest.Seconds(), k.Largest>>20)
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		k := t[name]
		line(name, k)
		all.Runs += k.Runs
		all.Failed += k.Failed
		for status, n := range k.Statuses {
			all.Statuses[status] += n
		}
		if k.Longest > all.Longest {
			all.Longest, all.LongestRun = k.Longest, k.LongestRun
		}
		if k.Largest > all.Largest {
			all.Largest, all.LargestRun = k.Largest, k.LargestRun
		}
	}
	line("all", &all)
	w.Flush()
	fmt.Fprintf(out, "longest: %s\nlargest: %s\n", all.LongestRun, all.LargestRun)
}
