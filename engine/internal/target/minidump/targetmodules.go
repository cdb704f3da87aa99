// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// pageSize is the size of the smallest pages: the first mapping of a file begins at one.
const pageSize = 4096

// addModules finds the files of the modules. The first one of the dump is the executable.
func (t *Target) addModules() {
	isExeUsed := t.finder.Exe == ""
	bases := map[uint64]bool{}
	for i := range t.Dump.Modules {
		bases[t.Dump.Modules[i].Base] = true
	}
	for i := range t.Dump.Modules {
		recorded := &t.Dump.Modules[i]
		m := &target.Module{
			Module: trace.Module{
				Path:    recorded.Name,
				BuildID: t.buildID(recorded),
				Symbols: t.symbolID(recorded),
				Version: t.ModuleVersion(recorded),
				Base:    recorded.Base,
				Size:    uint64(recorded.Size),
				Arch:    t.arch(),
				IsMachO: t.os() == MacOS || t.os() == IOS,
			},
		}
		isExeUsed = isExeUsed || i == 0
		t.open(m, t.find(recorded, m, i == 0))
		if i == 0 {
			t.finder = t.finder.WithProgram(recorded.Name, m.Object)
		}
		t.modules = append(t.modules, m)
	}
	t.findLibraries()
	for i := range t.Dump.Modules {
		m, recorded := t.modules[i], &t.Dump.Modules[i]
		if m.Object == nil || m.Object.DebugOnly() {
			t.takeLoaded(m, recorded)
		}
		m.Segments = t.segments(m.Object, recorded, bases)
	}
	if !isExeUsed {
		t.problem("%s was not used: the dump has no modules", t.finder.Exe)
	}
	target.SortModules(t.modules)
	t.files = target.NewFileBytes(t.modules)
}

// open sets the object that was found for a module.
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
		m.BuildID = id // older versions of Breakpad wrote only its beginning
	}
}

// findLibraries looks for modules without a file in the DT_RUNPATH of the others.
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
func (t *Target) find(recorded *Module, m *target.Module, isExe bool) object.Found {
	switch t.os() {
	case Windows:
		return t.finder.FindCode(recorded.Name, m.BuildID, m.Symbols.CodeID, recorded.Identity.File, isExe)
	case MacOS, IOS:
		return t.finder.FindCode(recorded.Name, m.BuildID, "", "", isExe)
	}
	found := t.finder.Find(recorded.Name, m.BuildID, isExe)
	if found.Object == nil {
		t.findPart(recorded, m, &found)
	}
	return found
}

// findPart looks for a module in the middle of the file that is mapped at its base, such as
// an archive.
func (t *Target) findPart(recorded *Module, m *target.Module, found *object.Found) {
	for i := range t.Linux.Maps {
		mapping := &t.Linux.Maps[i]
		if mapping.Start != recorded.Base || mapping.Offset == 0 {
			continue
		}
		name, start, ok := t.finder.FindPart(mapping.Path, mapping.Offset, mapping.End-mapping.Start)
		if !ok || start != mapping.Offset {
			return
		}
		if part := t.finder.Find(name, m.BuildID, false); part.Object != nil {
			m.Path, *found = name, part
		}
		return
	}
}

// symbolID returns the IDs of a module in stores of symbol files.
func (t *Target) symbolID(m *Module) trace.SymbolID {
	return trace.SymbolID{DebugFile: object.LastPart(cmp.Or(m.Identity.File, m.Name)), DebugID: m.Identity.DebugID(), CodeID: t.CodeID(m)}
}

