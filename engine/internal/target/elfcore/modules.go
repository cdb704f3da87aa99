// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/wine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// maxModules bounds the code objects of a process, each of which may be a file that is mapped
// here.
const maxModules = 1 << 14

// vdsoPath is the kernel's name of the vDSO in /proc/PID/maps.
const vdsoPath = "[vdso]"

// finderKey has the arguments of a call of the Finder.
type finderKey struct {
	path, buildID string
	isExe         bool
}

// noCode is the problem of a core without information about code.
const noCode = "neither NT_FILE nor NT_AUXV: what code was loaded is not known"

// modules makes the modules of a core.
type modules struct {
	*Core
	exe      executable
	links    []link
	found    map[finderKey]*object.Found // each file is opened once
	hasCode  map[string]bool             // see mayHaveCode
	dynamics map[uint64]bool             // the addresses of the modules' PT_DYNAMIC
	exeOwner *image                      // of the executable's module
	isFull   bool                        // no more modules are added
	fits     int                         // how many biases may still be compared
	parts    map[string]string           // the files of modules that are parts of a file
	isWine   bool                        // PE files may be loaded
	loaded   map[uint64]wine.Module      // of Wine's loader, by address; nil: it was not read
}

// maxFound bounds the files that are looked for.
const maxFound = 1 << 16

// findModules finds the code that was loaded: first by NT_FILE, then the code that only the
// auxiliary vector and the dynamic loader's list have. Without NT_FILE (the kernel leaves it out
// if it is larger than core_file_note_size_limit) these two have all.
func (c *Core) findModules() {
	if c.process.files == nil && c.process.auxv == nil {
		if !c.isGraphics() {
			c.problem("%s", noCode)
		}
		return
	}
	m := &modules{Core: c, found: map[finderKey]*object.Found{}, dynamics: map[uint64]bool{}, fits: maxFits}
	m.exe = c.findExecutable()
	m.readLinks()
	m.addVDSO()
	m.isWine = m.Core.isWine()
	m.addFromFiles()
	if m.isWine {
		m.addUnmappedPE()
	}
	if !m.exe.isKnown && m.exeOwner != nil {
		// The file of the executable has the program headers that the core lacks.
		m.exe = executable{isKnown: true, bias: m.exeOwner.bias, programs: m.exeOwner.programs}
		m.readLinks()
	}
	m.addExecutable()
	m.addFromLinks()
	m.addInterpreter()
	c.memory.settle()

	target.SortModules(c.modules)
	m.markExecutable()
}

// readLinks reads the dynamic loader's entries, and sorts them by the address of their
// PT_DYNAMIC.
func (m *modules) readLinks() {
	if m.kind == trace.LiveProcess {
		return // NT_FILE has all
	}
	m.links = m.Core.links(&m.exe)
	slices.SortStableFunc(m.links, func(a, b link) int { return cmp.Compare(a.dynamic, b.dynamic) })
}

// markExecutable marks the mappings of NT_FILE that their modules have as executable.
func (m *modules) markExecutable() {
	if m.process.files == nil {
		return
	}
	for _, mod := range m.modules {
		for _, s := range mod.Segments {
			if !s.Executable {
				continue
			}
			ranges := m.process.files.overlapping(s.Start, s.Size)
			for i := range ranges {
				ranges[i].isExecutable = true
			}
		}
	}
}

// find opens a file of the target, once.
func (m *modules) find(name string, buildID []byte, isExe bool) object.Found {
	key := finderKey{name, string(buildID), isExe}
	if found := m.found[key]; found != nil {
		return *found
	}
	if len(m.found) >= maxFound {
		return object.Found{Problem: fmt.Sprintf("%s: not looked for, as the core names more than %d files", name, maxFound)}
	}
	found := m.Core.find(name, buildID, isExe)
	m.found[key] = &found
	return found
}

// mayHaveCode reports whether a mapped file may be a code object. If the core does not tell
// access rights, most mapped files are data.
func (m *modules) mayHaveCode(name string) bool {
	has, ok := m.hasCode[name]
	switch {
	case ok:
		return has
	case len(m.hasCode) >= maxFound:
		return true // find reports that it is not looked for
	}
	has = m.finder.HasCode(name)
	if m.hasCode == nil {
		m.hasCode = map[string]bool{}
	}
	m.hasCode[name] = has
	return has
}

