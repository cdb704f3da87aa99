// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"testing"

	"github.com/unwindd/unwindd/plugins/visa/stream"
	"github.com/unwindd/unwindd/sdk"
)

func TestPlacesOfVariables(t *testing.T) {
	a, err := abiOf(general(125, 12))
	if err != nil {
		t.Fatal(err)
	}
	kernel := &function{isKernel: true}
	called := &function{abi: a, unit: owordUnit, grf: 32}
	const frame = "constu 141; constu 96; INTEL_regval_bits 32; lit16; mul; "
	for _, c := range []struct {
		name string
		f    *function
		at   stream.Location
		want string // "": nowhere
	}{
		{"register, of a size that is not known", kernel, general(5, 12), "regx 21; LLVM_offset_uconst 12"},
		{"the last registers", called, general(126, 8), "regx 142; LLVM_offset_uconst 8; piece 24; regx 143; piece 32"},
		{"a register that there is not", called, general(128, 0), ""},
		{"none", kernel, general(stream.NotAllocated, stream.NotAllocated), ""},
		{"a byte that there is not", kernel, general(1, 64), ""},
		{"flag", kernel, stream.Location{Storage: stream.Flag, Register: 1, Subregister: 1}, "regx 289; LLVM_offset_uconst 2"},
		{"a flag that there is not", kernel, stream.Location{Storage: stream.Flag, Register: 4}, ""},
		{"a part of a flag that there is not", kernel, stream.Location{Storage: stream.Flag, Subregister: 2}, ""},
		{"address", kernel, stream.Location{Storage: stream.Address, Subregister: 15}, "regx 272; LLVM_offset_uconst 30"},
		{"an address register that there is not", kernel, stream.Location{Storage: stream.Address, Register: 1}, ""},
		{"a part of it that there is not", kernel, stream.Location{Storage: stream.Address, Subregister: 16}, ""},
		{"at a fixed place", kernel, stream.Location{Storage: stream.Memory, IsAbsolute: true, Offset: 64}, "constu 64; lit9; LLVM_form_aspace_address"},
		{"in a frame", called, inFrame(64), frame + "constu 64; plus; lit9; LLVM_form_aspace_address"},
		{"where a frame begins", called, inFrame(0), frame + "lit9; LLVM_form_aspace_address"},
		// A leaf says absolute, and means its frame.
		{"in the frame of a leaf", called, stream.Location{Storage: stream.Memory, IsAbsolute: true, Offset: 64}, frame + "constu 64; plus; lit9; LLVM_form_aspace_address"},
		{"in no frame", kernel, inFrame(64), ""},
		{"in a frame of units that are not known", &function{abi: a}, inFrame(64), ""},
		{"below a frame", called, inFrame(-4), ""},
	} {
		got := ""
		if e, ok := c.f.place(c.at); ok {
			got = expressionText(t, e)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A variable is there from behind the code that writes it to before the code that
// reads it last, as far as both are in the index map.
func TestCodeInWhichAVariableIsLive(t *testing.T) {
	m := indexMapOf(&stream.Object{IndexMap: []stream.Mapping{
		{VISA: 7, Gen: 0}, {VISA: 1, Gen: 16}, {VISA: 2, Gen: 32}, {VISA: 3, Gen: 64}, {VISA: 2, Gen: 80}, {VISA: 5, Gen: 96}, {VISA: 4, Gen: 112}, {VISA: 8, Gen: 128},
	}})
	for _, c := range []struct {
		first, last uint32
		kernel      bool
		start, end  uint64 // 0: nowhere
	}{
		{1, 3, false, 32, 65},
		{2, 5, false, 96, 97}, // the code of 2 ends at 96
		{1, 2, false, 32, 33}, // it is read at 32 first
		{2, 3, false, 0, 0},   // all code of 3 is before the last of 2
		{0, 3, false, 0, 65},
		{0, 3, true, 16, 65}, // a kernel's code begins with what loads its arguments
		{1, 6, false, 0, 0},
		{6, 8, false, 0, 0},
		{4, 8, false, 128, 129},
		{3, 3, false, 0, 0},
		{5, 4, false, 0, 0},
	} {
		p := placesOf(m, c.kernel)
		start, end, ok := p.code(&stream.Interval{Start: c.first, End: c.last})
		if ok != (c.end != 0) || ok && (start != c.start || end != c.end) {
			t.Errorf("from %d to %d: %d to %d %v, want %d to %d", c.first, c.last, start, end, ok, c.start, c.end)
		}
	}
}

func TestPlacesAreBounded(t *testing.T) {
	o := &codeObject{answer: &sdk.OpenObjectAnswer{}}
	v := variables{object: o, places: maxPlaces - 1}
	object := &stream.Object{
		Name:     "f",
		IndexMap: []stream.Mapping{{VISA: 1, Gen: 0}, {VISA: 2, Gen: 16}, {VISA: 3, Gen: 32}},
		Variables: []stream.Variable{
			{Name: "V1", Intervals: []stream.Interval{{Start: 1, End: 2, Location: general(1, 0)}}},
			{Name: "V2", Intervals: []stream.Interval{{Start: 1, End: 2, Location: general(2, 0)}}},
		},
	}
	v.add(&function{size: 32}, object)
	if len(o.answer.Variables) != 1 || len(o.answer.Problems) != 1 {
		t.Errorf("%+v", o.answer)
	}
}
