// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// state makes registers; a value that is a number has as many bytes as the
// register.
func state(t *testing.T, lanes uint32, values map[string]uint64) sdk.Registers {
	t.Helper()
	d := Description()
	var r sdk.Registers
	for name, v := range values {
		info, ok := d.Names(lanes).RegisterInfo(name)
		if !ok {
			t.Fatalf("no register %s in waves of %d", name, lanes)
		}
		value := make([]byte, max(8, info.Bits/8))
		binary.LittleEndian.PutUint64(value, v)
		r.Set(info.Number, value[:info.Bits/8])
	}
	return r
}

// bound binds one thread and holds the answer to the engine's rules.
func bound(t interface {
	Helper()
	Fatal(...any)
}, s sdk.ThreadState) sdk.ThreadBinding {
	t.Helper()
	req := &sdk.BindThreadsRequest{Threads: []sdk.ThreadState{s}}
	a, err := New().BindThreads(context.Background(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	return a.Threads[0]
}

func TestWaveSize(t *testing.T) {
	none := map[string]uint64{"PC": 0x1000}
	with := func(names ...string) map[string]uint64 {
		m := map[string]uint64{"PC": 0x1000}
		for _, n := range names {
			m[n] = 1
		}
		return m
	}
	for _, c := range []struct {
		name      string
		processor string
		said      uint32 // by the target
		size      uint32 // that names of values are of
		values    map[string]uint64
		lanes     uint32
		problem   string
	}{
		{"gfx9 has 64 lanes", "gfx900", 0, 64, none, 64, ""},
		{"gfx9 has 64 lanes, whatever its features", "GFX90A:sramecc+:xnack-", 0, 64, none, 64, ""},
		{"gfx10 has 32 lanes", "gfx1030", 0, 64, none, 32, ""},
		{"gfx12 has 32 lanes", "gfx1200", 0, 64, none, 32, ""},
		{"gfx10 has 64 lanes where its vector registers have 2048 bits", "gfx1030", 0, 64, with("v0"), 64, ""},
		{"accumulation registers tell too", "", 0, 64, with("a7"), 64, ""},
		{"so does the second block of 32-lane registers", "", 0, 32, with("v777"), 32, ""},
		{"vector registers of 1024 bits", "gfx1100", 0, 32, with("v255"), 32, ""},
		{"an execution mask of 64 bits", "gfx1030", 0, 64, with("EXEC"), 64, ""},
		{"an execution mask of 32 bits, of no processor", "", 0, 32, with("EXEC"), 32, ""},
		{"VCC of 32 bits", "", 0, 32, with("VCC"), 32, ""},
		{"the target says 64", "gfx1030", 64, 32, with("v0"), 64, ""},
		{"the target says 32", "", 32, 64, none, 32, ""},
		{"of no processor", "", 0, 64, none, 64, ""},
		{"of an unknown processor", "r600", 0, 64, none, 64, ""},
		{"of a processor newer than the table", "gfx1310", 0, 64, none, 32, ""},
		{"of an older one", "gfx803", 0, 64, none, 64, ""},
		{"no gfx1", "gfx1", 0, 64, none, 64, ""},
		{"the target says 16", "", 16, 64, none, 0, "16 lanes (the target says so), expected 32 or 64"},
		{"the target says what the processor cannot", "gfx90a", 32, 64, none, 0, "those of gfx90a have 64"},
		{"registers that the processor has not", "gfx908", 0, 32, with("v0"), 0, "32 lanes (its registers are of that size), but those of gfx908"},
		{"gfx1250 has 32 lanes only", "gfx1250", 64, 64, none, 0, "those of gfx1250 have 32"},
		{"the target's word is a large number", "", math.MaxUint32, 64, none, 0, "expected 32 or 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bound(t, sdk.ThreadState{Registers: state(t, c.size, c.values), Processor: c.processor, Lanes: c.said})
			if b.Lanes != c.lanes || (b.Problem == "") != (c.problem == "") || !strings.Contains(b.Problem, c.problem) {
				t.Errorf("%d lanes, problem %q; want %d, %q", b.Lanes, b.Problem, c.lanes, c.problem)
			}
			if b.Problem == "" && b.PC != 0x1000 {
				t.Errorf("PC %#x", b.PC)
			}
		})
	}
}

func TestRegistersOfBothSizesProveNone(t *testing.T) {
	var r sdk.Registers
	r.Set(vgpr0w32, make([]byte, 128))
	r.Set(vgpr0w64, make([]byte, 256))
	r.Set(pc64, make([]byte, 8))
	for processor, want := range map[string]uint32{"gfx1030": 32, "gfx906": 64, "": 64} {
		if b := bound(t, sdk.ThreadState{Registers: r, Processor: processor}); b.Lanes != want {
			t.Errorf("%q: %d lanes, want %d", processor, b.Lanes, want)
		}
	}
	// A mask may still tell.
	r.Set(exec32, []byte{1, 0, 0, 0})
	if b := bound(t, sdk.ThreadState{Registers: r}); b.Lanes != 32 {
		t.Errorf("%d lanes with a mask of 32 bits", b.Lanes)
	}
	// A register without bytes is none.
	var empty sdk.Registers
	empty.Set(vgpr0w32, nil)
	empty.Set(pc64, make([]byte, 8))
	if b := bound(t, sdk.ThreadState{Registers: empty}); b.Lanes != 64 {
		t.Errorf("%d lanes by a register without bytes", b.Lanes)
	}
}

func TestWaveWithoutPC(t *testing.T) {
	b := bound(t, sdk.ThreadState{Processor: "gfx90a"})
	if b.Problem == "" || !strings.Contains(b.Problem, "PC") || b.Lanes != 64 {
		t.Errorf("%+v", b)
	}
}

func TestActiveLanesAreThoseOfEXEC(t *testing.T) {
	for _, c := range []struct {
		name    string
		lanes   uint32
		exec    map[uint32][]byte
		mask    []byte
		unknown bool
	}{
		{name: "wave64", lanes: 64, exec: map[uint32][]byte{17: {1, 2, 3, 4, 5, 6, 7, 0x80}}, mask: []byte{1, 2, 3, 4, 5, 6, 7, 0x80}},
		{name: "wave64, no lane", lanes: 64, exec: map[uint32][]byte{17: make([]byte, 8)}, mask: make([]byte, 8)},
		{name: "wave32", lanes: 32, exec: map[uint32][]byte{1: {0xff, 0, 0x0f, 0xf0}}, mask: []byte{0xff, 0, 0x0f, 0xf0}},
		{name: "wave32, no lane", lanes: 32, exec: map[uint32][]byte{1: make([]byte, 4)}, mask: make([]byte, 4)},
		{name: "wave32 in the 64-bit register", lanes: 32, exec: map[uint32][]byte{17: {1, 2, 3, 4, 5, 6, 7, 8}}, mask: []byte{1, 2, 3, 4}},
		{name: "its own register first", lanes: 32, exec: map[uint32][]byte{1: {9, 9, 9, 9}, 17: make([]byte, 8)}, mask: []byte{9, 9, 9, 9}},
		{name: "wave64 of which the low half is there", lanes: 64, exec: map[uint32][]byte{1: {1, 2, 3, 4}}, unknown: true},
		{name: "half a register", lanes: 64, exec: map[uint32][]byte{17: {1, 2, 3, 4}}, unknown: true},
		{name: "no mask", lanes: 64, unknown: true},
		{name: "no mask, wave32", lanes: 32, unknown: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r sdk.Registers
			r.Set(pc64, make([]byte, 8))
			for n, v := range c.exec {
				r.Set(n, v)
			}
			b := bound(t, sdk.ThreadState{Registers: r, Lanes: c.lanes})
			if diff := cmp.Diff(c.mask, b.ActiveLanes); diff != "" || b.ActiveUnknown != c.unknown {
				t.Errorf("unknown: %v\n%s", b.ActiveUnknown, diff)
			}
			if len(b.ActiveLanes) > 0 {
				b.ActiveLanes[0] ^= 0xff
				if again := bound(t, sdk.ThreadState{Registers: r, Lanes: c.lanes}); cmp.Equal(again.ActiveLanes, b.ActiveLanes) {
					t.Error("the mask is part of the request")
				}
			}
		})
	}
}

