// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"errors"
	"testing"
)

// execute executes the text of an instruction in a wave of four lanes in use, of which the lanes of the mask
// execute.
func execute(text string, mask uint32, set func(s *State)) (*State, error) {
	s := &State{gen: 10, flat: true, flatScratch: scratchBase, Lanes: 32, Vector: make([]uint32, 512*32), Scratch: make([]byte, 4096), Local: make([]byte, 256), Memory: map[uint64]*[Page]byte{}}
	s.Scalar[Exec] = mask
	for lane := range 4 {
		s.Vector[1*32+lane] = uint32(10 * lane) //nolint:gosec // small
	}
	if set != nil {
		set(s)
	}
	ins, err := parse(text)
	if err != nil {
		return s, err
	}
	ins.next = 4
	s.code = &Code{instructions: map[uint64]*Instruction{0: ins}}
	s.PC = CodeBase
	return s, s.Step()
}

// TestInstructions executes instructions whose results are known.
func TestInstructions(t *testing.T) {
	scalar := func(register int) func(s *State) uint32 { return func(s *State) uint32 { return s.Scalar[register] } }
	lane := func(register, lane int) func(s *State) uint32 {
		return func(s *State) uint32 { return s.Vector[register*32+lane] }
	}
	condition := func(s *State) uint32 { return uint32(bit(s.scc)) } //nolint:gosec // 0 or 1
	for _, c := range []struct {
		text string
		get  func(s *State) uint32
		want uint32
	}{
		{"s_mov_b32 s4, 0x1234", scalar(4), 0x1234},
		{"s_mov_b64 s[4:5], -1", scalar(5), 0xffffffff},
		{"s_add_i32 s4, s2, -3", scalar(4), 4},
		{"s_add_u32 s4, s2, -7", condition, 1},
		{"s_lshl_b32 s4, s2, 4", scalar(4), 0x70},
		{"s_cmp_lt_i32 s2, 8", condition, 1},
		{"s_cmp_eq_u32 s2, 8", condition, 0},
		{"s_and_saveexec_b32 s4, s2", scalar(4), 0xb},
		{"s_and_saveexec_b32 s4, s2", scalar(Exec), 3},
		{"v_mov_b32_e32 v2, s2", lane(2, 0), 7},
		{"v_mov_b32_e32 v2, s2", lane(2, 2), 0}, // does not execute
		{"v_add_nc_u32_e32 v2, 5, v1", lane(2, 3), 35},
		{"v_lshlrev_b32_e32 v2, 2, v1", lane(2, 1), 40},
		{"v_readlane_b32 s4, v1, 2", scalar(4), 20},
		{"v_writelane_b32 v2, s2, 2", lane(2, 2), 7},
		{"v_cmp_gt_u32_e32 vcc_lo, 15, v1", scalar(VCC), 3},
		{"s_nop 0", scalar(2), 7},
	} {
		s, err := execute(c.text, 0xb, func(s *State) { s.Scalar[2] = 7 })
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := c.get(s); got != c.want || s.PC != CodeBase+4 || s.Steps != 1 {
			t.Errorf("%s gives %#x at %#x, expected %#x", c.text, got, s.PC, c.want)
		}
	}
}

// TestInstructionsThatAreNotKnown must not be executed as others: they are errors.
func TestInstructionsThatAreNotKnown(t *testing.T) {
	for _, text := range []string{"s_frobnicate_b32 s0, s1", "v_frobnicate_f32 v0, v1", "image_load v0, v1", "s_mov_b32 s0, s1, s2", "s_mov_b32 q7, 1"} {
		if _, err := execute(text, 1, nil); err == nil {
			t.Errorf("%s is executed", text)
		}
	}
}

// TestCallsAreSeen follows a call and its return.
func TestCallsAreSeen(t *testing.T) {
	var calls, returns []uint64
	watch := func(s *State) {
		s.OnCall = func(back uint64) error { calls = append(calls, back); return nil }
		s.OnReturn = func(target uint64) error { returns = append(returns, target); return nil }
		s.Scalar[4], s.Scalar[5] = 0x100, 1
	}
	s, err := execute("s_swappc_b64 s[30:31], s[4:5]", 1, watch)
	if err != nil || s.PC != 1<<32+0x100 || len(calls) != 1 || calls[0] != CodeBase+4 {
		t.Errorf("a call to %#x, seen as %#x: %v", s.PC, calls, err)
	}
	s, err = execute("s_setpc_b64 s[4:5]", 1, watch)
	if err != nil || s.PC != 1<<32+0x100 || len(returns) != 1 || returns[0] != s.PC {
		t.Errorf("a return to %#x, seen as %#x: %v", s.PC, returns, err)
	}
}

// TestMemoryOfLanes stores a word of each lane that executes in private memory, where the words of lanes alternate.
func TestMemoryOfLanes(t *testing.T) {
	s, err := execute("scratch_store_dword off, v1, s2 offset:4", 0xb, func(s *State) { s.Scalar[2] = 8 })
	if err != nil {
		t.Fatal(err)
	}
	for lane, want := range []byte{0, 10, 0, 30} {
		if got := s.Scratch[s.PrivateByte(lane, 12)]; got != want {
			t.Errorf("lane %d has %d, expected %d", lane, got, want)
		}
	}
	if _, err := execute("scratch_store_dword off, v1, s2", 1, func(s *State) { s.Scalar[2] = 1 << 20 }); !errors.Is(err, errAccess) {
		t.Errorf("a store beyond private memory: %v", err)
	}
}
