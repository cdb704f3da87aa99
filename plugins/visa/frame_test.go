// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/plugins/visa/stream"
	"github.com/unwindd/unwindd/sdk"
)

func general(register, at uint16) stream.Location {
	return stream.Location{Storage: stream.General, Register: register, Subregister: at}
}

func inFrame(at int32) stream.Location { return stream.Location{Storage: stream.Memory, Offset: at} }

func TestCallingConventionsByTheirFramePointer(t *testing.T) {
	for _, c := range []struct {
		where stream.Location
		want  abi
		err   string
	}{
		{general(125, 12), abi{descriptor: 141, registers: 128, reserved: 3, header: 142, fp: 12, sp: 8}, ""},
		{general(253, 12), abi{descriptor: 269, registers: 256, reserved: 3, header: 270, fp: 12, sp: 8}, ""},
		{general(127, 12), abi{descriptor: 143, registers: 128, reserved: 3, header: 142, fp: 12, sp: 8}, ""},
		{general(127, 0), abi{descriptor: 143, registers: 128, reserved: 1, fp: 0, sp: 8, ip: 16}, ""},
		{general(255, 0), abi{descriptor: 271, registers: 256, reserved: 1, fp: 0, sp: 8, ip: 16}, ""},
		{general(510, 0), abi{descriptor: 604, registers: 512, reserved: 2, fp: 0, sp: 8, ip: 16}, ""},
		{general(511, 0), abi{}, "byte 0 of r511"},
		{general(126, 12), abi{}, "byte 12 of r126"},
		{general(125, 8), abi{}, "byte 8 of r125"},
		{general(stream.NotAllocated, stream.NotAllocated), abi{}, "where none"},
		{inFrame(12), abi{}, "in memory, expected a general register"},
	} {
		got, err := abiOf(c.where)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v: %v, %v; want %q", c.where, got, err, c.err)
			}
		case err != nil:
			t.Errorf("%v: %v", c.where, err)
		default:
			if diff := cmp.Diff(c.want, *got, cmp.AllowUnexported(abi{})); diff != "" {
				t.Errorf("%v: %s", c.where, diff)
			}
		}
	}
}

// goodFrame is a frame as compilers write it, of a function of 512 bytes.
func goodFrame() *stream.Frame {
	interval := func(l stream.Location) []stream.Interval {
		return []stream.Interval{{Start: 80, End: 400, Virtual: stream.General, Location: l}}
	}
	saved := func(n int) (list []stream.SavedRegister) {
		for i := range n {
			list = append(list, stream.SavedRegister{Offset: uint16(60+i) * 64, Bytes: 64, Location: inFrame(int32(64 + 64*i))})
		}
		return list
	}
	return &stream.Frame{
		Size: 320, BEFP: interval(general(127, 0)), CallerBEFP: interval(inFrame(0)), ReturnAddress: interval(inFrame(16)),
		CE:          &stream.CE{Offset: 32, StoreIP: 112},
		CalleeSaves: []stream.Save{{GenOffset: 96, Registers: saved(1)}, {GenOffset: 128, Registers: saved(2)}, {GenOffset: 384}},
		CallerSaves: []stream.Save{
			{GenOffset: 200, Registers: []stream.SavedRegister{{Offset: 3 * 64, Bytes: 64, Location: inFrame(192)}, {Offset: 1 * 64, Bytes: 64, Location: general(9, 0)}}},
			{GenOffset: 240},
		},
	}
}

func functionOf(frame *stream.Frame) (*function, error) {
	f := &function{name: "f", start: 0x1000, size: 512, unit: byteUnit}
	return f, f.fromFrame(frame)
}

