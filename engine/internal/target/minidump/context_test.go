// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
)

// withContext is a dump of one thread, which has a context.
func withContext(b *minidumptest.Builder, arch uint16, context []byte) *minidumptest.Builder {
	at := b.Part(context)
	// The stream of the system comes behind the threads, as in some dumps.
	b.Stream(uint32(StreamThreadList), uint32(1), uint32(7), uint32(0), uint32(0), uint32(0), uint64(0), uint64(0), uint64(0), at)
	b.System(arch, 2)
	return b
}

func registers(t *testing.T, d *Dump) map[string]string {
	t.Helper()
	list, err := d.Threads[0].Context.Registers()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, r := range list {
		if _, ok := m[r.Name]; ok {
			t.Errorf("%s is there twice", r.Name)
		}
		m[r.Name] = fmt.Sprintf("%x", r.Value)
	}
	return m
}

// TestForms holds where registers lie in a context against offsets of winnt.h and of
// Breakpad's headers: byte i of a context is i modulo 251.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		arch       uint16
		size       int
		flagsAt    int
		flags      uint64
		name       string
		pc, sp     int
		at         map[string][2]int // offset and size
		count      int
		notThere   []string
		flagsBytes int
	}{
		{9, 1232, 48, 0x10001f, ArchAMD64, 248, 152, map[string][2]int{"rax": {120, 8}, "rbp": {160, 8}, "r15": {240, 8}, "cs": {56, 2}, "gs": {64, 2},
			"ss": {66, 2}, "eflags": {68, 4}, "mxcsr": {52, 4}, "dr7": {112, 8}, "st7": {400, 10}, "xmm0": {416, 16}, "xmm15": {656, 16}}, 69, nil, 4},
		{9, 1232, 48, 0x100003, ArchAMD64, 248, 152, map[string][2]int{"rax": {120, 8}}, 20, []string{"mxcsr", "ds", "xmm0", "dr0"}, 4},
		{9, 736, 48, 0x80100007, ArchAMD64, 248, 152, map[string][2]int{"rax": {120, 8}, "gs": {64, 2}, "fs_base": {720, 8}, "gs_base": {728, 8}}, 26, []string{"xmm0"}, 4},
		{0, 716, 0, 0x1003f, ArchX86, 184, 196, map[string][2]int{"eax": {176, 4}, "ebp": {180, 4}, "edi": {156, 4}, "gs": {140, 4}, "dr7": {24, 4},
			"fsave_st7": {126, 10}, "st0": {236, 10}, "xmm7": {476, 16}, "eflags": {192, 4}, "ss": {200, 4}}, 64, nil, 4},
		{9, 716, 0, 0x10007, ArchX86, 184, 196, map[string][2]int{"eax": {176, 4}}, 16, []string{"xmm0", "dr0"}, 4},
		{12, 912, 0, 0x400007, ArchARM64, 264, 256, map[string][2]int{"x0": {8, 8}, "x28": {232, 8}, "x29": {240, 8}, "x30": {248, 8}, "cpsr": {4, 4},
			"v0": {272, 16}, "v31": {768, 16}, "fpcr": {784, 4}, "fpsr": {788, 4}}, 68, []string{"bcr0"}, 4},
		{12, 912, 0, 0x40000f, ArchARM64, 264, 256, map[string][2]int{"bcr7": {820, 4}, "bvr0": {824, 8}, "wcr1": {892, 4}, "wvr1": {904, 8}}, 88, nil, 4},
		{0x8003, 796, 0, 0x80000006, ArchARM64, 264, 256, map[string][2]int{"x0": {8, 8}, "x30": {248, 8}, "cpsr": {272, 4}, "v0": {284, 16}, "v31": {780, 16}}, 68, nil, 8},
		{5, 368, 0, 0x40000006, ArchARM, 64, 56, map[string][2]int{"r0": {4, 4}, "r12": {52, 4}, "lr": {60, 4}, "cpsr": {68, 4}, "d0": {80, 8}, "d31": {328, 8}}, 50, nil, 4},
		{5, 416, 0, 0x200003, ArchARM, 64, 56, map[string][2]int{"r0": {4, 4}, "lr": {60, 4}}, 17, []string{"d0"}, 4},
	} {
		raw := make([]byte, c.size)
		for i := range raw {
			raw[i] = byte(i % 251)
		}
		plain := slices.Clone(raw)
		for i := range c.flagsBytes {
			raw[c.flagsAt+i] = byte(c.flags >> (8 * i))
		}
		d := read(t, withContext(minidumptest.New(binary.LittleEndian), c.arch, raw))
		ctx := &d.Threads[0].Context
		got := registers(t, d)
		same(t, "form", []any{ctx.Arch, ctx.Flags, len(got)}, []any{c.name, c.flags, c.count})
		for name, at := range c.at {
			if want := fmt.Sprintf("%x", plain[at[0]:at[0]+at[1]]); got[name] != want {
				t.Errorf("%s of %d bytes: %s is %s, expected %s", c.name, c.size, name, got[name], want)
			}
		}
		pc, _ := ctx.PC()
		sp, _ := ctx.SP()
		word := d.word()
		if c.name == ArchX86 {
			word = 4
		}
		same(t, c.name+" pc and sp", []uint64{pc, sp}, []uint64{d.number(plain[c.pc : c.pc+word]), d.number(plain[c.sp : c.sp+word])})
		for _, name := range c.notThere {
			if _, ok := got[name]; ok {
				t.Errorf("%s of %d bytes has %s, which the flags do not say", c.name, c.size, name)
			}
		}
	}
}

