// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// A core may be made of sections in place of segments: the whole state of its processors is
// in tables that the plugin of its machine reads, by the addresses of sdk.FileSpace, which
// are offsets in the file.

// sectionCore is a core that is made of sections.
type sectionCore struct {
	path    string
	data    []byte
	machine object.ELFMachine
	file    sdk.TargetFile
}

// hasSections reports whether a core is made of sections: it has no program headers.
func hasSections(h *coreHeader, data []byte) bool {
	tail := h.offset(40, 52)
	return h.order.Uint16(data[tail+4:]) == 0 && h.pick(data, 32, 40) != 0
}

// readSections reads where the section headers of a core are (System V gABI, ELF Header). Their
// number is that of the section headers that are in the file, and problems tell of others.
func readSections(h *coreHeader, data []byte) (f sdk.TargetFile, problems []string, err error) {
	tail, least, end := h.offset(40, 52), uint64(h.offset(40, 64)), uint64(len(data))
	f = sdk.TargetFile{
		Machine: h.machine, OSABI: data[elf.EI_OSABI], ABIVersion: data[elf.EI_ABIVERSION], Flags: h.flags, Size: end,
		SectionsOffset: h.pick(data, 32, 40), SectionSize: uint32(h.order.Uint16(data[tail+6:])),
		Sections: uint64(h.order.Uint16(data[tail+8:])), SectionNames: uint32(h.order.Uint16(data[tail+10:])),
	}
	switch {
	case uint64(f.SectionSize) < least:
		return f, nil, fmt.Errorf("offset %#x: section headers of %d bytes, expected %d", tail+6, f.SectionSize, least)
	case f.SectionsOffset > end || end-f.SectionsOffset < least:
		return f, nil, fmt.Errorf("the section headers at offset %#x are past the end of the file at %#x", f.SectionsOffset, end)
	}
	// More sections than the ELF header can tell are counted in the first section header.
	first := data[f.SectionsOffset:]
	if f.Sections == 0 {
		f.Sections = h.pick(first, 20, 32)
	}
	if elf.SectionIndex(f.SectionNames) == elf.SHN_XINDEX {
		f.SectionNames = h.order.Uint32(first[h.offset(24, 40):])
	}
	there := (end - f.SectionsOffset) / uint64(f.SectionSize)
	if rest := (end - f.SectionsOffset) % uint64(f.SectionSize); rest >= least {
		there++
	}
	if there < f.Sections {
		problems = append(problems, fmt.Sprintf("the file ends at offset %#x, within the section headers at offset %#x: %d of %d are there",
			end, f.SectionsOffset, there, f.Sections))
		f.Sections = there
	}
	return f, problems, nil
}

// newSectionCore describes a core that is made of sections.
func newSectionCore(path string, h *coreHeader, data []byte) (s *sectionCore, problems []string, err error) {
	f, problems, err := readSections(h, data)
	if err != nil {
		return nil, nil, err
	}
	return &sectionCore{path: path, data: data, machine: h.elfMachine(), file: f}, problems, nil
}

// openSections lets the plugin of its machine read a core that is made of sections.
func (c *Core) openSections(options Options) {
	s := c.sections
	if s == nil {
		return
	}
	err := target.ErrNoArchitecture
	var reader NoteReader
	if options.ForFile != nil {
		reader, err = options.ForFile(s.machine)
	}
	switch {
	case errors.Is(err, target.ErrNoArchitecture):
	case err != nil:
		c.hasUnread = true
		c.problem("the sections of %s are not read: %v", s.path, err)
	default:
		c.hasReadSections = c.openTarget("sections", reader, &sdk.OpenTargetRequest{File: &s.file})
	}
}

// openTarget lets a plugin read its notes or its sections, which what names, and reports
// whether it read any.
func (c *Core) openTarget(what string, reader NoteReader, request *sdk.OpenTargetRequest) bool {
	a, err := reader.OpenTarget(context.Background(), &coreEngine{Core: c}, request)
	if err != nil {
		c.hasUnread = true
		c.problem("the %s are not read: %v", what, err)
		return true
	}
	for _, p := range a.Problems {
		c.problem("%s: %s", what, p)
	}
	c.hasUnread = c.hasUnread || len(a.Threads) == 0 && len(a.Problems) > 0
	if a.Kind == "" && len(a.Threads) == 0 && len(a.Objects) == 0 {
		return len(a.Problems) > 0
	}
	c.kind = cmp.Or(trace.Kind(a.Kind), c.kind)
	d := devices{Core: c, description: reader.Description(), answer: a}
	if c.ofDevices == nil {
		c.ofDevices = map[string]*sdk.Description{}
	}
	c.ofDevices[d.description.Name] = d.description
	d.addMemory()
	d.addObjects()
	d.addThreads()
	return true
}

// fileBytes returns the bytes of sdk.FileSpace: of the core that is made of sections, else of
// the core itself.
func (c *Core) fileBytes() []byte {
	if c.sections != nil {
		return c.sections.data
	}
	return c.memory.data
}

// readFile reads from sdk.FileSpace.
func (c *Core) readFile(offset uint64, buf []byte) (n int, err error) {
	data := c.fileBytes()
	if offset < uint64(len(data)) {
		if err := object.Guard(func() error { n = copy(buf, data[offset:]); return nil }); err != nil {
			return 0, err
		}
	}
	if n < len(buf) {
		return n, fmt.Errorf("%w: the file ends at offset %#x", target.ErrNoMemory, len(data))
	}
	return n, nil
}

