// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

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

// withMask makes registers of an IP and, unless it is negative, an EMask.
func withMask(mask int64) (r sdk.Registers) {
	r.Set(ip, []byte{0x40, 1, 0, 0})
	if mask >= 0 {
		r.Set(emask, binary.LittleEndian.AppendUint32(nil, uint32(mask)))
	}
	return r
}

func TestLanesAndTheirMask(t *testing.T) {
	for _, c := range []struct {
		name      string
		processor string
		said      uint32
		mask      int64
		lanes     uint32
		active    []byte
		unknown   bool
		problem   string
	}{
		{"narrow processor", "skl", 0, 0x5, 8, []byte{5}, false, ""},
		{"wide processor", "PVC", 0, 0x5, 16, []byte{5, 0}, false, ""},
		{"no processor", "", 0, 0xff, 8, []byte{0xff}, false, ""},
		{"more lanes are enabled", "dg2-g10", 0, 0x100, 16, []byte{0, 1}, false, ""},
		{"many more lanes are enabled", "skl", 0, 0x80000001, 32, []byte{1, 0, 0, 0x80}, false, ""},
		{"the last of 16", "skl", 0, 0x8000, 16, []byte{0, 0x80}, false, ""},
		{"of a wide processor", "pvc", 0, 0x10000, 32, []byte{0, 0, 1, 0}, false, ""},
		{"none is enabled", "tgllp", 16, 0, 16, []byte{0, 0}, false, ""},
		{"the target says 8: other channels are not lanes", "skl", 8, 0xff01, 8, []byte{1}, false, ""},
		{"the target says 32", "tgllp", 32, 0xf, 32, []byte{0xf, 0, 0, 0}, false, ""},
		{"the target says 1", "skl", 1, 0xff, 1, []byte{1}, false, ""},
		{"no mask", "tgllp", 16, -1, 16, nil, true, ""},
		{"no mask, nobody says", "tgllp", 0, -1, 8, nil, true, ""},
		{"the target says 7", "tgllp", 7, 1, 0, nil, false, "7 lanes, expected one of [8 16 32 1]"},
		{"the target says what the processor cannot", "pvc", 8, 1, 0, nil, false, "8 lanes, expected one of [16 32 1]"},
		{"the target's word is a large number", "", math.MaxUint32, 1, 0, nil, false, "4294967295 lanes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bound(t, sdk.ThreadState{Registers: withMask(c.mask), Processor: c.processor, Lanes: c.said})
			if b.Lanes != c.lanes || b.ActiveUnknown != c.unknown || (b.Problem == "") != (c.problem == "") || !strings.Contains(b.Problem, c.problem) {
				t.Errorf("%d lanes, unknown %v, problem %q; want %d, %v, %q", b.Lanes, b.ActiveUnknown, b.Problem, c.lanes, c.unknown, c.problem)
			}
			if diff := cmp.Diff(c.active, b.ActiveLanes); diff != "" {
				t.Error(diff)
			}
			if b.Problem == "" && b.PC != 0x140 {
				t.Errorf("PC %#x", b.PC)
			}
		})
	}
}

func TestThreadWithoutIP(t *testing.T) {
	if b := bound(t, sdk.ThreadState{Processor: "tgllp"}); !strings.Contains(b.Problem, "IP") || b.Lanes != 8 {
		t.Errorf("%+v", b)
	}
}

func TestRegistersAreAsLargeAsTheProcessorsOrTheStates(t *testing.T) {
	value := func(number uint32, size int) sdk.Registers {
		r := withMask(1)
		r.Set(number, make([]byte, size))
		return r
	}
	for _, c := range []struct {
		name      string
		processor string
		registers sdk.Registers
		bits      uint32
	}{
		{"skl", "skl", withMask(1), 256},
		{"dg2", "DG2", withMask(1), 256},
		{"pvc", "pvc", withMask(1), 512},
		{"xe2", "bmg-g21", withMask(1), 512},
		{"nothing tells", "", withMask(1), 256},
		{"the state tells, 64 bytes", "", value(16, 64), 512},
		{"the state tells, 64 bytes of the last", "none", value(605, 64), 512},
		{"the state tells, 32 bytes", "", value(271, 32), 256},
		{"another register tells nothing", "", value(304, 64), 256},
		{"the processor is asked first", "tgllp", value(16, 64), 256},
	} {
		b := bound(t, sdk.ThreadState{Registers: c.registers, Processor: c.processor})
		for _, number := range []uint32{16, 271, 304, 335, 350, 605} {
			info, _ := Description().Register(number)
			if got := bitsOf(&b, info); got != c.bits {
				t.Errorf("%s: %s has %d bits, want %d", c.name, info.Name, got, c.bits)
			}
		}
	}
}