// The third version of the calling convention has the return address behind the
// pointers, and stores the mask of channels.
func TestRowsOfTheNewestCallingConvention(t *testing.T) {
	const (
		fp    = "constu 143; lit0; INTEL_regval_bits 32; lit9; LLVM_form_aspace_address"
		sp    = "constu 143; constu 64; INTEL_regval_bits 32; lit9; LLVM_form_aspace_address"
		saved = "IP: cfa+16"
	)
	f, err := functionOf(goodFrame())
	if err != nil {
		t.Fatal(err)
	}
	f.restored = 416
	a := &sdk.OpenObjectAnswer{Tables: []sdk.RowTable{{Rows: f.rows()}}}
	for at, want := range map[uint64]string{
		0:   sp + " | IP: drop; regx 143; LLVM_offset_uconst 16",
		79:  sp + " | IP: drop; regx 143; LLVM_offset_uconst 16",
		80:  fp + " | " + saved + ", r127: piece 32",
		96:  fp + " | " + saved + ", r60: cfa+64, r127: piece 32",
		111: fp + " | " + saved + ", r60: cfa+64, r127: piece 32",
		112: fp + " | " + saved + ", EMask: cfa+32, r60: cfa+64, r127: piece 32",
		128: fp + " | " + saved + ", EMask: cfa+32, r60: cfa+64, r61: cfa+128, r127: piece 32",
		200: fp + " | " + saved + ", EMask: cfa+32, r60: cfa+64, r61: cfa+128, r127: piece 32 | calls: r1: undefined, r3: cfa+192",
		240: fp + " | " + saved + ", EMask: cfa+32, r60: cfa+64, r61: cfa+128, r127: piece 32",
		384: fp + " | " + saved + ", EMask: cfa+32, r127: piece 32",
		415: fp + " | " + saved + ", EMask: cfa+32, r127: piece 32",
		416: sp + " | IP: drop; regx 143; LLVM_offset_uconst 16",
		511: sp + " | IP: drop; regx 143; LLVM_offset_uconst 16",
		512: "",
	} {
		if got := rowAt(t, a, 0x1000+at); got != want {
			t.Errorf("at %d:\n%s, want\n%s", at, got, want)
		}
	}
}

func TestFramesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*stream.Frame)
		err    string
	}{
		{"no frame pointer, but saves", func(f *stream.Frame) { *f = stream.Frame{CallerSaves: f.CallerSaves} }, "saves, but no frame pointer"},
		{"no frame pointer, but the caller's", func(f *stream.Frame) { f.BEFP = nil }, "but no frame pointer"},
		{"a frame pointer nowhere", func(f *stream.Frame) { f.BEFP = []stream.Interval{} }, "the frame pointer is nowhere"},
		{"a frame pointer that moves", func(f *stream.Frame) {
			f.BEFP = append(f.BEFP, stream.Interval{Start: 400, End: 410, Location: general(125, 12)})
		}, "in several places"},
		{"a frame pointer of no convention", func(f *stream.Frame) { f.BEFP[0].Location.Register = 12 }, "none of the calling conventions"},
		{"no return address", func(f *stream.Frame) { f.ReturnAddress = nil }, "the return address is nowhere"},
		{"no caller's frame pointer", func(f *stream.Frame) { f.CallerBEFP = nil }, "the caller's frame pointer is nowhere"},
		{"a return address in a register", func(f *stream.Frame) { f.ReturnAddress[0].Location = general(3, 0) }, "the return address is not saved in the frame"},
		{"a return address at a fixed place", func(f *stream.Frame) { f.ReturnAddress[0].Location.IsAbsolute = true }, "not saved in the frame"},
		{"not of one copy", func(f *stream.Frame) { f.ReturnAddress[0].Location.Offset = 20 }, "expected both in one copy"},
		{"an end before the start", func(f *stream.Frame) { f.CallerBEFP[0].End = 79 }, "live from 0x50 to 0x4f"},
		{"an end behind the function", func(f *stream.Frame) {
			for _, i := range [...][]stream.Interval{f.BEFP, f.CallerBEFP, f.ReturnAddress} {
				i[0].End = 513
			}
		}, "within the function's 0x200 bytes"},
		{"saves out of order", func(f *stream.Frame) { f.CalleeSaves[1].GenOffset = 95 }, "callee saves: offset 0x5f"},
		{"saves behind the function", func(f *stream.Frame) { f.CallerSaves[1].GenOffset = 513 }, "caller saves: offset 0x201"},
		{"registers of two sizes", func(f *stream.Frame) { f.CalleeSaves[1].Registers[1].Bytes = 32 }, "32 bytes at byte 3904"},
		{"part of a register", func(f *stream.Frame) { f.CalleeSaves[0].Registers[0].Offset++ }, "64 bytes at byte 3841"},
		{"a register that there is not", func(f *stream.Frame) { f.CalleeSaves[0].Registers[0].Offset = 128 * 64 }, "expected one of 128"},
		{"a register twice", func(f *stream.Frame) { f.CalleeSaves[1].Registers[1].Offset = 60 * 64 }, "a register is saved twice"},
		{"too many", func(f *stream.Frame) {
			s := f.CalleeSaves[0]
			for range maxSaves / 2 {
				f.CalleeSaves = slices.Insert(f.CalleeSaves, 1, s)
			}
		}, "in the lists of saves"},
	} {
		frame := goodFrame()
		c.change(frame)
		f, err := functionOf(frame)
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.err)
		}
		if rows := f.rows(); rows != nil {
			t.Errorf("%s: %d rows", c.name, len(rows))
		}
	}
	if _, err := functionOf(goodFrame()); err != nil {
		t.Error(err)
	}
}

