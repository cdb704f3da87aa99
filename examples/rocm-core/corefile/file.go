// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	ehdrBytes = 64
	phdrBytes = 56
	emAMDGPU  = 0xe0
	osabiHSA  = 0x40
)

// File is one of the files that the process leaves behind.
type File struct {
	im       *Image
	raw      []byte // a file that is kept as it is
	header   elf.Header64
	segments []segment
	// The GPU's note begins at noteAt of segment noteSegment; -1: there is none.
	noteSegment, noteAt int
	// missing is the number of last segments that are not written.
	missing int
}

type segment struct {
	elf.Prog64
	content content
	start   uint64 // the offset of the content; p_offset unless piped
}

// Files returns the core file, or the host's and the GPU's of a split core; gpu
// is nil otherwise.
func (im *Image) Files() (core, gpu *File, err error) {
	host, err := im.hostFile()
	if err != nil {
		return nil, nil, err
	}
	if im.core.Layout == Split {
		gpu, err = im.gpuFile()
		return host, gpu, err
	}
	return host, nil, nil
}

// hostFile is the host's core with its own memory and, in a file for both, the GPU's.
func (im *Image) hostFile() (*File, error) {
	isShared := im.core.Layout != Split
	f := &File{im: im, noteSegment: -1}
	f.header = elf.Header64{Machine: uint16(elf.EM_X86_64)}
	loads := im.segments(func(c chunk) bool { return isShared || c.place == Host }, elfFlags)
	if len(im.core.Host) > 0 {
		if !isShared && len(loads) == 0 {
			f.raw = im.core.Host
			return f, nil
		}
		own, err := f.takeHost(im.core.Host)
		if err != nil {
			return nil, err
		}
		loads = append(loads, own...)
	}
	if isShared {
		f.addNote(im.core.Layout == Merged)
	}
	slices.SortStableFunc(loads, func(a, b segment) int { return cmp.Compare(a.Vaddr, b.Vaddr) })
	for i := 1; i < len(loads); i++ {
		if loads[i].Vaddr-loads[i-1].Vaddr < loads[i-1].Memsz {
			return nil, fmt.Errorf("corefile: memory at %#x overlaps the host core's", loads[i].Vaddr)
		}
	}
	f.segments = append(f.segments, loads...)
	// The host's segments keep the alignment of their headers.
	return f, f.layOut(func(s *segment) uint64 { return max(s.Align, 4) })
}

// takeHost takes over header, notes and segments of a host's core file.
func (f *File) takeHost(host []byte) ([]segment, error) {
	if err := binary.Read(bytes.NewReader(host), binary.LittleEndian, &f.header); err != nil {
		return nil, fmt.Errorf("corefile: the host's core: %w", err)
	}
	parsed, err := elf.NewFile(bytes.NewReader(host))
	if err != nil {
		return nil, fmt.Errorf("corefile: the host's core: %w", err)
	}
	defer parsed.Close()
	if parsed.Class != elf.ELFCLASS64 || parsed.Type != elf.ET_CORE {
		return nil, errors.New("corefile: the host's core is no 64-bit core file")
	}
	var loads []segment
	for _, p := range parsed.Progs {
		if p.Off > uint64(len(host)) || p.Filesz > uint64(len(host))-p.Off {
			return nil, fmt.Errorf("corefile: the host's core ends inside the segment at %#x", p.Vaddr)
		}
		if p.Align&(p.Align-1) != 0 || p.Align > 1<<20 {
			return nil, fmt.Errorf("corefile: the host's segment at %#x is aligned to %#x", p.Vaddr, p.Align)
		}
		s := segment{content: whole(host[p.Off:][:p.Filesz])}
		s.Prog64 = elf.Prog64{Type: uint32(p.Type), Flags: uint32(p.Flags), Vaddr: p.Vaddr, Paddr: p.Paddr,
			Filesz: p.Filesz, Memsz: p.Memsz, Align: p.Align}
		if p.Type == elf.PT_LOAD {
			loads = append(loads, s)
		} else {
			f.segments = append(f.segments, s)
		}
	}
	return loads, nil
}

// addNote puts the GPU's note behind the host's, in the host's segment as gcore
// does or in its own.
func (f *File) addNote(isOwn bool) {
	note := f.im.noteBytes()
	i := slices.IndexFunc(f.segments, func(s segment) bool { return s.Type == uint32(elf.PT_NOTE) })
	if i < 0 || isOwn {
		i = len(f.segments)
		f.segments = append(f.segments, segment{Prog64: elf.Prog64{Type: uint32(elf.PT_NOTE), Align: 4}, content: data{}})
	}
	s := &f.segments[i]
	old := s.content.(data).bytes
	f.noteSegment, f.noteAt = i, len(old)
	s.content = whole(append(old[:len(old):len(old)], note...))
	s.Filesz = s.content.size()
}

// noteBytes is the note with its header. The name is AMDGPU and its zero byte,
// padded to 8.
func (im *Image) noteBytes() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 7)
	b = le.AppendUint32(b, uint32(len(im.note)))
	b = le.AppendUint32(b, noteType)
	b = append(b, "AMDGPU\x00\x00"...)
	return append(b, im.note...)
}

