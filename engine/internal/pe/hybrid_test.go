// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"encoding/binary"
	"strings"
	"testing"
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
