// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds the code at the addresses of text without names. A text seldom says where code
// was mapped, nor of what build the file was. The frames that do have names tell both: NAME+N at
// an address is the file's function of that name, if the address counts as it must.

// stackObject is a code object of a file of stacks.
type stackObject struct {
	path   string
	isSure bool         // its file has the build ID that the text has
	module *code.Module // nil: it was not found, or is not used
	index  int32        // of the module in the profile
	// offsets, others and wrong count the named frames whose addresses are offsets of the file,
	// those that only fit otherwise, and those that fit nowhere.
	offsets, others, wrong int
	biases                 map[int]uint64 // of addresses of processes, by PID
	several                map[int]bool   // processes whose frames disagree about that
	common                 uint64         // the bias of all processes, if isCommon
	isCommon               bool
	unplaced               int // frames that nothing tells the place of
}

// maxVotes bounds the named frames by which an object is placed.
const maxVotes = 1 << 12

// needsName reports whether the name of a frame is to be looked up in the file of its object: where it has none, or
// where that file is known to be of the build.
func needsName(f *stacktree.Frame) bool {
	return (len(f.Symbols) == 0 || len(f.BuildID) > 0) && f.HasAddress && !f.Kernel && strings.HasPrefix(f.Object, "/")
}

// objectOf is the key of a frame's object.
func objectOf(f *stacktree.Frame) string { return f.Object + "\x00" + string(f.BuildID) }

// findPlaces opens the objects of frames without names, and finds how their addresses count.
func (j *stackJoin) findPlaces() {
	if j.b.recording.maker.Shared.Options().NoSymbols {
		return
	}
	for i := range j.file.Frames {
		f := &j.file.Frames[i]
		if key := objectOf(f); needsName(f) && j.objects[key] == nil {
			j.objects[key] = j.openObject(f)
		}
	}
	kernelVotes := map[uint64]int{}
	for i := range j.file.Frames {
		f := &j.file.Frames[i]
		if len(f.Symbols) == 0 || !f.HasSymbolOffset || !f.HasAddress {
			continue
		}
		if o := j.objects[objectOf(f)]; o != nil && o.module != nil && o.offsets+o.others+o.wrong < maxVotes {
			o.vote(f)
		}
		if f.Kernel && j.kernel != nil && len(kernelVotes) < 2 {
			if address, ok := j.kernel.Address(f.Symbols[len(f.Symbols)-1].Function); ok {
				kernelVotes[f.Address-f.SymbolOffset-address]++
			}
		}
	}
	for moved := range kernelVotes {
		j.moved, j.isPlaced = moved, len(kernelVotes) == 1
	}
	for _, o := range j.objects {
		j.check(o)
		o.agree()
	}
	j.sortMappings()
}

