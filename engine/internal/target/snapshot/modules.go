// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// addModules opens the code objects of the modules.
func (s *Snapshot) addModules(d *document) {
	s.opened = opened{map[finderKey]object.Found{}, map[string]openedMember{}}
	exe := s.finder.ExeID()
	exeUsed := s.finder.Exe == ""
	for i := range d.modules {
		e := &d.modules[i]
		m := &target.Module{Module: trace.Module{Path: e.path, BuildID: e.buildID, Symbols: e.symbols, Version: e.version, Arch: e.arch, Processor: e.processor}}
		var problems []string
		problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
		if e.badID != "" {
			problem("%s", e.badID)
		}
		if e.arch == "" {
			problem("has no arch")
		}
		e.image.place(m, problem)
		isExe := s.finder.IsExe(exe, e.path, e.buildID)
		exeUsed = exeUsed || isExe
		s.openModule(m, e, isExe, problem)
		if e.source != "" {
			member, err := s.archive.member(e.source)
			if err != nil {
				problem("source_module: %v", err)
			} else {
				m.SourceModule = member.bytes
			}
		}
		addSegments(m, e, problem)
		m.Problem = strings.Join(problems, "; ")
		if m.Object != nil && s.machine == 0 {
			s.machine = m.Object.Machine()
		}
		s.modules = append(s.modules, m)
	}
	if !exeUsed {
		s.problem("%s was not used: no module has its name or build ID", s.finder.Exe)
	}
	target.SortModules(s.modules)
	s.separateModules()
	s.files = target.NewFileBytes(s.modules)
}

// place sets the range of a module's image.
func (e *imageEntry) place(m *target.Module, problem func(string, ...any)) {
	for _, part := range []struct{ name, wrong string }{{"start", e.start.Wrong}, {"size", e.size.Wrong}} {
		if part.wrong != "" {
			problem("image: %s %s: it is left out", part.name, part.wrong)
			return
		}
	}
	start, size := e.start.Value, e.size.Value
	if start+size < start {
		problem("image of %#x bytes at %#x reaches past the last address: it is left out", size, start)
		return
	}
	m.Base, m.Size = start, size
}

// openModule opens a module's code object, from its member or else from the file that the Finder
// finds.
func (s *Snapshot) openModule(m *target.Module, e *moduleEntry, isExe bool, problem func(string, ...any)) {
	if e.file != "" {
		o, err := s.openMember(e)
		if err == nil {
			err = s.fits(o, m)
		}
		if err == nil {
			m.Object, m.File = o, s.path+":"+e.file
			m.Companion = s.companion(e.file)
			if len(m.BuildID) > 0 && len(o.BuildID()) == 0 {
				problem("member %q: its build ID could not be checked: it has none, expected %x", jsontext.Clip(e.file), m.BuildID)
			}
			if len(m.BuildID) == 0 {
				m.BuildID = o.BuildID()
			}
			return
		}
		problem("%v", err)
	}
	if e.path == "" && len(e.buildID) == 0 {
		if e.file == "" {
			problem("neither file, path nor build_id say what its code object is")
		}
		return
	}
	found := s.find(e, isExe)
	if found.Problem != "" {
		problem("%s", found.Problem)
	}
	if found.Object == nil {
		return
	}
	if err := s.fits(found.Object, m); err != nil {
		problem("%s was not used: %v", found.Path, err)
		return
	}
	m.Object, m.File = found.Object, found.File()
}

// finderKey has the arguments of a call of the Finder.
type finderKey struct {
	path, buildID string
	isExe         bool
}

// opened has the code objects of modules, each opened once: thousands of modules may have the
// same.
type opened struct {
	found   map[finderKey]object.Found
	members map[string]openedMember
}

type openedMember struct {
	object *object.Object
	err    error
}

// find opens the file that the Finder finds for a module.
func (s *Snapshot) find(e *moduleEntry, isExe bool) object.Found {
	key := finderKey{e.path, string(e.buildID), isExe}
	found, ok := s.opened.found[key]
	if ok {
		return found
	}
	found = s.finder.Find(e.path, e.buildID, isExe)
	if found.Object != nil {
		s.objects = append(s.objects, found.Object)
	}
	s.opened.found[key] = found
	return found
}

// openMember opens the code object in a member, once.
func (s *Snapshot) openMember(e *moduleEntry) (*object.Object, error) {
	if o, ok := s.opened.members[e.file]; ok {
		return o.object, o.err
	}
	o, err := s.newMember(e.file)
	s.opened.members[e.file] = openedMember{o, err}
	return o, err
}

// newMember opens a member, or a code object inside a member: MEMBER#NAME, if no member has that
// name.
func (s *Snapshot) newMember(name string) (*object.Object, error) {
	file, _, nested := cutLast(name, "#")
	if nested = nested && s.archive.members[name] == nil; !nested {
		file = name
	}
	member, err := s.archive.member(file)
	if err != nil {
		return nil, err
	}
	data, err := member.bytes()
	if err != nil {
		return nil, err
	}
	open := s.finder.Store.Image
	if nested {
		open = s.finder.Store.NestedImage
	}
	o, err := open(s.path+":"+name, data, s.finder.Formats)
	if err != nil {
		return nil, fmt.Errorf("member %q: %w", jsontext.Clip(name), err)
	}
	s.objects = append(s.objects, o)
	return o, nil
}