// reach follows one map, as the engine does.
func reach(b *sdk.ThreadBinding, space locexpr.AddressSpace, address uint64, lane int) (into locexpr.AddressSpace, at uint64, ok bool) {
	for _, m := range b.Maps {
		if m.Space != space {
			continue
		}
		for _, r := range m.Ranges {
			if address < r.Start || address-r.Start >= r.Size {
				continue
			}
			offset := address - r.Start
			if r.Kind == sdk.InterleavedMap {
				e := uint64(r.Element)
				offset = offset/e*r.Stride + uint64(lane)*e + offset%e
			}
			return r.Into, r.Base + offset, true
		}
	}
	return 0, 0, false
}

func TestPrivateMemoryOfLanesIsInterleaved(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := rapid.SampledFrom([]uint64{32, 64}).Draw(rt, "wave size")
		lane := rapid.Uint64Range(0, w-1).Draw(rt, "lane")
		a := rapid.Uint64Range(0, 1<<32/w-1).Draw(rt, "address")
		b := bound(rt, sdk.ThreadState{Lanes: uint32(w)})
		into, at, ok := reach(&b, 5, a, int(lane))
		want := a/4*w*4 + lane*4 + a%4
		if !ok || into != 6 || at != want || at >= 1<<32 {
			rt.Fatal(fmt.Sprintf("wave%d: address %#x of lane %d is %d:%#x %v, want 6:%#x", w, a, lane, into, at, ok, want))
		}
	})
	for _, w := range []uint32{32, 64} {
		b := bound(t, sdk.ThreadState{Lanes: w})
		if _, _, ok := reach(&b, 5, 1<<32/uint64(w), 0); ok {
			t.Errorf("wave%d: an address is mapped that would lie past the end of the wave's memory", w)
		}
	}
}

