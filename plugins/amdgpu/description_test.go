// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

func TestArchitecture(t *testing.T) {
	// s_setpc_b64 s[30:31], after two that set a register.
	code := []byte{0x80, 0x00, 0x82, 0xbe, 0x81, 0x00, 0x83, 0xbe, 0x1e, 0x1d, 0x80, 0xbe}
	archtest.Test(t, New(), archtest.Options{Code: code})
}

func TestDescriptionIsWhatDescribeAnswers(t *testing.T) {
	d, err := New().Describe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Description(), d); diff != "" {
		t.Error(diff)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}

// guideRegisters is the guide's table "AMDGPU DWARF Register Mapping", all of
// it: bits of 0 are the reserved numbers.
var guideRegisters = []struct {
	first, last uint32
	name        string // of the guide; its number counts up
	index       int
	bits, wave  uint32
}{
	{0, 0, "PC_32", -1, 32, 0},
	{1, 1, "EXEC_MASK_32", -1, 32, 32},
	{2, 15, "", 0, 0, 0},
	{16, 16, "PC_64", -1, 64, 0},
	{17, 17, "EXEC_MASK_64", -1, 64, 64},
	{18, 31, "", 0, 0, 0},
	{32, 95, "SGPR", 0, 32, 0},
	{96, 127, "", 0, 0, 0},
	{128, 128, "STATUS", -1, 32, 0},
	{129, 511, "", 0, 0, 0},
	{512, 512, "VCC_32", -1, 32, 32},
	{513, 767, "", 0, 0, 0},
	{768, 768, "VCC_64", -1, 64, 64},
	{769, 1023, "", 0, 0, 0},
	{1024, 1087, "", 0, 0, 0},
	{1088, 1129, "SGPR", 64, 32, 0},
	{1130, 1535, "", 0, 0, 0},
	{1536, 2047, "VGPR", 0, 32 * 32, 32},
	{2048, 2303, "AGPR", 0, 32 * 32, 32},
	{2304, 2559, "", 0, 0, 0},
	{2560, 2815, "VGPR", 0, 64 * 32, 64},
	{2816, 3071, "", 0, 0, 0},
	{3072, 3327, "AGPR", 0, 64 * 32, 64},
	{3328, 3583, "", 0, 0, 0},
	{3584, 4095, "VGPR", 512, 32 * 32, 32},
	{4096, 5000, "", 0, 0, 0}, // past the table
}

func TestEveryNumberOfTheGuide(t *testing.T) {
	d := Description()
	next := uint32(0)
	for _, row := range guideRegisters {
		if row.first != next {
			t.Fatalf("row %d-%d: the row before ends at %d", row.first, row.last, next)
		}
		next = row.last + 1
		for number := row.first; number <= row.last; number++ {
			info, ok := d.Register(number)
			if ok != (row.bits != 0) {
				t.Errorf("%d: is a register: %v", number, ok)
			}
			if !ok {
				continue
			}
			name := row.name
			if row.index >= 0 {
				name += fmt.Sprint(row.index + int(number-row.first))
			}
			if info.Bits != row.bits || info.Lanes != row.wave || info.Name != name && info.Alias != name {
				t.Errorf("%d: %+v, want %s with %d bits in waves of %d", number, info, name, row.bits, row.wave)
			}
			// Of the wave size that has it, by each of its names, in any case.
			for _, wave := range []uint32{32, 64} {
				names := d.Names(wave)
				mine := row.wave == 0 || row.wave == wave
				for _, spelled := range []string{info.Name, info.Alias, strings.ToLower(name), strings.ToUpper(name)} {
					if got, ok := names.Register(spelled); spelled != "" && mine && (!ok || got != uint64(number)) {
						t.Errorf("wave%d: %q is %d %v, want %d", wave, spelled, got, ok, number)
					}
				}
				if printed, ok := names.RegisterName(uint64(number)); ok != mine || ok && printed != info.Name {
					t.Errorf("wave%d: %d is printed as %q %v, want %q %v", wave, number, printed, ok, info.Name, mine)
				}
			}
		}
	}
}

