// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

func TestFileThatIsNoCoreIsNamed(t *testing.T) {
	with := func(change func(b *builder)) []byte {
		b := little64()
		b.parts = []part{{typ: elf.PT_LOAD, data: []byte("x")}}
		change(b)
		return b.core()
	}
	at := func(data []byte, offset int, v byte) []byte { data[offset] = v; return data }
	plain := func() []byte { return with(func(*builder) {}) }
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":       {nil, "the file is empty"},
		"text":        {[]byte("hello world\n"), `begins with "hell"`},
		"one byte":    {[]byte{0x7f}, `begins with "\x7f"`},
		"minidump":    {[]byte("MDMP\x93\xa7\x00\x00"), "a minidump"},
		"perf":        {[]byte("PERFILE2"), "a recording of perf"},
		"zstd":        {[]byte("\x28\xb5\x2f\xfd\x04"), "compressed by zstd"},
		"gzip":        {[]byte("\x1f\x8b\x08"), "compressed by gzip"},
		"executable":  {with(func(b *builder) { b.typ = elf.ET_EXEC }), "an executable"},
		"library":     {with(func(b *builder) { b.typ = elf.ET_DYN }), "a shared library"},
		"object file": {with(func(b *builder) { b.typ = elf.ET_REL }), "an object file of a compiler"},
		"odd type":    {with(func(b *builder) { b.typ = 0xfe01 }), "an ELF file of type 0xfe01"},
		"class 0":     {at(plain(), elf.EI_CLASS, 0), "offset 0x4: ELF class 0"},
		"class 3":     {at(plain(), elf.EI_CLASS, 3), "offset 0x4: ELF class 3"},
		"byte order":  {at(plain(), elf.EI_DATA, 7), "offset 0x5: ELF byte order 7"},
		"cut ident":   {plain()[:12], "the ELF header is cut at offset 0xc"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, test.data, 0o644); err != nil {
				t.Fatal(err)
			}
			c, err := Open(path, Options{})
			if err == nil {
				c.Close()
				t.Fatal("it was opened")
			}
			if !errors.Is(err, ErrNotCore) || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("error %q, want ErrNotCore with %q and the path", err, test.want)
			}
		})
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	if _, err := Open(t.TempDir(), Options{}); !errors.Is(err, object.ErrNotRegular) {
		t.Errorf("a directory gave %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gave %v", err)
	}
}

func TestProgramHeadersThatAreTooSmallAreAnError(t *testing.T) {
	b := little64()
	b.parts = []part{{typ: elf.PT_LOAD, data: []byte("x")}}
	data := b.core()
	b.order.PutUint16(data[54:], 55)
	err := (&Core{path: "p"}).open(data, Options{})
	if err == nil || !strings.Contains(err.Error(), "offset 0x36: program headers of 55 bytes, expected 56") {
		t.Error(err)
	}
}

// smallCore has a thread, memory at 0x1000 and 0x3000, and PC in the latter.
func smallCore(b *builder) []byte {
	notes := b.note(nil, coreOwner, ntPRSTATUS, b.status(77, 11, 0x3001, 0x1008))
	notes = b.note(notes, coreOwner, ntPRPSINFO, b.info(77, "prog"))
	b.parts = []part{
		{typ: elf.PT_NOTE, data: notes, align: 4},
		{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_W, address: 0x1000, data: []byte("stack memory bytes"), size: 0x1000},
		{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, address: 0x3000, data: []byte("code"), size: 0x1000},
	}
	return b.core()
}

func TestCoresOfBothClassesAndByteOrders(t *testing.T) {
	for _, b := range []*builder{
		little64(), big32(),
		{numbers: numbers{big32().order, true}, typ: elf.ET_CORE, machine: elf.EM_PPC64},
		{numbers: numbers{little64().order, false}, typ: elf.ET_CORE, machine: elf.EM_386},
	} {
		t.Run(fmt.Sprintf("%v/%v", b.order, b.is64), func(t *testing.T) {
			c := openBytes(t, b.numbers, smallCore(b))
			if diff := cmp.Diff("", problemsOf(c)); diff != "" {
				t.Error(diff)
			}
			if got := c.Info(); got.Machine != uint16(b.machine) || got.Signal != 11 || got.Kind != trace.ELFCore {
				t.Errorf("%+v", got)
			}
			if len(c.Threads()) != 1 {
				t.Fatalf("%d threads", len(c.Threads()))
			}
			th := c.Threads()[0]
			order := testDescription(b.numbers).ByteOrder
			pc, _ := th.Registers.Uint64(testPC, order)
			sp, _ := th.Registers.Uint64(testSP, order)
			if th.ID != "77" || th.Name != "prog" || !th.Crashed || th.Signal != 11 || pc != 0x3001 || sp != 0x1008 || th.Problem != "" {
				t.Errorf("%+v: pc %#x, sp %#x", th, pc, sp)
			}
			buf := make([]byte, 4)
			if n, err := c.ReadMemory(0, 0x3000, buf); n != 4 || err != nil || string(buf) != "code" {
				t.Errorf("%q, %d, %v", buf, n, err)
			}
			if mapped, executable := c.Mapped(0x3fff); !mapped || !executable {
				t.Error("0x3fff is not executable")
			}
			if mapped, executable := c.Mapped(0x1fff); !mapped || executable {
				t.Error("0x1fff is executable or not mapped")
			}
			if mapped, _ := c.Mapped(0x2000); mapped {
				t.Error("0x2000 is mapped")
			}
		})
	}
}

