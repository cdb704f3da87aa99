// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"slices"
	"testing"
)

func TestSourcePositions(t *testing.T) {
	// Entries of (code offset, place in the script): (0, 10), (5, 30), (9, 20); the second is an
	// expression, whose code offset has the other sign.
	table := sourcePositions{[]byte{2, 44, 11, 80, 8, 39}}
	for offset, want := range map[int64]int64{-1: -1, 0: 10, 4: 10, 5: 30, 8: 30, 9: 20, 100: 20} {
		position, err := table.position(offset)
		if got := scriptOffset(position); err != nil || got != want {
			t.Errorf("at %d: %d, %v; want %d", offset, got, err, want)
		}
	}
	for _, cut := range [][]byte{{2}, {2, 0x80}, {0x83}, {2, 3}} {
		if _, err := (sourcePositions{cut}).position(100); err == nil {
			t.Errorf("% x: no error", cut)
		}
	}
}

func TestEndsOf(t *testing.T) {
	for text, want := range map[string][]int64{
		"": {0}, "a": {1}, "a\nb": {1, 3}, "a\r\nb\r": {2, 4, 5}, "\u2028x\u2029": {0, 2, 3},
	} {
		var units []uint16
		for _, r := range text {
			units = append(units, uint16(r))
		}
		if got := endsOf(units); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestBaselineOffset(t *testing.T) {
	// Bytecodes without operands, with one and with one that is widened.
	sizes := "0000000000" + "10" // bytecode 5 has an operand
	bytecode := []byte{4, 5, 1, 0, 5, 1, 1, 4}
	table := []byte{10, 3, 4, 0x80 | 1, 1, 2} // 10, 3, 4, 129, 2 bytes
	for at, want := range map[uint64]int64{1: -1, 10: -1, 11: 0, 13: 0, 14: 1, 17: 1, 18: 3, 146: 3, 147: 7, 148: 7} {
		got, err := baselineOffset(table, bytecode, sizes, at)
		if err != nil || got != want {
			t.Errorf("at %d: %d, %v; want %d", at, got, err, want)
		}
	}
	if got, err := baselineOffset(table, bytecode, sizes, 149); err == nil {
		t.Errorf("behind the end: %d", got)
	}
	if got, err := baselineOffset(table, []byte{4, 99}, sizes, 100); err == nil {
		t.Errorf("with an unknown bytecode: %d", got)
	}
}

// TestVersions checks the tables of the versions against each other.
func TestVersions(t *testing.T) {
	for i := range versions {
		v := &versions[i]
		tr := &v.translations
		if len(v.bytecodes)%2 != 0 || len(v.bytecodes) < 2*180 {
			t.Errorf("%d.%d: %d digits for bytecodes", v.major, v.minor, len(v.bytecodes))
		}
		for code := range prefixScales {
			if v.bytecodes[2*code:2*code+2] != "00" {
				t.Errorf("%d.%d: the prefix %d has operands", v.major, v.minor, code)
			}
		}
		for _, n := range slices.Concat(tr.interpreted, tr.continuation, tr.begins) {
			if tr.operands[n] < '3' {
				t.Errorf("%d.%d: the operation %d has %c operands", v.major, v.minor, n, tr.operands[n])
			}
		}
		if tr.repeats != 0 && tr.repeats != len(tr.operands)-1 {
			t.Errorf("%d.%d: the operation that repeats is %d of %d", v.major, v.minor, tr.repeats, len(tr.operands))
		}
	}
	for v, names := range described {
		for i := range versions {
			if _, ok := versions[i].known[value(v)]; !ok && len(names) == 0 {
				t.Errorf("%d.%d has no number %d", versions[i].major, versions[i].minor, v)
			}
		}
	}
}

func TestTranslation(t *testing.T) {
	v := &versions[1].translations // V8 11.3
	even := func(n byte) byte { return n << 1 }
	// Two lists: the second one goes on as the first one does.
	data := []byte{
		2, 0, even(2), even(2), // begins, without an earlier list: 2 frames
		24, even(7), even(3), even(1), // a function: literal 3 at 7
		31, even(5), // a register
		24, even(9), even(4), even(0),
		2, 14, even(2), even(2), // begins, 14 bytes behind the first
		24, even(8), even(3), even(1), // literal 3 at 8
		36 + 2, // two operations of the first list: the register and the function
	}
	first, err := v.frames(data, 0)
	if want := []inlinedFrame{{3, 7, false}, {4, 9, false}}; err != nil || !slices.Equal(first, want) {
		t.Errorf("%v, %v; want %v", first, err, want)
	}
	second, err := v.frames(data, 14)
	if want := []inlinedFrame{{3, 8, false}, {4, 9, false}}; err != nil || !slices.Equal(second, want) {
		t.Errorf("%v, %v; want %v", second, err, want)
	}
	for _, place := range []int64{-1, 1, 22, 99} {
		if list, err := v.frames(data, place); err == nil {
			t.Errorf("at %d: %v", place, list)
		}
	}
}

func FuzzTranslation(f *testing.F) {
	f.Add(0, []byte{3, 2, 4, 0, 18, 14, 6, 2, 0, 0})
	f.Add(1, []byte{2, 0, 4, 4, 24, 14, 6, 2, 31, 10, 24, 18, 8, 0, 2, 14, 4, 4, 24, 16, 6, 2, 38})
	f.Fuzz(func(_ *testing.T, version int, data []byte) {
		for place := range min(len(data), 8) {
			_, _ = versions[uint(version)%uint(len(versions))].translations.frames(data, int64(place))
		}
	})
}

func FuzzPositions(f *testing.F) {
	f.Add([]byte{2, 44, 11, 80, 8, 39}, []byte{4, 5, 1, 0, 5, 1, 1, 4}, uint64(17))
	f.Fuzz(func(_ *testing.T, table, bytecode []byte, at uint64) {
		_, _ = (sourcePositions{table}).position(int64(at))
		_, _ = baselineOffset(table, bytecode, versions[0].bytecodes, at)
	})
}
