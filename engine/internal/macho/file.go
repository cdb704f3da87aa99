// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/internal/problems"
)

// A File is a Mach-O file. It may be used concurrently. The bytes of a mapped file are read inside
// object.Guard.
type File struct {
	name     string
	data     []byte
	header   header
	segments []*Segment // in the file's order
	sections []*Section // of all segments, in the file's order
	mapped   []*Segment // those in memory, sorted by address
	uuid     [16]byte
	hasUUID  bool
	build    Build
	entry    uint64 // of LC_MAIN, an offset of the text segment; see hasMain
	hasMain  bool
	id       string   // of LC_ID_DYLIB
	imports  []string // of LC_LOAD_DYLIB and its kin

	symtab, strtab           place
	symbolCount              uint32
	firstIndirect, indirects uint32 // of LC_DYSYMTAB
	starts, exports, fixups  place
	encrypted                place
	notes                    []Note
	threads                  []command // LC_THREAD and LC_UNIXTHREAD

	unwind    unwindOnce
	functions functionsOnce

	mu       sync.Mutex
	problems problems.List[string]

	sectionOnce sync.Once
	byAddress   []sectionStart // of sections in memory
}

// place is a range of the file.
type place struct{ offset, size uint64 }

// Build is the system that a file was built for (LC_BUILD_VERSION, LC_VERSION_MIN_*).
type Build struct {
	Platform string // "macOS", "iOS"; "": the file does not say it
	Minimum  uint32 // version of the system: 16 bits, 8, 8
}

// Note is a part of a core that has a name (LC_NOTE).
type Note struct {
	Owner        string
	Offset, Size uint64 // in the file
}

// maxProblems bounds how many problems are kept.
const maxProblems = 16

// New reads the header and the load commands of a file of 64 bits. The bytes must not change; the name
// is used in messages only. Bytes that are none give ErrNotMachO. Load commands that are cut or wrong
// are problems: what those before them say counts.
func New(name string, data []byte) (*File, error) {
	h, err := readHeader(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &File{name: name, data: data, header: h}
	if err := h.eachCommand(data, f.take); err != nil {
		f.problem(err)
	}
	for _, s := range f.segments {
		if s.MemSize > 0 && s.IsMapped() {
			f.mapped = append(f.mapped, s)
		}
	}
	slices.SortStableFunc(f.mapped, func(a, b *Segment) int { return cmp.Compare(a.Address, b.Address) })
	return f, nil
}

// take keeps what a load command says.
func (f *File) take(c *command) {
	switch c.kind {
	case cmdSegment64:
		f.takeSegment(c)
	case cmdUUID:
		if len(c.data) >= commandSize+len(f.uuid) {
			f.hasUUID = true
			copy(f.uuid[:], c.data[commandSize:])
		}
	case cmdSymtab:
		f.symtab = place{offset: uint64(c.u32(8))}
		f.symbolCount = c.u32(12)
		f.strtab = place{uint64(c.u32(16)), uint64(c.u32(20))}
	case cmdDysymtab:
		f.firstIndirect, f.indirects = c.u32(56), c.u32(60)
	case cmdFunctionStart:
		f.starts = c.linkEdit()
	case cmdExportsTrie:
		f.exports = c.linkEdit()
	case cmdDyldInfo, cmdDyldInfoOnly:
		f.exports = place{uint64(c.u32(40)), uint64(c.u32(44))}
	case cmdChainedFixups:
		f.fixups = c.linkEdit()
	case cmdMain:
		f.entry, f.hasMain = c.u64(8), true
	case cmdIDDylib:
		f.id = c.text(8)
	case cmdEncryption, cmdEncryption64:
		f.takeEncryption(c)
	case cmdThread, cmdUnixThread:
		f.threads = append(f.threads, *c)
	case cmdNote:
		if len(c.data) >= 40 {
			f.notes = append(f.notes, Note{Owner: Name(c.data[8:24]), Offset: c.u64(24), Size: c.u64(32)})
		}
	case cmdBuildVersion:
		f.build = Build{Platform: platforms[c.u32(8)], Minimum: c.u32(12)}
	default:
		f.takeOther(c)
	}
}

// takeOther keeps what a load command of several numbers says.
func (f *File) takeOther(c *command) {
	if platform := minimums[c.kind]; platform != "" && f.build.Platform == "" {
		f.build = Build{Platform: platform, Minimum: c.u32(8)}
	}
	if slices.Contains(loads, c.kind) {
		f.imports = append(f.imports, c.text(8))
	}
}

// loads are the load commands that name a library: LC_LOAD_DYLIB, and weak, re-exported, lazy and upward ones.
var loads = []uint32{cmdLoadDylib, 0x80000018, 0x8000001f, 0x20, 0x80000023}

// platforms are the names of the platforms of LC_BUILD_VERSION.
var platforms = map[uint32]string{
	1: "macOS", 2: "iOS", 3: "tvOS", 4: "watchOS", 5: "bridgeOS", 6: "Mac Catalyst", 7: "iOS simulator",
	8: "tvOS simulator", 9: "watchOS simulator", 10: "DriverKit", 11: "visionOS", 12: "visionOS simulator",
}

// minimums are the platforms of older load commands.
var minimums = map[uint32]string{cmdVersionMacOS: "macOS", cmdVersionIOS: "iOS", cmdVersionTVOS: "tvOS", cmdVersionWatch: "watchOS"}

// linkEdit returns the range of a linkedit_data_command.
func (c *command) linkEdit() place { return place{uint64(c.u32(8)), uint64(c.u32(12))} }

// problem keeps a sentence that names the file.
func (f *File) problem(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problems.HasRoom(maxProblems) {
		f.problems.Keep(f.name + ": " + err.Error())
	}
}

// Problems returns errors so far without which the file can be used, each a sentence that names the
// file, the section and the offset. At most 16 are kept.
func (f *File) Problems() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.problems.Kept())
}

