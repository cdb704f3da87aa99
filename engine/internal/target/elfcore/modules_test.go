// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

const textSize = 0x800

// library is a code object with three segments: headers and a build ID, code,
// and data that a dynamic loader has to find PT_DYNAMIC in.
//
//	file 0x0000 vaddr base+0x0000 R   headers, note at 0x400
//	file 0x1000 vaddr base+0x1000 R E code
//	file 0x2000 vaddr base+0x3000 RW  dynamic
type library struct {
	*builder
	base   uint64
	id     string
	text   []byte
	data   []byte
	interp string
	phdr   bool
	shared bool // code and headers share a page of the file, as lld does it
}

func newLibrary(n numbers, machine elf.Machine, id string) *library {
	l := &library{builder: &builder{numbers: n, typ: elf.ET_DYN, machine: machine}, id: id}
	l.text = bytes.Repeat([]byte(id+"."), textSize)[:textSize]
	l.data = make([]byte, 0x200)
	return l
}

// file writes the library as a file.
func (l *library) file() []byte {
	note := []byte(nil)
	if l.id != "" {
		note = l.note(nil, "GNU", 3, []byte(l.id))
	}
	head := make([]byte, 0x600)
	copy(head[0x400:], note)
	copy(head[0x500:], l.interp+"\x00")
	code := uint64(0x1000)
	if l.shared {
		code = 0x800
	}
	l.parts = nil
	if l.phdr {
		l.parts = append(l.parts, part{typ: elf.PT_PHDR, flags: elf.PF_R, address: l.base + uint64(l.offset(52, 64)), offset: uint64(l.offset(52, 64)), claim: 1})
	}
	if l.interp != "" {
		l.parts = append(l.parts, part{typ: elf.PT_INTERP, flags: elf.PF_R, address: l.base + 0x500, offset: 0x500, data: []byte(l.interp + "\x00")})
	}
	l.parts = append(l.parts,
		part{typ: elf.PT_LOAD, flags: elf.PF_R, address: l.base, offset: 0, data: nil, claim: 0x600, size: 0x600, align: 0x1000},
		part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, address: l.base + 0x1000 + code&0xfff, offset: code, data: l.text, align: 0x1000},
		part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_W, address: l.base + 0x3000, offset: 0x2000, data: l.data, align: 0x1000},
		part{typ: elf.PT_DYNAMIC, flags: elf.PF_R | elf.PF_W, address: l.base + 0x3000, offset: 0x2000, data: l.data})
	if note != nil {
		l.parts = append(l.parts, part{typ: elf.PT_NOTE, flags: elf.PF_R, address: l.base + 0x400, offset: 0x400, data: note, align: 4})
	}
	file := l.image()
	copy(file[0x400:], head[0x400:])
	return file
}

// world is a process in the making.
type world struct {
	*builder
	t      testing.TB
	root   string
	ranges []fileRange
	auxv   []uint64
	noFile bool // without NT_FILE
}

func newWorld(t testing.TB, b *builder) *world {
	return &world{builder: b, t: t, root: t.TempDir()}
}

// dump says which of a library's mappings the core has bytes of.
type dump struct{ head, text, data, noText bool }

// kernelDump is what the kernel dumps by default.
var kernelDump = dump{head: true, data: true}

