// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// gpuModule is a code object of an accelerator.
type gpuModule struct {
	*code.Module
	anywhere bool // its addresses are not known
}

// placeAt puts a frame, whose PC is known, into the module.
func (m *gpuModule) placeAt(f *walk.Step) {
	i := slices.IndexFunc(m.Placed, func(seg trace.Segment) bool { return seg.Executable && f.PC-seg.Start < seg.Size })
	if i >= 0 {
		m.take(f, &m.Placed[i])
	}
}

// placeOffset puts a frame into the module, at an ELF virtual address; problem is why it
// cannot.
func (m *gpuModule) placeOffset(f *walk.Step, offset uint64) (problem string) {
	if m.anywhere {
		f.PC, f.Offset = offset, offset
		f.Owner, f.Kind = uint32(m.ID), walk.ModuleCode
		return ""
	}
	segment, problem := m.segmentOf(offset, func(seg *trace.Segment) uint64 { return m.Code.Offset(seg.Address) })
	if segment == nil {
		return problem
	}
	f.PC = segment.Start + offset - m.Code.Offset(segment.Address)
	m.take(f, segment)
	return ""
}

// placeCode puts a frame into the module, at an address of the module's code; problem is why it
// cannot.
func (m *gpuModule) placeCode(f *walk.Step, address uint64) (problem string) {
	if m.anywhere {
		return m.placeOffset(f, address)
	}
	segment, problem := m.segmentOf(address, func(seg *trace.Segment) uint64 { return seg.Address })
	if segment == nil {
		return problem
	}
	f.PC = segment.Start + address - segment.Address
	m.take(f, segment)
	return ""
}

// take puts a frame into a segment of the module.
func (m *gpuModule) take(f *walk.Step, segment *trace.Segment) {
	f.Offset = f.PC - segment.Start + segment.Address
	f.Owner, f.Kind = uint32(m.ID), walk.ModuleCode
}

// segmentOf returns the one placed segment of code that has an address, with starts from start;
// problem is why there is none.
func (m *gpuModule) segmentOf(address uint64, start func(*trace.Segment) uint64) (segment *trace.Segment, problem string) {
	for i := range m.Placed {
		seg := &m.Placed[i]
		if !seg.Executable || address-start(seg) >= seg.Size {
			continue
		}
		if segment != nil {
			return nil, "several places of its module have that offset"
		}
		segment = seg
	}
	if segment == nil {
		return nil, "no code of its module has that offset"
	}
	return segment, ""
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
	own := m.Module.Module.Module
	own.ID = len(b.out.Modules)
	out := trace.ProfileModule{Module: &own}
	i := slices.IndexFunc(m.Placed, func(seg trace.Segment) bool { return f.Offset-seg.Address < seg.Size })
	if i >= 0 && !m.anywhere {
		segment := &m.Placed[i]
		out.Start, out.End = segment.Start, segment.Start+segment.Size
		out.Offset = fileOffset(m.Module, segment)
	}
	b.modules[key] = int32(own.ID) //nolint:gosec // as in addModule
	b.out.Modules = append(b.out.Modules, out)
}

// unplacedModule returns the index of a module in the profile, at no place.
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

// fileOffset returns the offset of a placed segment in the file of its module; 0 where it is
// not known.
func fileOffset(m *code.Module, segment *trace.Segment) uint64 {
	if m.Object == nil {
		return 0
	}
	if m.Object.IsRelocatable() {
		for _, s := range m.Code.Sections() {
			if s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 && segment.Address-s.Address < s.Size {
				return s.Offset + segment.Address - s.Address
			}
		}
		return 0
	}
	for _, s := range m.Object.Segments() {
		if segment.Address-s.Address < s.FileSize {
			return s.Offset + segment.Address - s.Address
		}
	}
	return 0
}

// module returns a module of the file.
func (j *gpuJoin) module(index int) *gpuModule {
	if m := j.modules[index]; m != nil {
		return m
	}
	recorded := &j.file.Modules[index]
	t := &target.Module{Module: trace.Module{Path: recorded.Path, BuildID: recorded.BuildID, Arch: recorded.Arch, Processor: recorded.Processor, Segments: slices.Clone(recorded.Segments)}}
	if recorded.URI != "" {
		t.Path = recorded.URI
	}
	arch, err := j.b.recording.maker.Plugins.Find(recorded.Arch)
	if err != nil {
		t.Problem = err.Error()
	}
	found := j.findModule(index, arch)
	if found.Problem != "" {
		t.Problem = found.Problem
	}
	t.File = found.Path
	m := j.b.addProvidedModule(t, found.Object)
	j.modules[index] = m
	return m
}

// addProvidedModule adds a module of an accelerator with its code object, which may be nil.
func (b *profileBuilder) addProvidedModule(t *target.Module, o *object.Object) *gpuModule {
	r := b.recording
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
		t.Segments[i].Executable = target.HoldsCode(o, &t.Segments[i])
	}
	m.Module = r.process.AddModule(t, nil)
	return m
}

