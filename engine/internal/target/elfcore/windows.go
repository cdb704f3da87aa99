// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/target/wine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// Wine loads PE files as Windows does, each section at its own address. It maps the sections that
// lie in the file as in memory, copies the others into memory without a file, and the headers of a
// file that it cannot map, too.

// maxPEHeaders is how much of an image's headers is looked at: headers seldom have more.
const maxPEHeaders = 4096

// peImage is a PE file in memory.
type peImage struct {
	base   uint64
	path   string
	header *pe.File    // of the memory; nil where the core does not have its headers
	entry  wine.Module // of the loader's list; zero where it has none
}

// identity returns the time and the size of the image; false where memory does not tell.
func (im *peImage) identity() (time, size uint32, ok bool) {
	switch {
	case im.header != nil:
		return im.header.TimeDateStamp(), im.header.SizeOfImage(), true
	case im.entry.Size != 0:
		return im.entry.Time, im.entry.Size, true
	}
	return 0, 0, false
}

// isWine reports whether the process executes a program of Windows.
func (c *Core) isWine() bool {
	return c.process.files != nil && slices.ContainsFunc(c.process.files.list, func(r fileRange) bool { return wine.IsOf(r.path) })
}

// reader reads the memory that the core itself has.
func (c *Core) reader() wine.Reader {
	return func(address uint64, buf []byte) int { return copy(buf, c.memory.readDumped(address, uint64(len(buf)))) }
}

// peHeader reads the headers of a PE file in memory; nil where there are none.
func (c *Core) peHeader(address uint64) *pe.File {
	b := c.memory.readDumped(address, maxPEHeaders)
	if !pe.IsPE(b) {
		return nil
	}
	f, err := pe.New("headers in memory", bytes.Clone(b))
	if err != nil {
		return nil
	}
	return f
}

// addPEGroup adds the modules of a PE file that is mapped, and reports whether the file is one.
func (m *modules) addPEGroup(group []fileRange) bool {
	name := group[0].path
	if !isFile(name) && !strings.HasSuffix(name, deletedSuffix) {
		return false
	}
	isPE := false
	for _, r := range group {
		if r.offset != 0 {
			continue
		}
		if head := m.memory.readDumped(r.start, 4); len(head) == 4 && string(head[:2]) != "MZ" {
			return false
		}
		im := &peImage{base: r.start, path: name, header: m.peHeader(r.start), entry: m.loaderEntry(r.start)}
		if im.header == nil && !m.mayHaveCode(name) {
			return false
		}
		isPE = m.addPE(im, r.end) || isPE
	}
	return isPE
}

// addPE adds the module of a PE file in memory. headersEnd is where the mapping of its first bytes ends; 0: it has
// none.
func (m *modules) addPE(im *peImage, headersEnd uint64) bool {
	found := m.findPE(im)
	f := im.header
	if found.Object != nil {
		f = found.Object.PE()
	}
	if found.Object != nil && !found.Object.IsPE() {
		return false
	}
	if f == nil {
		m.addMissingPE(im, &found)
		return im.entry.Size != 0
	}
	if headersEnd != 0 && !m.isPELoaded(f, im, headersEnd) {
		return true // it is read, not executed
	}
	mod := &target.Module{
		Module: trace.Module{Path: strings.TrimSuffix(im.path, deletedSuffix), File: found.File(), Problem: found.Problem, Base: im.base, Size: uint64(f.SizeOfImage())},
		Object: found.Object, Tried: found.Tried,
	}
	if mod.Object == nil {
		m.takePE(mod, im)
	}
	m.finishPE(mod, im)
	return true
}

// addMissingPE adds the module of an image that only the loader's list has.
func (m *modules) addMissingPE(im *peImage, found *object.Found) {
	if im.entry.Size == 0 {
		return
	}
	mod := &target.Module{
		Module: trace.Module{Path: im.path, Problem: found.Problem, Base: im.base, Size: uint64(im.entry.Size)},
		Tried:  found.Tried,
	}
	mod.Problem = joined(mod.Problem, fmt.Sprintf("it is not read from the %s's memory, which lacks its headers", m.noun()))
	m.finishPE(mod, im)
}

// findPE opens the file of an image, once.
func (m *modules) findPE(im *peImage) object.Found {
	if im.path == "" {
		return object.Found{Problem: fmt.Sprintf("the image at %#x has no name", im.base)}
	}
	key := finderKey{path: im.path, buildID: "PE"}
	if found := m.found[key]; found != nil {
		return *found
	}
	if len(m.found) >= maxFound {
		return object.Found{Problem: fmt.Sprintf("%s: not looked for, as the core names more than %d files", im.path, maxFound)}
	}
	var id []byte
	codeID := ""
	if time, size, ok := im.identity(); ok {
		identity := pe.Identity{TimeDateStamp: time, SizeOfImage: size}
		id, codeID = object.PETimeAndSize(time, size), identity.CodeID()
	}
	found := m.finder.FindCode(im.path, id, codeID, "", false)
	if found.Object != nil {
		m.objects = append(m.objects, found.Object)
		if reason := m.foreign(found.Object); reason != "" {
			found = object.Found{Problem: fmt.Sprintf("%s was not used: %s", found.Path, reason), Tried: append(found.Tried, object.Attempt{Path: found.Path, Reason: reason, Kind: object.Mismatched})}
		}
	}
	m.found[key] = &found
	return found
}