// load maps a library with a bias, writes its file unless it is missing, and
// dumps memory.
func (w *world) load(path string, l *library, bias uint64, d dump) {
	file := l.file()
	pages := func(data []byte) []byte { return append(data, make([]byte, -len(data)&0xfff)...) }
	code := uint64(0x1000)
	if l.shared {
		code = 0
	}
	head := pages(append([]byte(nil), file[:0x600]...))
	if l.shared {
		head = pages(append([]byte(nil), file[:0x1000]...))
	}
	text := pages(append([]byte(nil), file[code:min(code+0x1000, uint64(len(file)))]...))
	at := bias + l.base
	w.ranges = append(w.ranges,
		fileRange{start: at, end: at + 0x1000, offset: 0, path: path},
		fileRange{start: at + 0x1000, end: at + 0x2000, offset: code, path: path},
		fileRange{start: at + 0x3000, end: at + 0x4000, offset: 0x2000, path: path})
	add := func(dumped bool, flags elf.ProgFlag, address uint64, data []byte) {
		if !dumped {
			data = nil
		}
		w.parts = append(w.parts, part{typ: elf.PT_LOAD, flags: flags, address: address, data: data, size: 0x1000})
	}
	add(d.head, elf.PF_R, at, head)
	if !d.noText {
		add(d.text, elf.PF_R|elf.PF_X, at+0x1000, text)
	}
	add(d.data, elf.PF_R|elf.PF_W, at+0x3000, pages(append([]byte(nil), l.data...)))
}

func (w *world) write(path string, l *library) { writeFile(w.t, w.root, path, l.file()) }

func (w *world) memory(address uint64, data []byte) {
	w.parts = append(w.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_W, address: address, data: data, size: (uint64(len(data)) + 0xfff) &^ 0xfff})
}

// bytes writes the core.
func (w *world) bytes() []byte {
	notes := w.note(nil, coreOwner, ntPRSTATUS, w.status(1, 11, 0x100, 0))
	notes = w.note(notes, coreOwner, ntPRPSINFO, w.info(1, "prog"))
	if w.auxv != nil {
		notes = w.note(notes, coreOwner, ntAUXV, w.words(w.words(nil, w.auxv...), 0, 0))
	}
	if !w.noFile {
		notes = w.note(notes, coreOwner, ntFILE, w.fileNote(1, w.ranges...))
	}
	b := *w.builder
	b.parts = append([]part{{typ: elf.PT_NOTE, data: notes, align: 4}}, w.parts...)
	return b.core()
}

func (w *world) open(options ...Options) *Core {
	w.t.Helper()
	o := Options{}
	if len(options) > 0 {
		o = options[0]
	}
	o.Finder.Sysroot = w.root
	return openBytes(w.t, w.numbers, w.bytes(), o)
}

// moduleView is what tests compare of a module.
type moduleView struct {
	Path, BuildID string
	Object        string // "file", "memory" or ""
	Code          string // where executable segments are: "address+size at start"
	Problem       bool
}

func moduleViews(c *Core) (list []moduleView) {
	for i, m := range c.Modules() {
		if m.ID != i {
			panic("module IDs are not indexes")
		}
		v := moduleView{Path: m.Path, BuildID: string(m.BuildID), Problem: m.Problem != ""}
		switch {
		case m.Object != nil && m.File != "":
			v.Object = "file"
		case m.Object != nil:
			v.Object = "memory"
		}
		var code []string
		for _, s := range m.Segments {
			if s.Executable {
				code = append(code, fmt.Sprintf("%#x+%#x at %#x", s.Address, s.Size, s.Start))
			}
		}
		v.Code = strings.Join(code, ", ")
		list = append(list, v)
	}
	return list
}

func checkModules(t *testing.T, c *Core, want []moduleView) {
	t.Helper()
	if diff := cmp.Diff(want, moduleViews(c)); diff != "" {
		t.Error(diff)
		for _, m := range c.Modules() {
			t.Logf("%s: %q", m.Path, m.Problem)
		}
		t.Logf("problems: %q", c.Info().Problems)
	}
}

// checkMemory compares what is read at an address; a nil want is unknown memory.
func checkMemory(t *testing.T, c *Core, address uint64, want []byte) {
	t.Helper()
	buf := make([]byte, max(len(want), 1))
	n, err := c.ReadMemory(0, address, buf)
	switch {
	case want == nil && (n != 0 || !errors.Is(err, target.ErrNoMemory)):
		t.Errorf("%#x: read %q, %v, want ErrNoMemory", address, buf[:n], err)
	case want != nil && (err != nil || !bytes.Equal(buf, want)):
		t.Errorf("%#x: read %q, %v, want %q", address, buf[:n], err, want)
	}
}

