// SPDX-License-Identifier: Apache-2.0

// Package debugmap finds the DWARF of programs of macOS that were linked without dsymutil: it is in the object files that
// they were linked of, which the symbol table of the program lists (a debug map).
package debugmap

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
)

// debugMap are the object files of a program. It implements dwarf.ObjectFiles.
type debugMap struct {
	program *object.Object
	finder  *object.Finder
	note    func(error)
	parts   []part     // by address, disjoint
	byFile  [][]uint32 // the parts of each object file
	files   []macho.DebugObject

	mu       sync.Mutex
	archives map[string]func() (*object.Archive, error) // by path; each is opened once
	opened   []*object.Archive
}

// part is a function or a variable of an object file.
type part struct {
	start, end uint64 // in the program
	name       string // as the symbol tables have it
	file       uint32
	isFunction bool
}

// New returns a reader of the debug information in the object files that a program was linked of; nil where it has no
// debug map. Object files are opened when they are needed; note gets the faults of them, and must be usable concurrently.
func New(o *object.Object, options dwarf.Options, note func(error)) *dwarf.Reader {
	if m := newMap(o, cmp.Or(options.Finder, &object.Finder{}), note); m != nil {
		return dwarf.NewOfParts(o, options, m)
	}
	return nil
}

func newMap(o *object.Object, finder *object.Finder, note func(error)) *debugMap {
	if !o.IsMachO() || o.DebugOnly() {
		return nil
	}
	m := &debugMap{
		program: o, finder: finder, note: note, archives: map[string]func() (*object.Archive, error){},
	}
	if err := object.Guard(m.read); err != nil {
		note(err)
	}
	if len(m.parts) == 0 {
		return nil
	}
	return m
}

// read reads the debug map.
func (m *debugMap) read() (err error) {
	m.files, err = m.program.MachO().DebugMap()
	ends, failed := boundsOf(m.program.MachO())
	for i := range m.files {
		for _, s := range m.files[i].Symbols {
			if !s.IsFunction {
				s.Size = ends.size(s.Address)
			}
			if s.Size > 0 && s.Address+s.Size > s.Address {
				m.parts = append(m.parts, part{s.Address, s.Address + s.Size, s.Name, uint32(i), s.IsFunction}) //nolint:gosec // bounded
			}
		}
		m.files[i].Symbols = nil
	}
	slices.SortStableFunc(m.parts, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	kept := m.parts[:min(1, len(m.parts))]
	for _, p := range m.parts[len(kept):] { // folded functions: the first has the code
		if p.start >= kept[len(kept)-1].end {
			kept = append(kept, p)
		}
	}
	m.parts = slices.Clip(kept)
	m.byFile = make([][]uint32, len(m.files))
	for i := range m.parts {
		list := &m.byFile[m.parts[i].file]
		*list = append(*list, uint32(i)) //nolint:gosec // bounded
	}
	return errors.Join(err, failed)
}

// Count implements dwarf.ObjectFiles.
func (m *debugMap) Count() int { return len(m.files) }

// At implements dwarf.ObjectFiles.
func (m *debugMap) At(address uint64) (number int, ok bool) {
	i, isStart := slices.BinarySearchFunc(m.parts, address, func(p part, address uint64) int { return cmp.Compare(p.start, address) })
	if !isStart {
		i--
	}
	if i < 0 || address >= m.parts[i].end {
		return 0, false
	}
	return int(m.parts[i].file), true
}

// Open implements dwarf.ObjectFiles.
func (m *debugMap) Open(number int) (*object.Object, []dwarf.Moved, error) {
	o, err := m.open(&m.files[number])
	if err != nil {
		return nil, nil, fmt.Errorf("the object file with debug information: %w", err)
	}
	var moves []dwarf.Moved
	if err := object.Guard(func() (err error) { moves, err = m.moves(o, number); return err }); err != nil {
		return nil, nil, errors.Join(err, o.Close())
	}
	return o, moves, nil
}

// moves returns what the program has of an object file. Where no time tells that it is the file that was linked, the
// functions must have the sizes that they have in the program, with the padding behind them.
func (m *debugMap) moves(o *object.Object, number int) (list []dwarf.Moved, err error) {
	places, err := placesOf(o.MachO())
	if err != nil {
		return nil, err
	}
	var left []*part
	for _, i := range m.byFile[number] {
		p := &m.parts[i]
		at, ok := places[p.name]
		size := p.end - p.start
		if !ok || at.isDoubtful || p.isFunction && (at.size < size || m.files[number].Time == 0 && at.size != size) {
			left = append(left, p)
			continue
		}
		list = append(list, dwarf.Moved{Start: at.start, End: at.start + min(at.size, size), Address: p.start})
	}
	if len(left) > 0 {
		m.note(fmt.Errorf("%s: %s of %d bytes of %s, and %d others like it, are not used: the object file has none of that name and size",
			o.Name(), left[0].name, left[0].end-left[0].start, m.program.Name(), len(left)-1))
	}
	slices.SortStableFunc(list, func(a, b dwarf.Moved) int { return cmp.Compare(a.Start, b.Start) })
	end := uint64(0)
	return slices.DeleteFunc(list, func(x dwarf.Moved) bool { // a place has one function
		isSecond := x.Start < end || x.Start >= x.End
		end = max(end, x.End)
		return isSecond
	}), nil
}

// Close implements dwarf.ObjectFiles.
func (m *debugMap) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, a := range m.opened {
		errs = append(errs, a.Close())
	}
	m.opened, m.archives = nil, map[string]func() (*object.Archive, error){}
	return errors.Join(errs...)
}

