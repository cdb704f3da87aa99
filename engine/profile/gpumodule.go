// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/gpusamples"
	"github.com/unwindd/unwindd/engine/walk"
)

// gpuModule is a code object of an accelerator.
type gpuModule struct {
	*code.Module
	anywhere bool // nobody knows what addresses it has
}

// placeAt makes a frame, whose PC is known, one of the module.
func (m *gpuModule) placeAt(f *walk.Step) {
	i := slices.IndexFunc(m.Placed, func(seg target.Segment) bool { return seg.Executable && f.PC-seg.Start < seg.Size })
	if i >= 0 {
		m.take(f, &m.Placed[i])
	}
}

// placeOffset makes a frame one of the module, at an ELF virtual address; problem
// says why it cannot be.
func (m *gpuModule) placeOffset(f *walk.Step, offset uint64) (problem string) {
	if m.anywhere {
		f.PC, f.Offset = offset, offset
		f.Owner, f.Kind = uint32(m.ID), walk.ModuleCode
		return ""
	}
	in, problem := m.segmentOf(offset, func(seg *target.Segment) uint64 { return m.Code.Offset(seg.Address) })
	if in == nil {
		return problem
	}
	f.PC = in.Start + offset - m.Code.Offset(in.Address)
	m.take(f, in)
	return ""
}

// placeCode makes a frame one of the module, at an address that its code has;
// problem says why it cannot be.
func (m *gpuModule) placeCode(f *walk.Step, address uint64) (problem string) {
	if m.anywhere {
		return m.placeOffset(f, address)
	}
	in, problem := m.segmentOf(address, func(seg *target.Segment) uint64 { return seg.Address })
	if in == nil {
		return problem
	}
	f.PC = in.Start + address - in.Address
	m.take(f, in)
	return ""
}

// take makes a frame one of the module, in a segment of it.
func (m *gpuModule) take(f *walk.Step, in *target.Segment) {
	f.Offset = f.PC - in.Start + in.Address
	f.Owner, f.Kind = uint32(m.ID), walk.ModuleCode
}

// segmentOf is the one placed segment of code that has an address, of those that
// start gives; problem says why there is none.
func (m *gpuModule) segmentOf(address uint64, start func(*target.Segment) uint64) (in *target.Segment, problem string) {
	for i := range m.Placed {
		seg := &m.Placed[i]
		if !seg.Executable || address-start(seg) >= seg.Size {
			continue
		}
		if in != nil {
			return nil, "several places of its module have that offset"
		}
		in = seg
	}
	if in == nil {
		return nil, "no code of its module has that offset"
	}
	return in, ""
}

// placeGPUModule adds the place of a module to the profile.
func (b *profileBuilder) placeGPUModule(m *gpuModule, f *walk.Step) {
	if f.Kind != walk.ModuleCode {
		return
	}
	key := placement{module: m.Module, bias: f.PC - f.Offset}
	if _, ok := b.modules[key]; ok {
		return
	}
	own := *m.Module.Module
	own.ID = len(b.out.Modules)
	out := Module{Module: &own}
	i := slices.IndexFunc(m.Placed, func(seg target.Segment) bool { return f.Offset-seg.Address < seg.Size })
	if i >= 0 && !m.anywhere {
		in := &m.Placed[i]
		out.Start, out.End = in.Start, in.Start+in.Size
		out.Offset = fileOffset(m.Module, in)
	}
	b.modules[key] = int32(own.ID) //nolint:gosec // as in addModule
	b.out.Modules = append(b.out.Modules, out)
}

// unplacedModule is the index of a module in the profile, at no place.
func (b *profileBuilder) unplacedModule(m *gpuModule) int32 {
	f := walk.Step{Kind: walk.ModuleCode}
	for key, index := range b.modules {
		if key.module == m.Module {
			return index
		}
	}
	if len(m.Placed) > 0 {
		f.PC, f.Offset = m.Placed[0].Start, m.Placed[0].Address
	}
	b.placeGPUModule(m, &f)
	return b.modules[placement{module: m.Module, bias: f.PC - f.Offset}]
}

// fileOffset is where a placed segment begins in the file of its module; 0 where
// that is not known.
func fileOffset(m *code.Module, in *target.Segment) uint64 {
	if m.Object == nil {
		return 0
	}
	if m.Object.Type() == elf.ET_REL {
		for _, s := range m.Code.Sections() {
			if s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 && in.Address-s.Address < s.Size {
				return s.Offset + in.Address - s.Address
			}
		}
		return 0
	}
	for _, s := range m.Object.Segments() {
		if in.Address-s.Address < s.FileSize {
			return s.Offset + in.Address - s.Address
		}
	}
	return 0
}

// module is a module of the file.
func (j *gpuJoin) module(index int) *gpuModule {
	if m := j.modules[index]; m != nil {
		return m
	}
	of := &j.file.Modules[index]
	t := &target.Module{Path: of.Path, BuildID: of.BuildID, Arch: of.Arch, Processor: of.Processor, Segments: slices.Clone(of.Segments)}
	if of.URI != "" {
		t.Path = of.URI
	}
	arch, err := j.b.recording.maker.Plugins.Find(of.Arch)
	if err != nil {
		t.Problem = err.Error()
	}
	found := j.findModule(index, arch)
	if found.Problem != "" {
		t.Problem = found.Problem
	}
	t.File = found.Path
	m := j.addModule(t, found.Object)
	j.modules[index] = m
	return m
}