func TestPrivateMemoryOfTheWaveLiesWhereTheTargetSays(t *testing.T) {
	if b := bound(t, sdk.ThreadState{}); b.Maps == nil {
		t.Error("no maps")
	} else if _, _, ok := reach(&b, 6, 0, 0); ok {
		t.Error("private_wave is mapped although nobody said where it is")
	}
	for _, c := range []struct{ base, address, at uint64 }{
		{0x7f0000000000, 0, 0x7f0000000000},
		{0x7f0000001000, 0xffffffff, 0x7f0100000fff},
		{0, 5, 5},
		{math.MaxUint64 - 15, 15, math.MaxUint64},
		{math.MaxUint64, 0, math.MaxUint64},
	} {
		b := bound(t, sdk.ThreadState{Spaces: []sdk.SpaceBase{{Space: 6, Base: c.base}}})
		into, at, ok := reach(&b, 6, c.address, 0)
		if !ok || into != 0 || at != c.at {
			t.Errorf("base %#x: address %#x is %d:%#x %v, want 0:%#x", c.base, c.address, into, at, ok, c.at)
		}
		if _, _, ok := reach(&b, 6, math.MaxUint64-c.base+1, 0); ok && c.base > math.MaxUint32 && c.base > math.MaxUint64-1<<32 {
			t.Errorf("base %#x: an address past the end of global memory is mapped", c.base)
		}
	}
}

func TestGenericAddresses(t *testing.T) {
	const lds, scratch = 0x1000000000000, 0x2000000000000
	last := uint64(math.MaxUint64)
	top := last - 1<<32 + 1
	type base struct {
		space locexpr.AddressSpace
		at    uint64
	}
	for _, c := range []struct {
		name    string
		bases   []base
		address uint64
		into    locexpr.AddressSpace
		at      uint64
		none    bool
	}{
		{"no apertures: global", nil, 0, 0, 0, false},
		{"no apertures: global, in the middle", nil, 1 << 63, 0, 1 << 63, false},
		{"no apertures: global, before the middle", nil, 1<<63 - 1, 0, 1<<63 - 1, false},
		{"no apertures: global, to the end", nil, last, 0, last, false},
		{"local", []base{{3, lds}, {5, scratch}}, lds + 0x10, 3, 0x10, false},
		{"local, its end", []base{{3, lds}, {5, scratch}}, lds + 0xffffffff, 3, 0xffffffff, false},
		{"after local", []base{{3, lds}, {5, scratch}}, lds + 1<<32, 0, lds + 1<<32, false},
		{"before local", []base{{3, lds}, {5, scratch}}, lds - 1, 0, lds - 1, false},
		{"private", []base{{3, lds}, {5, scratch}}, scratch + 0x44, 5, 0x44, false},
		{"in any order", []base{{5, scratch}, {6, 0x7000}, {3, lds}}, lds, 3, 0, false},
		{"private below local", []base{{5, lds}, {3, scratch}}, lds + 1, 5, 1, false},
		{"after both", []base{{3, lds}, {5, scratch}}, last, 0, last, false},
		{"only local", []base{{3, lds}}, scratch, 0, scratch, false},
		{"only private", []base{{5, scratch}}, scratch + 8, 5, 8, false},
		{"at 0", []base{{3, 0}}, 7, 3, 7, false},
		{"after one at 0", []base{{3, 0}}, 1 << 32, 0, 1 << 32, false},
		{"side by side", []base{{3, 0}, {5, 1 << 32}}, 1<<32 + 7, 5, 7, false},
		{"at the end", []base{{5, top}}, last, 5, 0xffffffff, false},
		{"before one at the end", []base{{5, top}}, top - 1, 0, top - 1, false},
		{"past the end", []base{{5, top + 1}}, 0, 0, 0, true},
		{"overlapping", []base{{3, lds}, {5, lds + 1}}, lds, 0, 0, true},
		{"the same", []base{{3, lds}, {5, lds}}, 0, 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sdk.ThreadState
			for _, base := range c.bases {
				s.Spaces = append(s.Spaces, sdk.SpaceBase{Space: base.space, Base: base.at})
			}
			b := bound(t, s)
			into, at, ok := reach(&b, 1, c.address, 0)
			if ok == c.none || into != c.into || at != c.at {
				t.Errorf("%#x is %d:%#x %v, want %d:%#x", c.address, into, at, ok, c.into, c.at)
			}
		})
	}
}

