// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

// This file makes modules from the mappings of a process on Linux.

// maxMapsLines bounds the lines of /proc/PID/maps: the vm.max_map_count of large
// machines.
const maxMapsLines = 1 << 20

// mapsLine is a line of /proc/PID/maps (proc_pid_maps(5)).
type mapsLine struct {
	start, end, offset uint64
	isExecutable       bool
	path               string // "" where there is none
}

// LoadMaps sets the modules of a target to the modules in the text of /proc/PID/maps; see
// walk.Process.SetModules. Their files are found as usual. problems lists files that were
// not found or do not fit; the error means that the text is not such a list.
//
// When the process loads a library, its text changes and is loaded again: only new
// modules cost anything.
func (t *Target) LoadMaps(maps io.Reader, arch string) (problems []string, err error) {
	lines, err := readMaps(maps)
	if err != nil {
		return nil, err
	}
	t.maps.mu.Lock()
	defer t.maps.mu.Unlock()
	var modules []*target.Module
	for _, group := range groupMaps(lines) {
		m := t.mappedModule(group, arch)
		if m == nil {
			continue
		}
		if m.Problem != "" {
			problems = append(problems, m.Problem)
		}
		modules = append(modules, t.maps.add(m))
	}
	t.SetModules(modules)
	return problems, nil
}

// mapsModules has the modules that LoadMaps has made for a target.
type mapsModules struct {
	mu      sync.Mutex
	all     []*target.Module
	objects []*object.Object // the modules' objects, each once
}

// add adds a module, whose ID becomes its index, or returns the equal one that exists.
func (l *mapsModules) add(m *target.Module) *target.Module {
	for _, known := range l.all {
		if known.Path == m.Path && known.Arch == m.Arch && known.Object == m.Object && slices.Equal(known.Segments, m.Segments) {
			return known
		}
	}
	m.ID = len(l.all)
	l.all = append(l.all, m)
	return m
}

// keep keeps an object open, once.
func (l *mapsModules) keep(o *object.Object) {
	if slices.Contains(l.objects, o) {
		_ = o.Close() // it is open already
		return
	}
	l.objects = append(l.objects, o)
}

func (l *mapsModules) close() {
	for _, o := range l.objects {
		_ = o.Close()
	}
}

// readMaps reads the lines.
func readMaps(r io.Reader) (lines []mapsLine, err error) {
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		if n > maxMapsLines {
			return nil, fmt.Errorf("maps: more than %d lines", maxMapsLines)
		}
		line, err := parseMapsLine(s.Text())
		if err != nil {
			return nil, fmt.Errorf("maps, line %d: %w", n, err)
		}
		lines = append(lines, line)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("maps: %w", err)
	}
	return lines, nil
}

// parseMapsLine reads START-END PERMISSIONS OFFSET DEVICE INODE PATH. The path is the
// rest of the line, with its blanks.
func parseMapsLine(text string) (l mapsLine, err error) {
	rest := text
	var fields [5]string
	for i := range fields {
		rest = strings.TrimLeft(rest, " ")
		fields[i], rest, _ = strings.Cut(rest, " ")
	}
	first, last, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields[1]) < 4 {
		return l, fmt.Errorf("%.200q, expected START-END PERMISSIONS OFFSET DEVICE INODE PATH", text)
	}
	for _, number := range []struct {
		into *uint64
		text string
	}{{&l.start, first}, {&l.end, last}, {&l.offset, fields[2]}} {
		if *number.into, err = strconv.ParseUint(number.text, 16, 64); err != nil {
			return l, fmt.Errorf("%.200q: %w", text, err)
		}
	}
	if l.end <= l.start {
		return l, fmt.Errorf("%.200q ends where it begins or before", text)
	}
	l.isExecutable = fields[1][2] == 'x'
	l.path = unescapePath(strings.TrimLeft(rest, " "))
	return l, nil
}

// unescapePath restores the line feeds that the kernel writes as \012.
func unescapePath(path string) string { return strings.ReplaceAll(path, `\012`, "\n") }

// groupMaps groups the mappings of each file: a lower offset begins a new group, of the
// same file mapped once more.
func groupMaps(lines []mapsLine) (groups [][]mapsLine) {
	open := map[string]int{} // the last group of a path
	for _, l := range lines {
		if l.path == "" || strings.HasPrefix(l.path, "[") && l.path != object.VDSOName || strings.HasPrefix(l.path, "/dev/") || strings.HasPrefix(l.path, "anon_inode:") {
			continue
		}
		i, ok := open[l.path]
		if !ok || groups[i][len(groups[i])-1].offset > l.offset {
			i = len(groups)
			groups = append(groups, nil)
			open[l.path] = i
		}
		groups[i] = append(groups[i], l)
	}
	return groups
}

// mappedModule is the module of a file with its mappings; nil where none of them is code.
func (t *Target) mappedModule(group []mapsLine, arch string) *target.Module {
	if !slices.ContainsFunc(group, func(l mapsLine) bool { return l.isExecutable }) {
		return nil
	}
	m := &target.Module{LoadedModule: target.LoadedModule{Path: group[0].path, Arch: arch}}
	found := t.findMapped(m.Path)
	m.Problem = found.Problem
	o := found.Object
	if o != nil {
		t.maps.keep(o)
		m.Object, m.File, m.BuildID = o, found.File(), o.BuildID()
	}
	for _, l := range group {
		s := target.Segment{Address: l.offset, Size: l.end - l.start, Start: l.start, Executable: l.isExecutable}
		if o != nil {
			in, ok := o.SegmentForMapping(l.offset, s.Size, l.isExecutable)
			if !ok {
				m.Problem = cmp.Or(m.Problem, fmt.Sprintf("%s has no segment at the offset %#x, which is mapped at %#x: what is there is not known", m.Path, l.offset, l.start))
				continue
			}
			s.Address = in.Address + l.offset - in.Offset
		}
		m.Segments = append(m.Segments, s)
	}
	return m
}

// findMapped finds a mapped file. The vDSO is not a file, but this process has the same
// one.
func (t *Target) findMapped(path string) object.Found {
	finder := t.engine.finderOf(t.State())
	if path != object.VDSOName {
		return finder.Find(path, nil, false)
	}
	image, err := object.OwnVDSO()
	if err != nil {
		return object.Found{Problem: fmt.Sprintf("%s: %v", path, err)}
	}
	o, err := t.engine.store.Image(path, image, finder.Formats)
	if err != nil {
		return object.Found{Problem: err.Error()}
	}
	return object.Found{Object: o, Problem: path + ": that of this process was taken"}
}