// buildID returns the identity of a module's file: the build ID of an ELF file, of which
// older versions of Breakpad wrote the first 16 bytes; of a PE file the GUID and the age of
// its CodeView record, or its time and its size; the UUID of a Mach-O file.
func (t *Target) buildID(m *Module) []byte {
	id := &m.Identity
	switch {
	case id.Format == ELFID:
		return id.BuildID
	case t.os() == Windows && id.Format == PDB70 && id.DebugID() != "":
		return binary.BigEndian.AppendUint32(id.printedGUID(), id.Age)
	case t.os() == Windows && (m.Timestamp != 0 || m.Size != 0):
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, m.Timestamp), m.Size)
	case (t.os() == MacOS || t.os() == IOS) && id.DebugID() != "":
		return id.printedGUID()
	case id.Format == PDB70 && id.DebugID() != "":
		return slices.Clone(id.GUID[:])
	}
	return nil
}

// printedGUID returns the bytes of a GUID in the order in which it is printed.
func (id *Identity) printedGUID() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 20), uint32(id.number[0]))
	b = binary.BigEndian.AppendUint16(b, uint16(id.number[1]))
	b = binary.BigEndian.AppendUint16(b, uint16(id.number[2]))
	for _, n := range id.number[3:] {
		b = append(b, byte(n))
	}
	return b
}

// otherCode returns the reason why a file cannot be the loaded one; "" where it can.
func (t *Target) otherCode(o *object.Object) string {
	if want := elfMachines[t.arch()]; o.Machine() != want {
		what := "it is for " + object.DescribeMachine(o.Machine())
		if o.IsPE() && o.PE().Hybrid() != "" {
			what = "it is " + o.PE().Hybrid()
		}
		what += fmt.Sprintf(", the dump is of %s", t.arch())
		if t.os() == Windows && t.arch() == ArchARM64 && (o.Machine() == elfMachines[ArchAMD64] || o.Machine() == elfMachines[ArchX86]) {
			what += ", where such code runs under emulation"
		}
		return what
	}
	if len(o.Segments()) == 0 {
		return "it has nothing that is loaded"
	}
	return ""
}

// maxLoaded bounds the code objects that are read from memory.
const maxLoaded = 1 << 20