// findModule finds the code object of a module: at the path that the profiler recorded, or else
// among the user-provided objects.
func (j *gpuJoin) findModule(index int, arch *plugin.Arch) object.Found {
	recorded := &j.file.Modules[index]
	found := j.b.recording.findGPU(&j.finder, recorded)
	if found.Object != nil {
		reason := j.otherArch(found.Object, arch, recorded.Arch)
		if reason == "" && recorded.URI != "" {
			reason = j.otherKernels(found.Object, index)
		}
		if reason == "" {
			j.provided.found(found.Path)
			return found
		}
		found.Object.Close()
		found = object.Found{Problem: fmt.Sprintf("%s was not used: %s", found.Path, reason)}
	}
	o, problem := j.provided.module(recorded, func(o *object.Object) string {
		if reason := j.otherArch(o, arch, recorded.Arch); reason != "" {
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

// findGPU finds the code object of a module at the path that the profiler recorded.
func (r *recording) findGPU(finder *object.Finder, recorded *gpusamples.Module) (found object.Found) {
	if recorded.Path == "" {
		return object.Found{Problem: fmt.Sprintf("%s: it was in no file", recorded.URI)}
	}
	if r.maker.Mapped != nil {
		if found, ok := r.maker.Mapped.Find(gpuPath(recorded), recorded.BuildID); ok {
			return found
		}
	}
	if recorded.Size > 0 {
		return r.findPart(finder, recorded)
	}
	return finder.Find(recorded.Path, recorded.BuildID, false)
}

// gpuPath is the path of a module among the files of a recording: the file's, and the place in it.
func gpuPath(m *gpusamples.Module) string {
	if m.Size == 0 {
		return m.Path
	}
	return fmt.Sprintf("%s#offset=%d&size=%d", m.Path, m.Offset, m.Size)
}

// findPart finds a code object that is a part of a file.
func (r *recording) findPart(finder *object.Finder, module *gpusamples.Module) (found object.Found) {
	for m, err := range finder.Mapped(module.Path) {
		if err == nil {
			found.Path = m.Path()
			r.mapped = append(r.mapped, m) // it stays mapped
			found.Object, err = finder.Store.Part(m.Path(), module.URI, m.Data(), module.Offset, module.Size)
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

// otherArch returns why an object does not have an architecture; "" where it does.
func (j *gpuJoin) otherArch(o *object.Object, arch *plugin.Arch, name string) string {
	if name == "" || arch == nil {
		return ""
	}
	if is, err := j.provided.arch(o); err != nil || is != arch {
		return "it is not of architecture " + name
	}
	return ""
}

// otherKernels returns why a module was not loaded from an object: its kernels have other
// addresses; "" where they do not.
func (j *gpuJoin) otherKernels(o *object.Object, module int) string {
	symbols := functionsOf(o)
	for i := range j.file.Kernels {
		k := &j.file.Kernels[i]
		if k.Module != module || !k.HasEntry {
			continue
		}
		address, ok := symbols[k.Name]
		switch {
		case !ok:
			return fmt.Sprintf("it has no kernel %s", k.Name)
		case address != k.Entry:
			return fmt.Sprintf("its kernel %s is at %#x, that of the recording at %#x", k.Name, address, k.Entry)
		}
	}
	return ""
}

// functionsOf returns the addresses of an object's functions by name.
func functionsOf(o *object.Object) map[string]uint64 {
	list := map[string]uint64{}
	_ = o.EachSymbol(func(s *object.Symbol) { // damaged symbols are left out
		if s.Type == elf.STT_FUNC && s.Defined() {
			list[s.Name] = s.Address
		}
	})
	return list
}

// codeAddress returns the address of a kernel in the module's code.
func (m *gpuModule) codeAddress(place kernelCode) (address uint64, ok bool) {
	if place.section == "" {
		return place.address, true
	}
	for i := range m.Placed {
		if m.Placed[i].Section == place.section {
			return m.Placed[i].Address + place.address, true
		}
	}
	return 0, false
}

// apartSegments returns the segments of an object within a range that is recorded as a whole,
// as profilers record the load addresses of code objects.
func apartSegments(list []trace.Segment, o *object.Object) []trace.Segment {
	if o == nil || len(list) != 1 || list[0].Section != "" {
		return list
	}
	whole := list[0]
	var apart []trace.Segment
	for _, s := range o.Segments() {
		if s.Address >= whole.Address && s.MemSize <= whole.Size && s.Address-whole.Address <= whole.Size-s.MemSize {
			apart = append(apart, trace.Segment{Address: s.Address, Size: s.MemSize, Start: whole.Start + s.Address - whole.Address})
		}
	}
	if len(apart) < 2 {
		return list
	}
	return apart
}

// ownSegments returns the segments at an object's own addresses: for a relocatable one its only
// section of code.
func ownSegments(o *object.Object) (list []trace.Segment) {
	if !o.IsRelocatable() {
		for _, s := range o.Segments() {
			if s.Executable() {
				list = append(list, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address})
			}
		}
		return list
	}
	for _, s := range o.Sections() {
		if s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 {
			list = append(list, trace.Segment{Section: s.Name, Size: s.Size})
		}
	}
	return list
}