// A kernel has no caller, and in a frame whose pointer is unknown in what it
// counts nothing is known.
func TestRowsThatAreNotThere(t *testing.T) {
	f, err := functionOf(&stream.Frame{})
	if err != nil || f.rows() != nil {
		t.Errorf("without a frame: %v %v", f.rows(), err)
	}
	f, _ = functionOf(goodFrame())
	if f.unit = 0; f.rows() != nil {
		t.Errorf("without a unit: %v", f.rows())
	}
	f, _ = functionOf(goodFrame())
	if f.hasUnfound = true; f.rows() != nil {
		t.Errorf("with subroutines somewhere: %v", f.rows())
	}
	frame := goodFrame()
	frame.CallerBEFP, frame.ReturnAddress, frame.CalleeSaves, frame.CE = nil, nil, nil, nil
	f = &function{isKernel: true, start: 0x1000, size: 512, unit: byteUnit}
	if err := f.fromFrame(frame); err != nil {
		t.Fatal(err)
	}
	a := &sdk.OpenObjectAnswer{Tables: []sdk.RowTable{{Rows: f.rows()}}}
	const fp = "constu 143; lit0; INTEL_regval_bits 32; lit9; LLVM_form_aspace_address | IP: undefined"
	for at, want := range map[uint64]string{
		0: "", 79: "", 80: fp, 399: fp, 400: "",
		220: fp + " | calls: r1: undefined, r3: cfa+192",
	} {
		if got := rowAt(t, a, 0x1000+at); got != want {
			t.Errorf("kernel at %d: %s, want %s", at, got, want)
		}
	}
}

func TestUnitsThatContradictAreNone(t *testing.T) {
	f := &function{}
	for _, c := range []struct {
		unit, want uint64
		err        bool
	}{{0, 0, false}, {byteUnit, byteUnit, false}, {byteUnit, byteUnit, false}, {0, byteUnit, false}, {owordUnit, 0, true}, {byteUnit, 0, false}} {
		if err := f.countsBy(c.unit, "it"); (err != nil) != c.err || f.unit != c.want {
			t.Errorf("%d: %v, %d", c.unit, err, f.unit)
		}
	}
	o := &codeObject{req: &sdk.OpenObjectRequest{}, answer: &sdk.OpenObjectAnswer{}}
	list := []function{{unit: byteUnit, grf: 64}, {}, {isTorn: true}}
	o.shareUnit(list)
	if list[1].unit != byteUnit || list[1].grf != 64 || list[2].unit != 0 {
		t.Errorf("%+v", list)
	}
	list = []function{{unit: byteUnit}, {unit: owordUnit}, {}}
	o.shareUnit(list)
	for i := range list {
		if list[i].unit != 0 {
			t.Errorf("%+v", list[i])
		}
	}
}

