// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

// pageSize is that of the smallest pages: the first mapping of a file begins at one.
const pageSize = 4096

// addModules finds the files of the modules. The first one of the dump is the executable.
func (t *Target) addModules() {
	isExeUsed := t.finder.Exe == ""
	bases := map[uint64]bool{}
	for i := range t.Dump.Modules {
		bases[t.Dump.Modules[i].Base] = true
	}
	for i := range t.Dump.Modules {
		of := &t.Dump.Modules[i]
		m := &target.Module{
			Path: of.Name, BuildID: t.buildID(of), Symbols: t.symbolID(of), Version: t.ModuleVersion(of),
			Base: of.Base, Size: uint64(of.Size), Arch: t.arch(),
		}
		isExeUsed = isExeUsed || i == 0
		t.open(m, t.find(of, m, i == 0))
		if i == 0 {
			t.finder = t.finder.WithProgram(of.Name, m.Object)
		}
		t.modules = append(t.modules, m)
	}
	t.findLibraries()
	for i := range t.Dump.Modules {
		m, of := t.modules[i], &t.Dump.Modules[i]
		if m.Object == nil || m.Object.DebugOnly() {
			t.takeLoaded(m, of)
		}
		m.Segments = t.segments(m.Object, of, bases)
	}
	if !isExeUsed {
		t.problem("%s was not used: the dump has no modules", t.finder.Exe)
	}
	slices.SortStableFunc(t.modules, func(a, b *target.Module) int { return cmp.Compare(lowest(a), lowest(b)) })
	for i, m := range t.modules {
		m.ID = i
	}
	t.files = target.NewFileBytes(t.modules)
}

// open gives a module what was found for it.
func (t *Target) open(m *target.Module, found object.Found) {
	m.Object, m.File, m.Problem, m.Tried = found.Object, found.File(), found.Problem, found.Tried
	if m.Object == nil {
		return
	}
	if reason := t.otherCode(m.Object); reason != "" {
		m.Problem = fmt.Sprintf("%s was not used: %s", found.Path, reason)
		m.Tried = append(found.Tried, object.Attempt{Path: found.Path, Reason: reason, Kind: object.Mismatched})
		_ = m.Object.Close()
		m.Object, m.File = nil, ""
	} else if id := m.Object.BuildID(); found.Checked && len(id) > len(m.BuildID) && m.Object.IsELF() {
		m.BuildID = id // of which older Breakpads wrote the beginning
	}
}

// findLibraries looks for the modules without a file where the DT_RUNPATH of the others lead.
func (t *Target) findLibraries() {
	if t.os() != LinuxOS && t.os() != Android {
		return
	}
	finder := t.finder
	for _, m := range t.modules {
		finder = finder.WithLibrary(m.Object)
	}
	for _, m := range t.modules {
		if m.Object != nil && !m.Object.DebugOnly() {
			continue
		}
		if found := finder.FindLibrary(m.Path, m.BuildID); found.Object != nil {
			if m.Object != nil {
				_ = m.Object.Close()
			}
			t.open(m, found)
		}
	}
}

// find looks for the file of a module. Servers of debuginfod have files of ELF only.
func (t *Target) find(of *Module, m *target.Module, isExe bool) object.Found {
	switch t.os() {
	case Windows:
		return t.finder.FindCode(of.Name, m.BuildID, m.Symbols.CodeID, isExe)
	case MacOS, IOS:
		return t.finder.FindCode(of.Name, m.BuildID, "", isExe)
	}
	found := t.finder.Find(of.Name, m.BuildID, isExe)
	if found.Object == nil {
		t.findPart(of, m, &found)
	}
	return found
}

// findPart looks for a module in the middle of the file that is mapped at its base, such as
// an archive.
func (t *Target) findPart(of *Module, m *target.Module, found *object.Found) {
	for i := range t.Linux.Maps {
		at := &t.Linux.Maps[i]
		if at.Start != of.Base || at.Offset == 0 {
			continue
		}
		name, start, ok := t.finder.FindPart(at.Path, at.Offset, at.End-at.Start)
		if !ok || start != at.Offset {
			return
		}
		if part := t.finder.Find(name, m.BuildID, false); part.Object != nil {
			m.Path, *found = name, part
		}
		return
	}
}

// lowest is the first address of a module.
func lowest(m *target.Module) uint64 {
	low := ^uint64(0)
	for i := range m.Segments {
		low = min(low, m.Segments[i].Start)
	}
	return low
}

// symbolID is what stores of symbol files know a module by.
func (t *Target) symbolID(m *Module) target.SymbolID {
	return target.SymbolID{DebugFile: object.LastPart(cmp.Or(m.Identity.File, m.Name)), DebugID: m.Identity.DebugID(), CodeID: t.CodeID(m)}
}

