// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/dw"
)

// x86Initial is what compilers write for x86-64: def_cfa 7, 8; offset 16, 1.
var x86Initial = []byte{0x0c, 7, 8, 0x90, 1}

func le32(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

func TestInstructions(t *testing.T) {
	max64 := uleb(math.MaxUint64)
	tests := []struct {
		name         string
		instructions []byte
		cie          cieSpec // initial instructions: x86Initial when nil
		debug        bool
		big          bool
		want         []string
		err          error
		errOffset    int // in the instructions; -1: not looked at
	}{
		{name: "no instructions give the row of the CIE",
			want: []string{"1000-1100 7+8 16:c-8"}},
		{name: "nop does nothing", instructions: []byte{0, 0, 0x43, 0},
			want: []string{"1000-1003 7+8 16:c-8", "1003-1100 7+8 16:c-8"}},
		{name: "set_loc", instructions: cat(1, binary.LittleEndian.AppendUint64(nil, 0x1010), 0x0e, 16),
			want: []string{"1000-1010 7+8 16:c-8", "1010-1100 7+16 16:c-8"}},
		{name: "set_loc in the CIE's encoding, relative to itself", cie: cieSpec{augmentation: "zR", data: []byte{0x1b}, encoding: 0x1b},
			// The operand is at 0x2000 + CIE 0x18 + FDE's head 17 + 1.
			instructions: cat(1, le32(0x1010-(0x2000+0x18+17+1)), 0x0e, 16),
			want:         []string{"1000-1010 7+8 16:c-8", "1010-1100 7+16 16:c-8"}},
		{name: "set_loc behind a segment selector", debug: true, cie: cieSpec{version: 4, segmentSize: 2},
			instructions: cat(1, 0, 0, binary.LittleEndian.AppendUint64(nil, 0x1010), 0x0e, 16),
			want:         []string{"1000-1010 7+8 16:c-8", "1010-1100 7+16 16:c-8"}},
		{name: "set_loc backwards", instructions: cat(0x42, 1, binary.LittleEndian.AppendUint64(nil, 0x1001)),
			want: []string{"1000-1002 7+8 16:c-8"}, err: ErrBackwards, errOffset: 1},
		{name: "set_loc truncated", instructions: []byte{1, 2, 3, 4, 5}, err: ErrTruncated},
		{name: "set_loc forward to the same place is one row", instructions: cat(1, binary.LittleEndian.AppendUint64(nil, 0x1000), 0x0e, 16),
			want: []string{"1000-1100 7+16 16:c-8"}},
		{name: "advance_loc", instructions: []byte{0x41, 0x0e, 16, 0x7f, 0x0e, 24},
			want: []string{"1000-1001 7+8 16:c-8", "1001-1040 7+16 16:c-8", "1040-1100 7+24 16:c-8"}},
		{name: "advance_loc1", instructions: []byte{2, 0x80, 0x0e, 16},
			want: []string{"1000-1080 7+8 16:c-8", "1080-1100 7+16 16:c-8"}},
		{name: "advance_loc2", instructions: []byte{3, 0x80, 0, 0x0e, 16},
			want: []string{"1000-1080 7+8 16:c-8", "1080-1100 7+16 16:c-8"}},
		{name: "advance_loc2, big-endian", big: true, instructions: []byte{3, 0, 0x80, 0x0e, 16},
			want: []string{"1000-1080 7+8 16:c-8", "1080-1100 7+16 16:c-8"}},
		{name: "advance_loc4", instructions: []byte{4, 0x80, 0, 0, 0, 0x0e, 16},
			want: []string{"1000-1080 7+8 16:c-8", "1080-1100 7+16 16:c-8"}},
		{name: "MIPS_advance_loc8", instructions: []byte{0x1d, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16},
			want: []string{"1000-1080 7+8 16:c-8", "1080-1100 7+16 16:c-8"}},
		{name: "advance in code units", cie: cieSpec{code: 4}, instructions: []byte{0x44, 0x0e, 16, 2, 4, 0x0e, 24},
			want: []string{"1000-1010 7+8 16:c-8", "1010-1020 7+16 16:c-8", "1020-1100 7+24 16:c-8"}},
		{name: "advance by nothing is one row", instructions: []byte{0x0e, 16, 0x40, 0x0e, 24, 2, 0, 0x0e, 32},
			want: []string{"1000-1100 7+32 16:c-8"}},
		{name: "advance to the end gives no row there", instructions: []byte{2, 0xff, 0x41, 0x0e, 24},
			want: []string{"1000-10ff 7+8 16:c-8", "10ff-1100 7+8 16:c-8"}},
		{name: "advance past the end is cut", instructions: []byte{3, 0, 2, 0x0e, 24, 0x41, 0x3f},
			want: []string{"1000-1100 7+8 16:c-8"}},
		{name: "advance wraps around", instructions: cat(0x41, 0x1d, "\xff\xff\xff\xff\xff\xff\xff\xff"),
			want: []string{"1000-1001 7+8 16:c-8"}, err: ErrOverflow, errOffset: 1},
		{name: "advance in units that overflow", cie: cieSpec{code: 1 << 60}, instructions: []byte{0x50}, err: ErrOverflow},
		{name: "advance with factor 0", cie: cieSpec{raw: cat(0, 0x78, 16, x86Initial)}, instructions: []byte{0x41}, err: ErrCodeAlignment},
		{name: "advance truncated", instructions: []byte{0x41, 4, 1, 2},
			want: []string{"1000-1001 7+8 16:c-8"}, err: ErrTruncated, errOffset: 1},

		{name: "def_cfa", instructions: cat(0x0c, 6, uleb(300)), want: []string{"1000-1100 6+300 16:c-8"}},
		{name: "def_cfa offset too large", instructions: cat(0x0c, 6, max64), err: ErrOverflow},
		{name: "def_cfa_sf", instructions: cat(0x12, 6, sleb(-2)), want: []string{"1000-1100 6+16 16:c-8"}},
		{name: "def_cfa_sf overflows", instructions: cat(0x12, 6, sleb(math.MinInt64)), err: ErrOverflow},
		{name: "def_cfa_register", instructions: cat(0x0d, uleb(200)), want: []string{"1000-1100 200+8 16:c-8"}},
		{name: "def_cfa_register without a CFA", cie: cieSpec{instructions: []byte{0}}, instructions: []byte{0x0d, 6}, err: ErrCFARule},
		{name: "def_cfa_register without a CFA in a CIE, as of MIPS, has offset 0", cie: cieSpec{instructions: []byte{0x0d, 29}}, want: []string{"1000-1100 29+0"}},
		{name: "def_cfa_register after an expression", instructions: []byte{0x0f, 1, 0x9c, 0x0d, 6}, err: ErrCFARule, errOffset: 3},
		{name: "def_cfa_register keeps the address space", instructions: []byte{0x30, 6, 4, 5, 0x0d, 7}, want: []string{"1000-1100 7+4@5 16:c-8"}},
		{name: "def_cfa_offset", instructions: cat(0x0e, uleb(200)), want: []string{"1000-1100 7+200 16:c-8"}},
		{name: "def_cfa_offset without a CFA", cie: cieSpec{instructions: []byte{0}}, instructions: []byte{0x0e, 6}, err: ErrCFARule},
		{name: "def_cfa_offset keeps the address space", instructions: []byte{0x30, 6, 4, 5, 0x0e, 9}, want: []string{"1000-1100 6+9@5 16:c-8"}},
		{name: "def_cfa_offset_sf", instructions: cat(0x13, sleb(3)), want: []string{"1000-1100 7-24 16:c-8"}},
		{name: "def_cfa_offset_sf without a CFA", cie: cieSpec{instructions: []byte{0}}, instructions: []byte{0x13, 6}, err: ErrCFARule},
		{name: "def_cfa puts the default address space back", instructions: []byte{0x30, 6, 4, 5, 0x0c, 7, 8}, want: []string{"1000-1100 7+8 16:c-8"}},
		{name: "def_cfa_expression", instructions: []byte{0x0f, 2, 0x77, 8}, want: []string{"1000-1100 expr:7708 16:c-8"}},
		{name: "def_cfa_expression too long", instructions: []byte{0x0f, 20, 0x77, 8}, err: ErrTruncated},
		{name: "def_cfa_expression of no length", instructions: []byte{0x0f}, err: ErrTruncated},
		{name: "LLVM_def_aspace_cfa", instructions: cat(0x30, uleb(64), 0, 6), want: []string{"1000-1100 64+0@6 16:c-8"}},
		{name: "LLVM_def_aspace_cfa_sf", instructions: cat(0x31, uleb(64), sleb(-2), 6), want: []string{"1000-1100 64+16@6 16:c-8"}},
		{name: "LLVM_def_aspace_cfa truncated", instructions: []byte{0x30, 6, 0x80}, err: ErrTruncated},

		{name: "undefined", instructions: []byte{7, 16}, want: []string{"1000-1100 7+8 16:u"}},
		{name: "same_value", instructions: []byte{8, 16}, want: []string{"1000-1100 7+8 16:s"}},
		{name: "offset", instructions: []byte{0x83, 2}, want: []string{"1000-1100 7+8 3:c-16 16:c-8"}},
		{name: "offset of the largest register", instructions: []byte{0xbf, 2}, want: []string{"1000-1100 7+8 16:c-8 63:c-16"}},
		{name: "offset overflows", instructions: cat(0x83, uleb(1<<61)), err: ErrOverflow},
		{name: "offset that has no sign", cie: cieSpec{factor: -1}, instructions: cat(0x83, max64), err: ErrOverflow},
		{name: "offset_extended", instructions: cat(5, uleb(1000), uleb(200)), want: []string{"1000-1100 7+8 16:c-8 1000:c-1600"}},
		{name: "offset_extended_sf", instructions: cat(0x11, 3, sleb(-2)), want: []string{"1000-1100 7+8 3:c+16 16:c-8"}},
		{name: "GNU_negative_offset_extended", instructions: cat(0x2f, 3, 2), want: []string{"1000-1100 7+8 3:c+16 16:c-8"}},
		{name: "val_offset", instructions: []byte{0x14, 7, 0, 0x14, 3, 2}, want: []string{"1000-1100 7+8 3:v-16 7:v+0 16:c-8"}},
		{name: "val_offset_sf", instructions: cat(0x15, 3, sleb(-2)), want: []string{"1000-1100 7+8 3:v+16 16:c-8"}},
		{name: "register", instructions: cat(9, 16, uleb(300)), want: []string{"1000-1100 7+8 16:r300"}},
		{name: "expression", instructions: []byte{0x10, 3, 2, 0x77, 8}, want: []string{"1000-1100 7+8 3:expr:7708 16:c-8"}},
		{name: "expression that is empty", instructions: []byte{0x10, 3, 0}, want: []string{"1000-1100 7+8 3:expr: 16:c-8"}},
		{name: "val_expression", instructions: []byte{0x16, 3, 2, 0x77, 8}, want: []string{"1000-1100 7+8 3:valexpr:7708 16:c-8"}},
		{name: "expression too long", instructions: cat(0x10, 3, max64, 0), err: ErrTruncated},
		{name: "restore", instructions: []byte{7, 16, 0x41, 0xd0}, want: []string{"1000-1001 7+8 16:u", "1001-1100 7+8 16:c-8"}},
		{name: "restore of what the CIE does not mention", instructions: []byte{0x83, 2, 0x86, 3, 0x41, 0xc3, 0xc5},
			want: []string{"1000-1001 7+8 3:c-16 6:c-24 16:c-8", "1001-1100 7+8 6:c-24 16:c-8"}},
		{name: "restore_extended", instructions: []byte{7, 16, 0x41, 6, 16}, want: []string{"1000-1001 7+8 16:u", "1001-1100 7+8 16:c-8"}},
		{name: "columns are sorted", instructions: []byte{0x8f, 2, 0x83, 3, 0x8c, 4, 0x86, 5},
			want: []string{"1000-1100 7+8 3:c-24 6:c-40 12:c-32 15:c-16 16:c-8"}},
		{name: "column numbers of 64 bits", instructions: cat(7, max64), want: []string{"1000-1100 7+8 16:c-8 18446744073709551615:u"}},
		{name: "column number past 64 bits", instructions: cat(7, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), err: ErrLEB128},

		{name: "remember_state and restore_state", instructions: []byte{0x83, 2, 0x0a, 0x41, 0x0c, 6, 16, 7, 3, 0x86, 3, 0x41, 0x0b},
			want: []string{"1000-1001 7+8 3:c-16 16:c-8", "1001-1002 6+16 3:u 6:c-24 16:c-8", "1002-1100 7+8 3:c-16 16:c-8"}},
		{name: "restore_state without a change between restores the CFA", instructions: []byte{0x83, 2, 0x0a, 0x41, 0x0e, 24, 0x41, 0x0b},
			want: []string{"1000-1001 7+8 3:c-16 16:c-8", "1001-1002 7+24 3:c-16 16:c-8", "1002-1100 7+8 3:c-16 16:c-8"}},
		{name: "nested states, of which the inner one is restored before a rule changes",
			instructions: []byte{0x83, 2, 0x0a, 0x0a, 0x0b, 0x0a, 0x41, 0x86, 3, 0x41, 0x0b, 0x41, 0x83, 5, 0x41, 0x0b},
			want: []string{"1000-1001 7+8 3:c-16 16:c-8", "1001-1002 7+8 3:c-16 6:c-24 16:c-8", "1002-1003 7+8 3:c-16 16:c-8",
				"1003-1004 7+8 3:c-40 16:c-8", "1004-1100 7+8 3:c-16 16:c-8"}},
		{name: "restore_state after restore of a column", instructions: []byte{0x83, 2, 0x0a, 0x41, 0xc3, 0x41, 0x0b, 0x86, 3},
			want: []string{"1000-1001 7+8 3:c-16 16:c-8", "1001-1002 7+8 16:c-8", "1002-1100 7+8 3:c-16 6:c-24 16:c-8"}},
		{name: "states nest", instructions: []byte{0x0a, 0x0e, 16, 0x0a, 0x0e, 24, 0x41, 0x0b, 0x41, 0x0b},
			want: []string{"1000-1001 7+24 16:c-8", "1001-1002 7+16 16:c-8", "1002-1100 7+8 16:c-8"}},
		{name: "restore_state restores an expression", instructions: []byte{0x0f, 1, 0x50, 0x0a, 0x41, 0x0c, 6, 16, 0x41, 0x0b},
			want: []string{"1000-1001 expr:50 16:c-8", "1001-1002 6+16 16:c-8", "1002-1100 expr:50 16:c-8"}},
		{name: "restore_state without a state", instructions: []byte{0x0a, 0x0b, 0x0b}, err: ErrNoState, errOffset: 2},
		{name: "a state of the CIE is not the FDE's", cie: cieSpec{instructions: cat(x86Initial, 0x0a)}, instructions: []byte{0x0b}, err: ErrNoState},

		{name: "GNU_args_size", instructions: cat(0x2e, uleb(400)), want: []string{"1000-1100 7+8 16:c-8"}},
		{name: "GNU_window_save", instructions: []byte{0x41, 0x2d, 0x41, 0x0a, 0x2d, 0x41, 0x0b},
			want: []string{"1000-1001 7+8 16:c-8", "1001-1002 7+8 16:c-8 window", "1002-1003 7+8 16:c-8", "1003-1100 7+8 16:c-8 window"}},
		{name: "AARCH64_negate_ra_state_with_pc", instructions: []byte{0x41, 0x2c, 0x41, 0x2d},
			want: []string{"1000-1001 7+8 16:c-8", "1001-1002 7+8 16:c-8 window", "1002-1100 7+8 16:c-8"}},
		{name: "unknown instruction", instructions: []byte{0x41, 0x3f},
			want: []string{"1000-1001 7+8 16:c-8"}, err: ErrInstruction, errOffset: 1},

		{name: "an FDE that defines nothing has no CFA", cie: cieSpec{instructions: []byte{0}}, want: []string{"1000-1100 none"}},
		{name: "signal frame", cie: cieSpec{augmentation: "zS"}, want: []string{"1000-1100 7+8 16:c-8 signal"}},
		{name: "advance in a CIE", cie: cieSpec{instructions: []byte{0x41}}, err: ErrInitialInstruction, errOffset: -1},
		{name: "set_loc in a CIE", cie: cieSpec{instructions: cat(1, make([]byte, 8))}, err: ErrInitialInstruction, errOffset: -1},
		{name: "restore in a CIE", cie: cieSpec{instructions: []byte{0xc3}}, err: ErrInitialInstruction, errOffset: -1},
		{name: "unknown instruction in a CIE", cie: cieSpec{instructions: []byte{0x3f}}, err: ErrInstruction, errOffset: -1},
		{name: "unexpected augmentation", debug: true, cie: cieSpec{augmentation: "armcc+"}, err: ErrAugmentation, errOffset: -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := ehFrame()
			if tt.debug {
				b = debugFrame()
			}
			if tt.big {
				b.Order = binary.BigEndian
			}
			c := tt.cie
			if c.instructions == nil {
				c.instructions = x86Initial
			}
			cie := b.cie(c)
			b.unpadded = true
			b.fde(cie, c, fdeSpec{start: 0x1000, size: 0x100, instructions: tt.instructions})
			var got []string
			f, err := b.table(t).FDE(0x1000)
			if err == nil {
				got, err = rows(f)
			}
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if tt.err == nil || tt.errOffset < 0 {
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Section != b.Name || e.Offset != uint64(f.pos+tt.errOffset) {
				t.Errorf("error %v, want one at %#x of %s", err, f.pos+tt.errOffset, b.Name)
			}
		})
	}
}

// Every known instruction has a row in TestInstructions' documents: here, that
// the table has no hole and no surplus.
func TestOpcodesAreThoseOfTheDocuments(t *testing.T) {
	known := map[byte]bool{0x1d: true, 0x2c: true, 0x2d: true, 0x2e: true, 0x2f: true, 0x30: true, 0x31: true}
	for code := range byte(0x17) {
		known[code] = true
	}
	for code := 0x40; code < 0x100; code++ {
		known[byte(code)] = true
	}
	for code := range 0x100 {
		op := opcodes[code]
		if (op.apply != nil) != known[byte(code)] || (dw.CFAName(byte(code)) != "") != known[byte(code)] {
			t.Errorf("%#02x: %q, want known %t", code, dw.CFAName(byte(code)), known[byte(code)])
		}
	}
}

func TestLimitsOfAnFDE(t *testing.T) {
	var columns, backwards []byte
	for i := range uint64(maxColumns + 1) {
		columns = cat(columns, 7, uleb(i))
		backwards = cat(backwards, 7, uleb(maxColumns-i))
	}
	few := columns[:256+3*2000]
	var states []byte
	for range 20000 {
		states = append(states, 0x0a, 8, 1, 0x0b)
	}
	tests := []struct {
		name         string
		instructions []byte
		err          error
	}{
		{"columns", columns, ErrLimit},
		{"columns, last first", backwards, ErrLimit},
		{"remembered states", []byte(strings.Repeat("\x0a", maxRemembered+1)), ErrLimit},
		{"rules in remembered states", cat(few, strings.Repeat("\x0a", 50), 8, 1), ErrLimit},
		{"rules in remembered states that are not needed", cat(few, strings.Repeat("\x0a", 50)), nil},
		{"rules moved", cat(columns[:256+3*6000], states), ErrLimit},
		{"1024 states are enough", []byte(strings.Repeat("\x0a", maxRemembered)), nil},
		{"8192 columns are enough", columns[:len(columns)-3], nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := ehFrame()
			b.fde(b.cie(cieSpec{instructions: []byte{0x0c, 7, 8}}), cieSpec{}, fdeSpec{start: 0x1000, size: 0x100, instructions: tt.instructions})
			f, err := b.table(t).FDE(0x1000)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rows(f); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
		})
	}
	t.Run("initial instructions", func(t *testing.T) {
		b := ehFrame()
		b.fde(b.cie(cieSpec{instructions: make([]byte, maxInitial+8)}), cieSpec{}, fdeSpec{start: 0x1000, size: 0x100})
		f, err := b.table(t).FDE(0x1000)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rows(f); !errors.Is(err, ErrLimit) {
			t.Errorf("error %v, want %v", err, ErrLimit)
		}
	})
}