// textOf is the code of a fixture.
func textOf(t testing.TB, name string) []byte {
	t.Helper()
	f, err := elf.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := f.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is read of the function fact on each processor, as its assembly has it.
func TestCodeThatSetsUpAndTakesDownAFrame(t *testing.T) {
	a, err := abiOf(general(125, 12))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		elf                    string
		start, end, set, down  uint64
		grow, restored, regist uint64
	}{
		{"skl-rec-O2-1.elf", 0x530, 0x728, 72, 456, 0xc, 464, 32},
		{"tgllp-rec-O2-1.elf", 1744, 2448, 48, 648, 0xc, 680, 32},
		{"dg2-g10-rec-O2-1.elf", 2192, 2752, 64, 480, 0xc0, 528, 32},
		{"pvc-rec-O0-1.elf", 4592, 6048, 80, 1392, 0x1c0, 1408, 64},
	} {
		code := textOf(t, c.elf)[c.start:c.end]
		if got, want := factsOf(code, a, c.set, c.down), (codeFacts{grf: c.regist, grow: c.grow, restored: c.restored}); got != want {
			t.Errorf("%s: %+v, want %+v", c.elf, got, want)
		}
		if got := factsOf(code, a, c.set+16, c.down); got != (codeFacts{}) {
			t.Errorf("%s: another instruction sets no frame pointer: %+v", c.elf, got)
		}
		for end := range len(code) {
			got := factsOf(code[:end], a, c.set, c.down)
			if got.restored != 0 && uint64(end) < c.restored {
				t.Fatalf("%s: cut to %d bytes: %+v", c.elf, end, got)
			}
		}
		// A second instruction that does the same: it is not known which counts.
		twice := slices.Clone(code)
		from := twice[c.down:]
		in, ok := instructionAt(code, c.restored-instructionSize)
		if !ok || in.size != instructionSize {
			continue
		}
		copy(from, code[c.restored-instructionSize:c.restored])
		if got := factsOf(twice, a, c.set, c.down); c.down != c.restored-instructionSize && got.restored != 0 {
			t.Errorf("%s: taken down twice: %+v", c.elf, got)
		}
	}
}

// A frameWriter writes .debug_frame, in 64-bit DWARF.
type frameWriter struct{ b []byte }

func (w *frameWriter) entry(body []byte) {
	w.b = binary.LittleEndian.AppendUint32(w.b, 0xffffffff)
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(len(body)))
	w.b = append(w.b, body...)
}

func withLength(op []byte, expr []byte) []byte {
	return append(append(op, byte(len(expr))), expr...)
}

// pointerExpression is one of the compiler's: a word of r125, in units, in the
// scratch space.
func pointerExpression(bit uint16, owords bool) []byte {
	e := binary.LittleEndian.AppendUint32([]byte{dw.OpConst4u}, 141)
	e = binary.LittleEndian.AppendUint16(append(e, dw.OpConst2u), bit)
	e = append(e, 0xfe, 32)
	if owords {
		e = append(e, dw.OpConst1u, 16, dw.OpMul)
	}
	return append(e, dw.OpBreg0+6, 0, dw.OpPlus)
}

func placeExpression(at uint32) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{0x0c}, at), 0x22)
}

