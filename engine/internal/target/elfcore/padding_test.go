// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"
)

// unpaddedCore is a core as ROCm's runtime library writes it into a pipe or a file: program
// headers count the padding to an alignment, whose exponent they have, and a pipe has none.
func unpaddedCore(machine elf.Machine, isPipe bool, parts ...[]byte) []byte {
	le := binary.LittleEndian
	h := make([]byte, 64)
	copy(h, "\x7fELF\x02\x01\x01")
	le.PutUint16(h[16:], uint16(elf.ET_CORE))
	le.PutUint16(h[18:], uint16(machine))
	le.PutUint64(h[32:], 64)
	le.PutUint16(h[54:], 56)
	le.PutUint16(h[56:], uint16(len(parts)))
	at := uint64(64 + 56*len(parts))
	end := at
	var bodies []byte
	for i, data := range parts {
		p := make([]byte, 56)
		typ, align := elf.PT_NOTE, uint64(2)
		if i > 0 {
			typ, align = elf.PT_LOAD, 4
		}
		offset := alignUp(at, 1<<align)
		le.PutUint32(p, uint32(typ))
		le.PutUint64(p[8:], offset)
		le.PutUint64(p[16:], uint64(i)*0x1000)
		le.PutUint64(p[32:], uint64(len(data)))
		le.PutUint64(p[40:], uint64(len(data)))
		le.PutUint64(p[48:], align)
		h = append(h, p...)
		if !isPipe {
			bodies = append(bodies, make([]byte, offset-end)...)
		}
		bodies = append(bodies, data...)
		at += uint64(len(data))
		end = offset + uint64(len(data))
	}
	return append(h, bodies...)
}

// TestCoreThroughAPipe reads the memory of cores whose program headers count padding that
// the file does not have, and takes no other core for one.
func TestCoreThroughAPipe(t *testing.T) {
	note := func(n int) []byte { return little64().note(nil, "AMDGPU", 33, make([]byte, n)) }
	first, second := bytes.Repeat([]byte("first of memory."), 8), bytes.Repeat([]byte("then the second!"), 8)
	zeros := make([]byte, 128)
	const said = "no padding between segments"
	for _, x := range []struct {
		what string
		core []byte
		want string // of the problems
		read string // of the second memory
	}{
		{"a pipe", unpaddedCore(elf.EM_AMDGPU, true, note(0), first, second), said, "then the second!"},
		{"a pipe, 12 bytes", unpaddedCore(elf.EM_AMDGPU, true, note(8), first, second), said, "then the second!"},
		{"a pipe, memory of zeros", unpaddedCore(elf.EM_AMDGPU, true, note(8), zeros, second), said, "then the second!"},
		{"a file", unpaddedCore(elf.EM_AMDGPU, false, note(8), first, second), "", "then the second!"},
		{"a pipe of another machine", unpaddedCore(elf.EM_X86_64, true, note(8), first, second), said, "then the second!"},
		{"a file of another machine, cut", unpaddedCore(elf.EM_X86_64, false, note(8), zeros, second)[:64+3*56+28+256], "cut at offset", "then the second!"},
		{"a pipe, cut", unpaddedCore(elf.EM_AMDGPU, true, note(8), first, second)[:64+3*56+28+128+16], said, "then the second!"},
		{"a file, cut", unpaddedCore(elf.EM_AMDGPU, false, note(8), first, second)[:64+3*56+32+128+24], "cut at offset", "then the second!"},
	} {
		c, err := opened(x.core, Options{})
		if err != nil {
			t.Fatal(err)
		}
		problems := problemsOf(c)
		if !strings.Contains(problems, x.want) || strings.Contains(problems, said) != (x.want == said) {
			t.Errorf("%s: problems %q, expected %q", x.what, problems, x.want)
		}
		buf := make([]byte, 16)
		if n, _ := c.ReadMemory(0, 0x2000, buf); string(buf[:n]) != x.read {
			t.Errorf("%s: read %q, expected %q", x.what, buf[:n], x.read)
		}
		c.Close()
	}
}
