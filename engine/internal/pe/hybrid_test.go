// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// hybridFile is a file whose load configuration leads to a map of its code.
func hybridFile(t testing.TB, machine uint16, ranges ...uint32) *File {
	t.Helper()
	m := &maker{machine: machine, code: make([]byte, 64)}
	codeMap := m.put(words(ranges...)...)
	metadata := m.put(words(1, codeMap, uint32(len(ranges)/2))...)
	config := make([]byte, hybridPointer+8)
	binary.LittleEndian.PutUint32(config, uint32(len(config)))
	binary.LittleEndian.PutUint64(config[hybridPointer:], madeBase+uint64(metadata))
	m.directories[directoryLoadConfig] = [2]uint32{m.put(config...), uint32(len(config))}
	return m.open(t)
}

// A file with code of several instruction sets says of which each piece is.
func TestHybridFiles(t *testing.T) {
	for _, c := range []struct {
		machine uint16
		name    string
		want    [3]string // kinds of the ranges 0, 1 and 2
	}{
		{MachineX86_64, "an ARM64EC image", [3]string{"arm64", "ARM64EC", ""}},
		{MachineARM64, "an ARM64X image", [3]string{"", "ARM64EC", "x86-64"}},
		{MachineARM, "", [3]string{}},
	} {
		f := hybridFile(t, c.machine, madeCode, 16, madeCode+16|1, 16, madeCode+32|2, 16)
		if got := f.Hybrid(); !strings.HasPrefix(got, c.name) || got == "" != (c.name == "") {
			t.Errorf("machine %#x: %q, expected %q", c.machine, got, c.name)
		}
		for i, want := range c.want {
			for _, offset := range []uint64{0, 15} {
				if got := f.ForeignCode(madeBase + madeCode + 16*uint64(i) + offset); !strings.HasPrefix(got, want) || got == "" != (want == "") {
					t.Errorf("machine %#x, range %d: %q, expected %q", c.machine, i, got, want)
				}
			}
		}
		if got := f.ForeignCode(madeBase + madeCode + 48); got != "" {
			t.Errorf("machine %#x: behind the ranges is %q", c.machine, got)
		}
	}
}

// A map that goes beyond the file is read as far as it is there, and said.
func TestHostileHybridFiles(t *testing.T) {
	f := hybridFile(t, MachineX86_64, madeCode, 16)
	metadata := f.sections[1].raw[madeHeaders+64+8:]
	copy(metadata, words(1, madeData, 1<<31))
	if f.ForeignCode(madeBase+madeCode) != "arm64" || len(f.Problems()) != 1 || !strings.Contains(f.Problems()[0], "map of code with 2147483648 ranges") {
		t.Errorf("%q", f.Problems())
	}
	if f := (&maker{code: make([]byte, 4)}).open(t); f.Hybrid() != "" {
		t.Errorf("%q without a load configuration", f.Hybrid())
	}
}

// hybridLibraries are an ARM64EC and an ARM64X library as LLD links them. Symbols of Microsoft's runtime are
// missing, which nothing here executes.
func hybridLibraries(t *testing.T) (ec, x string) {
	t.Helper()
	source, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	compile := func(target, name, file string) []string {
		return []string{"clang-22", "--target=" + target + "-pc-windows-msvc", "-O1", "-ffreestanding", "-DNAME=v_" + name, "-DCALL=f_" + name, "-c", "-o", name + ".obj", filepath.Join(source, file)}
	}
	link := func(machine string, objects ...string) []string {
		return append([]string{"lld-link-22", "/machine:" + machine, "/dll", "/noentry", "/nodefaultlib", "/force:unresolved", "/out:" + machine + ".dll"}, objects...)
	}
	dir := oracle.Build{
		Sources: []string{filepath.Join(source, "hybrid.c"), filepath.Join(source, "hybridec.s"), filepath.Join(source, "hybridnative.s")},
		Commands: [][]string{
			compile("arm64ec", "ec", "hybrid.c"), compile("x86_64", "x64", "hybrid.c"), compile("aarch64", "native", "hybrid.c"),
			compile("arm64ec", "config", "hybridec.s"), compile("aarch64", "nativeconfig", "hybridnative.s"),
			link("arm64ec", "ec.obj", "x64.obj", "config.obj"), link("arm64x", "ec.obj", "x64.obj", "config.obj", "native.obj", "nativeconfig.obj"),
		},
	}.Make(t)
	return filepath.Join(dir, "arm64ec.dll"), filepath.Join(dir, "arm64x.dll")
}

// The map of code of files that LLD links is that of llvm-readobj.
func TestMapsOfHybridFilesAreThoseOfReadobj(t *testing.T) {
	oracle.Tools(t, "clang-22", "lld-link-22", "llvm-readobj-22")
	ec, x := hybridLibraries(t)
	for path, want := range map[string][3]string{ec: {"arm64", "ARM64EC", ""}, x: {"", "ARM64EC", "x86-64"}} {
		f := open(t, path)
		if f.Hybrid() == "" {
			t.Errorf("%s is no hybrid", path)
		}
		kinds := map[string]int{"ARM64": 0, "ARM64EC": 1, "X64": 2}
		ranges := 0
		for _, line := range strings.Split(oracle.Run(t, "llvm-readobj-22", "--coff-load-config", path), "\n") {
			var start, end uint64
			var kind string
			if n, _ := fmt.Sscanf(strings.TrimSpace(line), "0x%x - 0x%x %s", &start, &end, &kind); n != 3 || kind == "->" {
				continue
			}
			ranges++
			for _, rva := range []uint64{start, end - 1} {
				if got := f.ForeignCode(f.ImageBase() + rva); !strings.HasPrefix(got, want[kinds[kind]]) || got == "" != (want[kinds[kind]] == "") {
					t.Errorf("%s: %#x is %q, llvm-readobj has %s", path, rva, got, kind)
				}
			}
		}
		if ranges < 2 {
			t.Errorf("%s: %d ranges", path, ranges)
		}
	}
}