// placedFrame is what compilers since July 2024 write of the function fact of
// tgllp-rec-O2 and of the kernel.
func placedFrame() []byte {
	w := &frameWriter{}
	cie := binary.LittleEndian.AppendUint64(nil, math.MaxUint64)
	cie = append(cie, 4, 0, 8, 0, 1, 1, 0)
	cie = append(cie, withLength([]byte{dw.CFADefCFAExpression}, pointerExpression(64, true))...)
	for n := range uint64(128) {
		op := byte(dw.CFAUndefined)
		if n >= 60 {
			op = dw.CFASameValue
		}
		cie = binary.AppendUvarint(append(cie, op), 16+n)
	}
	cie = append(cie, dw.CFARegister, 0, 141, 1)
	w.entry(cie)
	fde := func(start, size uint64, body ...byte) {
		b := binary.LittleEndian.AppendUint64(nil, 0)
		b = binary.LittleEndian.AppendUint64(b, start)
		b = binary.LittleEndian.AppendUint64(b, size)
		w.entry(append(b, body...))
	}
	fde(0, 848, dw.CFAUndefined, 0)
	body := []byte{dw.CFAAdvanceLoc1, 48}
	body = append(body, withLength([]byte{dw.CFADefCFAExpression}, pointerExpression(96, true))...)
	body = append(body, withLength([]byte{dw.CFAExpression, 141, 1}, placeExpression(0))...)
	body = append(body, withLength([]byte{dw.CFAExpression, 0}, placeExpression(0))...)
	body = append(body, dw.CFAAdvanceLoc1, 48)
	body = append(body, withLength([]byte{dw.CFAExpression, 76}, placeExpression(64))...)
	body = append(body, dw.CFAAdvanceLoc2, 0x28, 0x02, dw.CFASameValue, 76)                        // at 648
	body = append(body, dw.CFAAdvanceLoc1, 16, dw.CFASameValue, 141, 1, dw.CFARegister, 0, 141, 1) // at 664
	fde(1744, 704, body...)
	return w.b
}

