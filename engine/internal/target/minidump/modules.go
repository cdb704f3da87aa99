// SPDX-License-Identifier: Apache-2.0

package minidump

import "fmt"

// Module is MINIDUMP_MODULE: a file that is loaded.
type Module struct {
	Base      uint64
	Size      uint32
	Checksum  uint32
	Timestamp uint32 // of the file's header on Windows, in seconds since 1970
	Name      string // its path, as the process had it
	Version   FileVersion
	Identity  Identity
	// Misc is the IMAGE_DEBUG_MISC record, which names the file with the symbols; nil
	// except in old dumps.
	Misc []byte
	// Crashpad has the annotations that the module set; nil: none.
	Crashpad *ModuleAnnotations
}

// FileVersion is VS_FIXEDFILEINFO. HasIt is true where the dump has one.
type FileVersion struct {
	HasIt                     bool
	StructVersion             uint32
	File, Product             uint64 // four numbers of 16 bits, the first one the highest
	FlagsMask, Flags          uint32
	OS, FileType, FileSubtype uint32
	FileDateHigh, FileDateLow uint32
}

// String returns the version of the file: "5.1.2600.2180"; "" where there is none.
func (v FileVersion) String() string {
	if !v.HasIt {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d.%d", v.File>>48, v.File>>32&0xffff, v.File>>16&0xffff, v.File&0xffff)
}

// UnloadedModule is MINIDUMP_UNLOADED_MODULE: a file that was loaded before.
type UnloadedModule struct {
	Base                uint64
	Size                uint32
	Checksum, Timestamp uint32
	Name                string
}

const (
	moduleSize         = 108
	unloadedModuleSize = 24
	versionSignature   = 0xfeef04bd // of VS_FIXEDFILEINFO
	maxCodeView        = 1 << 16
)

func (d *Dump) readModules(s *Stream) {
	e := d.counted(s, moduleSize, maxModules)
	d.Modules = make([]Module, 0, e.count)
	for i := range e.count {
		r := e.entry(i)
		m := Module{
			Base: r.u64(0), Size: r.u32(8), Checksum: r.u32(12), Timestamp: r.u32(16),
			Name: d.name(s, uint64(r.u32(20)), true, "module", i), Version: r.fileVersion(24),
		}
		if l := r.location(76); l.size > 0 {
			m.Identity = d.identity(s, l, i)
		}
		if l := r.location(84); l.size > 0 {
			m.Misc = d.part(s, e.where(i)+84, l, "the debug record of module", i).b
		}
		if m.Base+uint64(m.Size) < m.Base {
			d.problem(s, e.where(i), "module %d has %d bytes at %#x, which is beyond the last address", i, m.Size, m.Base)
		}
		d.Modules = append(d.Modules, m)
	}
}

// part returns the bytes of a location in a record of a stream. offset is the place of
// the location.
func (d *Dump) part(s *Stream, offset uint64, l location, what string, index int) record {
	r, problem := d.bytesOf(l)
	if problem != "" {
		d.problem(s, offset, "%s %d: %s", what, index, problem)
	}
	return r
}

func (r record) fileVersion(offset int) FileVersion {
	f := r.skip(offset)
	if f.u32(0) != versionSignature {
		return FileVersion{}
	}
	long := func(offset int) uint64 { return uint64(f.u32(offset))<<32 | uint64(f.u32(offset+4)) }
	return FileVersion{
		HasIt: true, StructVersion: f.u32(4), File: long(8), Product: long(16), FlagsMask: f.u32(24), Flags: f.u32(28),
		OS: f.u32(32), FileType: f.u32(36), FileSubtype: f.u32(40), FileDateHigh: f.u32(44), FileDateLow: f.u32(48),
	}
}

func (d *Dump) readUnloadedModules(s *Stream) {
	e := d.described(s, 12, count32, unloadedModuleSize, maxModules)
	for i := range e.count {
		r := e.entry(i)
		d.UnloadedModules = append(d.UnloadedModules, UnloadedModule{
			Base: r.u64(0), Size: r.u32(8), Checksum: r.u32(12), Timestamp: r.u32(16),
			Name: d.name(s, uint64(r.u32(20)), true, "unloaded module", i),
		})
	}
}