// openObject finds the file of a frame's code object.
func (j *stackJoin) openObject(f *stacktree.Frame) *stackObject {
	o := &stackObject{path: f.Object, isSure: len(f.BuildID) > 0, biases: map[int]uint64{}, several: map[int]bool{}}
	found := j.find(f)
	r := j.b.recording
	t := &target.Module{Module: trace.Module{Path: f.Object, BuildID: f.BuildID, Arch: j.file.Arch, IsMachO: f.Place == stacktree.PlaceImage}, Object: found.Object}
	t.Problem = found.Problem
	if machine, ok := machines[j.file.Arch]; ok && found.Object != nil && !found.Object.ELFMachine().IsLike(machine) {
		t.Problem = fmt.Sprintf("%s was not used: it is for %s", found.Path, object.DescribeMachine(found.Object.Machine()))
		found.Object.Close()
		t.Object = nil
	}
	if t.Object != nil {
		r.opened = append(r.opened, t.Object)
		if a, err := r.maker.Plugins.ForMachine(t.Object.ELFMachine()); err == nil {
			t.Arch = a.Description().Name
		}
		t.File, t.BuildID = found.File(), t.Object.BuildID()
		for _, s := range t.Object.Segments() {
			t.Segments = append(t.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
		}
	}
	m := r.process.AddModule(t, nil)
	o.index = j.b.addModule(placement{module: m}, trace.ProfileModule{Module: &m.Module.Module})
	j.modules[objectOf(f)] = o.index
	if t.Object != nil {
		o.module = m
	}
	return o
}

// find finds the file of a frame's code object. One for macOS has the build ID, and is no file of another format.
func (j *stackJoin) find(f *stacktree.Frame) object.Found {
	if f.Place != stacktree.PlaceImage {
		return j.finder.Find(f.Object, f.BuildID, false)
	}
	found := j.finder.FindCode(f.Object, f.BuildID, "", "", false)
	if found.Object != nil && !found.Object.IsMachO() {
		found.Problem = found.Path + " was not used: it is no Mach-O file"
		found.Object.Close()
		found.Object = nil
	}
	return found
}

// start returns the first address of the function at an address of the object.
func (o *stackObject) start(address uint64) (uint64, bool) {
	symbols := o.module.Names(address, true)
	if len(symbols) == 0 || !symbols[len(symbols)-1].HasStart {
		return 0, false
	}
	return symbols[len(symbols)-1].Start, true
}

// ofOffset returns the address of the object for an offset of its file, where code is there.
func (o *stackObject) ofOffset(offset uint64) (uint64, bool) {
	s, ok := o.module.Object.SegmentForMapping(offset, 1, true)
	if !ok || !s.Executable() || offset-s.Offset >= s.FileSize {
		return 0, false
	}
	return offset - s.Offset + s.Address, true
}

// ofImage returns the address of the object for a distance from its header.
func (o *stackObject) ofImage(distance uint64) (address uint64, ok bool) {
	_ = object.Guard(func() error {
		if f := o.module.Object.MachO(); f != nil && f.Text() != nil {
			address, ok = f.Text().Address+distance, true
		}
		return nil
	})
	return address, ok && o.isCode(address)
}

// isCode reports whether the object has code at an address.
func (o *stackObject) isCode(address uint64) bool {
	return slices.ContainsFunc(o.module.Object.Segments(), func(s object.Segment) bool { return s.Executable() && address-s.Address < s.MemSize })
}

// vote counts how the address of a frame with a name counts.
func (o *stackObject) vote(f *stacktree.Frame) {
	name := f.Symbols[len(f.Symbols)-1].Function
	if address, ok := o.ofOffset(f.Address); ok {
		if start, ok := o.start(address); ok && start == address-f.SymbolOffset {
			o.offsets++
			return
		}
	}
	address, isSure, ok := o.module.Code.Named(name, false)
	if !ok || !isSure {
		return
	}
	const pageMask = 0xfff
	bias := f.Address - f.SymbolOffset - address
	if bias&pageMask != 0 || f.Place == stacktree.PlaceOffset {
		o.wrong++
		return
	}
	o.others++
	if known, ok := o.biases[f.PID]; ok && known != bias {
		o.several[f.PID] = true
		return
	}
	o.biases[f.PID] = bias
}

// check decides whether the file of an object is the one whose names the text has.
func (j *stackJoin) check(o *stackObject) {
	switch path := o.path; {
	case o.module == nil, o.isSure:
	case o.wrong > o.offsets+o.others:
		j.b.recording.problem("%s was not used: of the functions that %s names in it, %d are elsewhere: it is of another build", path, j.file.Path, o.wrong)
		o.module = nil
	case o.offsets+o.others == 0:
		j.b.recording.problem("%s: %s names no function in it by which its build could be checked, so names may be of another build", path, j.file.Path)
	}
}

// place finds the code of a frame without a name; false where nothing is known of it.
func (j *stackJoin) place(f *stacktree.Frame, out *trace.ProfileFrame, place *framePlace) bool {
	if f.Kernel && len(f.Symbols) == 0 && f.HasAddress && j.isPlaced {
		if s, ok := j.kernel.Find(f.Address - j.moved - back(f)); ok && (j.moved == 0 || s.Module == "") {
			out.Symbols = []trace.Symbol{{Function: s.Name, Start: s.Start + j.moved, HasStart: true}}
		}
		return false
	}
	o := j.objects[objectOf(f)]
	if o == nil || !needsName(f) || o.module == nil {
		return false
	}
	address, ok := j.address(o, f)
	if !ok {
		o.unplaced++
		return false
	}
	out.Module, out.ModuleOffset = o.index, address
	*place = framePlace{module: o.module, lookup: address - back(f), offset: address, recorded: out.Symbols}
	return true
}

// back is the distance from the address of a frame to the call that it returns from.
func back(f *stacktree.Frame) uint64 {
	if f.Exact {
		return 0
	}
	return 1
}

// address returns the address of a frame in its object.
func (j *stackJoin) address(o *stackObject, f *stacktree.Frame) (uint64, bool) {
	switch f.Place {
	case stacktree.PlaceObject:
		return f.Address, o.isCode(f.Address)
	case stacktree.PlaceOffset:
		return o.ofOffset(f.Address)
	case stacktree.PlaceImage:
		return o.ofImage(f.Address)
	}
	if offset, ok := j.mappedOffset(f); ok {
		return o.ofOffset(offset)
	}
	if o.offsets > 0 && f.Address < lowestProcess {
		return o.ofOffset(f.Address)
	}
	bias, ok := o.bias(f.PID)
	if ok && o.isCode(f.Address-bias) {
		return f.Address - bias, true
	}
	if ok || f.Address >= lowestProcess {
		return 0, false
	}
	if o.module.Object.Type() == elf.ET_EXEC {
		return f.Address, o.isCode(f.Address) // at its own addresses
	}
	if f.Place == stacktree.PlaceUnknown {
		// No process has such code so low: it is an offset.
		return o.ofOffset(f.Address)
	}
	return 0, false
}

// lowestProcess is the lowest address at which Linux maps code that may be anywhere, on machines
// with 64 bits.
const lowestProcess = 1 << 32

// bias returns how far the addresses of a process are from the object's own. Where the process
// has no named frame all others must agree.
func (o *stackObject) bias(pid int) (bias uint64, ok bool) {
	if o.several[pid] {
		return 0, false
	}
	if bias, ok = o.biases[pid]; ok {
		return bias, true
	}
	return o.common, o.isCommon
}

// agree finds the bias that all processes have, if they do.
func (o *stackObject) agree() {
	for _, bias := range o.biases {
		if o.isCommon && bias != o.common {
			o.isCommon = false
			return
		}
		o.common, o.isCommon = bias, len(o.several) == 0
	}
}

// maxCandidates bounds the mappings of a file that are looked at for one address.
const maxCandidates = 256

// sortMappings puts the mappings of the text into lists by file, each by address.
func (j *stackJoin) sortMappings() {
	j.mappings = map[string][]stacktree.Mapping{}
	for _, m := range j.file.Mappings {
		if j.objects[m.Path+"\x00"] != nil {
			j.mappings[m.Path] = append(j.mappings[m.Path], m)
		}
	}
	for _, list := range j.mappings {
		slices.SortFunc(list, func(a, b stacktree.Mapping) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
		})
	}
}