// cutLast splits a string at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// companion returns a reader of the members beside a member.
func (s *Snapshot) companion(file string) func(suffix string) (string, []byte, error) {
	return func(suffix string) (string, []byte, error) {
		name, ok := object.Beside(file, suffix)
		// A code object inside a member has no companions.
		if !ok || s.archive.members[name] == nil || s.archive.members[file] == nil {
			return "", nil, fmt.Errorf("member %q: %w", jsontext.Clip(name), fs.ErrNotExist)
		}
		member, err := s.archive.member(name)
		if err != nil {
			return "", nil, err
		}
		data, err := member.bytes()
		return s.path + ":" + name, data, err
	}
}

// fits returns an error if a code object cannot be that of a module.
func (s *Snapshot) fits(o *object.Object, m *target.Module) error {
	if id := o.BuildID(); len(id) > 0 && len(m.BuildID) > 0 && !o.HasID(m.BuildID) {
		return fmt.Errorf("%s: build ID is %x, expected %x", o.Name(), id, m.BuildID)
	}
	if o.Type() == elf.ET_CORE {
		return fmt.Errorf("%s: is a core file", o.Name())
	}
	a := s.archs.find(m.Arch)
	if a.desc == nil || len(a.desc.Recognises) == 0 {
		return nil
	}
	hasFiles := false // the architecture recognises some files
	for i := range a.desc.Recognises {
		r := &a.desc.Recognises[i]
		if r.ELFMachine == 0 && len(r.Magic) == 0 {
			continue
		}
		hasFiles = true
		if !o.IsForeign() && r.ELFMachine != 0 && o.ELFMachine().Matches(r.ELFMachine, r.ELFClass, r.ELFData) ||
			o.IsForeign() && r.ELFMachine == 0 && bytes.HasPrefix(o.Data(), r.Magic) {
			return nil
		}
	}
	switch {
	case !hasFiles:
		return nil
	case o.IsForeign():
		return fmt.Errorf("%s: it begins as no file of architecture %s does", o.Name(), a.desc.Name)
	}
	return fmt.Errorf("%s: %s is not one of architecture %s", o.Name(), o.ELFMachine(), a.desc.Name)
}

// addSegments sets the segments of a module.
func addSegments(m *target.Module, e *moduleEntry, problem func(string, ...any)) {
	for i := range e.segments {
		seg := &e.segments[i]
		wrong := ""
		for _, n := range []struct {
			name string
			jsontext.Hex
		}{{"address", seg.address}, {"size", seg.size}, {"start", seg.start}} {
			if p := n.Problem(); p != "" && wrong == "" {
				wrong = fmt.Sprintf("segments[%d].%s %s", i, n.name, p)
			}
		}
		out := trace.Segment{Section: seg.section, Address: seg.address.Value, Size: seg.size.Value, Start: seg.start.Value}
		switch {
		case wrong != "":
			problem("%s: the segment is left out", wrong)
			continue
		case out.Size == 0:
			continue
		case out.Start+out.Size < out.Start || out.Address+out.Size < out.Address:
			problem("segments[%d] of %#x bytes at %#x reaches past the last address: it is left out", i, out.Size, out.Start)
			continue
		}
		recount(m, &out)
		out.Executable = target.HoldsCode(m.Object, &out)
		m.Segments = append(m.Segments, out)
	}
}

// pageSize is the smallest size of pages, to which the image of a file is aligned.
const pageSize = 4096

// recount sets a segment's address to that of the code object that was found. Without a code
// object addresses count from the start of the image, in the snapshot as here.
func recount(m *target.Module, s *trace.Segment) {
	if m.Size == 0 || s.Section != "" || s.Start < m.Base {
		return
	}
	fromImage := s.Start - m.Base
	if m.Object == nil {
		s.Address = fromImage
		return
	}
	low := ^uint64(0)
	for _, p := range m.Object.Segments() {
		low = min(low, p.Address)
	}
	if s.Address == fromImage && low != ^uint64(0) {
		s.Address += low &^ (pageSize - 1)
	}
}

// separateModules leaves out segments that overlap an earlier segment, as an address has one
// code object.
func (s *Snapshot) separateModules() {
	type place struct {
		*trace.Segment
		module *target.Module
	}
	var all []place
	for _, m := range s.modules {
		for i := range m.Segments {
			all = append(all, place{&m.Segments[i], m})
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.Start, b.Start) })
	var end uint64
	dropped := map[*trace.Segment]bool{}
	for _, p := range all {
		if p.Start < end {
			s.problem("module %q: its segment of %#x bytes at %#x overlaps one that starts before it: it is left out",
				jsontext.Clip(p.module.Path), p.Size, p.Start)
			dropped[p.Segment] = true
			continue
		}
		end = p.Start + p.Size
		s.placed = append(s.placed, *p.Segment)
	}
	for _, m := range s.modules {
		kept := m.Segments[:0]
		for i := range m.Segments {
			if !dropped[&m.Segments[i]] {
				kept = append(kept, m.Segments[i])
			}
		}
		m.Segments = kept
	}
}