// takeLoaded reads the code object of a module from memory, as far as the dump has it: of a PE file
// whose file is elsewhere, or of a small module in whole; the kernel's vDSO, for one, has no file.
func (t *Target) takeLoaded(m *target.Module, recorded *Module) {
	b, _ := t.bytesAt(recorded.Base)
	var o *object.Object
	switch {
	case recorded.Size == 0 || len(b) == 0:
		return
	case b[0] == 'M':
		o = t.loadedPE(m, recorded)
	case recorded.Size <= maxLoaded:
		o = t.loadedWhole(recorded)
	}
	if o == nil {
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

// loadedWhole reads a module that is in memory as in its file; nil where it is not.
func (t *Target) loadedWhole(recorded *Module) *object.Object {
	image := make([]byte, recorded.Size)
	if _, err := t.Dump.ReadMemory(recorded.Base, image); err != nil {
		return nil
	}
	o, err := t.finder.Store.Image(recorded.Name, image, nil)
	if err != nil {
		return nil
	}
	if t.otherCode(o) != "" || !isAsLoaded(o) {
		_ = o.Close()
		return nil
	}
	return o
}

// loadedPE opens the image of a PE file where it lies in the dump; nil where it is not that of the
// module, or its headers are not there.
func (t *Target) loadedPE(m *target.Module, recorded *Module) *object.Object {
	pieces := t.pieces(recorded)
	if !t.spend(m, recorded, len(pieces)) {
		return nil
	}
	o, err := object.NewLoaded(recorded.Name, t.data, pieces)
	if err != nil {
		return nil
	}
	f := o.PE()
	if !t.spend(m, recorded, len(f.Sections())) {
		_ = o.Close()
		return nil
	}
	reason := t.otherCode(o)
	if isBuild := f.TimeDateStamp() == recorded.Timestamp && f.SizeOfImage() == recorded.Size; reason == "" && !isBuild && !o.HasID(m.BuildID) {
		reason = fmt.Sprintf("it has time %#x and size %#x, the list of modules has %#x and %#x", f.TimeDateStamp(), f.SizeOfImage(), recorded.Timestamp, recorded.Size)
	}
	if reason != "" {
		m.Problem = fmt.Sprintf("the image of %s in the dump's memory was not used: %s", recorded.Name, reason)
		_ = o.Close()
		return nil
	}
	if id, err := f.Identity(); err == nil && m.Symbols.DebugID == "" && id.HasCodeView {
		m.Symbols.DebugFile, m.Symbols.DebugID = object.LastPart(cmp.Or(id.PDB, recorded.Name)), id.DebugID()
	}
	return o
}

// spend counts the parts of an image in memory, which have spentOn bytes of the dump at least. Images lie apart,
// so that all of them together have no more than the dump; where modules share memory the later ones are
// not read.
func (t *Target) spend(m *target.Module, recorded *Module, count int) bool {
	const spentOn = 40 // of a section
	if t.spent += uint64(count)*spentOn + spentOn; t.spent <= uint64(len(t.data)) {
		return true
	}
	m.Problem = fmt.Sprintf("the image of %s in the dump's memory was not read: the images before it have as many parts as the dump has bytes for", recorded.Name)
	return false
}

// pieces returns where the memory of a module is in the dump. Ranges that follow one another in both are
// one.
func (t *Target) pieces(m *Module) (list []object.Piece) {
	first := sort.Search(len(t.memory), func(i int) bool { return t.memory[i].end() > m.Base })
	for i := first; i < len(t.memory); i++ {
		b := &t.memory[i]
		start := max(b.Start, m.Base)
		rva, end := start-m.Base, min(b.end()-m.Base, uint64(m.Size))
		if rva >= end {
			break
		}
		p := object.Piece{RVA: uint32(rva), Size: end - rva, Offset: b.Offset + (start - b.Start)} //nolint:gosec // below m.Size
		if n := len(list) - 1; n >= 0 && uint64(list[n].RVA)+list[n].Size == uint64(p.RVA) && list[n].Offset+list[n].Size == p.Offset {
			list[n].Size += p.Size
			continue
		}
		list = append(list, p)
	}
	return list
}

// isAsLoaded reports whether an object has the same layout in memory as in its file.
func isAsLoaded(o *object.Object) bool {
	first, _ := o.ImageBase()
	return !slices.ContainsFunc(o.Segments(), func(s object.Segment) bool { return s.Address-first != s.Offset })
}

// segments returns the addresses of a module's parts. Without a file they are the dump's
// mappings, or the whole module, and addresses count from its base.
func (t *Target) segments(o *object.Object, m *Module, bases map[uint64]bool) (list []trace.Segment) {
	if o != nil {
		bias := m.Base - t.addressAt(o, m.Base)
		for _, s := range o.Segments() {
			if start := s.Address + bias; s.MemSize > 0 && start+s.MemSize > start {
				list = append(list, trace.Segment{Address: s.Address, Size: s.MemSize, Start: start, Executable: s.Flags&elf.PF_X != 0})
			}
		}
		return list
	}
	end := t.end(m, bases)
	if end <= m.Base {
		return nil
	}
	for _, r := range t.regionsOf(m.Base, end) {
		start, stop := max(r.start, m.Base), min(r.end, end)
		list = append(list, trace.Segment{Address: start - m.Base, Size: stop - start, Start: start, Executable: r.isExecutable})
	}
	if list == nil {
		list = []trace.Segment{{Size: uint64(m.Size), Start: m.Base, Executable: true}}
	}
	return list
}

// maxMappings bounds the mappings of one library.
const maxMappings = 64

// end returns the end of a module. For a library without section headers in memory LLDB writes
// the size of the first segment, which has no code: mappings of the same file behind it belong
// to the library, too, up to the next of bases, the starts of modules.
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

// addressAt returns the address within an object that is at the base of its module: the
// object's first page, unless another part of the file is mapped there.
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
