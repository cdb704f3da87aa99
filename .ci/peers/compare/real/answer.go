// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// planted has the targets that a comparison has to find first.
type planted struct {
	label, values string // the targets, by a label; values "": only how many
	count         int    // of targets, where values is ""
	last, here    string // the functions at which they part from the others; last "": somewhere outside of here
	fact          string // with which a fact begins; "": any
}

// answer has the findings of a comparison.
type answer struct {
	planted, found string
	classes        int
	compared       *cost.Cost
	collected      *collection // nil: nothing was
	said           document
}

// document is the JSON of a comparison, as far as it is looked at.
type document struct {
	Targets []struct {
		Path   string
		Labels map[string]string
	}
	Classes []class
	Tree    []struct {
		Parent   *int
		Function string
		Short    string `json:"short_name"`
	}
}

type class struct {
	Targets []int
	Labels  map[string]string
	Facts   []string
	Unread  string
	Threads []struct{ Node int }
	PartsAt *struct {
		Role       string
		Last, Here *int
	} `json:"parts_at"`
}

// writer keeps all that is written to it.
type writer []byte

func (b *writer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// compareProcesses collects processes and compares their snapshots.
func (w *work) compareProcesses(pids []int, p planted, options ...string) (*answer, error) {
	list := make([]string, len(pids))
	for i, pid := range pids {
		list[i] = strconv.Itoa(pid)
	}
	folder := filepath.Join(w.dir, "snapshots")
	var out writer
	took, err := w.measure(&out, "collect", "--pids", strings.Join(list, ","), "-o", folder, "--format", "json", "--repeat", strconv.Itoa(max(w.moments, 1)), "--interval", "200ms")
	if err != nil {
		return nil, err
	}
	c := collection{wall: took.Wall, cpu: took.CPU}
	if err := json.Unmarshal(out, &c); err != nil {
		return nil, err
	}
	if len(c.Snapshots) != len(pids)*max(w.moments, 1) {
		return nil, fmt.Errorf("unwindd collect wrote %d snapshots of %d processes:\n%s", len(c.Snapshots), len(pids), out)
	}
	if err := unstopped(pids); err != nil {
		return nil, err
	}
	a, err := w.compare(append([]string{folder}, options...), p)
	if a != nil {
		a.collected = &c
	}
	return a, err
}

// measure runs a command of unwindd.
func (w *work) measure(out io.Writer, args ...string) (*cost.Cost, error) {
	var said writer
	took, err := (&cost.Command{Argv: append([]string{w.unwindd}, args...), Said: &said}).Of(out)
	if err != nil {
		return nil, fmt.Errorf("unwindd %s: %w\n%s", args[0], err, said)
	}
	return took, nil
}

// compare compares targets, and holds the answer against the planted ones.
func (w *work) compare(targets []string, p planted) (*answer, error) {
	a := &answer{}
	var out writer
	var err error
	if a.compared, err = w.measure(&out, append([]string{"compare", "--format", "json"}, targets...)...); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "comparison.json"), out, 0o600); err != nil {
		return nil, err
	}
	if w.verbose {
		text, err := exec.Command(w.unwindd, append([]string{"compare"}, targets...)...).CombinedOutput()
		fmt.Printf("%s: %v\n%s\n", w.name, err, text)
	}
	if err := json.Unmarshal(out, &a.said); err != nil {
		return nil, err
	}
	a.classes = len(a.said.Classes)
	a.planted = strings.TrimSpace(fmt.Sprintf("%s %s %s in %s", cmp.Or(p.label, "thread"), cmp.Or(p.values, fmt.Sprintf("(%d)", p.count)), p.fact, p.here))
	if a.classes == 0 {
		return a, fmt.Errorf("the comparison has no classes")
	}
	first := &a.said.Classes[0]
	last, here := a.parting(first)
	a.found = fmt.Sprintf("%d: %s %s, %s > %s", len(first.Targets), p.label, first.Labels[p.label], cmp.Or(last, "?"), cmp.Or(here, "?"))
	switch {
	case first.Unread != "":
		return a, fmt.Errorf("the first class could not be read: %s", first.Unread)
	case p.values != "" && first.Labels[p.label] != p.values:
		return a, fmt.Errorf("the first class has %s %q, expected %q", p.label, first.Labels[p.label], p.values)
	case p.values == "" && len(first.Targets) != p.count:
		return a, fmt.Errorf("the first class has %d targets, expected %d", len(first.Targets), p.count)
	case p.last != "" && (last != p.last || here != p.here):
		return a, fmt.Errorf("the first class parts from the rest at %s, which goes on to %s, expected %s and %s", last, here, p.last, p.here)
	case !a.isIn(first, p.here):
		return a, fmt.Errorf("no stack of the first class has %s", p.here)
	case !slices.ContainsFunc(first.Facts, func(f string) bool { return strings.HasPrefix(f, p.fact) }) && p.fact != "":
		return a, fmt.Errorf("the facts of the first class are %q, expected one that begins with %q", first.Facts, p.fact)
	}
	return a, nil
}