// Machine returns the machine of the header (cputype), as MachineARM64.
func (f *File) Machine() uint32 { return f.header.machine }

// MachineName returns the name of the machine, as compilers and `lipo` have it: arm64e.
func (f *File) MachineName() string {
	return machineName(f.header.machine, f.header.subtype&maskOfSubtype)
}

// Type returns the type of the file (filetype), as TypeDylib.
func (f *File) Type() uint32 { return f.header.typ }

// IsFromCache reports whether the file is an image that was taken out of a shared cache of dyld
// (MH_DYLIB_IN_CACHE).
func (f *File) IsFromCache() bool { return f.header.flags&inCacheFlag != 0 }

// UUID returns the identity of the file, which its dSYM has, too (LC_UUID); nil where there is none.
func (f *File) UUID() []byte {
	if !f.hasUUID {
		return nil
	}
	return f.uuid[:]
}

// Build returns the system that the file was built for.
func (f *File) Build() Build { return f.build }

// ID returns the path that a library is loaded by (LC_ID_DYLIB); "" where there is none.
func (f *File) ID() string { return f.id }

// Imports returns the paths of the libraries that the file is linked with, in its order: the number of a
// library, from 1 on, is its place here.
func (f *File) Imports() []string { return f.imports }

// Notes returns the named parts of a core, in its order.
func (f *File) Notes() []Note { return f.notes }

// Threads returns the bytes of the states of a core's threads, in its order (LC_THREAD): pairs of a kind
// and a number of words, and those words.
func (f *File) Threads() [][]byte {
	list := make([][]byte, len(f.threads))
	for i := range f.threads {
		list[i] = f.threads[i].data[commandSize:]
	}
	return list
}

// Entry returns the virtual address of the function that a program begins with (LC_MAIN); false where
// there is none.
func (f *File) Entry() (address uint64, ok bool) {
	if text := f.Text(); f.hasMain && text != nil {
		return text.Address + f.entry, true
	}
	return 0, false
}

// bytes returns a range of the file; part names it in the error.
func (f *File) bytes(p place, part string) ([]byte, error) {
	if p.offset > uint64(len(f.data)) || p.size > uint64(len(f.data))-p.offset {
		return nil, fmt.Errorf("%s: %s at offset %#x, %#x bytes: the file ends at %#x", f.name, part, p.offset, p.size, len(f.data))
	}
	if f.Readable(p.offset, p.size) < p.size {
		return nil, fmt.Errorf("%s: %s at offset %#x, %#x bytes: %w", f.name, part, p.offset, p.size, ErrEncrypted)
	}
	return f.data[p.offset : p.offset+p.size], nil
}
