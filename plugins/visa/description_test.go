// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

func TestArchitecture(t *testing.T) {
	archtest.Test(t, New(), archtest.Options{Code: make([]byte, 64)})
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

func TestWhatIsRecognised(t *testing.T) {
	machines := map[uint16]bool{}
	magics := map[string]bool{}
	for _, r := range Description().Recognises {
		if r.ELFMachine != 0 {
			machines[r.ELFMachine] = true
		} else {
			magics[fmt.Sprintf("% x", r.Magic)] = true
		}
	}
	if diff := cmp.Diff(map[uint16]bool{205: true, 182: true}, machines); diff != "" {
		t.Error(diff)
	}
	// Both are written as little-endian numbers.
	if diff := cmp.Diff(map[string]bool{"10 d0 ad de": true, "43 54 4e 49": true}, magics); diff != "" {
		t.Error(diff)
	}
}

// compilerRegisters is the numbering of Intel's graphics compiler, in order;
// bits of 0 are numbers that stand for nothing.
var compilerRegisters = []struct {
	first, last uint32
	name        string
	index       int // of the first one; -1: the name has none
	bits, grf32 uint32
}{
	{0, 0, "IP", -1, 32, 32},
	{1, 1, "EMask", -1, 32, 32},
	{2, 4, "", 0, 0, 0},
	{5, 5, "BTBase", -1, 64, 64},
	{6, 6, "ScratchBase", -1, 64, 64},
	{7, 7, "GenStateBase", -1, 64, 64},
	{8, 8, "SurfStateBase", -1, 64, 64},
	{9, 9, "BindlessSurf", -1, 64, 64},
	{10, 10, "BindlessSampler", -1, 64, 64},
	{11, 11, "ScratchBaseSlot1", -1, 64, 64},
	{12, 15, "", 0, 0, 0},
	{16, 271, "r", 0, 512, 256},
	{272, 272, "a", 0, 256, 256},
	{273, 287, "", 0, 0, 0},
	{288, 291, "f", 0, 32, 32},
	{292, 303, "", 0, 0, 0},
	{304, 313, "acc", 0, 512, 256},
	{314, 334, "", 0, 0, 0},
	{335, 342, "mme", 0, 512, 256},
	{343, 349, "", 0, 0, 0},
	{350, 605, "r", 256, 512, 256},
	{606, 1000, "", 0, 0, 0},
}

func TestEveryNumberOfTheCompiler(t *testing.T) {
	d := Description()
	narrow := bound(t, sdk.ThreadState{Processor: "tgllp"})
	wide := bound(t, sdk.ThreadState{Processor: "pvc"})
	next := uint32(0)
	for _, row := range compilerRegisters {
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
			if info.Name != name || info.Bits != row.bits {
				t.Errorf("%d: %+v, want %s with %d bits", number, info, name, row.bits)
			}
			if got := bitsOf(&wide, info); got != row.bits {
				t.Errorf("pvc: %s has %d bits, want %d", name, got, row.bits)
			}
			if got := bitsOf(&narrow, info); got != row.grf32 {
				t.Errorf("tgllp: %s has %d bits, want %d", name, got, row.grf32)
			}
			for _, lanes := range []uint32{0, 8, 16, 32} {
				names := d.Names(lanes)
				back, ok := names.Register(strings.ToUpper(name))
				if printed, known := names.RegisterName(uint64(number)); !ok || !known || back != uint64(number) || printed != name {
					t.Errorf("%d lanes: %d is %q, which is %d", lanes, number, printed, back)
				}
			}
		}
	}
}

// bitsOf is the size of a register in a thread.
func bitsOf(b *sdk.ThreadBinding, info sdk.RegisterInfo) uint32 {
	for _, w := range b.Widths {
		if info.Number-w.First < w.Count {
			return w.Bits
		}
	}
	return info.Bits
}

func TestAddressSpaces(t *testing.T) {
	d := Description()
	for _, c := range []struct {
		name   string
		number locexpr.AddressSpace
		bits   uint32
		scope  sdk.SpaceScope
	}{
		{"global", 0, 64, sdk.ProcessScope},
		{"none", 0, 64, sdk.ProcessScope},
		{"SLM", 1, 32, sdk.GroupScope},
		{"scratch", 9, 32, sdk.WaveScope},
	} {
		number, ok := d.Names(0).Space(c.name)
		info, known := d.Space(number)
		if !ok || !known || number != c.number || info.Bits != c.bits || info.Scope != c.scope {
			t.Errorf("%s: %d %v, %+v", c.name, number, ok, info)
		}
	}
}

func TestDefaultRulesClaimOnlyTheBases(t *testing.T) {
	rules := map[uint64]cfi.RuleKind{}
	for _, r := range Description().DefaultRules {
		rules[r.Column] = r.Rule.Kind
	}
	for _, row := range compilerRegisters {
		for number := row.first; number <= row.last && row.bits != 0; number++ {
			want := cfi.Undefined
			switch {
			case number == 0:
				want = cfi.Unspecified
			case number >= 5 && number <= 11:
				want = cfi.SameValue
			}
			if got := rules[uint64(number)]; got != want {
				t.Errorf("%s: %v, want %v", row.name, got, want)
			}
		}
	}
}