// find opens a file of the target, which stays open as long as the core. It rejects files for
// another machine.
func (c *Core) find(name string, buildID []byte, isExe bool) object.Found {
	c.hasSoughtExe = c.hasSoughtExe || isExe
	found := c.finder.Find(name, buildID, isExe)
	if found.Object == nil {
		return found
	}
	c.objects = append(c.objects, found.Object)
	if found.Object.IsPE() {
		// Wine maps such files, not by ELF program headers.
		reason := fmt.Sprintf("%s was not used: it is a PE file", found.Path)
		return object.Found{Problem: reason, Tried: append(found.Tried, object.Attempt{Path: found.Path, Reason: object.ErrNotELF.Error(), Kind: object.Unreadable})}
	}
	if reason := c.foreign(found.Object); reason != "" {
		return object.Found{Problem: fmt.Sprintf("%s was not used: %s", found.Path, reason), Tried: append(found.Tried, object.Attempt{Path: found.Path, Reason: reason, Kind: object.Mismatched})}
	}
	return found
}

// foreign returns why an object cannot be of this core's process; "" if it can.
func (c *Core) foreign(o *object.Object) string {
	switch {
	case o.Machine() != c.header.machine:
		return fmt.Sprintf("it is for %s, the core is of %s", object.DescribeMachine(o.Machine()), object.DescribeMachine(c.header.machine))
	case o.AddressSize() != c.header.size() || o.ByteOrder() != c.header.order:
		return "its class or byte order is not that of the core"
	}
	return ""
}

// add adds the module of an image. Its file is looked for unless found has it.
func (m *modules) add(name string, im *image, isExe bool, found *object.Found) {
	if m.isFull {
		return
	}
	if address, ok := dynamic(m.header.numbers, im.programs, im.bias); ok {
		m.dynamics[address] = true
	}
	if found == nil {
		f := m.find(name, im.buildID, isExe)
		found = &f
	}
	mod := &target.Module{
		Module: trace.Module{
			Path:     strings.TrimSuffix(name, deletedSuffix),
			BuildID:  im.buildID,
			File:     found.File(),
			Problem:  found.Problem,
			Segments: m.segments(im),
		},
		Object: found.Object,
		Tried:  found.Tried,
	}
	if found.Object != nil && !found.Checked && im.headers != nil {
		// Without a build ID the headers in memory may tell that another file was
		// loaded.
		id, inMemory := m.memoryBuildID(found.Object, im.bias)
		reason := sameImage(im, found.Object)
		if inMemory && !bytes.Equal(id, found.Object.BuildID()) {
			reason = fmt.Sprintf("its build ID is %x, in memory %x is in that place", found.Object.BuildID(), id)
		}
		switch {
		case reason != "":
			mod.Object = nil
			mod.Problem = fmt.Sprintf("%s was not used: %s", found.Path, reason)
			mod.Tried = append(slices.Clone(found.Tried), object.Attempt{Path: found.Path, Reason: reason, Kind: object.Mismatched})
		case inMemory:
			mod.BuildID, mod.Problem = id, ""
		default:
			mod.Problem += "; its program headers are those in memory"
		}
	}
	if mod.Object == nil || mod.Object.DebugOnly() {
		mod.File = ""
		m.takeLoaded(mod, im)
	} else if mod.File != "" {
		m.memory.addFiles(mod, fileSegments(mod.Object, m.header.numbers, im, m.mappedPath(name, im), m.process.files))
	}
	m.keepMoved(mod, im, name)
	if im.offset != 0 && mod.BuildID == nil && mod.Object != nil {
		mod.BuildID, mod.IsAssumed = mod.Object.BuildID(), true
	}
	if isExe && m.exeOwner == nil {
		m.exeOwner = im
		m.finder = m.finder.WithProgram(name, mod.Object)
	}
	m.register(mod)
}

// takeLoaded sets the code object of a module whose file was not found to one assembled from
// memory.
func (c *Core) takeLoaded(mod *target.Module, im *image) {
	o, err := c.rebuild(mod.Path, im)
	switch {
	case err == nil:
		mod.Object = o
		mod.Problem += "; it is read from the " + c.noun() + "'s memory, without section headers"
	case im.headers != nil:
		mod.Problem += fmt.Sprintf("; it is not read from the %s's memory: %v", c.noun(), err)
	}
}

