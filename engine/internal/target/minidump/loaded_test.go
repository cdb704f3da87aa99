// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// libraries are small libraries for Windows by clang and LLD, by processor.
func libraries(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "lib.c")
	if err := os.WriteFile(source, []byte("__declspec(dllexport) int offered(int n) { volatile int a[9]; a[n] = n; return a[n]; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for arch, target := range map[string]string{ArchAMD64: "x86_64", ArchARM64: "aarch64", ArchX86: "i686"} {
		in := oracle.With{Dir: dir}
		in.Run(t, "clang-22", "--target="+target+"-pc-windows-msvc", "-c", "-o", target+".obj", source)
		in.Run(t, "lld-link-22", "/dll", "/noentry", "/nodefaultlib", "/debug", "/pdb:lib.pdb", "/out:"+target+".dll", target+".obj")
		list[arch] = filepath.Join(dir, target+".dll")
	}
	return list
}

// A loadedModule is a library in the memory of a dump.
type loadedModule struct {
	file  *object.Object
	image []byte
}

func newLoadedModule(t *testing.T, path string) loadedModule {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	m := loadedModule{o, make([]byte, o.PE().SizeOfImage())}
	base, _ := o.ImageBase()
	for _, s := range o.Segments() {
		copy(m.image[s.Address-base:], o.Data()[s.Offset:][:min(s.FileSize, s.MemSize)])
	}
	return m
}

const loadedAt = 0x7ff600000000

// dump is a dump with the library at loadedAt, whose memory is in two ranges of a list that leaves out hole.
func (m loadedModule) dump(arch uint16, time uint32, hole [2]int) *minidumptest.Builder {
	b := minidumptest.New(binary.LittleEndian)
	b.System(arch, 2)
	b.Stream(uint32(StreamModuleList), uint32(1), uint64(loadedAt), uint32(len(m.image)), uint32(0), time, b.Text(`C:\app\lib.dll`), make([]byte, 84))
	first, second := m.image[:hole[0]], m.image[hole[1]:]
	at := b.Put(first, second)
	b.Stream(uint32(StreamMemory64List), uint64(2), uint64(at), uint64(loadedAt), uint64(len(first)), uint64(loadedAt+hole[1]), uint64(len(second)))
	return b
}

// An image in a dump stands in for a file that is elsewhere: sections, exports, identity.
func TestAnImageInTheDumpIsItsModule(t *testing.T) {
	for arch, path := range libraries(t) {
		m := newLoadedModule(t, path)
		number := map[string]uint16{ArchAMD64: 9, ArchARM64: 12, ArchX86: 0}[arch]
		for _, hole := range [][2]int{{0x1000, 0x1000}, {0x1000, 0x2000}} {
			state := openTarget(t, m.dump(number, m.file.PE().TimeDateStamp(), hole))
			got := state.Modules()[0]
			if got.Object == nil || !got.Object.IsLoaded() || string(got.BuildID) != string(m.file.BuildID()) || got.Problem != "" {
				t.Fatalf("%s: %+v, problem %q", arch, got.Object, got.Problem)
			}
			id, _ := m.file.PE().Identity()
			if got.Symbols.DebugFile != "lib.pdb" || got.Symbols.DebugID != id.DebugID() {
				t.Errorf("%s: symbols %+v, expected those of %s", arch, got.Symbols, id.DebugID())
			}
			if exports, err := got.Object.PE().Exports(); err != nil || len(exports) != 1 || !strings.Contains(exports[0].Name, "offered") {
				t.Errorf("%s: exports %+v, %v", arch, exports, err)
			}
			if hole[0] == hole[1] {
				continue
			}
			if n, err := got.Object.ReadAddress(make([]byte, 16), got.Object.Section(".text").Address); n != 0 || err == nil {
				t.Errorf("%s: %d bytes were read of code that is not there", arch, n)
			}
			if _, err := state.ReadMemory(0, loadedAt+0x1000, make([]byte, 4)); err == nil {
				t.Errorf("%s: memory that is not there was read", arch)
			}
		}
	}
}

