// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/object"
)

// linked is a dynamically linked process without NT_FILE.
type linked struct {
	*world
	exe, lib, loader *library
	heap             []byte // at heapAt: r_debug, link maps, names
}

const (
	exeAt    = 0x550000
	libAt    = 0x7f0000
	loaderAt = 0x7e0000
	heapAt   = 0x900000
	namesAt  = heapAt + 0x800
)

// newLinked has an executable, a library and the dynamic loader in its list.
func newLinked(t testing.TB, b *builder) *linked {
	p := &linked{world: newWorld(t, b)}
	p.noFile = true
	p.exe = newLibrary(b.numbers, b.machine, "exe-id")
	p.exe.phdr, p.exe.interp, p.exe.entry = true, "/lib/ld.so", 0x1010
	p.lib = newLibrary(b.numbers, b.machine, "lib-id")
	p.loader = newLibrary(b.numbers, b.machine, "ldr-id")
	p.exe.data = append(b.words(nil, uint64(elf.DT_NEEDED), 1, uint64(elf.DT_DEBUG), heapAt, 0, 0), make([]byte, 64)...)
	names := "/bin/prog\x00/lib/a.so\x00/lib/ld.so\x00"
	p.heap = make([]byte, 0x1000)
	copy(p.heap[0x800:], names)
	p.debug(heapAt, 1, heapAt+0x100, 0)
	p.link(heapAt+0x100, exeAt, namesAt+9, exeAt+0x3000, heapAt+0x200) // its name is empty
	p.link(heapAt+0x200, libAt, namesAt+10, libAt+0x3000, heapAt+0x300)
	p.link(heapAt+0x300, loaderAt, namesAt+20, loaderAt+0x3000, 0)
	p.auxv = []uint64{atPHDR, exeAt + uint64(b.offset(52, 64)), atPHENT, b.programSize(), atPHNUM, 7, atEntry, exeAt + 0x1010,
		atBase, loaderAt, atExecFn, namesAt}
	return p
}

func (p *linked) put(address uint64, values ...uint64) {
	copy(p.heap[address-heapAt:], p.words(nil, values...))
}

func (p *linked) debug(address uint64, version uint32, first, next uint64) {
	p.put(address, 0, first, 0, 0, 0, next)
	p.order.PutUint32(p.heap[address-heapAt:], version)
}

func (p *linked) link(address, bias, name, dynamic, next uint64) {
	p.put(address, bias, name, dynamic, next, 0)
}

func (p *linked) open(d dump) *Core {
	p.build(d)
	return p.world.open()
}

// build maps what is loaded and writes the files.
func (p *linked) build(d dump) {
	p.load("/bin/prog", p.exe, exeAt, d)
	p.load("/lib/a.so", p.lib, libAt, d)
	p.load("/lib/ld.so", p.loader, loaderAt, d)
	p.write("/bin/prog", p.exe)
	p.write("/lib/a.so", p.lib)
	p.write("/lib/ld.so", p.loader)
	p.memory(heapAt, p.heap)
}

func (p *linked) modules(change ...func(list []moduleView) []moduleView) []moduleView {
	view := func(path, id string, at uint64) moduleView {
		return moduleView{Path: path, BuildID: id, Object: "file", Code: fmt.Sprintf("0x1000+0x800 at %#x", at+0x1000)}
	}
	list := []moduleView{view("/bin/prog", "exe-id", exeAt), view("/lib/ld.so", "ldr-id", loaderAt), view("/lib/a.so", "lib-id", libAt)}
	for _, f := range change {
		list = f(list)
	}
	return list
}