// register adds a module to the target.
func (m *modules) register(mod *target.Module) {
	if len(m.modules) >= maxModules {
		if !m.isFull {
			m.isFull = true
			m.problem("more than %d code objects are loaded: the others are left out, the first is %s", maxModules, mod.Path)
		}
		return
	}
	mod.Arch = m.header.arch()
	if m.description != nil {
		mod.Arch = m.description.Name
	}
	m.modules = append(m.modules, mod)
}

// segments returns the segments of an image as they were loaded.
func (m *modules) segments(im *image) []trace.Segment {
	var list []trace.Segment
	for _, p := range im.programs {
		if p.Type != elf.PT_LOAD || p.MemSize == 0 {
			continue
		}
		start := m.header.mask(p.Address + im.bias)
		list = append(list, trace.Segment{
			Address:    p.Address,
			Size:       min(p.MemSize, m.header.mask(^uint64(0))-start),
			Start:      start,
			Executable: p.Flags&elf.PF_X != 0,
		})
	}
	return list
}

// addVDSO adds the vDSO, the code that the kernel maps into each process. It is
// in no file; the core has all of it, section headers too.
func (m *modules) addVDSO() {
	start := m.process.auxv[atSysinfoEHDR]
	if start == 0 {
		return
	}
	size := uint64(maxVDSO)
	if s := m.memory.segment(start); s != nil {
		size = min(size, s.start+s.size-start)
	}
	b := m.memory.readDumped(start, size)
	if len(b) == 0 {
		m.problem("the vDSO at address %#x (AT_SYSINFO_EHDR) is not in the %s: its calls are not walked by its own rules", start, m.noun())
		return
	}
	if m.finder.Store == nil {
		b = bytes.Clone(b) // readDumped may return the core's own bytes
	}
	o, err := m.finder.Store.Image(vdsoPath, b, nil)
	if err != nil {
		m.problem("the vDSO at address %#x (AT_SYSINFO_EHDR): %v", start, err)
		return
	}
	m.objects = append(m.objects, o)
	if reason := m.foreign(o); reason != "" {
		m.problem("the vDSO at address %#x (AT_SYSINFO_EHDR) is not used: %s", start, reason)
		return
	}
	im, ok := m.imageAt(start)
	if !ok {
		m.problem("the vDSO at address %#x (AT_SYSINFO_EHDR) has no program header for its ELF header", start)
		return
	}
	m.add(vdsoPath, &im, false, &object.Found{Object: o, Checked: true})
}

// deletedSuffix is appended by the kernel to the path of a file that was deleted.
const deletedSuffix = " (deleted)"

// isFile reports whether a mapping's path can be the path of a file with code. Other names
// stand for shared memory ("/dev/zero (deleted)", "/SYSV00000000 (deleted)",
// "/memfd:NAME (deleted)"), devices, and "anon_inode:NAME".
func isFile(name string) bool {
	return strings.HasPrefix(name, "/") && !strings.HasSuffix(name, deletedSuffix) &&
		!strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/SYSV") && !strings.HasPrefix(name, "/memfd:") && !strings.HasPrefix(name, "/anon_hugepage")
}

// addFromFiles adds the modules of NT_FILE. Consecutive mappings of a path are one group.
func (m *modules) addFromFiles() {
	if m.process.files == nil {
		return
	}
	list := m.process.files.list
	for len(list) > 0 && !m.isFull {
		n := 1
		for n < len(list) && list[n].path == list[0].path {
			n++
		}
		m.addGroup(list[:n:n])
		list = list[n:]
	}
}

// addGroup adds the modules among the mappings of one path: usually one, none
// for data, several if the file is loaded more than once.
//
// If the core has the memory of a mapping of the file's start, the ELF header and
// program headers there describe the loaded image. Else the executable segments
// of the file itself are looked for among the executable mappings. Link editors
// let adjacent segments share a page of the file, so an offset may fit several
// segments; a segment that is not executable is never taken for code.
func (m *modules) addGroup(group []fileRange) {
	if m.isWine && m.addPEGroup(group) {
		return
	}
	name := group[0].path
	isExe := m.isExecutable(group)
	claimed := make([]bool, len(group))
	isPlaced := false
	var buildID []byte // of the images that were added
	for i, r := range group {
		if claimed[i] {
			continue
		}
		im, ok := m.imageAt(r.start)
		if !ok {
			continue
		}
		im.offset = r.offset
		if _, loaded := m.mapped(name, &im); !loaded {
			continue
		}
		if im.offset != 0 {
			m.addPart(name, &im, r)
			m.claim(&im, group, claimed)
			continue
		}
		m.add(name, &im, isExe, nil)
		m.claim(&im, group, claimed)
		isPlaced, buildID = true, im.buildID
	}
	if isFile(name) {
		m.addRest(group, claimed, isExe, isPlaced, buildID)
	}
}