func TestModulesOfNTFILE(t *testing.T) {
	const at = 0x7f0000
	code := func(bias uint64) string { return fmt.Sprintf("0x1000+0x800 at %#x", bias+0x1000) }
	for _, b := range []*builder{little64(), big32()} {
		lib := func(id string) *library { return newLibrary(b.numbers, b.machine, id) }
		text := lib("same-id").text[:16]
		for name, test := range map[string]struct {
			setup   func(w *world)
			want    []moduleView
			problem string // of the first module
			text    []byte // what is read at its code
		}{
			"checked file": {
				setup: func(w *world) {
					w.load("/lib/a.so", lib("same-id"), at, kernelDump)
					w.write("/lib/a.so", lib("same-id"))
				},
				want: []moduleView{{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: code(at)}},
				text: text,
			},
			"file without build ID": {
				setup: func(w *world) { w.load("/lib/a.so", lib(""), at, kernelDump); w.write("/lib/a.so", lib("")) },
				want:  []moduleView{{Path: "/lib/a.so", Object: "file", Code: code(at), Problem: true}},
				text:  lib("").text[:16], problem: "could not be checked: the target does not tell it; its program headers are those in memory",
			},
			"file without build ID whose headers differ": {
				setup: func(w *world) {
					w.load("/lib/a.so", lib(""), at, kernelDump)
					other := lib("")
					other.entry = 4
					w.write("/lib/a.so", other)
				},
				want:    []moduleView{{Path: "/lib/a.so", Code: code(at), Problem: true}},
				problem: "a.so was not used: its entry point is 0x4, that of the image in memory is 0x0",
			},
			"another build ID": {
				setup: func(w *world) {
					w.load("/lib/a.so", lib("same-id"), at, kernelDump)
					w.write("/lib/a.so", lib("other-id"))
				},
				want:    []moduleView{{Path: "/lib/a.so", BuildID: "same-id", Code: code(at), Problem: true}},
				problem: "build ID is 6f746865722d6964, expected 73616d652d6964",
			},
			"missing": {
				setup:   func(w *world) { w.load("/lib/a.so", lib("same-id"), at, kernelDump) },
				want:    []moduleView{{Path: "/lib/a.so", BuildID: "same-id", Code: code(at), Problem: true}},
				problem: "no such file or directory",
			},
			"missing, dumped whole": {
				setup:   func(w *world) { w.load("/lib/a.so", lib("same-id"), at, dump{head: true, text: true, data: true}) },
				want:    []moduleView{{Path: "/lib/a.so", BuildID: "same-id", Object: "memory", Code: code(at), Problem: true}},
				problem: "it is read from the core's memory",
				text:    text,
			},
			"deleted, with the file of that build ID": {
				setup: func(w *world) {
					w.load("/lib/a.so (deleted)", lib("same-id"), at, kernelDump)
					w.write("/lib/a.so", lib("same-id"))
				},
				want: []moduleView{{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: code(at)}},
				text: text,
			},
			"deleted, and another file in its place": {
				setup: func(w *world) {
					w.load("/lib/a.so (deleted)", lib(""), at, kernelDump)
					w.write("/lib/a.so", lib(""))
				},
				want: []moduleView{{Path: "/lib/a.so", Code: code(at), Problem: true}},
			},
			"header not dumped": {
				setup: func(w *world) { w.load("/lib/a.so", lib("same-id"), at, dump{}); w.write("/lib/a.so", lib("same-id")) },
				want:  []moduleView{{Path: "/lib/a.so", Object: "file", Code: code(at), Problem: true}},
				text:  text, problem: "could not be checked",
			},
			"header not dumped, executable with fixed address": {
				setup: func(w *world) {
					l := lib("same-id")
					l.typ, l.base = elf.ET_EXEC, at
					w.load("/bin/a", l, 0, dump{})
					w.write("/bin/a", l)
				},
				want: []moduleView{{Path: "/bin/a", Object: "file", Code: "0x7f1000+0x800 at 0x7f1000", Problem: true}},
				text: text,
			},
			"header not dumped, and the file is another one": {
				setup: func(w *world) {
					w.load("/lib/a.so", lib("same-id"), at, dump{})
					other := lib("same-id")
					other.file()
					other.parts[1].offset = 0x3000 // its code is elsewhere in the file
					writeFile(w.t, w.root, "/lib/a.so", other.image())
				},
				want:    []moduleView{{Path: "/lib/a.so", Code: "0x1000+0x1000 at 0x7f1000", Problem: true}},
				problem: "its segments are not what was mapped; its addresses are counted from its first mapping, which is a guess",
			},
			"a part of the code is mapped once more": {
				setup: func(w *world) {
					w.load("/lib/a.so", lib("same-id"), at, kernelDump)
					w.write("/lib/a.so", lib("same-id"))
					w.ranges = append(w.ranges, fileRange{start: at + 0x8000, end: at + 0x8400, offset: 0x1400, path: "/lib/a.so"})
					w.parts = append(w.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, address: at + 0x8000, size: 0x400})
				},
				want: []moduleView{
					{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: code(at)},
					{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: "0x1400+0x400 at 0x7f8000"},
				},
				text: text,
			},
			"header not dumped, and no file": {
				setup:   func(w *world) { w.load("/lib/a.so", lib("same-id"), at, dump{}) },
				want:    []moduleView{{Path: "/lib/a.so", Code: "0x1000+0x1000 at 0x7f1000", Problem: true}},
				problem: "/lib/a.so: no file",
			},
			"file for another machine": {
				setup: func(w *world) {
					w.load("/lib/a.so", lib(""), at, kernelDump)
					other := lib("")
					other.machine = elf.EM_RISCV
					w.write("/lib/a.so", other)
				},
				want:    []moduleView{{Path: "/lib/a.so", Code: code(at), Problem: true}},
				problem: "it is for ELF machine 243 (riscv), the core is of ELF machine",
			},
			"code without program header in the core": {
				setup: func(w *world) {
					w.load("/lib/a.so", lib("same-id"), at, dump{head: true, data: true, noText: true})
					w.write("/lib/a.so", lib("same-id"))
				},
				want: []moduleView{{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: code(at)}},
				text: text,
			},
			"neither header nor code in the core": {
				setup: func(w *world) {
					w.ranges = append(w.ranges,
						fileRange{start: at, end: at + 0x1000, path: "/lib/a.so"},
						fileRange{start: at + 0x1000, end: at + 0x2000, offset: 0x1000, path: "/lib/a.so"},
						fileRange{start: at + 0x3000, end: at + 0x4000, offset: 0x2000, path: "/lib/a.so"},
						fileRange{start: at + 0x9000, end: at + 0xa000, path: "/usr/share/fonts/a.ttf"},
						fileRange{start: at + 0xa000, end: at + 0xb000, path: "/usr/lib/locale/locale-archive"})
					w.write("/lib/a.so", lib("same-id"))
					writeFile(w.t, w.root, "/usr/share/fonts/a.ttf", []byte("not an ELF file"))
				},
				want: []moduleView{{Path: "/lib/a.so", Object: "file", Code: code(at), Problem: true}},
				text: text,
			},
			"segments that share a page of the file": {
				setup: func(w *world) {
					l := lib("same-id")
					l.shared = true
					w.load("/lib/a.so", l, at, kernelDump)
					w.write("/lib/a.so", l)
				},
				want: []moduleView{{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: "0x1800+0x800 at 0x7f1800"}},
			},
			"segments that share a page of the file, header not dumped": {
				setup: func(w *world) {
					l := lib("same-id")
					l.shared = true
					w.load("/lib/a.so", l, at, dump{})
					w.write("/lib/a.so", l)
				},
				want: []moduleView{{Path: "/lib/a.so", Object: "file", Code: "0x1800+0x800 at 0x7f1800", Problem: true}},
			},
			"loaded twice": {
				setup: func(w *world) {
					w.load("/lib/a.so", lib("same-id"), at, kernelDump)
					w.load("/lib/a.so", lib("same-id"), at+0x4000, kernelDump)
					w.write("/lib/a.so", lib("same-id"))
				},
				want: []moduleView{
					{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: code(at)},
					{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: code(at + 0x4000)}},
				text: text,
			},
			"loaded, and mapped to be read": {
				setup: func(w *world) {
					file := lib("same-id").file()
					w.ranges = append(w.ranges, fileRange{start: at - 0x8000, end: at - 0x5000, path: "/lib/a.so"})
					w.parts = append(w.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R, address: at - 0x8000, data: file, size: 0x3000})
					w.load("/lib/a.so", lib("same-id"), at, kernelDump)
					w.write("/lib/a.so", lib("same-id"))
				},
				want: []moduleView{{Path: "/lib/a.so", BuildID: "same-id", Object: "file", Code: code(at)}},
				text: text,
			},
			"code split by changed rights": {
				setup: func(w *world) {
					l := lib("same-id")
					w.load("/lib/a.so", l, at, dump{})
					w.write("/lib/a.so", l)
					w.ranges[1].end = at + 0x1400
					w.ranges = append(w.ranges, fileRange{start: at + 0x1400, end: at + 0x2000, offset: 0x1400, path: "/lib/a.so"})
				},
				want: []moduleView{{Path: "/lib/a.so", Object: "file", Code: code(at), Problem: true}},
			},
			"what is no code": {
				setup: func(w *world) {
					w.parts = append(w.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R, address: at, size: 0x8000},
						part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, address: at + 0x8000, size: 0x8000})
					for i, path := range []string{"/usr/share/fonts/a.ttf", "/usr/lib/locale/locale-archive", "/dev/zero (deleted)", "/SYSV00000000 (deleted)",
						"/memfd:heap (deleted)", "anon_inode:[perf_event]", "/tmp/gone (deleted)", "/dev/dri/renderD128",
						"/memfd:jit (deleted)", "/dev/zero (deleted)", "/home/app/cache.jsa"} {
						w.ranges = append(w.ranges, fileRange{start: at + uint64(i)*0x1000, end: at + uint64(i+1)*0x1000, path: path})
					}
					writeFile(w.t, w.root, "/home/app/cache.jsa", []byte("no ELF"))
				},
			},
		} {
			t.Run(fmt.Sprintf("%v/%s", b.order, name), func(t *testing.T) {
				w := newWorld(t, &builder{numbers: b.numbers, typ: b.typ, machine: b.machine})
				test.setup(w)
				c := w.open()
				checkModules(t, c, test.want)
				if len(c.Modules()) > 0 && !strings.Contains(c.Modules()[0].Problem, test.problem) {
					t.Errorf("problem %q, want %q", c.Modules()[0].Problem, test.problem)
				}
				if test.text != nil {
					checkMemory(t, c, at+0x1000, test.text)
				}
				if len(test.want) > 0 && test.want[0].Object == "" {
					checkMemory(t, c, at+0x1000, nil)
				}
				if len(test.want) > 0 {
					if mapped, executable := c.Mapped(at + 0x1004); !mapped || !executable {
						t.Errorf("code: mapped %v, executable %v", mapped, executable)
					}
				}
				if len(c.Info().Problems) != 0 {
					t.Error(c.Info().Problems)
				}
			})
		}
	}
}