// buildID is what tells the file of a module: the build ID of an ELF file, of which dumps
// of older Breakpads have the first 16 bytes; of a PE file the GUID and the age of its
// CodeView record, or its time and its size; the UUID of a Mach-O file.
func (t *Target) buildID(m *Module) []byte {
	id := &m.Identity
	switch {
	case id.Form == ELFID:
		return id.BuildID
	case t.os() == Windows && id.Form == PDB70 && id.DebugID() != "":
		return binary.BigEndian.AppendUint32(id.printedGUID(), id.Age)
	case t.os() == Windows && (m.Timestamp != 0 || m.Size != 0):
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, m.Timestamp), m.Size)
	case (t.os() == MacOS || t.os() == IOS) && id.DebugID() != "":
		return id.printedGUID()
	case id.Form == PDB70 && id.DebugID() != "":
		return slices.Clone(id.GUID[:])
	}
	return nil
}

// printedGUID are the bytes of a GUID in the order in which it is printed.
func (id *Identity) printedGUID() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 20), uint32(id.number[0]))
	b = binary.BigEndian.AppendUint16(b, uint16(id.number[1]))
	b = binary.BigEndian.AppendUint16(b, uint16(id.number[2]))
	for _, n := range id.number[3:] {
		b = append(b, byte(n))
	}
	return b
}

// otherCode says why a file cannot be what was loaded; "" where it can.
func (t *Target) otherCode(o *object.Object) string {
	if want := elfMachines[t.arch()]; o.Machine() != want {
		return fmt.Sprintf("it is for %s, the dump is of %s", object.DescribeMachine(o.Machine()), t.arch())
	}
	if len(o.Segments()) == 0 {
		return "it has nothing that is loaded"
	}
	return ""
}

// maxLoaded bounds the code objects that are made of memory.
const maxLoaded = 1 << 20

// takeLoaded makes the code object of a small module that the dump has all the memory of:
// the kernel's, for one, which is in no file.
func (t *Target) takeLoaded(m *target.Module, of *Module) {
	if of.Size == 0 || of.Size > maxLoaded || t.memoryAt(of.Base) == 0 {
		return
	}
	image := make([]byte, of.Size)
	if t.copyMemory(of.Base, image) < len(image) {
		return
	}
	o, err := t.finder.Store.Image(of.Name, image, nil)
	if err != nil {
		return
	}
	if t.otherCode(o) != "" || !isAsLoaded(o) {
		_ = o.Close()
		return
	}
	if m.Object != nil {
		_ = m.Object.Close()
	}
	m.Object, m.Problem = o, ""
	if len(m.BuildID) == 0 || o.HasID(m.BuildID) {
		m.BuildID = o.BuildID()
	}
}

// isAsLoaded says whether the bytes of an object lie in memory as they do in its file.
func isAsLoaded(o *object.Object) bool {
	first, _ := o.ImageBase()
	return !slices.ContainsFunc(o.Segments(), func(s object.Segment) bool { return s.Address-first != s.Offset })
}

// segments are where the parts of a module lie. Of one whose file is not there they are
// what the dump says to be mapped, or all of it, and addresses count from its base.
func (t *Target) segments(o *object.Object, m *Module, bases map[uint64]bool) (list []target.Segment) {
	if o != nil {
		bias := m.Base - t.addressAt(o, m.Base)
		for _, s := range o.Segments() {
			if start := s.Address + bias; s.MemSize > 0 && start+s.MemSize > start {
				list = append(list, target.Segment{Address: s.Address, Size: s.MemSize, Start: start, Executable: s.Flags&elf.PF_X != 0})
			}
		}
		return list
	}
	end := t.end(m, bases)
	if end <= m.Base {
		return nil
	}
	for _, r := range t.regionsOf(m.Base, end) {
		from, to := max(r.start, m.Base), min(r.end, end)
		list = append(list, target.Segment{Address: from - m.Base, Size: to - from, Start: from, Executable: r.isExecutable})
	}
	if list == nil {
		list = []target.Segment{{Size: uint64(m.Size), Start: m.Base, Executable: true}}
	}
	return list
}

// maxMappings is how many mappings one library has at most.
const maxMappings = 64

// end is where a module ends. LLDB writes the size of the first segment, which has no code, for
// a library that has no section headers in memory: what is mapped behind that of the same file is
// the library's, too, up to the next of bases, where modules begin.
func (t *Target) end(m *Module, bases map[uint64]bool) uint64 {
	end := m.Base + uint64(m.Size)
	regions := t.regionsOf(m.Base, ^uint64(0))
	for i, r := range regions[:min(len(regions), maxMappings)] {
		isNext := i == 0 && r.start <= m.Base || i > 0 && r.file == regions[0].file && r.offset > regions[i-1].offset && !bases[r.start]
		isSaid := r.isExecutable && r.start < m.Base+uint64(m.Size)
		if r.file == "" || !isNext || isSaid {
			break
		}
		end = max(end, r.end)
	}
	return end
}

// addressAt is the address of an object that lies at the base of its module: its first
// page, unless the dump says that another part of the file is mapped there.
func (t *Target) addressAt(o *object.Object, base uint64) uint64 {
	for i := range t.Linux.Maps {
		m := &t.Linux.Maps[i]
		if m.Start != base {
			continue
		}
		for _, s := range o.Segments() {
			if s.Offset&^(pageSize-1) == m.Offset {
				return s.Address &^ (pageSize - 1)
			}
		}
	}
	first, _ := o.ImageBase()
	return first
}
