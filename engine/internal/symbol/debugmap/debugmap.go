// SPDX-License-Identifier: Apache-2.0

// Package debugmap names the code of programs of macOS that were linked without dsymutil: their DWARF is in the
// object files that they were linked of, which the symbol table of the program lists (a debug map).
package debugmap

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/problems"
)

// maxProblems bounds the list of problems: each object file may be missing.
const maxProblems = 16

// Map has the DWARF of a program's object files, each of which is opened when an address of its code is asked
// for. It implements symbol.Source and may be used concurrently.
type Map struct {
	program *object.Object
	options dwarf.Options
	parts   []part // by address, disjoint
	files   []file

	mu       sync.Mutex
	opened   []*file // in the order in which they were needed
	problems problems.List[string]
}

// part is the code of a function of an object file.
type part struct {
	start, end uint64 // in the program
	name       string // as the symbol tables have it
	file       uint32
}

// file is an object file.
type file struct {
	from   *macho.DebugObject
	once   sync.Once
	object *object.Object
	reader *dwarf.Reader     // nil: it cannot be used
	places map[string]placed // of its functions, by name
}

// placed is the place of a function in its object file.
type placed struct {
	start, size uint64
	isDoubtful  bool // several have the name
}

// New returns the debug map of a program; nil where it has none.
func New(o *object.Object, options dwarf.Options) (*Map, error) {
	if !o.IsMachO() || o.DebugOnly() {
		return nil, nil
	}
	m := &Map{program: o, options: options}
	var list []macho.DebugObject
	err := object.Guard(func() (err error) { list, err = o.MachO().DebugMap(); return err })
	m.files = make([]file, len(list))
	for i := range list {
		m.files[i].from = &list[i]
		for _, s := range list[i].Symbols {
			if s.Size > 0 && s.Address+s.Size > s.Address {
				m.parts = append(m.parts, part{s.Address, s.Address + s.Size, s.Name, uint32(i)}) //nolint:gosec // bounded
			}
		}
	}
	if len(m.parts) == 0 {
		return nil, err
	}
	slices.SortStableFunc(m.parts, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	kept := m.parts[:1]
	for _, p := range m.parts[1:] { // folded functions: the first has the code
		if p.start >= kept[len(kept)-1].end {
			kept = append(kept, p)
		}
	}
	m.parts = kept
	return m, err
}

// find returns the object file that has the code at an address of the program, and the address in it; nil where
// none has.
func (m *Map) find(address uint64) (f *file, inFile uint64) {
	i, _ := slices.BinarySearchFunc(m.parts, address, func(p part, address uint64) int {
		if p.start <= address {
			return -1
		}
		return 1
	})
	if i--; i < 0 || address >= m.parts[i].end {
		return nil, 0
	}
	p := &m.parts[i]
	f = &m.files[p.file]
	f.once.Do(func() { m.open(f) })
	if f.reader == nil {
		return nil, 0
	}
	at, ok := f.places[p.name]
	if !ok || at.isDoubtful || at.size < p.end-p.start {
		m.problem(fmt.Sprintf("%s: the function %s of %d bytes of %s is not used: the object file has none of that name and size", f.object.Name(), p.name, p.end-p.start, m.program.Name()))
		return nil, 0
	}
	return f, at.start + address - p.start
}

// Frames appends the frames at an ELF virtual address; see symbol.Source.
func (m *Map) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	return m.frames(dst, address, (*dwarf.Reader).Frames)
}

// RawFrames is dwarf.Reader.RawFrames for an address of the program.
func (m *Map) RawFrames(dst []trace.Symbol, address uint64, isFirst bool) ([]trace.Symbol, error) {
	return m.frames(dst, address, func(r *dwarf.Reader, dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
		return r.RawFrames(dst, address, isFirst)
	})
}

// frames appends the frames that read gives for the address in the object file, with the addresses of the
// program.
func (m *Map) frames(dst []trace.Symbol, address uint64, read func(*dwarf.Reader, []trace.Symbol, uint64) ([]trace.Symbol, error)) ([]trace.Symbol, error) {
	f, inFile := m.find(address)
	if f == nil {
		return dst, nil
	}
	n := len(dst)
	dst, err := read(f.reader, dst, inFile)
	if len(dst) > n && !dst[len(dst)-1].HasStart {
		return dst[:n], err // padding behind a function
	}
	for i := range dst[n:] {
		if s := &dst[n+i]; s.HasStart {
			s.Start += address - inFile
		}
	}
	return dst, err
}

// Locals is dwarf.Reader.Locals for an address of the program.
func (m *Map) Locals(dst []symbol.Local, address uint64) ([]symbol.Local, error) {
	f, inFile := m.find(address)
	if f == nil {
		return dst, nil
	}
	return f.reader.Locals(dst, inFile)
}