func TestMemoryThatIsNotInTheCore(t *testing.T) {
	const at = 0x7f0000
	b := little64()
	l := newLibrary(b.numbers, b.machine, "id")
	l.data = bytes.Repeat([]byte("D"), 0x200)
	w := newWorld(t, b)
	w.load("/lib/a.so", l, at, dump{head: true}) // the data was never written to, or the filter left it out
	w.write("/lib/a.so", l)
	// Two segments side by side, of which the second was dumped in part.
	w.parts = append(w.parts,
		part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_W, address: 0x10000, data: bytes.Repeat([]byte("1"), 0x1000)},
		part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_W, address: 0x11000, data: []byte("22"), size: 0x1000},
		// Read-only in the core, but writable in the code object: RELRO.
		part{typ: elf.PT_LOAD, flags: elf.PF_R, address: at + 0x8000 + 0x3000, size: 0x1000},
		part{typ: elf.PT_LOAD, flags: elf.PF_R, address: at + 0x8000, data: l.file()[:0x600], size: 0x1000},
		part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_W | elf.PF_X, address: at + 0x8000 + 0x1000, size: 0x1000},
		part{typ: elf.PT_LOAD, flags: elf.PF_R, address: ^uint64(0xfff), data: []byte("top"), size: 0x1000})
	for _, r := range w.ranges[:3] {
		r.start, r.end = r.start+0x8000, r.end+0x8000
		w.ranges = append(w.ranges, r)
	}
	// A mapping in place of a part of the code: its bytes are not the object's.
	c := w.open()
	checkMemory(t, c, at+0x1000, l.text)
	checkMemory(t, c, at+0x1000+textSize-1, l.text[textSize-1:])
	checkMemory(t, c, at+0x1000+textSize, nil)         // padding of the page
	checkMemory(t, c, at+0x3000, nil)                  // writable
	checkMemory(t, c, at+0x8000+0x3000, nil)           // RELRO
	checkMemory(t, c, at+0x8000+0x1000, nil)           // code that may be written to
	checkMemory(t, c, at+0x400, l.file()[0x400:0x410]) // dumped
	checkMemory(t, c, 0x10ffe, []byte("1122"))         // across segments
	checkMemory(t, c, 0x11002, nil)                    // not dumped
	checkMemory(t, c, ^uint64(0xfff), []byte("top"))
	buf := make([]byte, 8)
	n, err := c.ReadMemory(0, 0x10ffe, buf)
	if n != 4 || string(buf[:4]) != "1122" || !errors.Is(err, target.ErrNoMemory) || !strings.Contains(err.Error(), "0x11002") {
		t.Errorf("%d bytes, %q, %v", n, buf, err)
	}
	if n, err := c.ReadMemory(1, 0x10000, buf); n != 0 || !errors.Is(err, target.ErrNoMemory) {
		t.Errorf("another address space: %d bytes, %v", n, err)
	}
	if n, err := c.ReadMemory(0, 0x10000, nil); n != 0 || err != nil {
		t.Errorf("no bytes: %d, %v", n, err)
	}
	if n, err := c.ReadMemory(0, ^uint64(0)-2, buf); n != 0 || !errors.Is(err, target.ErrNoMemory) {
		t.Errorf("around the last address: %d, %v", n, err)
	}
}

