// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"strings"

	"github.com/unwindd/unwindd/engine/internal/profilenames"
)

// addressOf returns the address in the file of a frame, or why it is not known.
//
// A frame's address and the start of its mapping count from the same: from the beginning of a process's
// memory, as Linux and pprof have it, or from the file's own address 0, as the eBPF profiler has it, whose
// mappings start at the ELF virtual address of their first byte. The offset in the file tells the segment in
// both cases. A mapping without bounds is of a profiler that has the file's own addresses.
func (f *profileFile) addressOf(p *profilenames.Profile, m *profilenames.Mapping, frame *profilenames.Frame) (address uint64, reason string) {
	switch {
	case f.isCubin:
		return f.kernelOffset(p.System(frame), frame)
	case frame.Type == profilenames.KernelFrame || strings.HasPrefix(m.File, kernelName) || m.File == "vmlinux":
		return f.kernelAddress(m, frame)
	case m.Start == 0 && m.Limit == 0:
		return frame.Address, ""
	case frame.Address < m.Start || m.Limit != 0 && frame.Address >= m.Limit:
		return 0, "their addresses are outside of the mapping"
	}
	inFile := frame.Address - m.Start + m.Offset
	if f.File == nil {
		return f.breakpad.addressOf(m, frame.Address)
	}
	if f.Object.IsRelocatable() {
		return 0, "their file is not linked: its sections have no addresses"
	}
	size := uint64(1)
	if m.Limit > m.Start {
		size = m.Limit - m.Start
	}
	s, ok := f.Object.SegmentForMapping(m.Offset, size, true)
	if !ok {
		return 0, "no segment of the file is at the offset of the mapping"
	}
	return inFile - s.Offset + s.Address, ""
}

// kernelName begins the name of the kernel's mapping as perf writes it, before the symbol that its offset is
// the address of.
const kernelName = "[kernel.kallsyms]"

// kernelAddress returns the address in vmlinux of a frame in the kernel, which runs where its code was not
// linked for.
func (f *profileFile) kernelAddress(m *profilenames.Mapping, frame *profilenames.Frame) (uint64, string) {
	if f.File == nil || f.Object.IsRelocatable() {
		return 0, "they are in code of the kernel that vmlinux does not have"
	}
	names, start := []string{"_text", "_stext"}, m.Start
	if name, ok := strings.CutPrefix(m.File, kernelName); ok {
		if name == "" || m.Offset == 0 {
			return 0, "the profile does not tell where the kernel ran"
		}
		names, start = []string{name}, m.Offset
	}
	for _, name := range names {
		for i := range f.symbols().all {
			if s := &f.symbols().all[i]; s.name == name {
				return frame.Address - start + s.start, ""
			}
		}
	}
	return 0, "the file has no symbol " + strings.Join(names, " or ") + ", from which addresses in the kernel count"
}