func TestScratchSpaceIsWhereTheThreadSays(t *testing.T) {
	based := func(base uint64) sdk.Registers {
		r := withMask(1)
		r.Set(scratchBase, binary.LittleEndian.AppendUint64(nil, base))
		return r
	}
	for _, c := range []struct {
		name       string
		registers  sdk.Registers
		spaces     []sdk.SpaceBase
		base, size uint64 // size 0: no map
	}{
		{"nobody says", withMask(1), nil, 0, 0},
		{"the register is 0", based(0), nil, 0, 0},
		{"the register", based(0x7000), nil, 0x7000, 1 << 32},
		{"the target", withMask(1), []sdk.SpaceBase{{Space: 1, Base: 1}, {Space: 9, Base: 0x9000}}, 0x9000, 1 << 32},
		{"the target before the register", based(0x7000), []sdk.SpaceBase{{Space: 9}}, 0, 1 << 32},
		{"at the end of memory", based(math.MaxUint64 - 9), nil, math.MaxUint64 - 9, 10},
		{"half of the register", func() sdk.Registers { r := withMask(1); r.Set(scratchBase, nil); return r }(), nil, 0, 0},
	} {
		var want []sdk.SpaceMap
		if c.size != 0 {
			want = []sdk.SpaceMap{{Space: 9, Ranges: []sdk.MapRange{{Kind: sdk.IdentityMap, Size: c.size, Base: c.base}}}}
		}
		b := bound(t, sdk.ThreadState{Registers: c.registers, Spaces: c.spaces})
		if diff := cmp.Diff(want, b.Maps); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestProcessorsAreDescribed(t *testing.T) {
	d := Description()
	for _, p := range processors {
		described, ok := d.Processor(strings.ToUpper(p.name))
		if diff := cmp.Diff(p.lanes, described.Lanes); !ok || diff != "" {
			t.Errorf("%s: %s", p.name, diff)
		}
		if (p.grf == grf64) != (p.lanes[0] == 16) {
			t.Errorf("%s: GRF of %d bits, %v lanes", p.name, p.grf, p.lanes)
		}
	}
	if p, ok := d.Processor(""); !ok || p.Lanes[0] != 8 {
		t.Errorf("of no processor: %v %v", p, ok)
	}
}

// Whatever a target says, what is answered passes the engine's checks, and lanes
// are active only where the mask has them.
func TestWhateverATargetSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := sdk.ThreadState{
			Lanes:     rapid.OneOf(rapid.SampledFrom([]uint32{0, 1, 8, 16, 32}), rapid.Uint32()).Draw(rt, "lanes"),
			Processor: rapid.SampledFrom([]string{"", "skl", "pvc", "x"}).Draw(rt, "processor"),
		}
		for range rapid.IntRange(0, 6).Draw(rt, "registers") {
			number := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 700)).Draw(rt, "register")
			s.Registers.Set(number, rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(rt, "value"))
		}
		for range rapid.IntRange(0, 3).Draw(rt, "bases") {
			s.Spaces = append(s.Spaces, sdk.SpaceBase{
				Space: locexpr.AddressSpace(rapid.Uint64Range(0, 10).Draw(rt, "space")), Base: rapid.Uint64().Draw(rt, "base"),
			})
		}
		b := bound(rt, s)
		mask, _ := s.Registers.Uint64(emask, sdk.LittleEndian)
		for lane := range b.Lanes {
			if len(b.ActiveLanes) > 0 && b.ActiveLanes[lane/8]>>(lane%8)&1 != byte(mask>>lane&1) {
				rt.Fatal("lane ", lane)
			}
		}
	})
}
