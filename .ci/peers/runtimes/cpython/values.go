// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
)

// reprs has the words of the process about its variables.
type reprs struct {
	Reprs      map[string]string
	Attributes map[string]map[string]string
}

// valueTally counts the values of an interpreter by one way to look at the process.
type valueTally struct{ values, equal, summarised, wrong, missing int }

// summarised are values whose text is not that of repr(), on purpose: what their class prints needs its code.
var summarised = map[string]string{
	"a1": "arrays are shape and type", "a2": "arrays are shape and type", "y2": "functools.partial prints what it has",
	"n1": "a derived class is named", "n2": "a derived class is named", "unset": "it has no value",
}

// bounded are values of which a snapshot has the first 200 parts.
var bounded = map[string]string{"d4": "it has 300 parts", "d5": "it has 300 parts"}

// valuesAll compares the text of variables with every interpreter.
func (w *work) valuesAll() error {
	out := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tvalues\tequal\tsummarised\twrong\tmissing")
	for _, i := range w.interpreters {
		tallies, err := w.valuesOf(i)
		if err != nil {
			w.fail("%s: %v", i.name, err)
			continue
		}
		for _, way := range slices.Sorted(maps.Keys(tallies)) {
			t := tallies[way]
			fmt.Fprintf(out, "%s %s\t%d\t%d\t%d\t%d\t%d\n", i.name, way, t.values, t.equal, t.summarised, t.wrong, t.missing)
		}
	}
	out.Flush()
	slices.Sort(w.failures)
	for _, f := range w.failures {
		fmt.Println("failed:", f)
	}
	if len(w.failures) > 0 {
		return fmt.Errorf("%d failures", len(w.failures))
	}
	return nil
}

// valuesOf has an interpreter execute the program, and compares its variables in the core, the living process and a snapshot.
func (w *work) valuesOf(i *interpreter) (map[string]*valueTally, error) {
	dir, err := w.folder(i, "values")
	if err != nil {
		return nil, err
	}
	program := "numpy_values"
	argv, env, reason := w.command(i, program, dir)
	if reason != "" {
		program = "values"
		argv, env, _ = w.command(i, program, dir)
	}
	argv[len(argv)-1] = filepath.Join(w.data, "../../../../../plugins/cpython/testdata/values.py")
	env = append(env, "VALUES="+filepath.Join(dir, "reprs"))
	if reason == "" {
		env = append(env, "NUMPY=1")
	}
	p, err := start(argv, env, dir)
	if err != nil {
		return nil, err
	}
	tallies := map[string]*valueTally{}
	snapshot := filepath.Join(dir, "process.snapshot")
	var living []byte
	if p.pid != 0 {
		living, err = w.withLocals(strconv.Itoa(p.pid))
		if err == nil {
			_, err = output(w.unwindd, "snapshot", strconv.Itoa(p.pid), "-o", snapshot)
		}
	}
	p.abort()
	if err != nil {
		return nil, err
	}
	core, err := p.core()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "reprs"))
	if err != nil {
		return nil, err
	}
	var want reprs
	if err := json.Unmarshal(text, &want); err != nil {
		return nil, err
	}
	for _, way := range []string{"core", "snapshot"} {
		path := map[string]string{"core": core, "snapshot": snapshot}[way]
		out, err := w.withLocals(path)
		if err != nil {
			return nil, err
		}
		tallies[way] = w.compareValues(i, way, &want, out)
	}
	tallies["living"] = w.compareValues(i, "living", &want, living)
	return tallies, nil
}

// withLocals has unwindd find the variables of a target.
func (w *work) withLocals(target string) ([]byte, error) {
	return output(w.unwindd, "stack", target, "--format", "json", "--no-fold", "--locals", "--depth", "20", "--elements", "1000")
}

var addresses = regexp.MustCompile(`0x[0-9a-f]+`)

// compareValues compares the variables of the function.
func (w *work) compareValues(i *interpreter, view string, want *reprs, out []byte) *valueTally {
	t := &valueTally{}
	if len(out) == 0 {
		return t
	}
	var d document
	if err := json.Unmarshal(out, &d); err != nil {
		w.fail("%s %s: %v", i.name, view, err)
		return t
	}
	have := map[string]variable{}
	for _, thread := range d.Threads {
		for _, f := range thread.Frames {
			if last(f.Function) == "kept" {
				for _, v := range f.Locals {
					have[v.Name] = v
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.Reprs)) {
		w.compareValue(i, view, t, name, want.Reprs[name], have)
		children := map[string]variable{}
		for _, v := range have[name].Children {
			children[v.Name] = v
		}
		for _, child := range slices.Sorted(maps.Keys(want.Attributes[name])) {
			w.compareValue(i, view, t, child, want.Attributes[name][child], children)
		}
	}
	if v, isThere := have["unset"]; isThere && v.Status != "unset" {
		w.fail("%s %s: unset is %s %s", i.name, view, v.Status, v.Value)
	}
	return t
}

// compareValue compares one value.
func (w *work) compareValue(i *interpreter, view string, t *valueTally, name, want string, list map[string]variable) {
	t.values++
	v, isThere := list[name]
	reason := summarised[name]
	if view == "snapshot" {
		reason = cmp.Or(reason, bounded[name])
	}
	switch {
	case !isThere || v.Value == "" && v.Problem == "":
		t.missing++
		if *verbose || view == "core" {
			w.fail("%s %s: %s is missing (%s %s)", i.name, view, name, v.Status, v.Problem)
		}
	case v.Value == want, addresses.ReplaceAllString(v.Value, "0x") == addresses.ReplaceAllString(want, "0x"):
		t.equal++
	case reason != "":
		t.summarised++
		if *verbose {
			fmt.Printf("%s %s: %s: %s: %s\n", i.name, view, name, reason, v.Value)
		}
	default:
		t.wrong++
		w.fail("%s %s: %s: expected %.200s, got %.200s", i.name, view, name, want, cmp.Or(v.Value, v.Problem))
	}
}
