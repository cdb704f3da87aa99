// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// followed follows an assembled function of waves of 32 lanes, and calls each with
// the state before every instruction, by address.
func followed(t *testing.T, text string, each func(n int, s *codeState)) {
	t.Helper()
	f, data := followText(t, "gfx1030", "f:\n"+text)
	n := 0
	for pc := uint64(codeStart); pc < codeStart+uint64(len(data)); {
		b := f.Point(pc)
		if b == nil || !b.IsReached {
			t.Fatalf("nothing leads to %#x", pc)
		}
		err := f.replay(b, func(_ uint64, _ *isa.Inst, s *codeState) { each(n, s.clone()); n++ })
		if err != nil {
			t.Fatal(err)
		}
		pc = b.End
	}
}

// masksAt are the lanes of a place that hold masks.
func masksAt(s *codeState, p place) (lanes uint64) {
	v := s.at(p)
	for i := range v.lanes {
		if u := v.lanes[i].value(); u.hasColumn() {
			lanes |= 1 << v.lanes[i].lane
		}
	}
	return lanes
}

// TestMasksAreKeptWhileTheyAreRead steps through code that keeps two masks in lanes
// and moves them: each place forgets those that are not read from there later.
func TestMasksAreKeptWhileTheyAreRead(t *testing.T) {
	const v60, v61 = place(60), place(61)
	memory := private(0, 4)
	steps := []struct {
		text            string
		v60, v61, saved uint64 // lanes that hold masks after it
	}{
		{"s_mov_b32 s33, s32", 0, 0, 0},
		{"v_cmp_eq_u32_e64 s4, v0, v1", 0, 0, 0},
		{"s_and_b32 s4, s4, exec_lo", 0, 0, 0},
		{"v_writelane_b32 v60, s4, 0", 1, 0, 0},
		{"v_writelane_b32 v60, s4, 1", 3, 0, 0},
		{"v_writelane_b32 v60, s4, 2", 3, 0, 0}, // which nothing reads
		{"s_or_saveexec_b32 s41, -1", 3, 0, 0},
		{"buffer_store_dword v60, off, s[0:3], s33 offset:4", 1, 0, 2},
		{"v_readlane_b32 s6, v60, 0", 0, 0, 2},
		{"buffer_load_dword v61, off, s[0:3], s33 offset:4", 0, 2, 0},
		{"v_mov_b32_e32 v60, v61", 2, 0, 0},
		{"s_mov_b32 exec_lo, s41", 2, 0, 0},
		{"again: v_readlane_b32 s5, v60, 1", 2, 0, 0}, // and once more in the next round
		{"s_cmp_eq_u32 s7, s8", 2, 0, 0},
		{"s_cbranch_scc1 again", 2, 0, 0},
		{"s_nop 0", 2, 0, 0}, // what leaves the loop has it for nothing
		{"s_setpc_b64 s[30:31]", 2, 0, 0},
	}
	var text strings.Builder
	for _, s := range steps {
		text.WriteString(s.text + "\n")
	}
	followed(t, text.String(), func(n int, s *codeState) {
		if n == 0 {
			return
		}
		want := &steps[n-1]
		if a, b, c := masksAt(s, v60), masksAt(s, v61), masksAt(s, memory); a != want.v60 || b != want.v61 || c != want.saved {
			t.Errorf("after %q: masks in lanes %#b of v60, %#b of v61, %#b of memory; expected %#b, %#b, %#b",
				want.text, a, b, c, want.v60, want.v61, want.saved)
		}
	})
}

// TestConditionsThatArePastCostNothing follows thirty conditions, each of which
// keeps its mask in a lane that nothing writes again.
func TestConditionsThatArePastCostNothing(t *testing.T) {
	var text strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, `
	v_cmp_eq_u32_e64 s4, v0, v1
	s_mov_b32 s5, exec_lo
	s_and_b32 s4, s5, s4
	s_xor_b32 s5, s4, s5
	v_writelane_b32 v60, s5, %d
	s_mov_b32 exec_lo, s4
	s_cbranch_execz L%d
	v_add_nc_u32_e32 v0, v0, v1
L%d:	v_readlane_b32 s4, v60, %d
	s_or_b32 exec_lo, exec_lo, s4
`, i, i, i, i)
	}
	most, last := 0, scalar{}
	followed(t, text.String()+"\ts_setpc_b64 s[30:31]\n", func(_ int, s *codeState) {
		most, last = max(most, len(s.masks.tuples)), s.scalars[isa.ExecLo]
	})
	if most > 8 || last != entryMask {
		t.Errorf("%d tuples, and at the end EXEC is %+v; expected few, and %+v", most, last, entryMask)
	}
}

// TestUnionsAreOfFewMasks covers EXEC on entry with the two masks of many that do it
// together.
func TestUnionsAreOfFewMasks(t *testing.T) {
	// Columns 1 to 4 are a fourth each, 5 and 6 a half.
	m := masks{columns: 7, tuples: []uint64{0, 0b0100011, 0b0100101, 0b1001001, 0b1010001}}
	if got := m.union(0b1111110); len(got) != 2 || got[0] != 5 || got[1] != 6 {
		t.Errorf("the union of %d, expected 5 and 6", got)
	}
	if got := m.union(0b0111110); len(got) != 3 {
		t.Errorf("the union of %d, expected three", got)
	}
	if got := m.union(0b0011110 &^ 2); got != nil {
		t.Errorf("the union of %d, expected none", got)
	}
}