// Newer call frame information is right but for the descriptor, which it takes for
// the return address, and for when the frame is taken down.
func TestRowsBesideTheNewestCallFrameInformation(t *testing.T) {
	text := textOf(t, "tgllp-rec-O2-1.elf")
	o := &codeObject{req: &sdk.OpenObjectRequest{Machine: machineGen}, answer: &sdk.OpenObjectAnswer{}}
	o.codes = []codeSection{{size: uint64(len(text)), code: text}}
	c := &o.codes[0]
	table, err := newFrameTable(placedFrame(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	c.entries, problems = readFrames(table, func(_ uint32, start, size uint64) []byte { return c.bytes(start, size) })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	o.describe(c)
	for pc, want := range map[uint64]string{
		0:           "",
		1744:        owordsAtSP + " | " + inR125,
		1744 + 47:   owordsAtSP + " | " + inR125,
		1744 + 48:   "", // as .debug_frame has it
		1744 + 96:   "",
		1744 + 647:  "",
		1744 + 648:  owordsAtFP + " | IP: cfa+0, r125: cfa+0",
		1744 + 664:  owordsAtFP + " | IP: cfa+0, r125: cfa+0",
		1744 + 680:  owordsAtSP + " | " + inR125,
		1744 + 703:  owordsAtSP + " | " + inR125,
		1744 + 2000: "",
	} {
		if got := rowAt(t, o.answer, pc); got != want {
			t.Errorf("at %d:\n%s, want\n%s", pc, got, want)
		}
	}
	if len(o.answer.Tables) != 1 || o.answer.Tables[0].Reason != "rows made of it: it has the whole descriptor for the return address" {
		t.Errorf("%+v", o.answer.Tables)
	}
	if f := o.answer.Functions[0]; f.Kind != sdk.KernelFunction || f.End != 848 {
		t.Errorf("%+v", f)
	}
	if len(o.answer.Problems) != 1 || !strings.Contains(o.answer.Problems[0], "taken down at 0x968, its code takes it down before 0x978") {
		t.Errorf("%q", o.answer.Problems)
	}
}

// Expressions that are like the compiler's, but not the same, are not taken for
// them.
func TestOtherExpressionsAreNotTheCompilers(t *testing.T) {
	good := pointerExpression(96, true)
	want := address{register: 141, bit: 96, unit: 16, isBased: true}
	if a, ok := addressOf(good); !ok || a != want {
		t.Fatalf("%+v %v", a, ok)
	}
	for n := range good {
		if a, ok := addressOf(good[:n]); ok {
			t.Errorf("cut to %d bytes: %+v", n, a)
		}
		other := slices.Clone(good)
		other[n] ^= 1
		if a, ok := addressOf(other); ok && a == want {
			t.Errorf("byte %d changed: %+v", n, a)
		}
	}
	if at, ok := placeOf(placeExpression(1024)); !ok || at != 1024 {
		t.Errorf("%d %v", at, ok)
	}
	for _, e := range [][]byte{append(placeExpression(1), 0x22), {0x0c, 1, 0, 0, 0}, {0x33, 0x1e}, {0x50}} {
		if at, ok := placeOf(e); ok {
			t.Errorf("% x: %d", e, at)
		}
	}
}

func TestSIMDWidthOfAUnit(t *testing.T) {
	abbrev := []byte{
		1, 0x11, 1, // DW_TAG_compile_unit, with children
		byte(dw.AttrProducer), byte(dw.FormString), byte(dw.AttrLowPC), byte(dw.FormAddr), 0x80, 0x48, byte(dw.FormData2), 0, 0,
	}
	info := func(width uint16) []byte {
		b := []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1, 'i', 'g', 'c', 0, 1, 2, 3, 4, 5, 6, 7, 8}
		return binary.LittleEndian.AppendUint16(b, width)
	}
	if width, ok := simdWidth(info(16), abbrev); !ok || width != 16 {
		t.Errorf("%d %v", width, ok)
	}
	for n := range info(16) {
		if width, ok := simdWidth(info(16)[:n], abbrev); ok {
			t.Errorf("cut to %d bytes: %d", n, width)
		}
	}
	for n := range abbrev[:len(abbrev)-2] {
		if width, ok := simdWidth(info(16), abbrev[:n]); ok {
			t.Errorf("abbreviations cut to %d bytes: %d", n, width)
		}
	}
	for _, name := range []string{"version", "address size", "form"} {
		i, a := info(16), slices.Clone(abbrev)
		switch name {
		case "version":
			i[4] = 5
		case "address size":
			i[10] = 4
		case "form":
			a[6] = 0x7f
		}
		if width, ok := simdWidth(i, a); ok {
			t.Errorf("another %s: %d", name, width)
		}
	}
}

// parts is an engine of the parts of an object.
type parts struct {
	sdk.Engine
	sections map[string][]byte
	dbg      []byte
}

func (p *parts) ReadSection(_ context.Context, object uint64, name string) ([]byte, error) {
	if object == companionHandle {
		return p.dbg, nil
	}
	return p.sections[name], nil
}

// FuzzOpenObject reads whatever there may be: what is answered passes the
// engine's checks, rows are of functions, and nothing takes time or memory out
// of proportion.
func FuzzOpenObject(f *testing.F) {
	for _, name := range []string{"skl-rec-O2-1", "tgllp-k-O2-1", "dg2-g10-rec-O2-1", "pvc-rec-O0-1"} {
		e, err := elf.Open(filepath.Join("testdata", name+".elf"))
		if err != nil {
			f.Fatal(err)
		}
		section := func(name string) []byte {
			b, err := e.Section(name).Data()
			if err != nil {
				f.Fatal(err)
			}
			return b
		}
		for _, dbg := range [][]byte{nil, fixture(f, name+".dbg")} {
			for _, zebin := range []bool{false, true} {
				f.Add(zebin, section(".text"), section(".debug_frame"), section(".debug_info"), section(".debug_abbrev"), dbg)
			}
		}
	}
	f.Add(false, textOf(f, "tgllp-rec-O2-1.elf"), placedFrame(), []byte(nil), []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, zebin bool, text, frame, info, abbrev, dbg []byte) {
		p := &parts{dbg: dbg, sections: map[string][]byte{
			".text": text, ".text.reck": text, ".debug_frame": frame, ".debug_info": info, ".debug_abbrev": abbrev, ".rela.debug_frame": abbrev, ".symtab": info,
		}}
		req := &sdk.OpenObjectRequest{Object: objectHandle, Machine: machineGen, Sections: []sdk.SectionInfo{
			{}, {Name: ".text", Type: sectionProgBits, Flags: flagExec, Size: uint64(len(text))},
			{Name: ".debug_frame", Size: 1}, {Name: ".debug_info", Size: 1}, {Name: ".debug_abbrev", Size: 1},
			{Name: ".rela.debug_frame", Size: 1}, {Name: ".symtab", Size: 1},
		}}
		if zebin {
			req.Machine, req.Sections[1].Name = machineIntelGT, ".text.reck"
		}
		if len(dbg) > 0 {
			req.Companions = []sdk.Companion{{Suffix: ".dbg", Object: companionHandle}}
		}
		a, err := New().OpenObject(context.Background(), p, req)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Validate(Description(), req); err != nil {
			t.Fatal(err)
		}
		for i := range a.Tables {
			for _, r := range a.Tables[i].Rows {
				in := slices.ContainsFunc(a.Functions, func(f sdk.Function) bool { return r.Start >= f.Start && r.End <= f.End })
				if r.CFA.Kind != cfi.CFAExpression || !in || r.End > uint64(len(text)) {
					t.Fatalf("row of %#x to %#x in %d bytes of code", r.Start, r.End, len(text))
				}
			}
		}
	})
}

