// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"testing"

	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
)

// TestFamilies holds the tables against those of the writer, which were made from
// the same sources by other hands: where each field is, and how wide.
func TestFamilies(t *testing.T) {
	for _, m := range corefile.Machines() {
		f := familyOf(m.Target)
		if f == nil {
			t.Errorf("%s is of no family", m.Name)
			continue
		}
		ttmp := func(f ttmpField) corefile.Field {
			if f.bits == 0 {
				return corefile.Field{}
			}
			return corefile.Field{Reg: corefile.TTMP0 + corefile.Reg(f.index), Bits: bits(f.field)}
		}
		equal := func(what string, got, want any) {
			if got != want {
				t.Errorf("%s: %s is %v, the writer's %v", m.Name, what, got, want)
			}
		}
		for _, c := range []struct {
			what string
			got  field
			want corefile.Bits
		}{
			{"vector registers", f.vectors, m.VGPRs}, {"vector registers before accumulation registers", f.boundary, m.ArchVGPRs},
			{"scalar registers", f.scalars, m.SGPRs}, {"local memory", f.local, m.LDS}, {"all local memory", f.whole, m.WholeLDS},
			{"wave32", f.isWave32, m.Wave32}, {"shared registers", f.shared, m.SharedVGPRs}, {"slot", f.slot, m.ScratchSlot},
			{"engine", f.engine, m.ShaderEngine}, {"scratch", f.hasScratch, m.ScratchOn}, {"first", f.first, m.First}, {"last", f.last, m.Last},
			{"private memory of a wave", f.scratch.size, m.TmpringWave},
		} {
			equal(c.what, bits(c.got), c.want)
		}
		for _, c := range []struct {
			what string
			got  ttmpField
			want corefile.Field
		}{
			{"mark", f.ttmp.mark, m.Mark}, {"packet", f.ttmp.packet, m.Packet}, {"group 0", f.ttmp.group[0], m.GroupIDs[0]},
			{"group 1", f.ttmp.group[1], m.GroupIDs[1]}, {"group 2", f.ttmp.group[2], m.GroupIDs[2]}, {"y and z", f.ttmp.hasYZ, m.GroupYZ},
			{"place in cluster", f.ttmp.inCluster[0], m.InCluster[0]}, {"place in cluster", f.ttmp.inCluster[1], m.InCluster[1]},
			{"place in cluster", f.ttmp.inCluster[2], m.InCluster[2]}, {"last place", f.ttmp.last[0], m.ClusterLast[0]},
			{"last place", f.ttmp.last[1], m.ClusterLast[1]}, {"last place", f.ttmp.last[2], m.ClusterLast[2]},
			{"wave in group", f.ttmp.inGroup, m.WaveInGroup}, {"trap", f.ttmp.trap, m.TrapID},
		} {
			equal(c.what, ttmp(c.got), c.want)
		}
		for _, v := range []uint32{8, 9, 10, 11, 12} {
			equal("parking", f.isParked(v), m.IsParked(v))
		}
		if m.IsParked(12) {
			equal("the PC of a parked wave", corefile.TTMP0+corefile.Reg(f.ttmp.parkedLow), m.ParkedPC[0].Reg)
		}
		equal("state words", f.stateWords, m.StateWords)
		equal("gap", f.gap, m.Gap)
		equal("unit of local memory", f.localBlock, uint32(m.LDSUnit))
		equal("unit of private memory", f.scratch.unit, m.TmpringUnit)
		equal("waves per engine", f.scratch.isPerEngine, m.TmpringPerSE)
		equal("scalar registers with other names", f.aliases, uint32(m.Aliases))
		equal("scalar registers", f.named+f.aliases, uint32(m.AliasEnd))
		equal("trap temporaries among scalar registers", f.ttmps < 0, m.TTMPsInSGPRs)
		equal("FLAT_SCRATCH among hardware registers", f.hardware.flatScratch != 0, m.FlatInHwregs)
		if f.scratch.isArchitected && !m.HasFlatAddress { // elsewhere code sets it, perhaps to the same
			t.Errorf("%s: FLAT_SCRATCH is no address of the writer's", m.Name)
		}
		checkFlags(t, f, m)
	}
}

func bits(f field) corefile.Bits { return corefile.Bits{Low: f.shift, Width: f.bits} }

// checkFlags holds the bits of exceptions against the writer's.
func checkFlags(t *testing.T, f *family, m *corefile.Machine) {
	t.Helper()
	type place struct{ word, bit, enableWord, enableBit uint8 }
	found := map[place]string{}
	for _, g := range f.flags {
		if g.name != "ECC_ERR" && g.name != "FATAL_HALT" {
			found[place{g.word, g.bit, g.enableWord, g.enableBit}] = g.name
		}
	}
	index := func(r corefile.Reg) uint8 {
		for i, reg := range m.Hwregs {
			if reg == r {
				return uint8(i)
			}
		}
		return 0
	}
	for e, b := range m.Exceptions {
		if b.Flag.Width == 0 || corefile.Exception(e) == corefile.SaveContext {
			continue
		}
		p := place{index(b.Flag.Reg), b.Flag.Low, 0, 0}
		if b.Enable.Width != 0 {
			p.enableWord, p.enableBit = index(b.Enable.Reg), b.Enable.Low
		}
		if found[p] == "" {
			t.Errorf("%s: exception %d is at %+v, which is none of the flags", m.Name, e, p)
		}
		delete(found, p)
	}
	if len(found) > 0 {
		t.Errorf("%s: flags that the writer does not have: %v", m.Name, found)
	}
}

// TestFamilyOf finds the families of processors by their versions.
func TestFamilyOf(t *testing.T) {
	for version, want := range map[uint32]string{
		90000: "gfx900 gfx9", 90002: "gfx902 gfx9", 90006: "gfx906 gfx9", 90008: "gfx908 gfx908", 90010: "gfx90a gfx90a", 90012: "gfx90c gfx9",
		90400: "gfx940 gfx94x", 90402: "gfx942 gfx94x", 90500: "gfx950 gfx950", 100100: "gfx1010 gfx10", 100103: "gfx1013 gfx10",
		100306: "gfx1036 gfx10.3", 110003: "gfx1103 gfx11", 110501: "gfx1151 gfx11", 110700: "gfx1170 gfx11",
		120001: "gfx1201 gfx12", 120501: "gfx1251 gfx12.5", 80003: "gfx803 ", 130000: "gfx1300 ", 0: "gfx000 ", 90100: "gfx910 ",
	} {
		got := processorName(version) + " "
		if f := familyOf(version); f != nil {
			got += f.name
		}
		if got != want {
			t.Errorf("version %d: %q, expected %q", version, got, want)
		}
	}
}