// addRest adds the modules among the mappings of one path that no header in memory
// has claimed: they may be code whose header was not dumped. isPlaced means that
// another image of the file was found by its header, and has buildID.
func (m *modules) addRest(group []fileRange, claimed []bool, isExe, isPlaced bool, buildID []byte) {
	var rest []fileRange
	isCode, mayBeCode := false, false
	for i, r := range group {
		if claimed[i] {
			continue
		}
		s := m.memory.segment(r.start)
		switch {
		case s != nil && s.flags&elf.PF_X != 0:
			isCode = true
		case s == nil && !isPlaced:
			mayBeCode = true
		}
		rest = append(rest, r)
	}
	name := group[0].path
	isKnown := !isPlaced && (isExe || m.isLinked(group))
	if !isCode && !isKnown && (!mayBeCode || !m.mayHaveCode(name)) {
		return
	}
	found := m.find(name, nil, isExe)
	if found.Object == nil {
		if m.addParts(group, claimed) {
			return
		}
		if isCode && !isNotELF(found.Tried) || isKnown {
			m.addMissing(rest, found.Problem)
		}
		return
	}
	fits := false
	for {
		im, ok := m.fit(name, 0, found.Object, group, claimed)
		if !ok {
			break
		}
		fits = true
		m.add(name, &im, isExe, &found)
		m.claim(&im, group, claimed)
	}
	if !fits && len(buildID) > 0 {
		rest = m.addCopies(name, found.Object, buildID, rest)
	}
	if !fits && isCode && m.addParts(group, claimed) {
		return
	}
	if !fits && (isCode || isKnown) && len(rest) > 0 {
		m.addMissing(rest, fmt.Sprintf("%s was not used: its segments are not what was mapped", found.Path))
	}
}

// addCopies adds a module for each executable mapping that lies in one executable
// segment of an object that is loaded elsewhere, and returns the other mappings. V8 maps
// a part of its code a second time, near the code that it compiles.
func (m *modules) addCopies(name string, o *object.Object, buildID []byte, group []fileRange) (rest []fileRange) {
	for _, r := range group {
		p, ok := segmentWith(o, r)
		if s := m.memory.segment(r.start); !ok || s == nil || s.flags&elf.PF_X == 0 {
			rest = append(rest, r)
			continue
		}
		p.Address += r.offset - p.Offset
		p.Offset, p.FileSize, p.MemSize = r.offset, r.end-r.start, r.end-r.start
		m.add(name, &image{bias: m.header.mask(r.start - p.Address), programs: []object.Program{p}, buildID: buildID}, false, nil)
	}
	return rest
}

// segmentWith returns the executable segment that has a mapping's bytes.
func segmentWith(o *object.Object, r fileRange) (object.Program, bool) {
	for p := range loads(o.Programs()) {
		if size := r.end - r.start; p.Flags&elf.PF_X != 0 && r.offset >= p.Offset && size <= p.FileSize && r.offset-p.Offset <= p.FileSize-size {
			return *p, true
		}
	}
	return object.Program{}, false
}

// isNotELF reports whether a file that was tried exists and is no ELF file.
func isNotELF(tried []object.Attempt) bool {
	for _, t := range tried {
		if t.Reason == object.ErrNotELF.Error() {
			return true
		}
	}
	return false
}

// isExecutable reports whether mappings are of the main executable: they contain the
// program headers and the entry point of NT_AUXV. Without NT_AUXV it is the file
// with the process's name.
func (m *modules) isExecutable(group []fileRange) bool {
	for _, typ := range []uint64{atPHDR, atEntry} {
		if address := m.process.auxv[typ]; address != 0 {
			return containsAddress(group, address)
		}
	}
	// The kernel keeps 15 bytes of a name, gdb 16.
	base := path.Base(group[0].path)
	return base == m.process.name || len(m.process.name) >= 15 && strings.HasPrefix(base, m.process.name)
}