// addModule adds a module with its code object, which may be nil.
func (j *gpuJoin) addModule(t *target.Module, o *object.Object) *gpuModule {
	r := j.b.recording
	m := &gpuModule{}
	if t.Object = o; o != nil {
		r.opened = append(r.opened, o)
		if t.BuildID == nil {
			t.BuildID = o.BuildID()
		}
		if len(t.Segments) == 0 {
			t.Segments = ownSegments(o)
		}
	} else {
		m.anywhere = len(t.Segments) == 0
	}
	t.Segments = apartSegments(t.Segments, o)
	for i := range t.Segments {
		t.Segments[i].Executable = t.Segments[i].HoldsCode(o)
	}
	m.Module = r.process.AddModule(t, nil)
	return m
}

// findModule finds the code object of a module: where the profiler says that it was,
// or else among the objects that were given.
func (j *gpuJoin) findModule(index int, arch *plugin.Arch) object.Found {
	of := &j.file.Modules[index]
	var found object.Found
	switch {
	case of.Path == "":
		found.Problem = fmt.Sprintf("%s: it was in no file", of.URI)
	case of.Size > 0:
		found = j.findPart(of)
	default:
		found = j.finder.Find(of.Path, of.BuildID, false)
	}
	if found.Object != nil {
		reason := j.otherArch(found.Object, arch, of.Arch)
		if reason == "" && of.URI != "" {
			reason = j.otherKernels(found.Object, index)
		}
		if reason == "" {
			j.given.found(found.Path)
			return found
		}
		found.Object.Close()
		found = object.Found{Problem: fmt.Sprintf("%s was not used: %s", found.Path, reason)}
	}
	o, problem := j.given.module(of, func(o *object.Object) string {
		if reason := j.otherArch(o, arch, of.Arch); reason != "" {
			return reason
		}
		return j.otherKernels(o, index)
	})
	switch {
	case o != nil:
		return object.Found{Object: o, Path: o.Path(), Checked: true}
	case problem != "":
		found.Problem += "; " + problem
	}
	return found
}

// findPart finds a code object that is a part of a file.
func (j *gpuJoin) findPart(of *gpusamples.Module) (found object.Found) {
	for m, err := range j.finder.Mapped(of.Path) {
		if err == nil {
			found.Path = m.Path()
			r := j.b.recording
			r.mapped = append(r.mapped, m) // it stays mapped
			found.Object, err = j.finder.Store.Part(m.Path(), of.URI, m.Data(), of.Offset, of.Size)
		}
		if err == nil {
			return found
		}
		if found.Problem == "" {
			found.Problem = err.Error()
		}
	}
	return object.Found{Problem: found.Problem}
}

// otherArch says why an object is not of an architecture; "" where it is.
func (j *gpuJoin) otherArch(o *object.Object, arch *plugin.Arch, name string) string {
	if name == "" || arch == nil {
		return ""
	}
	if is, err := j.given.arch(o); err != nil || is != arch {
		return "it is not of architecture " + name
	}
	return ""
}

// otherKernels says why an object is not what a module was loaded from: its kernels
// lie elsewhere; "" where they do not.
func (j *gpuJoin) otherKernels(o *object.Object, module int) string {
	symbols := functionsOf(o)
	for i := range j.file.Kernels {
		k := &j.file.Kernels[i]
		if k.Module != module || !k.HasEntry {
			continue
		}
		at, ok := symbols[k.Name]
		switch {
		case !ok:
			return fmt.Sprintf("it has no kernel %s", k.Name)
		case at != k.Entry:
			return fmt.Sprintf("its kernel %s is at %#x, that of the recording at %#x", k.Name, at, k.Entry)
		}
	}
	return ""
}

// functionsOf are the addresses of an object's functions by name.
func functionsOf(o *object.Object) map[string]uint64 {
	list := map[string]uint64{}
	_ = o.EachSymbol(func(s *object.Symbol) { // what is damaged is missed
		if s.Type == elf.STT_FUNC && s.Defined() {
			list[s.Name] = s.Address
		}
	})
	return list
}

// codeAddress is where the code of a kernel begins, as an address of the module's
// code.
func (m *gpuModule) codeAddress(at kernelCode) (address uint64, ok bool) {
	if at.section == "" {
		return at.address, true
	}
	for i := range m.Placed {
		if m.Placed[i].Section == at.section {
			return m.Placed[i].Address + at.address, true
		}
	}
	return 0, false
}

// apartSegments are the segments of an object in a range that is told as a whole, as
// profilers tell where a code object was loaded.
func apartSegments(list []target.Segment, o *object.Object) []target.Segment {
	if o == nil || len(list) != 1 || list[0].Section != "" {
		return list
	}
	whole := list[0]
	var apart []target.Segment
	for _, s := range o.Segments() {
		if s.Address >= whole.Address && s.MemSize <= whole.Size && s.Address-whole.Address <= whole.Size-s.MemSize {
			apart = append(apart, target.Segment{Address: s.Address, Size: s.MemSize, Start: whole.Start + s.Address - whole.Address})
		}
	}
	if len(apart) < 2 {
		return list
	}
	return apart
}

// ownSegments are where an object says that it lies: the one section of code of a
// relocatable one.
func ownSegments(o *object.Object) (list []target.Segment) {
	if o.Type() != elf.ET_REL {
		for _, s := range o.Segments() {
			if s.Executable() {
				list = append(list, target.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address})
			}
		}
		return list
	}
	for _, s := range o.Sections() {
		if s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 {
			list = append(list, target.Segment{Section: s.Name, Size: s.Size})
		}
	}
	return list
}