// parting names the functions at which a class parts from the rest.
func (a *answer) parting(c *class) (last, here string) {
	if c.PartsAt == nil {
		return "", ""
	}
	return a.function(c.PartsAt.Last), a.function(c.PartsAt.Here)
}

// function is the name of a node of the tree in short; "": there is none.
func (a *answer) function(node *int) string {
	if node == nil || *node < 0 || *node >= len(a.said.Tree) {
		return ""
	}
	n := &a.said.Tree[*node]
	return strings.TrimPrefix(cmp.Or(n.Short, n.Function), "(anonymous namespace)::")
}

// isIn reports whether a stack of a class has a function.
func (a *answer) isIn(c *class, function string) bool {
	for _, t := range c.Threads {
		for node := &t.Node; node != nil && *node >= 0 && *node < len(a.said.Tree); node = a.said.Tree[*node].Parent {
			if strings.Contains(a.function(node), function) {
				return true
			}
		}
	}
	return false
}

// partition holds the classes against groups of values of a label, each value a number.
func (a *answer) partition(label string, groups [][]int) error {
	var ours, theirs []string
	for _, c := range a.said.Classes {
		var values []int
		for _, t := range c.Targets {
			n, err := strconv.Atoi(a.said.Targets[t].Labels[label])
			if err != nil {
				return fmt.Errorf("target %s has no number as %s: %v", a.said.Targets[t].Path, label, a.said.Targets[t].Labels)
			}
			values = append(values, n)
		}
		slices.Sort(values)
		ours = append(ours, fmt.Sprint(values))
	}
	for _, g := range groups {
		theirs = append(theirs, fmt.Sprint(slices.Sorted(slices.Values(g))))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	if !slices.Equal(ours, theirs) {
		return fmt.Errorf("the classes by %s are %v, expected %v", label, ours, theirs)
	}
	return nil
}

// collection is the report of `unwindd collect`.
type collection struct {
	wall    time.Duration
	cpu     time.Duration
	Moments []struct {
		Spread  float64 `json:"spread_seconds"`
		Stopped float64 `json:"stopped_seconds"`
	}
	Snapshots []struct{ Bytes int64 }
}

func (c *collection) String() string {
	if c == nil {
		return "-\t-\t-\t-\t-"
	}
	var most, spread, stopped float64
	for _, s := range c.Snapshots {
		most = max(most, float64(s.Bytes))
	}
	for _, m := range c.Moments {
		spread, stopped = max(spread, m.Spread), max(stopped, m.Stopped)
	}
	return fmt.Sprintf("%v\t%v\t%.1f ms\t%.1f ms\t%.0f KB", c.wall.Round(10*time.Millisecond), c.cpu.Round(10*time.Millisecond), spread*1e3, stopped*1e3, most/1024)
}
