// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/fleet"
)

// comparedInputs are the targets of a comparison, by how they are read.
type comparedInputs struct {
	paths     []string // of files
	files     []string // archives, and standard input
	processes []int
	ids       []string                     // of jobs of a fleet
	isOfQueue bool                         // all jobs of a fleet whose reports can be compared
	labels    map[string]map[string]string // by path
	leftOut   int                          // files in folders that are no targets
}

// total is how many targets are read, as far as that is known, living ones at a number of moments.
func (all *comparedInputs) total(moments int) int {
	return len(all.paths) + len(all.files) + len(all.processes)*moments + len(all.ids)
}

// isOne reports whether there is one target whose threads are compared with each other: an archive, a part
// or standard input may have many.
func (all *comparedInputs) isOne() bool {
	if all.isOfQueue || len(all.ids)+len(all.files) > 0 {
		return false
	}
	return len(all.processes)+len(all.paths) == 1 && (len(all.paths) == 0 || !engine.IsPart(all.paths[0]))
}

// inputs finds the targets of the command line and of --from.
func (f *compareFlags) inputs(args []string) (*comparedInputs, error) {
	all := &comparedInputs{labels: map[string]map[string]string{}}
	for _, a := range args {
		if len(args) > 1 && f.takeExecutable(a) {
			continue
		}
		if err := f.addInput(all, a, nil); err != nil {
			return nil, err
		}
	}
	if f.from == stdinName && slices.Contains(all.files, stdinName) {
		return nil, usageError{errors.New("-: standard input has the list of targets, and is none itself")}
	}
	if f.from != "" {
		if err := f.readFrom(all); err != nil {
			return nil, err
		}
	}
	all.isOfQueue = f.url != "" && len(all.ids) == 0
	if all.total(1) == 0 && !all.isOfQueue {
		return nil, usageError{errors.New("expected a target")}
	}
	return all, f.checkStdin(targetNames(all.files))
}

func targetNames(paths []string) (list []targetName) {
	for _, path := range paths {
		list = append(list, targetName{path: path})
	}
	return list
}

// takeExecutable takes a path beside targets as that of their executable, if it is one.
func (f *compareFlags) takeExecutable(path string) bool {
	if f.exe != "" || !isExecutable(path) {
		return false
	}
	f.exe = path
	return true
}

// addInput adds a target, or the targets in a folder.
func (f *compareFlags) addInput(all *comparedInputs, name string, labels map[string]string) error {
	info, err := os.Stat(name)
	pid, isProcess := processID(name)
	switch {
	case err == nil && info.IsDir():
		return f.addFolder(all, name, labels)
	case name == stdinName || isPipe(name) || err == nil && engine.IsArchive(name):
		all.files = append(all.files, name)
	case isProcess:
		all.processes = append(all.processes, pid)
		name = processPath(pid)
	case err != nil && fleet.IsID(name):
		all.ids = append(all.ids, name)
	default:
		all.paths = append(all.paths, name)
	}
	all.label(name, labels)
	return nil
}

// label keeps the labels of a path.
func (all *comparedInputs) label(path string, labels map[string]string) {
	if len(labels) > 0 {
		all.labels[path] = labels
	}
}

// addFolder adds the targets in a folder and in its folders.
func (f *compareFlags) addFolder(all *comparedInputs, dir string, labels map[string]string) error {
	paths, others, err := engine.ComparedIn(dir)
	if err != nil {
		return err
	}
	for _, other := range others {
		all.leftOut++
		f.sayLeftOut(other)
	}
	if len(paths) == 0 {
		return noTargets(dir, len(others))
	}
	for _, path := range paths {
		if engine.IsArchive(path) {
			all.files = append(all.files, path)
		} else {
			all.paths = append(all.paths, path)
		}
		all.label(path, labels)
	}
	return nil
}

const (
	// maxLine bounds a line of --from.
	maxLine = 1 << 20
	// maxLabels bounds the labels in a line.
	maxLabels = 64
)

// readFrom adds the targets in the file of --from.
func (f *compareFlags) readFrom(all *comparedInputs) error {
	file := os.Stdin
	if f.from != stdinName {
		var err error
		if file, err = os.Open(f.from); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		defer file.Close()
	} else if err := f.checkStdin([]targetName{{path: stdinName}}); err != nil {
		return err
	}
	return f.readLines(all, file)
}

// readLines adds the targets in lines.
func (f *compareFlags) readLines(all *comparedInputs, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		if err := f.readLine(all, lines.Text()); err != nil {
			return fmt.Errorf("--from %s:%d: %w", f.from, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("--from %s:%d: %w", f.from, number+1, err)
	}
	return nil
}

// readLine adds the target in a line: its name, and labels behind tabs. An empty line, and one that begins with #, has
// none.
func (f *compareFlags) readLine(all *comparedInputs, line string) error {
	line = strings.TrimSuffix(line, "\r")
	if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	name, rest, hasLabels := strings.Cut(line, "\t")
	switch name = strings.TrimSpace(name); {
	case name == "":
		return usageError{errors.New("expected a target before the labels")}
	case name == stdinName && f.from == stdinName:
		return usageError{errors.New("-: standard input has the list of targets, and is none itself")}
	}
	var labels map[string]string
	if hasLabels {
		var err error
		if labels, err = parseLabels(rest); err != nil {
			return usageError{err}
		}
	}
	return f.addInput(all, name, labels)
}

// parseLabels parses labels with tabs between them.
func parseLabels(text string) (labels map[string]string, err error) {
	labels = map[string]string{}
	for part := range strings.SplitSeq(text, "\t") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		switch _, isTaken := labels[name]; {
		case !ok || !isLabelName(name):
			return nil, fmt.Errorf("%q: expected a label NAME=VALUE", part)
		case isTaken:
			return nil, fmt.Errorf("label %s is there twice", name)
		case len(labels) == maxLabels:
			return nil, fmt.Errorf("more than %d labels", maxLabels)
		}
		labels[name] = value
	}
	return labels, nil
}

// isLabelName reports whether a text is the name of a label: a letter or _, and letters, digits, and _.- behind it.
func isLabelName(text string) bool {
	for i, r := range text {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !isLetter && (i == 0 || !strings.ContainsRune("0123456789.-", r)) {
			return false
		}
	}
	return text != "" && len(text) <= 64
}
