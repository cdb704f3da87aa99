// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"
)

// peFile makes a PE file for x86-64 with 0x200 bytes of code at RVA 0x1000, which are at 0x400 in the file.
func peFile(time uint32) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0x600)
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x80)
	copy(b[0x80:], "PE\x00\x00")
	h := b[0x84:]
	le.PutUint16(h, 0x8664)
	le.PutUint16(h[2:], 1)
	le.PutUint32(h[4:], time)
	le.PutUint16(h[16:], 112+16*8)
	o := h[20:]
	le.PutUint16(o, 0x20b)
	le.PutUint64(o[24:], 0x140000000)
	le.PutUint32(o[32:], 0x1000)
	le.PutUint32(o[36:], 0x200)
	le.PutUint32(o[56:], 0x2000)
	le.PutUint32(o[60:], 0x400)
	le.PutUint32(o[108:], 16)
	s := o[112+16*8:]
	copy(s, ".text")
	for i, v := range []uint32{0x200, 0x1000, 0x200, 0x400} {
		le.PutUint32(s[8+4*i:], v)
	}
	le.PutUint32(s[36:], 0x60000020)
	for i := range 0x200 {
		b[0x400+i] = 0xcc
	}
	return b
}

const peTime = 0x63f14e2b

// peWorld is a process of Wine with a PE file at an address, whose code was copied into memory without a file.
func peWorld(t *testing.T, isMapped, hasHead bool) *world {
	w := newWorld(t, little64())
	wine := newLibrary(w.numbers, elf.EM_X86_64, "wine-ntdll-build-id-")
	w.load("/wine/ntdll.so", wine, 0x7f0000000000, kernelDump)
	w.write("/wine/ntdll.so", wine)
	const base = 0x150000000
	file := peFile(peTime)
	head := make([]byte, 0x1000)
	copy(head, file[:0x400])
	code := make([]byte, 0x1000)
	copy(code, file[0x400:])
	if isMapped {
		w.ranges = append(w.ranges, fileRange{start: base, end: base + 0x1000, path: "/drive_c/a.exe"})
	}
	if !hasHead {
		head = nil
	}
	w.parts = append(w.parts,
		part{typ: elf.PT_LOAD, flags: elf.PF_R, address: base, data: head, size: 0x1000},
		part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, address: base + 0x1000, data: code, size: 0x1000})
	return w
}

// peView is the module of that file.
func peView(path, object string, problem bool) moduleView {
	v := moduleView{Path: path, BuildID: "\x63\xf1\x4e\x2b\x00\x00\x20\x00", Object: object, Problem: problem}
	v.Code = "0x140001000+0x200 at 0x150001000"
	return v
}

func TestPEFilesThatWineHasLoadedAreModules(t *testing.T) {
	const path = "/drive_c/a.exe"
	for _, c := range []struct {
		name              string
		isMapped, hasHead bool
		file              []byte // on the disk; nil: it is not there
		want              moduleView
	}{
		{"by its file", true, true, peFile(peTime), peView(path, "file", false)},
		{"by its file, which cannot be checked", true, false, peFile(peTime), peView(path, "file", true)},
		{"from memory", true, true, nil, peView(path, "memory", true)},
		{"from memory, as another file is there", true, true, peFile(peTime + 1), peView(path, "memory", true)},
		{"without a mapped file", false, true, nil, peView("", "memory", true)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := peWorld(t, c.isMapped, c.hasHead)
			if c.file != nil {
				writeFile(t, w.root, path, c.file)
			}
			core := w.open()
			list := moduleViews(core)
			if len(list) != 2 || list[0] != c.want {
				t.Errorf("%+v, expected %+v first of two", list, c.want)
				for _, m := range core.Modules() {
					t.Logf("%s: %s", m.Path, m.Problem)
				}
			}
		})
	}
}

// TestPEFilesThatAreReadAreNoModules: programs map PE files as they lie on the disk, too.
func TestPEFilesThatAreReadAreNoModules(t *testing.T) {
	w := peWorld(t, false, false)
	w.parts = w.parts[:len(w.parts)-2]
	file := append(peFile(peTime), make([]byte, 0x1a00)...)
	writeFile(t, w.root, "/drive_c/a.exe", file)
	w.ranges = append(w.ranges, fileRange{start: 0x150000000, end: 0x150002000, path: "/drive_c/a.exe"})
	w.parts = append(w.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R, address: 0x150000000, data: file})
	if list := moduleViews(w.open()); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

// TestPEFilesOfOtherProcessesAreNoModules: where Wine is not, nothing executes them.
func TestPEFilesOfOtherProcessesAreNoModules(t *testing.T) {
	w := peWorld(t, true, true)
	for i := range w.ranges {
		w.ranges[i].path = strings.ReplaceAll(w.ranges[i].path, "ntdll.so", "other.so")
	}
	for _, m := range w.open().Modules() {
		if m.Object != nil && m.Object.IsPE() {
			t.Errorf("%s is a module", m.Path)
		}
	}
}