// isLinked reports whether the dynamic loader has loaded the file of mappings.
func (m *modules) isLinked(group []fileRange) bool {
	if base := m.process.auxv[atBase]; base != 0 && containsAddress(group, base) {
		return true
	}
	_, ok := m.linkOf(group)
	return ok
}

// linkOf finds the dynamic loader's entry whose PT_DYNAMIC lies in mappings.
func (m *modules) linkOf(group []fileRange) (link, bool) {
	// The entries are sorted by it.
	from := sort.Search(len(m.links), func(i int) bool { return m.links[i].dynamic >= group[0].start })
	for _, l := range m.links[from:] {
		if l.dynamic >= group[len(group)-1].end {
			break
		}
		if containsAddress(group, l.dynamic) {
			return l, true
		}
	}
	return link{}, false
}

// containsAddress reports whether one of the sorted mappings contains an address.
func containsAddress(group []fileRange, address uint64) bool {
	i := sort.Search(len(group), func(i int) bool { return group[i].end > address })
	return i < len(group) && group[i].start <= address
}

// mapped counts the segments of an image that NT_FILE has at their addresses, and
// reports whether the image is loaded, rather than a file that is mapped to be
// read: an executable segment is mapped as executable, or all segments except
// moved code are at their addresses. The latter decides for libraries of data
// only, and for mappings whose rights are unknown, without a program header.
func (m *modules) mapped(name string, im *image) (count int, loaded bool) {
	all, moved := 0, 0
	for p := range loads(im.programs) {
		all++
		address := m.header.mask(p.Address + im.bias)
		r := m.process.files.containing(address)
		if m.isMoved(name, p, address) {
			moved++
		}
		if r == nil || r.path != name || r.offset+(address-r.start) != p.Offset+im.offset {
			continue
		}
		count++
		if s := m.memory.segment(address); p.Flags&elf.PF_X != 0 && s != nil && s.flags&elf.PF_X != 0 {
			loaded = true
		}
	}
	return count, loaded || count > 0 && count+moved == all
}

// claim marks the mappings of an image.
func (m *modules) claim(im *image, group []fileRange, claimed []bool) {
	for _, p := range im.programs {
		if p.Type != elf.PT_LOAD || p.MemSize == 0 {
			continue
		}
		// Mappings are of whole pages.
		start := m.header.mask(p.Address+im.bias) &^ (m.pageSize - 1)
		size := min(p.MemSize+(p.Address&(m.pageSize-1)), ^uint64(0)-start)
		i := sort.Search(len(group), func(i int) bool { return group[i].end > start })
		for ; i < len(group) && group[i].start < start+size; i++ {
			claimed[i] = true
		}
	}
}

// maxFits bounds the biases that fit compares for all files together. Real cores
// have one or two for each file whose header was not dumped.
const maxFits = 1 << 18

// fit finds the image of an object among mappings that are not claimed yet: each
// executable segment suggests a bias, and the bias that fits most segments is
// taken. offset is the offset of the object in the file.
func (m *modules) fit(name string, offset uint64, o *object.Object, group []fileRange, claimed []bool) (best image, ok bool) {
	if len(o.Programs()) > maxImagePrograms {
		return best, false
	}
	most := 0
	tried := map[uint64]bool{}
	for i, r := range group {
		if s := m.memory.segment(r.start); claimed[i] || s != nil && s.flags&elf.PF_X == 0 {
			continue
		}
		for p := range loads(o.Programs()) {
			if m.fits--; m.fits <= 0 {
				return best, ok
			}
			// A mapping may be a part of the segment whose rights were changed.
			first := (offset + p.Offset) &^ (m.pageSize - 1)
			if p.Flags&elf.PF_X == 0 || r.offset < first || r.offset-first >= p.FileSize+(offset+p.Offset-first) {
				continue
			}
			im := image{bias: m.header.mask(r.start - (r.offset - offset - p.Offset) - p.Address), programs: o.Programs(), offset: offset}
			if tried[im.bias] {
				continue
			}
			tried[im.bias] = true
			if count, loaded := m.mapped(name, &im); loaded && count > most {
				best, ok, most = im, true, count
			}
		}
	}
	return best, ok
}