// open opens the file of an object file: at its path in the target, or by its name beside the program and in the
// finder's folders of debug files. The error is of the first file that is there.
func (m *debugMap) open(from *macho.DebugObject) (*object.Object, error) {
	var failed, missing error
	for _, p := range m.paths(from.Path) {
		o, err := m.openAt(p, from)
		switch {
		case err == nil:
			return o, nil
		case errors.Is(err, fs.ErrNotExist):
			missing = cmp.Or(missing, err)
		default:
			failed = cmp.Or(failed, err)
		}
	}
	return nil, cmp.Or(failed, missing, fmt.Errorf("%s: %w", from.Path, fs.ErrNotExist))
}

// filePath is a possible path of an object file.
type filePath struct {
	name       string
	isOfTarget bool
}

// paths returns the possible paths of an object file, in order.
func (m *debugMap) paths(name string) (list []filePath) {
	if path.IsAbs(name) {
		list = append(list, filePath{name, true})
	}
	dirs := slices.Clone(m.finder.DebugDirs)
	if file := m.program.Path(); file != "" {
		dirs = append([]string{filepath.Dir(file)}, dirs...)
	}
	base := path.Base(name)
	var names []string
	if name != base && filepath.IsLocal(name) { // ld's -oso_prefix
		names = append(names, name)
	}
	if object.IsPlainName(base) {
		names = append(names, base)
	}
	for _, name := range names {
		for _, dir := range dirs {
			list = append(list, filePath{filepath.Join(dir, name), false})
		}
	}
	return list
}

// openAt opens an object file at a path.
func (m *debugMap) openAt(p filePath, from *macho.DebugObject) (o *object.Object, err error) {
	machine, modified := m.program.MachO().MachineName(), time.Time{}
	switch {
	case from.Member != "":
		a, err := m.archive(p, machine)
		if err != nil {
			return nil, err
		}
		if o, modified, err = a.Open(from.Member); err != nil {
			return nil, err
		}
	case p.isOfTarget:
		o, err = m.finder.OpenFor(p.name, machine)
	default:
		o, err = m.finder.OpenForBeside(p.name, machine)
	}
	if err != nil {
		return nil, err
	}
	if from.Member == "" {
		modified = o.ModTime()
	}
	switch {
	case !o.IsMachO() || o.Machine() != m.program.Machine():
		err = fmt.Errorf("%s: it is for another machine", o.Name())
	case o.MachO().Type() != macho.TypeObject:
		err = fmt.Errorf("%s: it is no object file", o.Name())
	case from.Time != 0 && modified.Unix() != int64(from.Time): //nolint:gosec // a comparison
		err = fmt.Errorf("%s: it was written to after the program was linked", o.Name())
	default:
		return o, nil
	}
	return nil, errors.Join(err, o.Close())
}

// maxArchives bounds the archives that are open at a time: each of them is a mapping.
const maxArchives = 1 << 12

// archive opens an archive, once.
func (m *debugMap) archive(p filePath, machine string) (*object.Archive, error) {
	m.mu.Lock()
	open := m.archives[p.name]
	if open == nil {
		if len(m.archives) == maxArchives {
			m.mu.Unlock()
			return nil, fmt.Errorf("%s: more than %d archives are needed", p.name, maxArchives)
		}
		open = sync.OnceValues(func() (*object.Archive, error) {
			find := m.finder.OpenArchiveBeside
			if p.isOfTarget {
				find = m.finder.OpenArchive
			}
			a, err := find(p.name, machine)
			if err == nil {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.opened = append(m.opened, a)
			}
			return a, err
		})
		m.archives[p.name] = open
	}
	m.mu.Unlock()
	return open()
}
