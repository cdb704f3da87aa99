// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// pathsValue is the value of --root and --perf-map: paths by process ID.
type pathsValue struct {
	paths map[int]string
	kind  string // DIR or FILE
	what  string // the path to a process
}

// rootsValue is the value of --root.
func rootsValue(roots map[int]string) pathsValue { return pathsValue{roots, "DIR", "root"} }

// mapsValue is the value of --perf-map.
func mapsValue(maps map[int]string) pathsValue { return pathsValue{maps, "FILE", "map"} }

// Type is the syntax of the value.
func (p pathsValue) Type() string { return "PID=" + p.kind }

func (p pathsValue) String() string {
	return strings.Join(p.GetSlice(), ",")
}

// Append adds a path, as Set does.
func (p pathsValue) Append(text string) error { return p.Set(text) }

// Replace sets the paths.
func (p pathsValue) Replace(texts []string) error {
	clear(p.paths)
	for _, text := range texts {
		if err := p.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice returns the paths in the syntax of the flag.
func (p pathsValue) GetSlice() (texts []string) {
	for _, pid := range slices.Sorted(maps.Keys(p.paths)) {
		texts = append(texts, fmt.Sprintf("%d=%s", pid, p.paths[pid]))
	}
	return texts
}

// nouns are the words for a kind of path in messages.
var nouns = map[string]string{"DIR": "a directory", "FILE": "a file"}

// Set adds a path.
func (p pathsValue) Set(text string) error {
	number, name, ok := strings.Cut(text, "=")
	pid, err := strconv.ParseUint(number, 10, 31)
	if !ok || err != nil || pid == 0 || name == "" {
		return fmt.Errorf("expected the number of a process, =, and %s", nouns[p.kind])
	}
	if before, isThere := p.paths[int(pid)]; isThere && before != name {
		return fmt.Errorf("process %d has the %s %s already", pid, p.what, before)
	}
	p.paths[int(pid)] = name
	return nil
}