// A kernel whose code calls subroutines, of which call frame information says
// nothing, may be in one: it is not said to be the outermost.
func TestDescribedKernelsWithSubroutinesAreNotTheOutermost(t *testing.T) {
	w := &frameWriter{}
	cie := binary.LittleEndian.AppendUint64(nil, math.MaxUint64)
	cie = append(cie, 4, 0, 8, 0, 1, 1, 0)
	w.entry(append(cie, withLength([]byte{dw.CFADefCFAExpression}, pointerExpression(64, true))...))
	fde := binary.LittleEndian.AppendUint64(make([]byte, 16), 0x2e8)
	w.entry(append(fde, dw.CFAUndefined, 0))
	text := textOf(t, "tgllp-k-O2-1.elf")
	for _, calls := range []bool{false, true} {
		code := slices.Clone(text)
		for at := uint64(0); !calls; {
			in, ok := instructionAt(code, at)
			if !ok {
				break
			}
			if in.words[0]&opcodeMask == opcodeCall {
				code[at] = opcodeAdd
			}
			at += in.size
		}
		o := &codeObject{req: &sdk.OpenObjectRequest{Machine: machineGen}, answer: &sdk.OpenObjectAnswer{}}
		o.codes = []codeSection{{size: uint64(len(code)), code: code}}
		c := &o.codes[0]
		table, err := newFrameTable(w.b, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.entries, _ = readFrames(table, func(_ uint32, start, size uint64) []byte { return c.bytes(start, size) })
		o.describe(c)
		if len(o.answer.Functions) != 1 || (o.answer.Functions[0].Kind == sdk.KernelFunction) == calls {
			t.Errorf("calls %v: %+v", calls, o.answer.Functions)
		}
	}
}

// The return address of a subroutine is in its register in all of its code.
func TestSubroutinesThatCannotBe(t *testing.T) {
	m := indexMapOf(&stream.Object{IndexMap: []stream.Mapping{{VISA: 1, Gen: 0}, {VISA: 4, Gen: 16}, {VISA: 6, Gen: 32}, {VISA: 9, Gen: 48}}})
	f := &function{size: 64}
	for _, c := range []struct {
		start, end uint32
		where      stream.Location
		ok         bool
	}{
		{4, 6, general(5, 8), true},
		{3, 7, general(5, 60), true},
		{5, 6, general(5, 8), false},
		{4, 5, general(5, 8), false},
		{4, 6, general(5, 61), false},
		{4, 6, general(512, 0), false},
		{4, 6, inFrame(0), false},
	} {
		s, err := f.findSubroutine(&stream.Subroutine{Start: 4, End: 6, ReturnValue: []stream.Interval{{Start: c.start, End: c.end, Location: c.where}}}, m, nil)
		if (err == nil) != c.ok || c.ok && (s.start != 16 || s.end != 48) {
			t.Errorf("%+v: %+v %v", c, s, err)
		}
	}
}
