// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mapOf writes a map of registers for a function.
func mapOf(function string, list ...mapped) []byte {
	b := binary.LittleEndian.AppendUint32(append([]byte(function), 0), uint32(len(list))) //nolint:gosec // a few
	for _, m := range list {
		b = append(binary.LittleEndian.AppendUint32(b, m.word), append([]byte(m.name), 0)...)
		for _, n := range []uint32{m.place, m.start, m.end} {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
	}
	return b
}

// TestPlacesOfRegisters has every class of places, and registers of several words that are in
// other places at other times.
func TestPlacesOfRegisters(t *testing.T) {
	full, half := classFull.number, classHalf.number
	const inLocal = "; DW_OP_lit6; DW_OP_LLVM_form_aspace_address"
	for _, c := range []struct {
		list []mapped
		want string
	}{
		{[]mapped{{name: "%r1", place: full(7), start: 0x10, end: 0x20}}, "0x110-0x120 DW_OP_regx R7"},
		{[]mapped{{name: "%r1", place: full(7), start: 0x10, end: 0x20}, {name: "%r1", place: full(9), start: 0x40, end: 0x50}},
			"0x110-0x120 DW_OP_regx R7, 0x140-0x150 DW_OP_regx R9"},
		{[]mapped{{name: "%rd1", place: full(4), start: 0x10, end: 0x30}, {name: "%rd1", word: 1, place: full(5), start: 0x10, end: 0x20},
			{name: "%rd1", word: 1, place: full(8), start: 0x20, end: 0x30}},
			"0x110-0x120 DW_OP_regx R4; DW_OP_piece 4; DW_OP_regx R5; DW_OP_piece 4, 0x120-0x130 DW_OP_regx R4; DW_OP_piece 4; DW_OP_regx R8; DW_OP_piece 4"},
		{[]mapped{{name: "%rd1", word: 1, place: full(5), start: 0, end: 0x20}}, "0x100-0x120 DW_OP_piece 4; DW_OP_regx R5; DW_OP_piece 4"},
		{[]mapped{{name: "%rs1", place: half(13), start: 0, end: 4}}, "0x100-0x104 DW_OP_regx R6; DW_OP_LLVM_offset_uconst 2"},
		{[]mapped{{name: "%rs1", place: half(12), start: 0, end: 4}}, "0x100-0x104 DW_OP_regx R6"},
		{[]mapped{{name: "%p1", place: classPredicate.number(3), start: 0, end: 4}}, "0x100-0x104 DW_OP_regx P3"},
		{[]mapped{{name: "%r1", place: classUniformFull.number(4), start: 0, end: 4}}, "0x100-0x104 DW_OP_regx UR4"},
		{[]mapped{{name: "%r1", place: classLocal.number(16), start: 0, end: 4}}, "0x100-0x104 DW_OP_lit16" + inLocal},
		{[]mapped{{name: "%r1", place: classLocalByRegister.number(1<<16 | 40), start: 0, end: 4}}, "0x100-0x104 DW_OP_regx R1; DW_OP_deref_size 4; DW_OP_consts 40; DW_OP_plus" + inLocal},
		{[]mapped{{name: "%r1", place: 99 << 24, start: 0, end: 4}}, ""},
	} {
		functions, err := readRegisterMap(mapOf("f", c.list...))
		if err != nil || len(functions) != 1 || functions[0].name != "f" {
			t.Fatalf("%+v, %v", functions, err)
		}
		v := variableOf(functions[0].list, 0x100, map[class]int{})
		var got []string
		for i := range v.Start {
			got = append(got, fmt.Sprintf("%#x-%#x %s", v.Start[i], v.End[i], text(t, v.Locations[i])))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%+v:\n%s, expected\n%s", c.list, strings.Join(got, ", "), c.want)
		}
	}
}

// TestMapOfACompiler has registers of the cubin as DW_AT_location of its variables names them.
func TestMapOfACompiler(t *testing.T) {
	a := fixture(t, "debug90.cubin").open(t)
	got := map[string]string{}
	for _, v := range a.Variables {
		if f := a.Functions[v.Section-29].Name; v.Name == "%r7" || f == "kern" && v.Name == "%SP" {
			var ranges []string
			for i := range v.Start {
				ranges = append(ranges, fmt.Sprintf("%#x-%#x %s", v.Start[i], v.End[i], text(t, v.Locations[i])))
			}
			got[fmt.Sprintf("%s %#x", f, v.Register)] = strings.Join(ranges, ", ")
		}
	}
	if diff := cmp.Diff(wantMap, got); diff != "" {
		t.Error(diff)
	}
}

// TestLiesInMaps has what is refused, and what stands before it.
func TestLiesInMaps(t *testing.T) {
	good := mapOf("f", mapped{name: "%r1", place: classFull.number(7), start: 0, end: 4})
	for _, c := range []struct {
		name      string
		data      []byte
		functions int
		want      string
	}{
		{"nothing", nil, 0, ""},
		{"a function without an end of its name", append(bytes.Clone(good), 'g'), 2, "offset 0x1a: no string of at most 32768 bytes"},
		{"more records than bytes", append(bytes.Clone(good), 'g', 0, 255, 255, 255, 255), 1, "offset 0x1c: 4294967295 records of g in 0 bytes"},
		{"a record that is cut", good[:len(good)-1], 1, "offset 0x16: 3 bytes, expected a number of 4"},
		{"no count", append(bytes.Clone(good), 'g', 0, 1), 2, "offset 0x1c: 1 bytes, expected a number of 4"},
	} {
		list, err := readRegisterMap(c.data)
		if len(list) != c.functions || (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %d functions, %v", c.name, len(list), err)
		}
	}
}

// FuzzRegisterMap reads maps of registers, and makes variables of them.
func FuzzRegisterMap(f *testing.F) {
	f.Add(mapOf("f", mapped{name: "%r1", place: classFull.number(7), start: 0, end: 4}, mapped{name: "%r1", word: 1, place: classHalf.number(7), start: 2, end: 9}))
	section, err := fixture(f, "debug90.cubin").file.Section(registerMapSection).Data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(section)
	f.Fuzz(func(t *testing.T, data []byte) {
		functions, _ := readRegisterMap(data)
		for _, function := range functions {
			if len(function.list) == 0 {
				continue
			}
			v := variableOf(function.list, 0x1000, map[class]int{})
			for i := range v.Start {
				if v.Start[i] >= v.End[i] || i > 0 && v.Start[i] < v.End[i-1] || strings.Contains(text(t, v.Locations[i]), "<") {
					t.Errorf("%s: %#x to %#x: %s", v.Name, v.Start[i], v.End[i], text(t, v.Locations[i]))
				}
			}
		}
	})
}

// FuzzCubin opens cubins, of which sections and headers are changed.
func FuzzCubin(f *testing.F) {
	for _, name := range []string{"calls90.cubin", "linked90.cubin", "calls61.cubin", "debug90.cubin"} {
		f.Add(fixture(f, name).raw)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readCubin(data)
		if err != nil || len(c.file.Sections) > 1<<10 {
			return
		}
		c.open(t)
	})
}

var wantMap = map[string]string{
	"_Z3reciPi1S 0x257237": "0x1b0-0x380 DW_OP_regx R4, 0x380-0xf80 DW_OP_regx R18", // "n" of rec
	"kern 0x257237":        "0x290-0x420 DW_OP_regx R5",
	"kern 0x255350": "0x100-0x110 DW_OP_regx R3; DW_OP_piece 4; DW_OP_piece 4, 0x110-0xb20 DW_OP_regx R3; DW_OP_piece 4; DW_OP_regx R8; DW_OP_piece 4, " +
		"0xb20-0xb50 DW_OP_regx R3; DW_OP_piece 4; DW_OP_piece 4",
}