// Another mapping of the file inside a module's code holds other bytes than the
// module's there.
func TestOnlyWhatWasMappedIsReadFromTheFile(t *testing.T) {
	const at = 0x7f0000
	b := little64()
	l := newLibrary(b.numbers, b.machine, "id")
	for name, change := range map[string]func(w *world){
		"another offset": func(w *world) {
			w.ranges[1].end = at + 0x1400
			w.ranges = append(w.ranges, fileRange{start: at + 0x1400, end: at + 0x2000, offset: 0, path: "/lib/a.so"})
		},
		"another file": func(w *world) {
			w.ranges[1].end = at + 0x1400
			w.ranges = append(w.ranges, fileRange{start: at + 0x1400, end: at + 0x2000, offset: 0x1400, path: "/b"})
		},
		"nothing": func(w *world) { w.ranges[1].end = at + 0x1400 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, little64())
			w.load("/lib/a.so", l, at, kernelDump)
			w.write("/lib/a.so", l)
			change(w)
			c := w.open()
			checkMemory(t, c, at+0x13ff, l.text[0x3ff:0x400])
			checkMemory(t, c, at+0x1400, nil)
		})
	}
}

// Memory that the core had and lost may have been written to.
func TestMemoryThatWasCutIsNotReadFromTheFile(t *testing.T) {
	const at = 0x7f0000
	b := little64()
	l := newLibrary(b.numbers, b.machine, "id")
	w := newWorld(t, b)
	w.load("/lib/a.so", l, at, dump{head: true})
	w.parts[1].data = append([]byte("patched"), l.text[7:]...) // the code, dumped whole
	w.parts[1].size = 0x1000
	w.parts[1].data = append(w.parts[1].data, make([]byte, 0x1000-len(l.text))...)
	w.write("/lib/a.so", l)
	whole := w.bytes()
	cut := bytes.Index(whole, []byte("patched")) + 9
	c := openBytes(t, b.numbers, whole[:cut], Options{Finder: object.Finder{Sysroot: w.root}})
	checkModules(t, c, []moduleView{{Path: "/lib/a.so", BuildID: "id", Object: "file", Code: "0x1000+0x800 at 0x7f1000"}})
	checkMemory(t, c, at+0x1000, append([]byte("patched"), l.text[7:9]...))
	checkMemory(t, c, at+0x1009, nil)
}

