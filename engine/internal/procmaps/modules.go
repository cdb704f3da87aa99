// SPDX-License-Identifier: Apache-2.0

// Package procmaps reads what Linux and runtimes say about the code of a process: its
// mappings, in the text of /proc/PID/maps, and the maps of its JIT code, perf-PID.map.
package procmaps

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// Modules has the modules of a process, and the files that they keep open. The zero value
// has none.
type Modules struct {
	all     []*target.Module
	objects []*object.Object // the modules' objects, each once
}

// Load returns the modules in a text of /proc/PID/maps, whose files finder finds. Modules
// that an earlier text had are the same ones. problems lists files that were not found or
// do not fit; the error means that the text is not such a list.
func (l *Modules) Load(text io.Reader, arch string, finder *object.Finder) (modules []*target.Module, problems []string, err error) {
	lines, err := readLines(text)
	if err != nil {
		return nil, nil, err
	}
	for _, group := range groupLines(lines) {
		m := l.module(group, arch, finder)
		if m == nil {
			continue
		}
		if m.Problem != "" {
			problems = append(problems, m.Problem)
		}
		modules = append(modules, l.add(m))
	}
	return modules, problems, nil
}

// add adds a module, whose ID becomes its index, or returns the equal one that exists.
func (l *Modules) add(m *target.Module) *target.Module {
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
func (l *Modules) keep(o *object.Object) {
	if slices.Contains(l.objects, o) {
		_ = o.Close() // it is open already
		return
	}
	l.objects = append(l.objects, o)
}

// Close closes the files of the modules.
func (l *Modules) Close() {
	for _, o := range l.objects {
		_ = o.Close()
	}
}

// module is the module of a file with its mappings; nil where none of them is code.
func (l *Modules) module(group []line, arch string, finder *object.Finder) *target.Module {
	if !slices.ContainsFunc(group, func(l line) bool { return l.isExecutable }) {
		return nil
	}
	m := &target.Module{Module: trace.Module{Path: group[0].path, Arch: arch}}
	found := find(m.Path, finder)
	m.Problem = found.Problem
	o := found.Object
	if o != nil {
		l.keep(o)
		m.Object, m.File, m.BuildID = o, found.File(), o.BuildID()
	}
	for _, g := range group {
		s := trace.Segment{Address: g.offset, Size: g.end - g.start, Start: g.start, Executable: g.isExecutable}
		if o != nil {
			in, ok := o.SegmentForMapping(g.offset, s.Size, g.isExecutable)
			if !ok {
				m.Problem = cmp.Or(m.Problem, fmt.Sprintf("%s has no segment at the offset %#x, which is mapped at %#x: what is there is not known", m.Path, g.offset, g.start))
				continue
			}
			s.Address = in.Address + g.offset - in.Offset
		}
		m.Segments = append(m.Segments, s)
	}
	return m
}

// find finds a mapped file. The vDSO is not a file, but this process has the same
// one.
func find(path string, finder *object.Finder) object.Found {
	if path != object.VDSOName {
		return finder.Find(path, nil, false)
	}
	image, err := object.OwnVDSO()
	if err != nil {
		return object.Found{Problem: fmt.Sprintf("%s: %v", path, err)}
	}
	o, err := finder.Store.Image(path, image, finder.Formats)
	if err != nil {
		return object.Found{Problem: err.Error()}
	}
	return object.Found{Object: o, Problem: path + ": that of this process was taken"}
}