// An image of another build, or for another processor, is not used, and the module says so.
func TestAnImageOfAnotherBuildIsNotUsed(t *testing.T) {
	list := libraries(t)
	m := newLoadedModule(t, list[ArchAMD64])
	for want, b := range map[string]*minidumptest.Builder{
		"it has time ":                         m.dump(9, 1, [2]int{0x1000, 0x1000}),
		"where such code runs under emulation": m.dump(12, m.file.PE().TimeDateStamp(), [2]int{0x1000, 0x1000}),
		"(x86_64), the dump is of i386":        m.dump(0, m.file.PE().TimeDateStamp(), [2]int{0x1000, 0x1000}),
	} {
		if got := openTarget(t, b).Modules()[0]; got.Object != nil || !strings.Contains(got.Problem, want) {
			t.Errorf("%v, %q, expected %q", got.Object, got.Problem, want)
		}
	}
}

// Any number of modules can lie at the same memory of a hostile dump: the first ones are read.
func TestModulesThatShareMemoryCostAsMuchAsTheDump(t *testing.T) {
	m := newLoadedModule(t, libraries(t)[ArchAMD64])
	b := m.dump(9, m.file.PE().TimeDateStamp(), [2]int{0x1000, 0x1000})
	const n = 5000
	name := b.Text("lib.dll")
	list := b.Pack(uint32(n))
	for range n {
		list = append(list, b.Pack(uint64(loadedAt), uint32(len(m.image)), uint32(0), m.file.PE().TimeDateStamp(), name, make([]byte, 84))...)
	}
	b.Streams = append(b.Streams[:1], b.Streams[2:]...) // without the list of one module
	b.Stream(uint32(StreamModuleList), list)
	read := 0
	for _, m := range openTarget(t, b).Modules() {
		if m.Object != nil {
			read++
		} else if !strings.Contains(m.Problem, "was not read") {
			t.Fatalf("%q", m.Problem)
		}
	}
	if read == 0 || read == n {
		t.Errorf("%d of %d images were read", read, n)
	}
}

// smallImage is an image for x86-64 with one section of code and no tables.
func smallImage() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0x2000)
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x40)
	copy(b[0x40:], "PE\x00\x00")
	h := b[0x44:]
	le.PutUint16(h, 0x8664)
	le.PutUint16(h[2:], 1)
	le.PutUint32(h[4:], 77)
	le.PutUint16(h[16:], 240)
	o := h[20:]
	le.PutUint16(o, 0x20b)
	le.PutUint64(o[24:], loadedAt)
	le.PutUint32(o[56:], uint32(len(b)))
	le.PutUint32(o[60:], 0x400)
	le.PutUint32(o[108:], 16)
	s := o[240:]
	copy(s, ".text")
	le.PutUint32(s[8:], 0x1000)
	le.PutUint32(s[12:], 0x1000)
	le.PutUint32(s[36:], 0x60000020)
	return b
}

// FuzzTarget opens dumps with images in their memory as targets, and uses what they have.
func FuzzTarget(f *testing.F) {
	m := loadedModule{image: smallImage()}
	f.Add(m.dump(9, 77, [2]int{0x1000, 0x1000}).Bytes())
	f.Add(m.dump(9, 77, [2]int{0x1000, 0x1800}).Bytes())
	root := f.TempDir()
	f.Fuzz(func(_ *testing.T, data []byte) {
		d, err := Read("fuzz.dmp", data)
		if err != nil {
			return
		}
		state, err := newTarget(d, Options{Finder: object.Finder{Sysroot: root}, Describe: describe})
		if err != nil {
			return
		}
		defer state.Close()
		for _, module := range state.Modules() {
			if o := module.Object; o != nil && o.IsLoaded() {
				_ = o.Data()
				_ = o.BuildID()
				_ = o.Problems()
				_, _ = o.PE().Exports()
				base, _ := o.ImageBase()
				_, _ = o.ReadAddress(make([]byte, 64), base+0x1000)
			}
		}
		_, _ = state.ReadMemory(0, loadedAt, make([]byte, 64))
	})
}

// The seeds of FuzzTarget are images that are used.
func TestASmallImageIsUsed(t *testing.T) {
	m := loadedModule{image: smallImage()}
	state := openTarget(t, m.dump(9, 77, [2]int{0x1000, 0x1800}))
	o := state.Modules()[0].Object
	if o == nil || !o.IsLoaded() {
		t.Fatalf("%+v", state.Modules()[0])
	}
	if n, err := o.ReadAddress(make([]byte, 64), loadedAt+0x1000); n != 0 || err == nil {
		t.Errorf("%d bytes were read where there are none: %v", n, err)
	}
}
