// SPDX-License-Identifier: Apache-2.0

package code

import (
	"debug/pe"
	"encoding/binary"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol/framerules"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
	"github.com/unwindd/unwindd/internal/oracle"
)

// i386 are the registers of 32-bit x86 by DWARF's numbers.
var i386 = map[string]uint64{"$eax": 0, "$ecx": 1, "$edx": 2, "$ebx": 3, "$esp": 4, "$ebp": 5, "$esi": 6, "$edi": 7, "$eip": 8}

func i386Register(name string) (uint64, bool) {
	n, ok := i386[name]
	return n, ok
}

// frameProgram is a program of 32-bit x86 with frame data and with DWARF of the same code.
type frameProgram struct {
	code    []byte
	start   uint64 // of code
	symbols *pdb.File
	table   *cfi.Table
}

func openFrameProgram(t *testing.T, image, symbols string) *frameProgram {
	t.Helper()
	f, err := pe.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	base := uint64(f.OptionalHeader.(*pe.OptionalHeader32).ImageBase)
	p := &frameProgram{}
	if p.symbols, err = pdb.Open(symbols, base); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.symbols.Close() })
	text, frames := f.Section(".text"), f.Section(".debug_frame")
	if text == nil || frames == nil {
		t.Fatalf("%s has no .text or no .debug_frame", image)
	}
	if p.code, err = text.Data(); err != nil {
		t.Fatal(err)
	}
	p.code, p.start = p.code[:text.VirtualSize], base+uint64(text.VirtualAddress)
	data, err := frames.Data()
	if err != nil {
		t.Fatal(err)
	}
	if p.table, err = cfi.NewTable(cfi.Section{Name: ".debug_frame", Data: data, Order: binary.LittleEndian, AddressSize: 4}); err != nil {
		t.Fatal(err)
	}
	return p
}

// compare compares the row that frame data gives at a position with the row of DWARF. more is the number
// of bytes of a called function between the stack pointer and the frame.
func (p *frameProgram) compare(t *testing.T, position framerules.Position, more uint64) (isCompared bool) {
	t.Helper()
	fde, err := p.table.FDE(position.Address)
	if err != nil {
		return false // a function that the program only needs to be linked
	}
	var want, got cfi.Row
	if err := fde.RowAt(position.Address, &want); err != nil {
		t.Fatal(err)
	}
	d, ok := p.symbols.FrameData(position.Address)
	if !ok {
		t.Errorf("%#x: no frame data", position.Address)
		return false
	}
	position.IsFirst = isFirst(p.symbols, &d)
	isSearched, err := framerules.Row(&got, &d, position, i386Register)
	if err != nil {
		t.Errorf("%#x: %v", position.Address, err)
		return false
	}
	if isSearched {
		got.CFA.Offset += int64(more) //nolint:gosec // a few bytes
	}
	if got.CFA.Kind != cfi.CFARegister || got.CFA.Register != want.CFA.Register {
		return false // another base, of which the offset is not known here
	}
	if isSearched && position.IsExact && want.CFA.Offset > got.CFA.Offset {
		return false // parameters of a call are being pushed: the return address is searched above
	}
	if got.CFA.Offset != want.CFA.Offset {
		t.Errorf("%#x, exact %v: CFA %d %+d, DWARF %+d, by %q", position.Address, position.IsExact, got.CFA.Register, got.CFA.Offset, want.CFA.Offset, d.Program)
	}
	for _, name := range []string{"$ebp", "$ebx", "$esi", "$edi", "$eip"} {
		// DWARF has saved registers position the end of a prologue only.
		own, _ := got.Rule(i386[name])
		other, _ := want.Rule(i386[name])
		if other.Kind == cfi.Offset && own.Kind != cfi.Undefined && (own.Kind != cfi.Offset || own.Offset != other.Offset) {
			t.Errorf("%#x, exact %v: %s %+v, DWARF %+v, by %q", position.Address, position.IsExact, name, own, other, d.Program)
		}
	}
	return true
}

// instructions calls yield with the address and the instruction of each up to the end of the code.
func (p *frameProgram) instructions(yield func(address uint64, i x86asm.Inst)) {
	for at := 0; at < len(p.code); {
		i, err := x86asm.Decode(p.code[at:], 32)
		if err != nil || i.Len == 0 {
			at++
			continue
		}
		yield(p.start+uint64(at), i) //nolint:gosec // not negative
		at += i.Len
	}
}

// epilogue reports whether an instruction leaves a frame, which frame data does not follow.
func epilogue(i x86asm.Inst) bool {
	return i.Op == x86asm.POP || i.Op == x86asm.RET || i.Op == x86asm.LEAVE || strings.HasPrefix(i.String(), "ADD ESP") || strings.HasPrefix(i.String(), "LEA ESP")
}

// TestFrameDataAgreesWithDWARF holds the rows of frame data against DWARF's of the same code: at each
// instruction of which the frame is made and not left, and in each call, where the parameters of the
// called function lie between.
func TestFrameDataAgreesWithDWARF(t *testing.T) {
	oracle.Tools(t, "clang-22", "lld-link-22")
	source, err := filepath.Abs("testdata/frames32.c")
	if err != nil {
		t.Fatal(err)
	}
	b := oracle.Build{Sources: []string{source}}
	options := [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"}, {"-O2", "-fno-omit-frame-pointer"}}
	for i, list := range options {
		name := strconv.Itoa(i)
		b.Commands = append(b.Commands,
			append([]string{"clang-22", "--target=i686-w64-windows-gnu", "-g", "-gcodeview", "-w", "-c", "-o", name + ".obj", source}, list...),
			[]string{"lld-link-22", "/debug", "/entry:start", "/nodefaultlib", "/subsystem:console", "/safeseh:no", "/lldmingw", "/pdb:" + name + ".pdb", "/out:" + name + ".exe", name + ".obj"})
	}
	dir := b.Make(t)
	for i, list := range options {
		name := filepath.Join(dir, strconv.Itoa(i))
		p := openFrameProgram(t, name+".exe", name+".pdb")
		exact, inCalls := 0, 0
		isLeaving := false
		p.instructions(func(address uint64, i x86asm.Inst) {
			isLeaving = epilogue(i) || isLeaving && i.Op != x86asm.PUSH && i.Op != x86asm.CALL && i.Op != x86asm.MOV
			if !isLeaving && i.Op != x86asm.NOP && i.Op != x86asm.INT && p.compare(t, framerules.Position{Address: address, IsExact: true}, 0) {
				exact++
			}
			target, isDirect := i.Args[0].(x86asm.Rel)
			if i.Op != x86asm.CALL || !isDirect {
				return
			}
			end := address + uint64(i.Len)        //nolint:gosec // not negative
			callee := end + uint64(int64(target)) //nolint:gosec // it wraps
			if d, ok := p.symbols.FrameData(callee); ok && p.compare(t, framerules.Position{Address: end - 1}, d.Parameters) {
				inCalls++
			}
		})
		if exact < 100 || inCalls < 10 {
			t.Errorf("%v: %d rows and %d in calls are compared, expected more", list, exact, inCalls)
		}
		t.Logf("%v: %d rows, %d in calls", list, exact, inCalls)
	}
}
