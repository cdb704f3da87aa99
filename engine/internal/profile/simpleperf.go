// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/kallsyms"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
)

// simpleperfKernelNames returns the kernel's names that simpleperf recorded; nil where there are
// none.
func (r *recording) simpleperfKernelNames() *kallsyms.Table {
	text := r.file.KernelSymbols()
	if len(text) == 0 {
		return nil
	}
	names, err := kallsyms.Read(r.file.Path(), bytes.NewReader(text))
	if err != nil {
		r.problem("%v: the kernel's code is not named", err)
		return nil
	}
	return names
}

// callersAreAtCalls reports whether the callers in call chains are at their calls, not at return
// addresses, as simpleperf writes them.
func (r *recording) callersAreAtCalls() bool { return r.file != nil && r.file.IsSimpleperf() }

// nameBySimpleperf names frames that have no name by the symbols that simpleperf found on the
// device.
func (b *profileBuilder) nameBySimpleperf() {
	if b.recording.file == nil || len(b.recording.file.Features().Files) == 0 {
		return
	}
	files := b.recording.file.Features().Files
	byPath := make(map[string]*perfdata.FileSymbols, len(files))
	for i := range files {
		if byPath[files[i].Path] == nil {
			byPath[files[i].Path] = &files[i]
		}
	}
	named := 0
	for i := range b.out.Frames {
		f, p := &b.out.Frames[i], &b.places[i]
		if len(f.Symbols) > 0 || f.Device {
			continue
		}
		back := p.offset - p.lookup // from a return address to its call
		s, address := b.simpleperfSymbols(byPath, f, p)
		if s == nil {
			continue
		}
		name, start, ok := s.Find(address)
		if !ok {
			continue
		}
		out := trace.Symbol{Function: symbol.Demangle(name), Start: f.PC - back - (address - start), HasStart: true}
		if out.Function != name {
			out.LinkageName = name
		}
		if f.Module >= 0 && !f.Kernel {
			out.Start = f.ModuleOffset - back - (address - start)
		}
		f.Symbols = append(f.Symbols, out)
		named++
		if n := b.recording.generated.nameless; f.Module < 0 && n[f.PID] > 0 {
			if n[f.PID]--; n[f.PID] == 0 {
				delete(n, f.PID)
			}
		}
	}
	if named > 0 {
		b.recording.problem("%s: %d places are named by the symbols that simpleperf found on the device, without lines; the files themselves, with --module NAME=FILE or --sysroot DIR, have more",
			b.recording.file.Path(), named)
	}
}

// simpleperfSymbols returns the symbols of the file or the memory that a frame is in, and the
// address that they have for it; nil where there are none.
func (b *profileBuilder) simpleperfSymbols(byPath map[string]*perfdata.FileSymbols, f *trace.ProfileFrame, p *framePlace) (*perfdata.FileSymbols, uint64) {
	address := f.PC - (p.offset - p.lookup)
	var m *perfdata.Mapping
	switch c := b.recording.generated.makers[f.PID]; {
	case f.Kernel:
		return byPath[kernelName], address
	case f.Module < 0 && c != nil:
		m = c.memoryAt(address)
	case f.Module >= 0 && p.module != nil: // else it is of a virtual machine
		in := &b.out.Modules[f.Module]
		s := byPath[in.Path]
		if s != nil && p.module.Object != nil {
			return s, p.lookup
		}
		m = &perfdata.Mapping{Path: in.Path, Start: in.Start, Offset: in.Offset}
	}
	if m == nil || byPath[m.Path] == nil {
		return nil, 0
	}
	s := byPath[m.Path]
	return s, s.Address(address-m.Start+m.Offset, m.Start, address)
}
