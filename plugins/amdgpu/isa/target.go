// SPDX-License-Identifier: Apache-2.0

package isa

import (
	"fmt"
	"strings"
	"sync"
)

// generation is a group of processors whose code is encoded alike.
type generation uint8

const (
	noGeneration generation = iota
	gfx9
	gfx908
	gfx90a
	gfx94
	gfx950
	gfx10
	gfx103
	gfx11
	gfx115
	gfx12
	gfx125
	generations
)

// Target tells the processors and the wave size that code is decoded for. The zero
// Target decodes nothing.
type Target struct {
	machine  *machine
	isWave32 bool
}

// NewTarget returns the target of a processor by name ("gfx90a",
// "gfx9-generic"; features after a colon do not matter) for a wave size of 32
// or 64 lanes.
func NewTarget(processor string, lanes uint32) (Target, error) {
	name, _, _ := strings.Cut(strings.ToLower(processor), ":")
	g := processors[name]
	if g == noGeneration {
		return Target{}, fmt.Errorf("processor %q: expected one of gfx9 to gfx12", processor)
	}
	if lanes != 64 && lanes != 32 || lanes == 32 && g < gfx10 || lanes == 64 && g == gfx125 {
		return Target{}, fmt.Errorf("waves of %d lanes on %s", lanes, processor)
	}
	return Target{machine: machines[g](), isWave32: lanes == 32}, nil
}

// processors are the generations of the processors that NewTarget knows.
var processors = map[string]generation{
	"gfx900": gfx9, "gfx902": gfx9, "gfx904": gfx9, "gfx906": gfx9, "gfx909": gfx9, "gfx90c": gfx9, "gfx9-generic": gfx9,
	"gfx908": gfx908,
	"gfx90a": gfx90a,
	"gfx940": gfx94, "gfx941": gfx94, "gfx942": gfx94, "gfx9-4-generic": gfx94,
	"gfx950":  gfx950,
	"gfx1010": gfx10, "gfx1011": gfx10, "gfx1012": gfx10, "gfx1013": gfx10, "gfx10-1-generic": gfx10,
	"gfx1030": gfx103, "gfx1031": gfx103, "gfx1032": gfx103, "gfx1033": gfx103, "gfx1034": gfx103, "gfx1035": gfx103, "gfx1036": gfx103, "gfx10-3-generic": gfx103,
	"gfx1100": gfx11, "gfx1101": gfx11, "gfx1102": gfx11, "gfx1103": gfx11, "gfx11-generic": gfx11,
	"gfx1150": gfx115, "gfx1151": gfx115, "gfx1152": gfx115, "gfx1153": gfx115, "gfx1154": gfx115,
	"gfx1170": gfx115, "gfx1171": gfx115, "gfx1172": gfx115,
	"gfx1200": gfx12, "gfx1201": gfx12, "gfx12-generic": gfx12,
	"gfx1250": gfx125, "gfx1251": gfx125, "gfx12-5-generic": gfx125,
}

// machine is a generation, laid out for decoding.
type machine struct {
	byTop   [512]*layout // by the upper nine bits of the first word
	entries [tableFormats][]entry
	scalars [128]Reg // the meaning of fields of scalar registers

	isUnified          bool // loads and stores may use accumulation registers; loads have no status
	hasSDWA, hasDPP8   bool // the words about parts of registers, and about eight lanes, exist
	hasSDWAScalar      bool // a comparison with such a word may name its destination
	hasHardwareScratch bool // FLAT_SCRATCH is a hardware register
	hasLiteral64       bool // a literal may be of 64 bits

	// Two bases of SCRATCH stand for none. With noBase an instruction has a vector
	// register of addresses, unless a bit of it says otherwise; with noAddress it has not.
	noBase, noAddress uint32
	hasVAddrBit       bool // SCRATCH: LDS's bit selects a register of addresses
	hasScratchToLDS   bool // SCRATCH: the bit of LDS sends a load there
}

// The values of a base's field that stand for no base.
const (
	offGfx9   = 0x7f
	nullGfx10 = 0x7d // the number of Null, as it is of M0 from gfx11 on
	nullGfx11 = 0x7c // the number of Null
)

// family is all generations that encode the fields of instructions alike.
type family struct {
	layouts    [][]layout     // each has precedence over those before it
	vop1InVOP3 uint32         // the number in VOP3 of VOP1's first operation
	firstRegs  map[uint32]Reg // the numbers of scalar registers that differ from their Reg
}

// machines builds the machine of each generation when it is first needed.
var machines = func() (all [generations]func() *machine) {
	for g := range all {
		all[g] = sync.OnceValue(func() *machine { return newMachine(generation(g)) })
	}
	return all
}()

var (
	family9 = &family{[][]layout{common, layouts9}, vop1InVOP3Gfx9, map[uint32]Reg{
		102: FlatScratchLo, 103: FlatScratchHi, 104: XNACKMaskLo, 105: XNACKMaskHi,
	}}
	family10  = &family{[][]layout{common, layouts10}, vop1InVOP3Gfx10, nil}
	family11  = &family{[][]layout{common, layouts11}, vop1InVOP3Gfx10, map[uint32]Reg{nullGfx11: Null, nullGfx10: M0}}
	family12  = &family{[][]layout{common, layouts12, drawing12}, vop1InVOP3Gfx10, family11.firstRegs}
	family125 = &family{[][]layout{common, layouts12, layouts125}, vop1InVOP3Gfx10, family11.firstRegs}
)

// lineage has the base of each generation, whose operations it has, too, unless the
// tables list others for it, and its family.
var lineage = [generations]struct {
	base   generation
	family *family
}{
	gfx9:   {noGeneration, family9},
	gfx908: {gfx9, family9},
	gfx90a: {gfx908, family9},
	gfx94:  {gfx90a, family9},
	gfx950: {gfx94, family9},
	gfx10:  {noGeneration, family10},
	gfx103: {gfx10, family10},
	gfx11:  {noGeneration, family11},
	gfx115: {gfx11, family11},
	gfx12:  {noGeneration, family12},
	gfx125: {gfx12, family125},
}

func newMachine(g generation) *machine {
	fam := lineage[g].family
	m := &machine{
		isUnified: g >= gfx90a && g <= gfx950,
		hasSDWA:   g < gfx11, hasSDWAScalar: g < gfx10, hasDPP8: g >= gfx10,
		hasHardwareScratch: g >= gfx10, hasLiteral64: g >= gfx125,
		noBase: offGfx9, noAddress: offGfx9, hasVAddrBit: g == gfx94 || g == gfx950, hasScratchToLDS: g < gfx94 || g >= gfx10,
	}
	switch {
	case g >= gfx11:
		m.noBase, m.noAddress = nullGfx11, nullGfx11
	case g >= gfx10:
		m.noBase = nullGfx10
	}
	for _, layouts := range fam.layouts {
		for i := range layouts {
			for top := layouts[i].first; top <= layouts[i].last; top++ {
				m.byTop[top] = &layouts[i]
			}
		}
	}
	for i := range m.scalars {
		m.scalars[i] = Reg(i)
	}
	for i, r := range fam.firstRegs {
		m.scalars[i] = r
	}
	m.enter(g)
	return m
}

// entry returns the operation of a number in a format. It has no flag if there is none.
func (m *machine) entry(f format, op uint32) entry {
	if f >= tableFormats || op >= uint32(len(m.entries[f])) {
		return entry{}
	}
	return m.entries[f][op]
}