// A core that is cut gives what is left, and says what is not.
func TestCoreCutAtEveryByte(t *testing.T) {
	finder := object.Finder{Sysroot: t.TempDir()}
	for _, b := range []*builder{little64(), big32()} {
		whole := smallCore(b)
		headers := b.offset(52, 64)
		for n := 1; n < len(whole); n++ {
			c := &Core{path: "cut"}
			err := c.open(whole[:n:n], Options{Describe: describe(testDescription(b.numbers)), Finder: finder})
			if n < headers {
				if err == nil || n >= 4 && !strings.Contains(err.Error(), fmt.Sprintf("cut at offset %#x", n)) {
					t.Fatalf("%d bytes: error %v", n, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if problems := problemsOf(c); !strings.Contains(problems, fmt.Sprintf("offset %#x", n)) {
				t.Fatalf("%d of %d bytes: the problems do not name the end of the file: %q", n, len(whole), problems)
			}
			buf := make([]byte, 18)
			got, err := c.ReadMemory(0, 0x1000, buf)
			if string(buf[:got]) != "stack memory bytes"[:got] {
				t.Fatalf("%d bytes: read %q", n, buf[:got])
			}
			if err != nil && !errors.Is(err, target.ErrNoMemory) {
				t.Fatal(err)
			}
		}
	}
}

func TestMoreSegmentsThanTheHeaderCanCount(t *testing.T) {
	const segments = 70000
	build := func() *builder {
		b := little64()
		b.xnum = true
		b.parts = []part{{typ: elf.PT_NOTE, data: b.note(nil, coreOwner, ntPRSTATUS, b.status(1, 0, 0x10000, 0x20000)), align: 4}}
		for i := range uint64(segments) {
			b.parts = append(b.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R, address: 0x10000 + i*0x2000, size: 0x1000, data: b.words(nil, i)})
		}
		return b
	}
	b := build()
	whole := b.core()
	withoutSection := whole[:len(whole)-10]
	noTable := append([]byte(nil), whole...)
	b.order.PutUint64(noTable[40:], 0)
	wrongInfo := append([]byte(nil), whole...)
	b.order.PutUint32(wrongInfo[len(wrongInfo)-20:], 3)
	for name, test := range map[string]struct {
		data    []byte
		problem string
	}{
		"count in section header 0":     {whole, ""},
		"section header 0 cut off":      {withoutSection, "section header 0 at offset"},
		"no section headers":            {noTable, "there are no section headers"},
		"section header 0 says too few": {wrongInfo, "sh_info of section header 0 is 3, expected 65535 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			c := openBytes(t, b.numbers, test.data)
			problems := problemsOf(c)
			if (test.problem == "") != (problems == "") || !strings.Contains(problems, test.problem) {
				t.Errorf("problems %q, want %q", problems, test.problem)
			}
			if len(c.Threads()) != 1 {
				t.Errorf("%d threads", len(c.Threads()))
			}
			for i := range uint64(segments) {
				var buf [8]byte
				if n, err := c.ReadMemory(0, 0x10000+i*0x2000, buf[:]); n != 8 || err != nil || b.order.Uint64(buf[:]) != i {
					t.Fatalf("segment %d: % x, %v", i, buf, err)
				}
			}
		})
	}
}

func TestRegistersNeedTheRightArchitecture(t *testing.T) {
	b := little64()
	data := smallCore(b)
	for name, test := range map[string]struct {
		describe func(object.ELFMachine) (*sdk.Description, error)
		want     string
	}{
		"none":       {describe(nil), "the process is of x86_64: only the PCs of its threads are shown, since nothing here reads their registers: no architecture"},
		"no options": {nil, "no architectures were given"},
		"32-bit":     {describe(testDescription(numbers{b.order, false})), "the core is 64-bit, architecture test is 32-bit"},
		"big-endian": {describe(testDescription(numbers{big32().order, true})), "byte order"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Core{path: "p"}
			if err := c.open(data, Options{Describe: test.describe, Finder: object.Finder{Sysroot: t.TempDir()}}); err != nil {
				t.Fatal(err)
			}
			if p := problemsOf(c); !strings.Contains(p, test.want) {
				t.Errorf("problems %q, want %q", p, test.want)
			}
			if reason := test.want[strings.LastIndex(test.want, ": ")+1:]; len(c.Threads()) != 1 || c.Threads()[0].ID != "77" ||
				!strings.Contains(c.Threads()[0].Unread, reason) || c.Threads()[0].Problem != "" || len(c.Threads()[0].Registers.Numbers) != 0 {
				t.Errorf("%+v", c.Threads())
			}
		})
	}
}