// gpuFile is the file of amd_core_dump.cpp, write_core_dump_to_fd: it has the flags of
// sections in place of segments' flags, and logarithms for alignments.
func (im *Image) gpuFile() (*File, error) {
	f := &File{im: im}
	f.header = elf.Header64{Machine: emAMDGPU}
	f.header.Ident[elf.EI_OSABI] = osabiHSA
	note := whole(im.noteBytes())
	f.segments = []segment{{Prog64: elf.Prog64{Type: uint32(elf.PT_NOTE), Align: 2,
		Filesz: note.n, Memsz: note.n}, content: note}}
	for _, s := range im.segments(func(c chunk) bool { return c.place == GPU }, sectionFlags) {
		s.Align = 4
		f.segments = append(f.segments, s)
	}
	err := f.layOut(func(s *segment) uint64 { return 1 << s.Align })
	if im.core.Piped {
		at := uint64(ehdrBytes + phdrBytes*len(f.segments))
		for i := range f.segments {
			f.segments[i].start = at
			at += f.segments[i].Filesz
		}
	}
	for i := range f.segments {
		if limit := im.core.SizeLimit; limit != 0 && f.segments[i].Off+f.segments[i].Filesz > limit {
			f.missing = len(f.segments) - i
			break
		}
	}
	return f, err
}

func elfFlags(c *chunk) elf.ProgFlag {
	flags := elf.PF_R
	if !c.readOnly {
		flags |= elf.PF_W
	}
	if c.executable {
		flags |= elf.PF_X
	}
	return flags
}

// sectionFlags are SHF_ALLOC, SHF_WRITE and SHF_EXECINSTR, which ROCr writes
// into p_flags.
func sectionFlags(c *chunk) elf.ProgFlag {
	flags := elf.SHF_ALLOC
	if !c.readOnly {
		flags |= elf.SHF_WRITE
	}
	if c.executable {
		flags |= elf.SHF_EXECINSTR
	}
	return elf.ProgFlag(flags)
}

func (im *Image) segments(isIn func(chunk) bool, flags func(*chunk) elf.ProgFlag) []segment {
	var list []segment
	for i := range im.chunks {
		c := &im.chunks[i]
		if !isIn(*c) {
			continue
		}
		n := c.content.size()
		list = append(list, segment{content: c.content, Prog64: elf.Prog64{Type: uint32(elf.PT_LOAD),
			Flags: uint32(flags(c)), Vaddr: c.address, Filesz: n, Memsz: n, Align: 1}})
	}
	return list
}

// layOut gives every segment its place and fills the header in.
func (f *File) layOut(align func(*segment) uint64) error {
	if len(f.segments) >= 0xffff {
		return fmt.Errorf("corefile: %d segments", len(f.segments))
	}
	h := &f.header
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	h.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	h.Type, h.Version = uint16(elf.ET_CORE), uint32(elf.EV_CURRENT)
	h.Phoff, h.Ehsize, h.Phentsize, h.Phnum = ehdrBytes, ehdrBytes, phdrBytes, uint16(len(f.segments))
	h.Shoff, h.Shnum, h.Shentsize, h.Shstrndx = 0, 0, 0, 0
	at := uint64(ehdrBytes + phdrBytes*len(f.segments))
	for i := range f.segments {
		s := &f.segments[i]
		at = roundUp(at, align(s))
		s.Off, s.start = at, at
		at += s.Filesz
	}
	return nil
}

// Size is the file's length.
func (f *File) Size() int64 {
	if f.raw != nil {
		return int64(len(f.raw))
	}
	n := uint64(ehdrBytes + phdrBytes*len(f.segments))
	for i := range f.segments[:len(f.segments)-f.missing] {
		n = max(n, f.segments[i].start+f.segments[i].Filesz)
	}
	return int64(n)
}

// WriteTo writes the file, with no more of it in memory than a buffer.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	s := newSink(w, nil)
	f.emit(s)
	err := s.close()
	return s.n, err
}

// WriteFile writes the file with holes where it has long runs of zeros.
func (f *File) WriteFile(path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	s := newSink(out, out)
	f.emit(s)
	err = s.close()
	if err == nil {
		err = out.Truncate(f.Size())
	}
	return errors.Join(err, out.Close())
}

// Bytes is the whole file.
func (f *File) Bytes() ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(f.Size()))
	_, err := f.WriteTo(&b)
	return b.Bytes(), err
}

func (f *File) emit(s *sink) {
	if f.raw != nil {
		s.bytes(f.raw)
		return
	}
	var b bytes.Buffer
	for _, part := range append([]any{&f.header}, f.programHeaders()...) {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			s.err = err
			return
		}
	}
	s.bytes(b.Bytes())
	for i := range f.segments[:len(f.segments)-f.missing] {
		x := &f.segments[i]
		s.zeros(x.start - uint64(s.n))
		x.content.emit(s)
	}
}

func (f *File) programHeaders() []any {
	list := make([]any, len(f.segments))
	for i := range f.segments {
		list[i] = &f.segments[i].Prog64
	}
	return list
}

// WriteFiles writes the core to path, and the GPU's part of a split core to
// path.gpu as the runtime names it. It returns the files' names.
func (im *Image) WriteFiles(path string) ([]string, error) {
	core, gpu, err := im.Files()
	if err != nil {
		return nil, err
	}
	names := []string{path}
	err = core.WriteFile(path)
	if err == nil && gpu != nil {
		names = append(names, path+".gpu")
		err = gpu.WriteFile(path + ".gpu")
	}
	return names, err
}