// mappedOffset returns the offset in its file of a frame that lies in a mapping of the text. Where
// that is of another process all others there must agree.
func (j *stackJoin) mappedOffset(f *stacktree.Frame) (offset uint64, ok bool) {
	list := j.mappings[f.Object]
	end, _ := slices.BinarySearchFunc(list, f.Address, func(m stacktree.Mapping, address uint64) int {
		if m.Start <= address {
			return -1
		}
		return 1
	})
	for i := end - 1; i >= max(0, end-maxCandidates); i-- {
		m := &list[i]
		if f.Address >= m.End {
			continue
		}
		own := f.Address - m.Start + m.Offset
		if m.PID == f.PID {
			return own, true
		}
		if ok && own != offset {
			return 0, false
		}
		offset, ok = own, true
	}
	return offset, ok
}

// reportPlaces says of which objects frames could not be placed.
func (j *stackJoin) reportPlaces() {
	for _, o := range j.objects {
		if o.unplaced > 0 && !o.isSure {
			j.b.recording.problem("%s: %s: nothing tells where %s was mapped, so they have no names: perf script --show-mmap-events does", j.file.Path, countFrames(o.unplaced), o.path)
		}
	}
}

func countFrames(n int) string {
	if n == 1 {
		return "1 frame"
	}
	return fmt.Sprintf("%d frames", n)
}