func TestAdvancePastTheLastAddressIsAnError(t *testing.T) {
	for _, advance := range [][]byte{{0x7f}, {2, 0x3f}, {3, 0x3f, 0}, {4, 0x3f, 0, 0, 0}} {
		b := ehFrame()
		b.fde(b.cie(cieSpec{instructions: x86Initial}), cieSpec{}, fdeSpec{start: ^uint64(0) - 0x20, size: 0x10, instructions: advance})
		f, err := b.table(t).FDE(^uint64(0) - 0x20)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rows(f); !errors.Is(err, ErrOverflow) {
			t.Errorf("% x: %q, %v, want %v", advance, got, err, ErrOverflow)
		}
	}
}

// A machine that waits for the next FDE holds nothing of the last one's file.
func TestMachinesKeepNothingOfAFile(t *testing.T) {
	for _, instructions := range [][]byte{
		nil, // only the CIE has an expression
		{0x0f, 2, 0x77, 8, 0x10, 3, 1, 0x50, 0x0a, 0x16, 5, 1, 0x50, 0x41, 0x0b, 0x0a, 0x07, 3},
	} {
		b := ehFrame()
		c := cieSpec{instructions: cat(x86Initial, 0x10, 4, 1, 0x50)}
		b.fde(b.cie(c), c, fdeSpec{start: 0x1000, size: 0x100, instructions: instructions})
		f, err := b.table(t).FDE(0x1000)
		if err != nil {
			t.Fatal(err)
		}
		m := new(machine)
		m.row = &m.own
		if _, err := m.stream(f, func(*Row) bool { return true }); err != nil {
			t.Fatal(err)
		}
		m.free()
		for _, r := range slices.Concat(m.own.Rules[:cap(m.own.Rules)], m.savedRules[:cap(m.savedRules)]) {
			if r.Rule.Expr != nil {
				t.Errorf("a rule of column %d is kept", r.Column)
			}
		}
		for _, s := range m.stack[:cap(m.stack)] {
			if s.cfa.Expr != nil {
				t.Error("a CFA is kept")
			}
		}
		if m.own.CFA.Expr != nil || m.operands.expr != nil || m.r.data != nil || m.t != nil || m.cie != nil || m.initial != nil {
			t.Errorf("%+v", m)
		}
	}
}
