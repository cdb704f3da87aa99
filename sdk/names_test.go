// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/locexpr"
)

func TestNamesDependOnTheLanesOfTheThread(t *testing.T) {
	d := testDescription()
	for _, c := range []struct {
		lanes  uint32
		name   string
		number uint64
		ok     bool
	}{
		{0, "mask", 256, true}, {4, "MASK", 256, true}, {8, "mask", 258, true}, {8, "pair", 259, true},
		{4, "mask_4", 256, true}, {8, "mask_4", 0, false}, {0, "mask_8", 258, true}, {4, "pair_8", 0, false},
		{16, "mask", 0, false},
		// Ranges for any number of lanes are everyone's; of equal names the first.
		{0, "r1", 1, true}, {4, "r1", 1, true}, {8, "v0.x", 32, true},
		// FirstIndex
		{4, "VGPR9", 320, true}, {4, "vgpr11", 322, true}, {4, "w10", 321, true}, {0, "W11", 322, true},
		{4, "vgpr8", 0, false}, {4, "vgpr12", 0, false}, {4, "vgpr0", 0, false}, {4, "vgpr09", 0, false}, {4, "w4294967305", 0, false},
		{4, "", 0, false}, {4, "w", 0, false},
	} {
		number, ok := d.Names(c.lanes).Register(c.name)
		if number != c.number || ok != c.ok {
			t.Errorf("Names(%d).Register(%q): %d %v, want %d %v", c.lanes, c.name, number, ok, c.number, c.ok)
		}
	}
}

func TestRegistersOfOtherLaneCountsHaveNoName(t *testing.T) {
	d := testDescription()
	for _, c := range []struct {
		lanes  uint32
		number uint64
		name   string
		ok     bool
	}{
		{0, 256, "mask", true}, {0, 258, "mask", false}, // the name is that of 256
		{4, 256, "mask", true}, {4, 258, "", false}, {8, 256, "", false}, {8, 259, "pair", true},
		{4, 322, "VGPR11", true}, {4, 64, "v0.x", false}, {4, 8, "SP", true},
		{4, 10, "", false}, {4, math.MaxUint64, "", false}, {4, 1<<32 + 256, "", false},
	} {
		name, ok := d.Names(c.lanes).RegisterName(c.number)
		if ok != c.ok || ok && name != c.name {
			t.Errorf("Names(%d).RegisterName(%d): %q %v, want %q %v", c.lanes, c.number, name, ok, c.name, c.ok)
		}
	}
	if info, _ := d.Register(322); info != (RegisterInfo{Number: 322, Name: "VGPR11", Alias: "w11", Bits: 64, Class: Vector}) {
		t.Errorf("Register(322): %+v", info)
	}
	if info, _ := d.Register(259); info.Alias != "pair_8" || info.Lanes != 8 {
		t.Errorf("Register(259): %+v", info)
	}
}

// Whatever the lane count, a name that is printed leads back to its register.
func TestNamesLeadBack(t *testing.T) {
	d := testDescription()
	for _, lanes := range []uint32{0, 1, 4, 8, 64} {
		names := d.Names(lanes)
		for number := range uint64(400) {
			name, ok := names.RegisterName(number)
			if !ok {
				continue
			}
			if back, ok := names.Register(name); !ok || back != number {
				t.Errorf("%d lanes: %d is %q, which is %d", lanes, number, name, back)
			}
		}
	}
}

func TestSpacesHaveNames(t *testing.T) {
	names := testDescription().Names(0)
	bare := (&Description{AddressBits: 32}).Names(0)
	for _, c := range []struct {
		names Names
		name  string
		space locexpr.AddressSpace
		ok    bool
	}{
		{names, "LOCAL", 3, true}, {names, "global", 0, true}, {names, "None", 0, true}, {names, "lane", 0, false},
		{bare, "global", 0, true}, {bare, "none", 0, true}, {bare, "local", 0, false}, {bare, "", 0, false},
	} {
		if space, ok := c.names.Space(c.name); space != c.space || ok != c.ok {
			t.Errorf("Space(%q): %d %v, want %d %v", c.name, space, ok, c.space, c.ok)
		}
	}
	if name, ok := names.SpaceName(3); name != "local" || !ok {
		t.Errorf("SpaceName(3): %q %v", name, ok)
	}
	if name, ok := bare.SpaceName(0); name != "global" || !ok {
		t.Errorf("SpaceName(0): %q %v", name, ok)
	}
	if name, ok := bare.SpaceName(3); ok {
		t.Errorf("SpaceName(3): %q", name)
	}
}

func TestProcessorsAreFoundByName(t *testing.T) {
	d := testDescription()
	for name, want := range map[string][]uint32{"": {4}, "chip1": {8, 4}, "CHIP1:fast+:small-": {8, 4}, "chip": nil, "chip12": nil} {
		p, ok := d.Processor(name)
		if diff := cmp.Diff(want, p.Lanes); diff != "" || ok != (want != nil) {
			t.Errorf("Processor(%q): %v %v", name, p, ok)
		}
	}
}

func TestProcessorsAreFoundByELFFlags(t *testing.T) {
	d := testDescription()
	for flags, want := range map[uint32]string{0x12: "chip1", 0x512: "chip1", 0x13: "", 0: ""} {
		if p, ok := d.ObjectProcessor(flags); p.Name != want || ok != (want != "") {
			t.Errorf("ObjectProcessor(%#x): %v %v", flags, p, ok)
		}
	}
}

// A description may name a dialect that is built in if it says the same, except
// those that are nobody's own.
func TestBuiltInDialectsAreDeclaredAsTheyAre(t *testing.T) {
	const op = "DW_OP_LLVM_offset"
	for _, builtIn := range locexpr.Dialects {
		_, e, ok := builtIn.Lookup(op)
		if !ok {
			continue
		}
		d := testDescription()
		d.Dialects[0] = Dialect{Name: builtIn.Name, Operations: []DialectOperation{{Opcode: e.Opcode, User: e.User, Name: op}}}
		own := builtIn != locexpr.Canonical
		if err := d.Validate(); (err == nil) != own {
			t.Errorf("%s as it is: %v", builtIn.Name, err)
		}
		d.Dialects[0].Operations = nil
		if table, err := d.Dialects[0].Table(); err != nil || table != builtIn || (d.Validate() == nil) != own {
			t.Errorf("%s by its name alone: %v %v %v", builtIn.Name, table, err, d.Validate())
		}
		d.Dialects[0].Operations = make([]DialectOperation, 1)
		d.Dialects[0].Operations[0] = DialectOperation{Opcode: 0xfa, Name: op}
		if err := d.Validate(); err == nil {
			t.Errorf("%s with an operation of its own: accepted", builtIn.Name)
		}
		d.Dialects[0].Operations[0] = DialectOperation{Opcode: e.Opcode, User: e.User, Name: "DW_OP_LLVM_bit_offset"}
		if err := d.Validate(); err == nil {
			t.Errorf("%s with another operation in its place: accepted", builtIn.Name)
		}
	}
}