// What is dumped in the midst of a mapping that the file has is the core's.
func TestDumpedMemoryGoesBeforeTheFile(t *testing.T) {
	const at = 0x7f0000
	b := little64()
	l := newLibrary(b.numbers, b.machine, "id")
	w := newWorld(t, b)
	w.load("/lib/a.so", l, at, dump{head: true, data: true, noText: true})
	w.parts = append(w.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, address: at + 0x1100, data: []byte("patched")})
	w.write("/lib/a.so", l)
	c := w.open()
	want := append([]byte(nil), l.text[0xf0:0x120]...)
	copy(want[0x10:], "patched")
	checkMemory(t, c, at+0x10f0, want)
}

func TestSegmentsThatOverlapOrWrap(t *testing.T) {
	b := little64()
	b.parts = []part{
		{typ: elf.PT_LOAD, address: 0x2000, data: []byte("bbbbbbbb")},
		{typ: elf.PT_LOAD, address: 0x1ffc, data: []byte("aaaaaaaa")},
		{typ: elf.PT_LOAD, address: 0x1ffe, data: []byte("x")},
		{typ: elf.PT_LOAD, address: 0xffffffffffffff00, size: 0x1000, data: []byte("top")},
		{typ: elf.PT_LOAD, address: 0x4000, claim: 0x100, size: 4, at: 64},
	}
	c := openBytes(t, b.numbers, b.core())
	checkMemory(t, c, 0x1ffc, []byte("aaaaaaaabbbb"))
	checkMemory(t, c, 0x2008, nil)
	checkMemory(t, c, 0xffffffffffffff00, []byte("top"))
	checkMemory(t, c, 0x4004, nil)
	problems := problemsOf(c)
	for _, want := range []string{
		"2 segments overlap one that starts before them, the first at address 0x1ffe",
		"1 segments reach past the last address and are cut there, the first is program header 3",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems %q, want %q", problems, want)
		}
	}
}

func TestReadingMemoryDoesNotAllocate(t *testing.T) {
	c := openBytes(t, little64().numbers, smallCore(little64()))
	buf := make([]byte, 8)
	if n := testing.AllocsPerRun(100, func() { c.ReadMemory(0, 0x1000, buf) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
