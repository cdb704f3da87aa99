// SPDX-License-Identifier: Apache-2.0

package machocore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/target/machocore/machocoretest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// description is a little architecture with the registers of arm64 that the tests look at.
func description(object.ELFMachine) (*sdk.Description, error) {
	return &sdk.Description{
		Name: "aarch64", ByteOrder: sdk.LittleEndian, AddressBits: 64, PC: 32, SP: 31, FP: 29,
		Registers: []sdk.RegisterRange{
			{First: 0, Count: 31, Bits: 64, Names: []string{"x%d"}}, {First: 31, Count: 1, Bits: 64, Names: []string{"sp"}},
			{First: 32, Count: 1, Bits: 64, Names: []string{"pc"}}, {First: 33, Count: 1, Bits: 64, Names: []string{"cpsr"}},
			{First: 34, Count: 1, Bits: 64, Names: []string{"pauth_cmask"}}, {First: 64, Count: 32, Bits: 128, Names: []string{"v%d"}},
		},
	}, nil
}

func open(t testing.TB, b *machocoretest.Builder) *Core {
	t.Helper()
	c, err := New("core", b.Bytes(), Options{Describe: description, Finder: object.Finder{Sysroot: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// general is ARM_THREAD_STATE64: x0 to x28, x29, x30, sp, pc and cpsr.
func general(x29, x30, sp, pc uint64) []byte {
	b := make([]byte, 8*29)
	b = append(b, machocoretest.Words(x29, x30, sp, pc)...)
	return machocoretest.State(6, binary.LittleEndian.AppendUint64(b, 0x60000000))
}

// trap is ARM_EXCEPTION_STATE64.
func trap(address uint64, syndrome uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, address)
	return machocoretest.State(7, binary.LittleEndian.AppendUint64(b, uint64(syndrome)))
}

const (
	textAt   = 0x100000000
	slide    = 0x4000000
	readText = macho.CanRead | macho.CanExecute
)

// header is the header of an image with one segment and a UUID; cached: as in the shared cache.
func header(typ, flags uint32, offset uint64, name string) []byte {
	le := binary.LittleEndian
	var commands []byte
	segment := le.AppendUint32(le.AppendUint32(nil, 0x19), 152)
	segment = append(segment, append([]byte("__TEXT"), make([]byte, 10)...)...)
	segment = append(segment, machocoretest.Words(textAt, 0x1000, offset, 0x1000)...)
	for _, v := range []uint32{5, 5, 1, 0} {
		segment = le.AppendUint32(segment, v)
	}
	segment = append(segment, append([]byte("__text"), make([]byte, 10)...)...)
	segment = append(segment, append([]byte("__TEXT"), make([]byte, 10)...)...)
	segment = append(segment, machocoretest.Words(textAt+0x400, 0xc00)...)
	for _, v := range []uint32{uint32(offset) + 0x400, 2, 0, 0, 0x80000400, 0, 0, 0} {
		segment = le.AppendUint32(segment, v)
	}
	commands = append(commands, segment...)
	count := uint32(2)
	commands = append(le.AppendUint32(le.AppendUint32(commands, 0x1b), 24), bytes.Repeat([]byte{0xab}, 16)...)
	if name != "" {
		count++
		id := le.AppendUint32(le.AppendUint32(nil, 0xd), 64)
		id = append(id, []byte{24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}...)
		id = append(id, name...)
		commands = append(commands, append(id, make([]byte, 64)...)[:64]...)
	}
	h := le.AppendUint32(nil, 0xfeedfacf)
	for _, v := range []uint32{macho.MachineARM64, 0, typ, count, uint32(len(commands)), flags, 0} {
		h = le.AppendUint32(h, v)
	}
	return append(h, commands...)
}

// page returns bytes that fill a page.
func page(b []byte) []byte { return append(b, make([]byte, 0x1000-len(b))...) }

func number(t *testing.T, c *Core, thread int, name string) uint64 {
	t.Helper()
	d, _ := description(object.ELFMachine{})
	r, ok := d.RegisterByName(name)
	if !ok {
		t.Fatalf("no register %s", name)
	}
	v, _ := c.Threads()[thread].Registers.Uint64(r.Number, sdk.LittleEndian)
	return v
}

// TestRegistersAreThoseOfTheStates: IDs from the notes, signatures removed, the unified state unpacked.
func TestRegistersAreThoseOfTheStates(t *testing.T) {
	b := &machocoretest.Builder{Machine: macho.MachineARM64, Subtype: macho.SubtypeARM64E}
	const signed = 0x2a5b << 47 &^ kernelBit
	vectors := machocoretest.State(17, slices.Concat(make([]byte, 16), bytes.Repeat([]byte{7}, 16), make([]byte, 30*16+16)))
	b.Thread(general(0x1000, signed|0x2000, 0x3000, signed|0x4000), vectors)
	b.Thread(machocoretest.State(1, general(1, 2, 3, 4)))
	b.IDs(775, 12)
	b.Bits(47)
	c := open(t, b)
	for _, want := range []struct {
		thread int
		name   string
		value  uint64
	}{
		{0, "x29", 0x1000}, {0, "x30", 0x2000}, {0, "sp", 0x3000}, {0, "pc", 0x4000}, {0, "cpsr", 0x60000000},
		{0, "pauth_cmask", ^uint64(1<<47-1) &^ kernelBit}, {1, "pc", 4}, {1, "x29", 1},
	} {
		if got := number(t, c, want.thread, want.name); got != want.value {
			t.Errorf("thread %d: %s is %#x, expected %#x", want.thread, want.name, got, want.value)
		}
	}
	if v, ok := c.Threads()[0].Registers.Get(65); !ok || !bytes.Equal(v, bytes.Repeat([]byte{7}, 16)) {
		t.Errorf("v1 is %x", v)
	}
	if c.Threads()[0].ID != "775" || c.Threads()[1].ID != "12" || c.Threads()[0].Crashed {
		t.Errorf("%+v", c.Threads()[0])
	}
}

// TestSignaturesAreOfTheHalfOfTheAddressSpace: the numbers of bits of both halves, by the versions of the note, which the
// kernel writes of processes and of itself, and lldb of both.
func TestSignaturesAreOfTheHalfOfTheAddressSpace(t *testing.T) {
	const kernel, process = uint64(0xfffffe0007123450), uint64(0x123456780)
	three := func(bits uint32) []uint32 { return []uint32{3, bits, 0, 0} }
	four := func(low, high uint32) []uint32 { return []uint32{4, low, high, 0} }
	for _, x := range []struct {
		what          string
		note          []uint32
		plain, signed uint64
		want, mask    uint64
	}{
		{what: "a process without a note", plain: process, signed: process | 0x5a<<56 | 0x2a<<48, want: process, mask: 0xff7f800000000000},
		{what: "a process of 47 bits", note: three(47), plain: process, signed: process | 0xa5<<56 | 0x7f<<48, want: process, mask: 0xff7f800000000000},
		{what: "a process of 39 bits", note: three(39), plain: process, signed: process | 0x15a5<<40, want: process, mask: 0xff7fff8000000000},
		{what: "the kernel", note: three(47), plain: kernel, signed: kernel &^ (0x5a<<56 | 0x2a<<48), want: kernel, mask: 0xff7f800000000000},
		{what: "the kernel without a note", plain: kernel, signed: kernel &^ (0x2a << 48), want: kernel &^ (0x2a << 48)},
		{what: "the kernel of two numbers", note: four(39, 47), plain: kernel, signed: kernel &^ (0x5a << 56), want: kernel, mask: 0xff7f800000000000},
		{what: "a process of two numbers", note: four(39, 47), plain: process, signed: process | 0xa5<<40, want: process, mask: 0xff7fff8000000000},
		{what: "a process, of which the number of the kernel is known", note: four(0, 47), plain: process, signed: process | 1<<48, want: process, mask: 0xff7f800000000000},
		{what: "no signatures", note: three(64), plain: process, signed: process | 1<<48, want: process | 1<<48},
	} {
		b := &machocoretest.Builder{Machine: macho.MachineARM64, Subtype: macho.SubtypeARM64E}
		b.Thread(general(x.plain, x.signed, x.plain, x.plain))
		if x.note != nil {
			var note []byte
			for _, v := range x.note {
				note = binary.LittleEndian.AppendUint32(note, v)
			}
			b.Note("addrable bits", note)
		}
		c := open(t, b)
		if got := number(t, c, 0, "x30"); got != x.want {
			t.Errorf("%s: %#x becomes %#x, expected %#x; problems %q", x.what, x.signed, got, x.want, c.Info().Problems)
		}
		if pc, mask := number(t, c, 0, "pc"), number(t, c, 0, "pauth_cmask"); pc != x.plain || mask != x.mask {
			t.Errorf("%s: PC %#x, expected %#x; mask %#x, expected %#x", x.what, pc, x.plain, mask, x.mask)
		}
	}
}

// TestCrashIsOfTheOneThreadWhoseExceptionEndsProcesses.
func TestCrashIsOfTheOneThreadWhoseExceptionEndsProcesses(t *testing.T) {
	const (
		readAbort  = 0x24<<26 | 1<<25 | 4
		writeAbort = readAbort | 1<<6
		call       = 0x15<<26 | 1<<25 | 0x80
		breakpoint = 0x3c<<26 | 1<<25 | 1
	)
	for _, x := range []struct {
		what  string
		traps [][]byte
		name  string
		at    uint64
	}{
		{"no exception", [][]byte{trap(0, 0)}, "", 0},
		{"a system call", [][]byte{trap(0, call)}, "", 0},
		{"a page that is there", [][]byte{trap(0x8010, readAbort)}, "", 0},
		{"no page", [][]byte{trap(0x8010, readAbort), trap(0x18, readAbort)}, "EXC_BAD_ACCESS / KERN_INVALID_ADDRESS", 0x18},
		{"no right", [][]byte{trap(0x8010, writeAbort)}, "EXC_BAD_ACCESS / KERN_PROTECTION_FAILURE", 0x8010},
		{"a breakpoint", [][]byte{trap(0, breakpoint)}, "EXC_BREAKPOINT / EXC_ARM_BREAKPOINT", 0x4000},
		{"two", [][]byte{trap(0, breakpoint), trap(0x18, readAbort)}, "", 0},
	} {
		b := &machocoretest.Builder{Machine: macho.MachineARM64}
		for _, s := range x.traps {
			b.Thread(general(1, 2, 3, 0x4000), s)
		}
		b.Segment(machocoretest.Segment{Address: 0x8000, Data: make([]byte, 64), Protection: macho.CanRead})
		c := open(t, b)
		crash := c.Info().Facts.Crash
		switch {
		case x.name == "" && crash != nil:
			t.Errorf("%s: %+v", x.what, crash)
		case x.name != "" && (crash == nil || crash.Name != x.name || crash.Address != x.at):
			t.Errorf("%s: %+v, expected %s at %#x", x.what, crash, x.name, x.at)
		}
	}
}

// TestImagesAreFound by each of the ways, and assembled from memory.
func TestImagesAreFound(t *testing.T) {
	const at = textAt + slide
	program := func(b *machocoretest.Builder, typ, flags uint32, offset uint64, name string) {
		b.Thread(general(1, 2, 3, at+0x500))
		b.Segment(machocoretest.Segment{Address: at, Data: page(header(typ, flags, offset, name)), Protection: readText})
	}
	uuid := bytes.Repeat([]byte{0xab}, 16)
	for _, x := range []struct {
		what string
		fill func(b *machocoretest.Builder)
		path string
	}{
		{"the list of all images", func(b *machocoretest.Builder) {
			program(b, macho.TypeExecute, 0, 0, "")
			b.Images(machocoretest.Image{Path: "/bin/p", UUID: uuid, Address: at})
		}, "/bin/p"},
		{"one image", func(b *machocoretest.Builder) {
			program(b, macho.TypeDylib, 0, 0, "/usr/lib/l.dylib")
			b.Note("load binary", slices.Concat([]byte{1, 0, 0, 0}, uuid, machocoretest.Words(at, ^uint64(0)), []byte("/l\x00")))
		}, "/l"},
		{"the executable", func(b *machocoretest.Builder) {
			program(b, macho.TypeExecute, 0, 0, "")
			b.Note("main bin spec", slices.Concat([]byte{2, 0, 0, 0, 2, 0, 0, 0}, machocoretest.Words(at, ^uint64(0)), uuid, make([]byte, 8)))
		}, ""},
		{"the beginnings of memory", func(b *machocoretest.Builder) { program(b, macho.TypeDylib, 0, 0, "/usr/lib/l.dylib") }, "/usr/lib/l.dylib"},
		{"the shared cache", func(b *machocoretest.Builder) {
			program(b, macho.TypeDylib, 0x80000000, 0x7770000, "/usr/lib/l.dylib")
		}, "/usr/lib/l.dylib"},
	} {
		b := &machocoretest.Builder{Machine: macho.MachineARM64}
		x.fill(b)
		c := open(t, b)
		if len(c.Modules()) != 1 {
			t.Errorf("%s: %d modules, expected 1; %q", x.what, len(c.Modules()), c.Info().Problems)
			continue
		}
		m := c.Modules()[0]
		if m.Path != x.path || !bytes.Equal(m.BuildID, uuid) || m.Base != at || len(m.Segments) != 1 || m.Segments[0].Start != at || !m.Segments[0].Executable {
			t.Errorf("%s: %+v", x.what, m.Module)
		}
		if m.Object == nil || !m.Object.IsMachO() {
			t.Errorf("%s: no object: %s", x.what, m.Problem)
			continue
		}
		if s := m.Object.Section(".text"); s == nil || s.Offset != 0x400 || s.Address != textAt+0x400 {
			t.Errorf("%s: .text %+v", x.what, s)
		}
	}
}

// TestDyldsListIsRead: without notes dyld's header leads to its list, which names images, also where it is in the middle
// of the shared cache.
func TestDyldsListIsRead(t *testing.T) {
	for _, skip := range []uint64{0, 0x3000} {
		dyld := header(macho.TypeDylinker, 0, 0, "")
		// The section of dyld's list takes the place of its code's.
		section := bytes.Index(dyld, []byte("__text\x00"))
		copy(dyld[section:], "__all_image_info__DATA\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		const infos, list, path, image = textAt + 0x400, 0x7000, 0x7100, 0x200000000
		memory := page(dyld)
		copy(memory[infos-textAt:], slices.Concat([]byte{15, 0, 0, 0, 1, 0, 0, 0}, machocoretest.Words(list, 0, 0, textAt)))
		b := &machocoretest.Builder{Machine: macho.MachineARM64}
		b.Thread(general(1, 2, 3, 4))
		b.Segment(machocoretest.Segment{Address: textAt - skip, Data: append(make([]byte, skip), memory...), Protection: readText})
		entries := append(machocoretest.Words(image, path, 0), make([]byte, path-list-24)...)
		b.Segment(machocoretest.Segment{Address: list, Data: append(entries, "/bin/p\x00"...), Protection: macho.CanRead})
		b.Segment(machocoretest.Segment{Address: image, Data: page(header(macho.TypeExecute, 0, 0, "")), Protection: readText})
		c := open(t, b)
		var paths []string
		for _, m := range c.Modules() {
			paths = append(paths, m.Path)
		}
		if !slices.Equal(paths, []string{dyldPath, "/bin/p"}) || len(c.Info().Problems) != 0 {
			t.Errorf("%q, problems %q", paths, c.Info().Problems)
		}
		if c.Info().Facts.Process.Main != image {
			t.Errorf("%+v", c.Info().Facts.Process)
		}
	}
}

// TestMemoryIsThatOfTheSegments: ranges over each other, ranges that are cut, ranges that follow one another.
func TestMemoryIsThatOfTheSegments(t *testing.T) {
	b := &machocoretest.Builder{Machine: macho.MachineARM64}
	b.Thread(general(1, 2, 3, 4))
	b.Segment(machocoretest.Segment{Address: 0x1008, Data: []byte("BBBBBBBB"), Protection: macho.CanRead, Missing: 8})
	b.Segment(machocoretest.Segment{Address: 0x1000, Data: []byte("aaaaaaaaaaaa"), Protection: macho.CanRead | macho.CanWrite})
	c := open(t, b)
	buf := make([]byte, 24)
	n, err := c.ReadMemory(locexpr.DefaultSpace, 0x1000, buf)
	if string(buf[:n]) != "aaaaaaaaaaaaBBBB" || !errors.Is(err, target.ErrNoMemory) {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if mapped, executable := c.Mapped(0x1017); !mapped || executable {
		t.Error("a range that the core lacks is mapped")
	}
	_, within, above := c.Around(0x1000)
	if within == nil || within.End != 0x100c || !within.IsWritable || above == nil || above.Start != 0x100c || above.IsWritable {
		t.Errorf("%+v %+v", within, above)
	}
}

// TestBadNotesAreProblems: each says which note, and the core is read without it.
func TestBadNotesAreProblems(t *testing.T) {
	for owner, data := range map[string][]byte{
		"addrable bits":    {3, 0, 0, 0, 7, 0, 0, 0},
		"process metadata": []byte(`{"threads":[]}`),
		"all image infos":  {2, 0, 0, 0},
		"load binary":      {1},
		"main bin spec":    make([]byte, 40),
	} {
		b := &machocoretest.Builder{Machine: macho.MachineARM64}
		b.Thread(general(1, 2, 3, 4))
		b.Note(owner, data)
		c := open(t, b)
		if p := strings.Join(c.Info().Problems, "\n"); !strings.Contains(p, owner) || len(c.Threads()) != 1 {
			t.Errorf("%s: problems %q", owner, p)
		}
	}
}

// FuzzCore reads any bytes as a core, and all that it then has.
func FuzzCore(f *testing.F) {
	b := &machocoretest.Builder{Machine: macho.MachineARM64}
	b.Thread(general(1, 2, 3, textAt+0x500), trap(0x18, 0x92000004))
	b.Segment(machocoretest.Segment{Address: textAt, Data: page(header(macho.TypeDylib, 0x80000000, 0, "/l")), Protection: readText})
	f.Add(b.Bytes())
	b.IDs(5)
	b.Bits(47)
	b.Images(machocoretest.Image{Path: "/l", Address: textAt})
	f.Add(b.Bytes())
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := New("fuzz", data, Options{Describe: description, Finder: object.Finder{Sysroot: root}})
		if err != nil {
			return
		}
		defer c.Close()
		for _, th := range c.Threads() {
			buf := make([]byte, 64)
			pc, _ := th.Registers.Uint64(32, sdk.LittleEndian)
			_, _ = c.ReadMemory(locexpr.DefaultSpace, pc, buf)
			_, _ = c.Mapped(pc)
			_, _, _ = c.Around(pc)
		}
		for _, m := range c.Modules() {
			if m.Object != nil {
				_ = m.Object.EachSymbol(func(*object.Symbol) {})
			}
		}
	})
}