func TestModulesOfTheDynamicLoader(t *testing.T) {
	unchecked := func(list []moduleView) []moduleView {
		for i := range list {
			list[i].BuildID, list[i].Problem = "", true
		}
		return list
	}
	without := func(i int) func([]moduleView) []moduleView {
		return func(list []moduleView) []moduleView { return append(list[:i:i], list[i+1:]...) }
	}
	for name, test := range map[string]struct {
		change  func(p *linked)
		dump    dump
		want    func(list []moduleView) []moduleView
		problem string
	}{
		"complete":           {dump: kernelDump},
		"headers not dumped": {dump: dump{data: true}, want: unchecked},
		"the loader had not begun": {
			change: func(p *linked) { copy(p.exe.data, p.words(nil, 1, 1, uint64(elf.DT_DEBUG), 0)) },
			dump:   kernelDump, want: without(2),
		},
		"no PT_PHDR": {change: func(p *linked) { p.exe.phdr = false; p.auxv[5] = 6 }, dump: kernelDump},
		"circle": {
			change:  func(p *linked) { p.link(heapAt+0x300, loaderAt, namesAt+20, loaderAt+0x3000, heapAt+0x100) },
			dump:    kernelDump,
			problem: "the dynamic loader's list is a circle at address 0x900100",
		},
		"entry that is its own next": {
			change:  func(p *linked) { p.link(heapAt+0x200, libAt, namesAt+10, libAt+0x3000, heapAt+0x200) },
			dump:    kernelDump, // the loader is found by AT_BASE
			problem: "the dynamic loader's list is a circle at address 0x900200",
		},
		"entry that was not dumped": {
			change:  func(p *linked) { p.link(heapAt+0x100, exeAt, namesAt+9, exeAt+0x3000, 0x123000) },
			dump:    kernelDump,
			want:    without(2),
			problem: "entry 1 of the dynamic loader's list, at address 0x123000, is not in the core",
		},
		"r_debug that was not dumped": {
			change:  func(p *linked) { copy(p.exe.data, p.words(nil, 1, 1, uint64(elf.DT_DEBUG), 0x123000)) },
			dump:    kernelDump,
			want:    without(2),
			problem: "r_debug at address 0x123000 is not in the core",
		},
		"second namespace": {
			change: func(p *linked) {
				p.debug(heapAt, 2, heapAt+0x100, heapAt+0x400)
				p.link(heapAt+0x100, exeAt, namesAt+9, exeAt+0x3000, heapAt+0x300)
				p.debug(heapAt+0x400, 2, heapAt+0x200, 0)
				p.link(heapAt+0x200, libAt, namesAt+10, libAt+0x3000, 0)
			},
			dump: kernelDump,
		},
		"namespaces in a circle": {
			change: func(p *linked) {
				p.debug(heapAt, 2, heapAt+0x100, heapAt+0x400)
				p.debug(heapAt+0x400, 2, 0, heapAt+0x400)
			},
			dump:    kernelDump,
			problem: "the dynamic loader's namespaces are a circle at address 0x900400",
		},
		"entry without a name, header not dumped": {
			change: func(p *linked) { p.link(heapAt+0x200, libAt, 0, libAt+0x3000, heapAt+0x300) },
			dump:   dump{data: true},
			want: func(list []moduleView) []moduleView {
				return append(unchecked(list[:2:2]), moduleView{Problem: true})
			},
		},
		"file with its PT_DYNAMIC elsewhere": {
			change: func(p *linked) { p.link(heapAt+0x200, libAt, namesAt+10, libAt+0x3010, heapAt+0x300) },
			dump:   dump{data: true},
			want: func(list []moduleView) []moduleView {
				return append(unchecked(list[:2:2]), moduleView{Path: "/lib/a.so", Problem: true})
			},
		},
		"program headers that NT_AUXV counts wrongly": {
			change:  func(p *linked) { p.auxv[5] = 1 << 40 },
			dump:    kernelDump,
			want:    func(list []moduleView) []moduleView { list[1].Path = ""; list[1].Object = "file"; return nil },
			problem: "AT_PHNUM is",
		},
	} {
		for _, b := range []*builder{little64(), big32()} {
			t.Run(fmt.Sprintf("%s/%v", name, b.order), func(t *testing.T) {
				p := newLinked(t, b)
				if test.change != nil {
					test.change(p)
				}
				c := p.open(test.dump)
				want := p.modules()
				if test.want != nil {
					want = test.want(want)
				}
				if name == "program headers that NT_AUXV counts wrongly" {
					// The dynamic loader alone is known, by AT_BASE, without a name.
					if len(c.Modules()) != 1 || string(c.Modules()[0].BuildID) != "ldr-id" || c.Modules()[0].Object != nil {
						t.Errorf("%+v", moduleViews(c))
					}
				} else {
					checkModules(t, c, want)
				}
				problems := strings.Join(c.Info().Problems, "\n")
				if (test.problem == "") != (problems == "") || !strings.Contains(problems, test.problem) {
					t.Errorf("problems %q, want %q", problems, test.problem)
				}
			})
		}
	}
}

func TestExecutableWithFixedAddressesAndWithoutAHeaderInTheCore(t *testing.T) {
	p := newLinked(t, little64())
	p.exe.phdr, p.exe.typ, p.exe.base = false, elf.ET_EXEC, exeAt
	p.exe.entry = exeAt + 0x1010
	p.load("/bin/prog", p.exe, 0, dump{data: true})
	p.write("/bin/prog", p.exe)
	p.load("/lib/ld.so", p.loader, loaderAt, kernelDump)
	p.write("/lib/ld.so", p.loader)
	p.memory(heapAt, p.heap)
	p.link(heapAt+0x100, 0, namesAt+9, exeAt+0x3000, heapAt+0x300)
	c := p.world.open()
	checkModules(t, c, []moduleView{
		{Path: "/bin/prog", Object: "file", Code: "0x551000+0x800 at 0x551000", Problem: true},
		{Path: "/lib/ld.so", BuildID: "ldr-id", Object: "file", Code: "0x1000+0x800 at 0x7e1000"},
	})
}

func TestExecutableThatNothingTells(t *testing.T) {
	p := newLinked(t, little64())
	p.load("/bin/prog", p.exe, exeAt, dump{data: true})
	p.memory(heapAt, p.heap)
	c := p.world.open()
	checkModules(t, c, nil)
	want := "the executable is not known: the core does not have its program headers at address 0x550040 (AT_PHDR), and /bin/prog: no file: tried "
	if problems := problemsOf(c); !strings.Contains(problems, want) {
		t.Errorf("problems %q, want %q", problems, want)
	}
}