func TestAContextOfNoKnownForm(t *testing.T) {
	d, err := Read("made.dmp", withContext(minidumptest.New(binary.LittleEndian), 9, make([]byte, 1232)).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Threads[0].Context.Registers(); !errors.Is(err, ErrNoContext) {
		t.Errorf("registers: %v", err)
	}
	if _, ok := d.Threads[0].Context.PC(); ok || !strings.Contains(strings.Join(d.Problems(), "\n"), "the context of thread 0 at 0x20 has 1232 bytes") {
		t.Errorf("problems: %q", d.Problems())
	}
}

// xstate is a context of x86-64 with an extended state behind it. Each part of the
// state is filled with its number.
func xstate(b *minidumptest.Builder, mask, layout uint64, parts ...[2]int) []byte {
	size := xsaveHeader
	for _, p := range parts {
		size = max(size, p[0]+512)
	}
	area := make([]byte, size)
	copy(area, b.Pack(mask, layout))
	for _, p := range parts {
		for i := range 512 {
			if p[0]+i < len(area) {
				area[p[0]+i] = byte(p[1])
			}
		}
	}
	c := b.AMD64Context(0x10005f)
	minus := int32(-1232)
	chunk := b.Pack(uint32(minus), uint32(1232+80+len(area)), uint32(minus), uint32(1232), uint32(80), uint32(len(area)), uint64(0))
	return slices.Concat(c, chunk, make([]byte, 80-len(chunk)), area)
}

func TestExtendedState(t *testing.T) {
	const compacted = 1 << 63
	b := minidumptest.New(binary.LittleEndian)
	// AVX in use, masks at first state, protection keys and shadow stack in use.
	mask := uint64(1<<2 | 1<<9 | 1<<11)
	d := read(t, withContext(b, 9, xstate(b, mask, compacted|mask|1<<5, [2]int{64, 2}, [2]int{320, 5}, [2]int{384, 9}, [2]int{392, 11})))
	got := registers(t, d)
	same(t, "compacted", []string{got["ymm0h"], got["ymm15h"], got["k0"], got["pkru"], got["ssp"], got["rax"][:2], got["zmm0h"]},
		[]string{strings.Repeat("02", 16), strings.Repeat("02", 16), strings.Repeat("00", 8), "09090909", strings.Repeat("0b", 8), "78", ""})

	// The configuration of tiles is aligned to 64 bytes.
	b = minidumptest.New(binary.LittleEndian)
	d = read(t, withContext(b, 9, xstate(b, 1<<9|1<<17, compacted|1<<9|1<<17, [2]int{64, 9}, [2]int{128, 17})))
	got = registers(t, d)
	same(t, "aligned", []string{got["pkru"], got["tilecfg"]}, []string{"09090909", strings.Repeat("11", 64)})

	// Where the area is not compacted the processor says where its parts are.
	b = minidumptest.New(binary.LittleEndian)
	features := make([]byte, 512)
	copy(features[2*8:], b.Pack(uint32(576), uint32(256)))
	copy(features[9*8:], b.Pack(uint32(2688), uint32(8)))
	b.Stream(uint32(StreamMiscInfo), uint32(1364), uint32(0), make([]byte, 824), uint32(528), uint32(3000), uint64(0x207), features, uint32(0))
	d = read(t, withContext(b, 9, xstate(b, 1<<2|1<<9, 0, [2]int{64, 2}, [2]int{2688 - 512, 9})))
	got = registers(t, d)
	same(t, "plain", []string{got["ymm3h"], got["pkru"], got["ssp"]}, []string{strings.Repeat("02", 16), "09090909", ""})

	// A part that is not known ends a compacted area; one beyond the end is not there.
	for _, layout := range []uint64{compacted | 1<<2 | 1<<13 | 1<<17, compacted | 1<<2 | 1<<18, compacted | 1<<62} {
		b = minidumptest.New(binary.LittleEndian)
		d = read(t, withContext(b, 9, xstate(b, layout, layout, [2]int{64, 2})))
		got = registers(t, d)
		if _, ok := got["tilecfg"]; ok || len(got) > 69+16 {
			t.Errorf("layout %#x: %d registers", layout, len(got))
		}
	}
}