// isPELoaded reports whether a PE file whose first bytes are mapped is loaded, rather than mapped as it lies on the
// disk: the mapping of its headers ends before its first section, and one with code is executable, if the core
// tells.
func (m *modules) isPELoaded(f *pe.File, im *peImage, headersEnd uint64) bool {
	for _, s := range f.Sections() {
		if !s.IsMapped() {
			continue
		}
		start := im.base + uint64(s.RVA)
		if start < headersEnd {
			return false
		}
		if in := m.memory.segment(start); s.IsCode() && in != nil {
			return in.flags&elf.PF_X != 0
		}
	}
	return true
}

// takePE sets the code object of a module whose file was not found to what memory has of it.
func (m *modules) takePE(mod *target.Module, im *peImage) {
	if im.header == nil {
		return
	}
	size := min(uint64(im.header.SizeOfImage()), m.imageBudget)
	data, err := pe.FromMemory(func(rva, n uint32) []byte {
		return m.memory.readDumped(im.base+uint64(rva), uint64(n))
	}, uint32(size)) //nolint:gosec // at most SizeOfImage
	if err == nil {
		m.imageBudget -= min(uint64(len(data)), m.imageBudget)
		mod.Object, err = object.New(cmp.Or(mod.Path, fmt.Sprintf("the image at %#x", im.base)), data)
	}
	if err != nil {
		mod.Problem = joined(mod.Problem, fmt.Sprintf("it is not read from the %s's memory: %v", m.noun(), err))
		return
	}
	if reason := m.foreign(mod.Object); reason != "" {
		mod.Object, mod.Problem = nil, joined(mod.Problem, "the image in memory is not used: "+reason)
		return
	}
	m.objects = append(m.objects, mod.Object)
	mod.Problem = joined(mod.Problem, "it is read from the "+m.noun()+"'s memory")
}

// finishPE sets what follows from the code object of a module, and adds it.
func (m *modules) finishPE(mod *target.Module, im *peImage) {
	o := mod.Object
	if o == nil {
		if im.base+mod.Size > im.base {
			mod.Segments = []trace.Segment{{Size: mod.Size, Start: im.base, Executable: true}}
		}
		if time, size, ok := im.identity(); ok {
			id := pe.Identity{TimeDateStamp: time, SizeOfImage: size}
			mod.Symbols = trace.SymbolID{DebugFile: object.LastPart(mod.Path), CodeID: id.CodeID()}
		}
		m.register(mod)
		return
	}
	id, err := o.PE().Identity()
	if err == nil {
		mod.Symbols = trace.SymbolID{DebugFile: object.LastPart(cmp.Or(id.PDB, mod.Path)), DebugID: id.DebugID(), CodeID: id.CodeID()}
	}
	mod.BuildID = o.BuildID()
	bias := im.base - o.PE().ImageBase()
	for _, s := range o.Segments() {
		if start := s.Address + bias; s.MemSize > 0 && start+s.MemSize > start {
			mod.Segments = append(mod.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: start, Executable: s.Flags&elf.PF_X != 0})
		}
	}
	if mod.File != "" {
		m.memory.addFiles(mod, peCode(o, bias))
	}
	m.register(mod)
}

// peCode returns the parts of a PE file that memory has as the file: code, in which nothing of x86-64 is relocated.
// The loader writes to other sections even where the program cannot.
func peCode(o *object.Object, bias uint64) (list []fileSegment) {
	data := o.Data()
	for _, s := range o.Segments() {
		if s.Flags&elf.PF_X == 0 || s.Flags&elf.PF_W != 0 || s.Offset >= uint64(len(data)) {
			continue
		}
		size := min(s.FileSize, s.MemSize, uint64(len(data))-s.Offset)
		if start := s.Address + bias; size > 0 && start+size > start {
			list = append(list, fileSegment{start: start, size: size, data: data[s.Offset : s.Offset+size]})
		}
	}
	return list
}

// addUnmappedPE adds the modules of PE files that are not mapped: Wine copied their headers, too.
func (m *modules) addUnmappedPE() {
	read := m.reader()
	for i := range m.memory.segments {
		s := &m.memory.segments[i]
		if m.isFull || !read.IsImage(s.start) || m.process.files.containing(s.start) != nil {
			continue
		}
		header := m.peHeader(s.start)
		if header == nil || !m.isPELoaded(header, &peImage{base: s.start}, s.start+1) {
			continue
		}
		entry := m.loaderEntry(s.start)
		m.addPE(&peImage{s.start, entry.Path, header, entry}, 0)
	}
}

// loaderEntry returns the entry of the loader's list for an image at an address; zero where it has none.
func (m *modules) loaderEntry(base uint64) wine.Module {
	if m.loaded == nil {
		m.loaded = map[uint64]wine.Module{}
		m.finder.Drives = cmp.Or(m.drives(), m.finder.Drives)
		for _, entry := range m.loaderList() {
			m.loaded[entry.Base] = entry
		}
	}
	return m.loaded[base]
}

// loaderList returns the loader's list by the first thread that leads to it.
func (m *modules) loaderList() []wine.Module {
	for _, th := range m.process.threads {
		address, _ := th.Registers.Uint64(wine.GSBase, sdk.LittleEndian)
		if block, ok := wine.BlockAt(address, m.reader()); ok {
			if list := block.Modules(); len(list) > 0 {
				return list
			}
		}
	}
	return nil
}

// drives returns the directory that has the drives of Windows, by the environment of the process; "" where that does
// not tell.
func (m *modules) drives() string { return wine.Drives(m.Start().Environment) }