func TestNamesResolveByWaveSize(t *testing.T) {
	for _, c := range []struct {
		name         string
		by32, by64   uint64
		none32, no64 bool
	}{
		{name: "v0", by32: 1536, by64: 2560},
		{name: "VGPR0", by32: 1536, by64: 2560},
		{name: "Vgpr255", by32: 1791, by64: 2815},
		{name: "v256", by32: 1792, no64: true},
		{name: "v511", by32: 2047, no64: true},
		{name: "v512", by32: 3584, no64: true},
		{name: "VGPR1023", by32: 4095, no64: true},
		{name: "v1024", none32: true, no64: true},
		{name: "a0", by32: 2048, by64: 3072},
		{name: "AGPR255", by32: 2303, by64: 3327},
		{name: "s3", by32: 35, by64: 35},
		{name: "SGPR63", by32: 95, by64: 95},
		{name: "s64", by32: 1088, by64: 1088},
		{name: "SGPR105", by32: 1129, by64: 1129},
		{name: "s106", none32: true, no64: true},
		{name: "exec", by32: 1, by64: 17},
		{name: "EXEC_MASK_32", by32: 1, no64: true},
		{name: "EXEC_MASK_64", none32: true, by64: 17},
		{name: "VCC", by32: 512, by64: 768},
		{name: "VCC_64", none32: true, by64: 768},
		{name: "PC", by32: 16, by64: 16},
		{name: "PC_64", by32: 16, by64: 16},
		{name: "PC_32", by32: 0, by64: 0},
		{name: "Status", by32: 128, by64: 128},
		{name: "v", none32: true, no64: true},
		{name: "v00", none32: true, no64: true},
		{name: "rax", none32: true, no64: true},
	} {
		d := Description()
		if n, ok := d.Names(32).Register(c.name); ok == c.none32 || n != c.by32 {
			t.Errorf("wave32: %s is %d %v, want %d", c.name, n, ok, c.by32)
		}
		if n, ok := d.Names(64).Register(c.name); ok == c.no64 || n != c.by64 {
			t.Errorf("wave64: %s is %d %v, want %d", c.name, n, ok, c.by64)
		}
	}
}

func TestTextOfExpressionsHasTheNamesOfTheWave(t *testing.T) {
	d := Description()
	expr := []byte{0x90, 0x80, 0x0c, 0x90, 0x80, 0x14} // regx 1536, regx 2560
	for lanes, want := range map[uint32]string{
		32: "DW_OP_regx VGPR0; DW_OP_regx 2560",
		64: "DW_OP_regx 1536; DW_OP_regx VGPR0",
		0:  "DW_OP_regx 1536; DW_OP_regx VGPR0",
	} {
		text := locexpr.FormatText(expr, locexpr.TextOptions{Names: d.Names(lanes)})
		if text != want {
			t.Errorf("wave%d: %q, want %q", lanes, text, want)
		}
		back, err := locexpr.Parse(text, locexpr.TextOptions{Names: d.Names(lanes)})
		if diff := cmp.Diff(expr, back); diff != "" || err != nil {
			t.Errorf("wave%d: %v\n%s", lanes, err, diff)
		}
	}
}

func TestAddressSpacesOfTheGuide(t *testing.T) {
	d := Description()
	names := d.Names(0)
	for _, c := range []struct {
		name   string
		number locexpr.AddressSpace
		bits   uint32
		scope  sdk.SpaceScope
	}{
		{"global", 0, 64, sdk.ProcessScope},
		{"none", 0, 64, sdk.ProcessScope},
		{"generic", 1, 64, sdk.LaneScope},
		{"region", 2, 32, sdk.AgentScope},
		{"local", 3, 32, sdk.GroupScope},
		{"private_lane", 5, 32, sdk.LaneScope},
		{"PRIVATE_WAVE", 6, 32, sdk.WaveScope},
	} {
		number, ok := names.Space(c.name)
		info, known := d.Space(number)
		if !ok || !known || number != c.number || info.Bits != c.bits || info.Scope != c.scope {
			t.Errorf("%s: %d %v, %+v", c.name, number, ok, info)
		}
	}
	if s, ok := d.Space(4); ok {
		t.Errorf("4, which is reserved, is %+v", s)
	}
}

func TestEveryColumnKeepsItsValueExceptTheStackPointer(t *testing.T) {
	d := Description()
	var columns int
	for _, row := range guideRegisters {
		if row.bits != 0 {
			columns += int(row.last - row.first + 1)
		}
	}
	if len(d.DefaultRules) != columns {
		t.Errorf("%d default rules, want %d", len(d.DefaultRules), columns)
	}
	for _, r := range d.DefaultRules {
		want := cfi.SameValue
		if r.Column == 64 { // SGPR32
			want = cfi.ValOffset
		}
		if r.Rule.Kind != want || r.Rule.Offset != 0 {
			t.Errorf("column %d: %+v", r.Column, r.Rule)
		}
	}
	if d.PC != 16 || d.ReturnAddress != 16 || d.SP != 64 || d.FP != 65 || d.CallDistance != 1 || d.AddressBits != 64 {
		t.Errorf("PC %d, return address %d, SP %d, FP %d, call distance %d, %d address bits",
			d.PC, d.ReturnAddress, d.SP, d.FP, d.CallDistance, d.AddressBits)
	}
}

// The engine finds the execution mask of a wave by its class and size.
func TestOnlyEXECIsAnExecutionMask(t *testing.T) {
	for lanes, want := range map[uint32]uint32{wave32: exec32, wave64: exec64} {
		var got []uint32
		for _, r := range Description().Registers {
			if r.Class == sdk.Mask && r.Lanes == lanes && r.Bits == lanes && r.Count == 1 {
				got = append(got, r.First)
			}
		}
		if !slices.Equal(got, []uint32{want}) {
			t.Errorf("%d lanes: registers %v, want %d", lanes, got, want)
		}
	}
}