func TestLinksCompleteNTFILE(t *testing.T) {
	// The mappings of the library are missing from NT_FILE.
	p := newLinked(t, little64())
	p.load("/lib/a.so", p.lib, libAt, kernelDump)
	p.ranges = nil
	p.noFile = false
	p.write("/lib/a.so", p.lib)
	p.load("/bin/prog", p.exe, exeAt, kernelDump)
	p.load("/lib/ld.so", p.loader, loaderAt, kernelDump)
	p.write("/bin/prog", p.exe)
	p.write("/lib/ld.so", p.loader)
	p.memory(heapAt, p.heap)
	checkModules(t, p.world.open(), p.modules())

	// Neither header nor file of the library: the loader knows its bias.
	p = newLinked(t, little64())
	p.noFile = false
	p.load("/lib/a.so", p.lib, libAt, dump{data: true})
	p.load("/bin/prog", p.exe, exeAt, kernelDump)
	p.load("/lib/ld.so", p.loader, loaderAt, kernelDump)
	p.write("/bin/prog", p.exe)
	p.write("/lib/ld.so", p.loader)
	p.memory(heapAt, p.heap)
	c := p.world.open()
	checkModules(t, c, p.modules(func(list []moduleView) []moduleView {
		list[2] = moduleView{Path: "/lib/a.so", Code: "0x1000+0x1000 at 0x7f1000", Problem: true}
		return list
	}))
	if p := c.Modules()[2].Problem; strings.Contains(p, "guess") {
		t.Error(p)
	}
}

func TestExecutableOfTheUser(t *testing.T) {
	for name, test := range map[string]struct {
		id      string
		object  string
		problem string
	}{
		"right": {"exe-id", "file", ""},
		"other": {"xxx-id", "", "exe.bin (build ID is 7878782d6964, expected 6578652d6964)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newLinked(t, little64())
			other := *p.exe
			other.builder = &builder{numbers: p.numbers, typ: elf.ET_DYN, machine: p.machine, entry: p.exe.entry}
			other.id = test.id
			p.write("/elsewhere/exe.bin", &other)
			p.load("/bin/prog", p.exe, exeAt, kernelDump)
			p.memory(heapAt, p.heap)
			p.noFile = false
			c := p.world.open(Options{Finder: object.Finder{Exe: p.root + "/elsewhere/exe.bin"}})
			m := c.Modules()[0]
			if got := moduleViews(c)[0].Object; got != test.object || !strings.Contains(m.Problem, test.problem) || test.problem == "" && m.Problem != "" {
				t.Errorf("object %q, problem %q", got, m.Problem)
			}
		})
	}
}

// A list of many entries that all need looking at costs a bounded time.
func TestLongLinkMap(t *testing.T) {
	p := newLinked(t, little64())
	const count = maxLinks + 1000
	p.heap = append(p.heap, make([]byte, count*64)...)
	for i := range uint64(count) {
		at := heapAt + 0x1000 + i*64
		p.link(at, libAt+i*0x1000, namesAt+10, libAt+i*0x1000+0x3000, at+64)
	}
	p.link(heapAt+0x100, exeAt, namesAt+9, exeAt+0x3000, heapAt+0x1000)
	begin := time.Now()
	c := p.open(kernelDump)
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	problems := strings.Join(c.Info().Problems, "\n")
	for _, want := range []string{"the dynamic loader's list has more than 65536 entries", "more than 16384 code objects are loaded"} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems %q, want %q", problems, want)
		}
	}
	if len(c.Modules()) != maxModules {
		t.Errorf("%d modules", len(c.Modules()))
	}
}

// A code object that is put together from memory has the virtual addresses of
// the file in PT_DYNAMIC, where the loader wrote run-time addresses.
func TestImageFromMemoryIsUnrelocated(t *testing.T) {
	const at = 0x7f0000
	b := little64()
	l := newLibrary(b.numbers, b.machine, "id")
	l.data = append(b.words(nil, uint64(elf.DT_SYMTAB), at+0x500, uint64(elf.DT_STRTAB), at+0x540, uint64(elf.DT_STRSZ), 0x20,
		uint64(elf.DT_INIT), at+0x1000, 0, 0), make([]byte, 32)...)
	w := newWorld(t, b)
	w.load("/lib/a.so", l, at, dump{head: true, text: true, data: true})
	c := w.open()
	o := c.Modules()[0].Object
	if o == nil {
		t.Fatal(c.Modules()[0].Problem)
	}
	got := make([]byte, 80)
	if _, err := o.ReadAddress(got, 0x3000); err != nil {
		t.Fatal(err)
	}
	want := b.words(nil, uint64(elf.DT_SYMTAB), 0x500, uint64(elf.DT_STRTAB), 0x540, uint64(elf.DT_STRSZ), 0x20, uint64(elf.DT_INIT), at+0x1000, 0, 0)
	if string(got) != string(want) {
		t.Errorf("PT_DYNAMIC is % x, want % x", got, want)
	}
}