// Whatever a target says, what is answered passes the engine's checks, and every
// generic address is in one range unless none is.
func TestWhateverATargetSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := sdk.ThreadState{Lanes: rapid.SampledFrom([]uint32{0, 32, 64}).Draw(rt, "lanes")}
		address := func(what string) uint64 {
			return rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 1<<33), rapid.Uint64Range(math.MaxUint64-1<<33, math.MaxUint64)).Draw(rt, what)
		}
		for range rapid.IntRange(0, 4).Draw(rt, "bases") {
			s.Spaces = append(s.Spaces, sdk.SpaceBase{
				Space: locexpr.AddressSpace(rapid.IntRange(0, 7).Draw(rt, "space")), Base: address("base"),
			})
		}
		s.Processor = rapid.SampledFrom([]string{"", "gfx90a", "gfx1030", "gfx1250", "gfx", ":"}).Draw(rt, "processor")
		for range rapid.IntRange(0, 6).Draw(rt, "registers") {
			number := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 20), rapid.Uint32Range(510, 4100)).Draw(rt, "register")
			s.Registers.Set(number, rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(rt, "value"))
		}
		b := bound(rt, s)
		at := address("address")
		for _, m := range b.Maps {
			if m.Space != 1 {
				continue
			}
			into, reached, ok := reach(&b, 1, at, 0)
			if !ok || into == 0 && reached != at {
				rt.Fatal(fmt.Sprintf("%#x is %d:%#x %v", at, into, reached, ok))
			}
		}
	})
}

func TestProcessorsOfTheCorpus(t *testing.T) {
	for flags, want := range map[uint32]string{
		0x53f: "gfx90a", 0x54c: "gfx942", 0x36: "gfx1030", 0x41: "gfx1100", 0x12c: "gfx900", 0x530: "gfx908", 0x133: "gfx1010",
		0x01000051: "gfx9-generic", 0x49: "gfx1250", 0x4e: "gfx1201", 0: "", 0x20: "", 0xff: "",
	} {
		req := &sdk.OpenObjectRequest{Machine: 224, Flags: flags}
		a, err := New().OpenObject(context.Background(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Validate(Description(), req); err != nil || a.Processor != want {
			t.Errorf("flags %#x: %q %v, want %q", flags, a.Processor, err, want)
		}
		if p, ok := Description().ObjectProcessor(flags); p.Name != want || ok != (want != "") {
			t.Errorf("flags %#x: the description says %q", flags, p.Name)
		}
	}
	if a, _ := New().OpenObject(context.Background(), nil, &sdk.OpenObjectRequest{Machine: 62, Flags: 0x53f}); a.Processor != "" {
		t.Errorf("an object of another machine has processor %s", a.Processor)
	}
}

func TestProcessorTable(t *testing.T) {
	flags := map[uint32]string{}
	d := Description()
	for _, p := range processors {
		if other, ok := flags[p.flag]; ok {
			t.Errorf("%s and %s have flag %#x", p.name, other, p.flag)
		}
		flags[p.flag] = p.name
		described, ok := d.Processor(strings.ToUpper(p.name) + ":xnack+")
		if diff := cmp.Diff(p.lanes, described.Lanes); !ok || diff != "" {
			t.Errorf("%s: %s", p.name, diff)
		}
		major := strings.TrimSuffix(p.name[3:], "-generic")
		old := strings.HasPrefix(major, "9")
		if got := p.lanes[0]; got != usualLanes(p.name) || old != (got == 64) {
			t.Errorf("%s: waves of %d", p.name, got)
		}
		if (p.sgprs == 102) != old || p.agprs != 0 && !old || p.agprs == 0 && p.hasAlignedTuples && p.vgprs != 1024 {
			t.Errorf("%s: %d SGPRs, %d VGPRs, %d AGPRs", p.name, p.sgprs, p.vgprs, p.agprs)
		}
		for _, lanes := range p.lanes {
			for prefix, count := range map[string]uint32{"s": p.sgprs, "v": p.vgprs, "a": p.agprs} {
				if count == 0 {
					continue
				}
				if _, ok := d.Names(lanes).Register(fmt.Sprint(prefix, count-1)); !ok {
					t.Errorf("%s: wave%d has no register %s%d", p.name, lanes, prefix, count-1)
				}
			}
		}
	}
	if p, ok := d.Processor(""); !ok || p.Lanes[0] != 64 {
		t.Errorf("of no processor: %v %v", p, ok)
	}
}