// addMemory adds the memory that all threads see. That of the default address space becomes
// segments.
func (d *devices) addMemory() {
	size := uint64(len(d.fileBytes()))
	var segments []segment
	var cut int
	var firstCut string
	for _, m := range d.answer.Memory {
		if m.Into == sdk.FileSpace && (m.Address > size || m.Size > size-m.Address) {
			if cut++; cut == 1 {
				firstCut = fmt.Sprintf("%#x bytes at address %#x, which are at offset %#x", m.Size, m.Start, m.Address)
			}
			m.Size = size - min(m.Address, size)
		}
		switch {
		case m.Size == 0:
		case m.Space == locexpr.DefaultSpace:
			// The highest address is left out, so that start+size never wraps.
			m.Size = min(m.Size, math.MaxUint64-m.Start)
			segments = append(segments, segment{
				start: m.Start, size: m.Size, data: d.fileBytes(), offset: m.Address, dumped: m.Size, written: m.Size, flags: elf.PF_R | elf.PF_W,
			})
		default:
			if d.shared == nil {
				d.shared = map[locexpr.AddressSpace]*target.PlacedMemory{}
			}
			if d.shared[m.Space] == nil {
				d.shared[m.Space] = &target.PlacedMemory{}
			}
			d.shared[m.Space].Add(m)
		}
	}
	if cut > 0 {
		d.problem("the file is cut at offset %#x: memory in %d places is lost, the first is %s", size, cut, firstCut)
	}
	for _, m := range d.shared {
		m.Settle()
	}
	if len(segments) == 0 {
		return
	}
	d.memory.segments = append(d.memory.segments, segments...)
	if n, first := d.memory.separate(); n > 0 {
		d.problem("memory in %d places overlaps one that starts before it, the first at address %#x", n, first)
	}
}

// readShared reads an address space that all threads share, apart from the default one.
func (c *Core) readShared(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if m := c.shared[space]; m != nil {
		return m.Read(c, address, buf)
	}
	return 0, fmt.Errorf("address space %d, address %#x: %w", space, address, target.ErrNoMemory)
}

// fileObject opens the image of a code object in sdk.FileSpace.
func (d *devices) fileObject(described *sdk.TargetObject) (*object.Object, error) {
	if described.Size > d.imageBudget {
		return nil, fmt.Errorf("its image of %#x bytes at offset %#x: the images would have more bytes than the file", described.Size, described.MemoryAddress)
	}
	d.imageBudget -= described.Size
	o, err := d.finder.Store.Part(d.path, described.URI, d.fileBytes(), described.MemoryAddress, described.Size)
	if err == nil {
		d.objects = append(d.objects, o)
	}
	return o, err
}

// addFileObject adds a code object whose image is in sdk.FileSpace. The image is the object as
// it was loaded, or as it was before: where its program headers do not lead to its code, its
// sections do.
func (d *devices) addFileObject(described *sdk.TargetObject) {
	mod := &target.Module{Module: trace.Module{Path: described.URI, Arch: d.description.Name}}
	d.modules = append(d.modules, mod)
	o, err := d.fileObject(described)
	if err != nil {
		mod.Problem = err.Error()
		return
	}
	mod.Object, mod.BuildID = o, o.BuildID()
	if code := codeSections(o); !isCovered(o, code) {
		files := make([]fileSegment, 0, len(code))
		for _, s := range code {
			start := s.Address + described.Bias
			size := min(s.Size, math.MaxUint64-start)
			mod.Segments = append(mod.Segments, trace.Segment{Address: s.Address, Size: size, Start: start, Executable: true})
			if data := o.Data(); s.Offset <= uint64(len(data)) && size <= uint64(len(data))-s.Offset {
				files = append(files, fileSegment{start: start, size: size, data: data[s.Offset : s.Offset+size]})
			}
		}
		d.memory.addFiles(mod, files)
		return
	}
	im := image{bias: described.Bias, programs: o.Programs()}
	d.memory.addFiles(mod, fileSegments(o, d.header.numbers, &im, "", nil))
	mod.Segments = (&modules{Core: d.Core}).segments(&im)
}

// codeSections returns the sections with code, by address, of which none overlaps another.
func codeSections(o *object.Object) []*object.Section {
	var list []*object.Section
	for _, s := range o.Sections() {
		if s.Type == elf.SHT_PROGBITS && s.Flags&(elf.SHF_ALLOC|elf.SHF_EXECINSTR) == elf.SHF_ALLOC|elf.SHF_EXECINSTR && s.Size > 0 {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *object.Section) int { return cmp.Compare(a.Address, b.Address) })
	kept := list[:0]
	for _, s := range list {
		if n := len(kept); n == 0 || s.Address-kept[n-1].Address >= kept[n-1].Size {
			kept = append(kept, s)
		}
	}
	return kept
}

// isCovered reports whether program headers of code objects lead to all of the code.
func isCovered(o *object.Object, code []*object.Section) bool {
	return !slices.ContainsFunc(code, func(s *object.Section) bool {
		return !slices.ContainsFunc(o.Programs(), func(p object.Program) bool {
			return p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && s.Address-p.Address < p.MemSize && s.Size <= p.MemSize-(s.Address-p.Address)
		})
	})
}