// addMissing adds a module with neither a file nor a header in memory: only its
// mappings are known. Virtual addresses count from the bias of the dynamic
// loader's entry; without an entry from the first mapping, which is right for
// all except executables with fixed addresses.
func (m *modules) addMissing(group []fileRange, problem string) {
	mod := &target.Module{Module: trace.Module{Path: group[0].path, Problem: problem}}
	bias := group[0].start - group[0].offset
	if l, ok := m.linkOf(group); ok {
		bias = l.bias
		m.dynamics[l.dynamic] = true
	} else {
		mod.Problem += "; its addresses are counted from its first mapping, which is a guess"
	}
	for _, r := range group {
		s := m.memory.segment(r.start)
		mod.Segments = append(mod.Segments, trace.Segment{
			Address:    m.header.mask(r.start - bias),
			Size:       r.end - r.start,
			Start:      r.start,
			Executable: s == nil || s.flags&elf.PF_X != 0,
		})
	}
	m.register(mod)
}

// addExecutable adds the main executable if NT_FILE does not have it.
func (m *modules) addExecutable() {
	if !m.exe.isKnown || m.exeOwner != nil {
		return
	}
	im := image{bias: m.exe.bias, programs: m.exe.programs}
	for p := range loads(m.exe.programs) {
		if p.Offset < m.pageSize {
			if loaded, ok := m.imageAt(m.header.mask(p.Address - p.Offset + m.exe.bias)); ok && loaded.bias == m.exe.bias {
				im = loaded
			}
			break
		}
	}
	if im.buildID == nil {
		im.buildID = m.imageBuildID(im.programs, im.bias)
	}
	var found *object.Found
	if m.exe.file.Object != nil {
		found = &m.exe.file
	}
	m.add(m.executablePath(), &im, true, found)
}

// addFromLinks adds the dynamic loader's code objects that are not known yet.
func (m *modules) addFromLinks() {
	for _, l := range m.links {
		if m.dynamics[l.dynamic] || m.isFull {
			continue
		}
		m.dynamics[l.dynamic] = true
		name, _ := m.text(l.name)
		im, ok := m.imageAt(l.bias)
		if ok && m.isLink(&im, l) {
			m.add(name, &im, false, nil)
			continue
		}
		var found object.Found
		if name != "" {
			found = m.find(name, nil, false)
		} else {
			found.Problem = fmt.Sprintf("an entry of the dynamic loader's list with PT_DYNAMIC at address %#x has no name", l.dynamic)
		}
		if o := found.Object; o != nil {
			im = image{bias: l.bias, programs: o.Programs()}
			if len(im.programs) <= maxImagePrograms && m.isLink(&im, l) {
				im.buildID = m.imageBuildID(im.programs, im.bias)
				if id := o.BuildID(); im.buildID == nil || string(id) == string(im.buildID) {
					found.Checked = im.buildID != nil
					if found.Checked {
						found.Problem = ""
					}
					m.add(name, &im, false, &found)
					continue
				}
				found.Problem = fmt.Sprintf("%s: build ID is %x, expected %x", found.Path, o.BuildID(), im.buildID)
				found.Tried = append(found.Tried, object.Attempt{Path: found.Path, Reason: found.Problem, Kind: object.Mismatched})
			} else {
				found.Problem = fmt.Sprintf("%s was not used: its PT_DYNAMIC would not be at address %#x, where it was loaded", found.Path, l.dynamic)
				found.Tried = append(found.Tried, object.Attempt{Path: found.Path, Reason: found.Problem, Kind: object.Mismatched})
			}
		}
		m.register(&target.Module{Module: trace.Module{Path: name, Problem: found.Problem}, Tried: found.Tried})
	}
}

// isLink reports whether an image is that of a dynamic loader's entry.
func (m *modules) isLink(im *image, l link) bool {
	address, ok := dynamic(m.header.numbers, im.programs, im.bias)
	return ok && address == l.dynamic && im.bias == l.bias
}

// addInterpreter adds the dynamic loader if it is not known yet: it had not begun when the
// process ended.
func (m *modules) addInterpreter() {
	base := m.process.auxv[atBase]
	if base == 0 {
		return
	}
	im, ok := m.imageAt(base)
	if !ok {
		return
	}
	if address, ok := dynamic(m.header.numbers, im.programs, im.bias); !ok || m.dynamics[address] {
		return
	}
	name := ""
	for _, p := range m.exe.programs {
		if p.Type == elf.PT_INTERP {
			name, _ = m.text(m.header.mask(p.Address + m.exe.bias))
		}
	}
	m.add(name, &im, false, nil)
}