// open opens an object file.
func (m *Map) open(f *file) {
	o, err := m.openObject(f.from)
	if err != nil {
		m.problem(fmt.Sprintf("%s: the object file with debug information: %v", m.program.Name(), err))
		return
	}
	reader, err := dwarf.NewWith(o, m.options)
	if err == nil {
		f.places, err = placesOf(o)
	}
	if err != nil {
		m.problem(err.Error())
		_ = o.Close()
		return
	}
	f.object, f.reader = o, reader
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened = append(m.opened, f)
}

// openObject opens the file of an object file: at its path in the target, or by its name beside the program
// and in the finder's folders of debug files.
func (m *Map) openObject(from *macho.DebugObject) (*object.Object, error) {
	finder := m.options.Finder
	if finder == nil {
		finder = &object.Finder{}
	}
	var errs []error
	for _, try := range m.places(from, finder) {
		o, err := try()
		switch {
		case err != nil:
		case !o.IsMachO() || o.Machine() != m.program.Machine():
			err = fmt.Errorf("%s: it is for another machine", o.Name())
		case from.Time != 0 && from.Member == "" && o.ModTime().Unix() != int64(from.Time): //nolint:gosec // a comparison
			err = fmt.Errorf("%s: it was written to after the program was linked", o.Name())
		default:
			return o, nil
		}
		if o != nil {
			_ = o.Close()
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs[:1]...)
}

// places returns functions that open the places of an object file, in order.
func (m *Map) places(from *macho.DebugObject, finder *object.Finder) (list []func() (*object.Object, error)) {
	if path.IsAbs(from.Path) {
		list = append(list, func() (*object.Object, error) { return finder.OpenMember(from.Path, from.Member) })
	}
	base := path.Base(from.Path)
	dirs := slices.Clone(finder.DebugDirs)
	if file := m.program.Path(); file != "" {
		dirs = append([]string{filepath.Dir(file)}, dirs...)
	}
	if object.IsPlainName(base) {
		for _, dir := range dirs {
			list = append(list, func() (*object.Object, error) { return finder.OpenMemberBeside(filepath.Join(dir, base), from.Member) })
		}
	}
	return append(list, func() (*object.Object, error) { return nil, fmt.Errorf("%s: no such file", from.Path) })
}

// placesOf returns the places of the functions of an object file.
func placesOf(o *object.Object) (map[string]placed, error) {
	places := map[string]placed{}
	var starts []uint64
	err := object.Guard(func() error {
		return o.MachO().Symbols(func(s *macho.Symbol) {
			if !s.IsDefined() || s.Name == "" {
				return
			}
			_, isThere := places[s.Name]
			places[s.Name] = placed{start: s.Value, isDoubtful: isThere}
			starts = append(starts, s.Value)
		})
	})
	for _, section := range o.MachO().Sections() {
		starts = append(starts, section.Address+section.Size)
	}
	slices.Sort(starts)
	for name, p := range places {
		// Symbols inside a function, of jumps that other files make, do not end it.
		if i, _ := slices.BinarySearch(starts, p.start+1); i < len(starts) {
			p.size = starts[i] - p.start
		}
		places[name] = p
	}
	return places, err
}

func (m *Map) problem(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.problems.Kept(), text) && m.problems.HasRoom(maxProblems) {
		m.problems.Keep(text)
	}
}

// Problems returns problems so far, sentences that name the file.
func (m *Map) Problems() (list []string) {
	m.mu.Lock()
	list = slices.Clone(m.problems.Kept())
	m.mu.Unlock()
	for _, r := range m.readers() {
		list = append(list, r.Problems()...)
	}
	return list
}

// readers returns the readers that are open.
func (m *Map) readers() []*dwarf.Reader {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*dwarf.Reader, len(m.opened))
	for i, f := range m.opened {
		list[i] = f.reader
	}
	return list
}

// MemorySize is about how many bytes the data read so far takes.
func (m *Map) MemorySize() (size uint64) {
	size = uint64(len(m.parts)) * uint64(unsafe.Sizeof(part{}))
	for _, r := range m.readers() {
		size += r.MemorySize()
	}
	return size
}

// ReleasePages releases the pages of the mapped object files that were read so far.
func (m *Map) ReleasePages() {
	for _, r := range m.readers() {
		r.ReleasePages()
	}
}

// Close closes the object files.
func (m *Map) Close() error {
	m.mu.Lock()
	opened := m.opened
	m.opened = nil
	m.mu.Unlock()
	var errs []error
	for _, f := range opened {
		errs = append(errs, f.reader.Close(), f.object.Close())
	}
	return errors.Join(errs...)
}
