// SPDX-License-Identifier: Apache-2.0

package rocm

import "fmt"

// field is some bits of a word; the zero field is always 0.
type field struct{ shift, bits uint8 }

func (f field) of(word uint32) uint32 { return word >> f.shift & (1<<f.bits - 1) }

// ttmpField is a field of one of the trap temporaries, TTMP0 to TTMP15.
type ttmpField struct {
	index uint8
	field
}

func (f ttmpField) of(ttmps *[16]uint32) uint32 { return f.field.of(ttmps[f.index&15]) }

// accumulation is a rule for how many accumulation registers a wave has.
type accumulation uint8

const (
	noAccumulation   accumulation = iota
	likeVectors                   // as many as it has vector registers
	restAccumulation              // the rest of its registers after the vector registers
)

// parking tells when the trap handler parks a wave: it sets the PC of a wave
// that it stops to an address of its own, because such a wave cannot be
// stopped in place.
type parking uint8

const (
	neverParks parking = iota
	alwaysParks
	parksSince9 // of the runtime's debug version
)

// family describes the state that a family of processors saves: the words of
// the control stack, then the record of a wave, from its end downwards.
type family struct {
	name string

	// A state word describes what all following waves share, a wave word one
	// wave.
	stateWords int
	vectors    field     // blocks of vector registers, less one
	block      [2]uint32 // registers in a block, in waves of 32 and 64 lanes
	boundary   field     // blocks of 4 registers before the accumulation registers, less one
	acc        accumulation
	scalars    field // blocks of 16 scalar registers, among them the trap temporaries, less one
	local      field // blocks of local memory
	localBlock uint32
	isWave32   field
	only32     bool
	whole      field // the group has all local memory of its processor, 128 KiB
	shared     field // blocks of 8 vector registers of 32 lanes that the halves of a wave share
	slot       field // of the wave, in scratch memory
	engine     field
	hasScratch field
	first      field // the wave is the first of its group: its local memory is in its record
	last       field // the wave is the last of its group

	gap     uint64 // unused bytes above each record
	control uint64 // bytes of hardware registers
	ttmps   int64  // where the trap temporaries are, from the hardware registers
	named   uint32 // scalar registers that have no other name
	aliases uint32 // those after them, the last two of which are VCC

	hardware hardware
	ttmp     ttmpLayout
	parks    parking
	scratch  scratchLayout
	flags    []flag
	trap     uint32 // the instruction s_trap 0
}

// hardware has the indices of hardware registers in a record. The PC is at 1 and
// 2, the execution mask at 3 and 4.
type hardware struct {
	status, flatScratch uint8  // flatScratch 0: it is a scalar register
	statusHides         uint32 // bits that the trap handler changes
	halt, haltBit       uint8  // where HALT is
	noVectors           uint32 // the bit of STATUS that is set after the wave released its vector registers
}

// ttmpLayout has the fields that hardware and trap handler put into the trap
// temporaries.
type ttmpLayout struct {
	packet, inGroup ttmpField
	group           [3]ttmpField
	inCluster, last [3]ttmpField // of a group in a cluster: its place there and the last one; group is the cluster then
	hasYZ           ttmpField    // group[1] and [2] are there; {} where they always are
	mark            ttmpField    // the trap handler has set TTMP4 to 6; {} where the hardware did
	marksVoid       bool         // until then TTMP6 has no field of the trap handler, whatever STATUS is
	isAlwaysSet     bool         // the hardware always sets the fields of the wave's group
	trap            ttmpField    // the number of the trap instruction that stopped the wave
	parkedLow       uint8        // the low half of the PC of a parked wave
}

// scratchLayout describes how scratch memory is divided among waves.
type scratchLayout struct {
	size          field // of COMPUTE_TMPRING_SIZE: a wave's memory
	unit          uint64
	isPerEngine   bool // COMPUTE_TMPRING_SIZE counts the waves of a shader engine, not of all
	isArchitected bool // FLAT_SCRATCH is where the wave's memory begins
	hidesAperture bool // generic addresses of private memory name the lane too
}

var (
	ttmps9 = ttmpLayout{
		packet: ttmpField{6, field{0, 25}}, inGroup: ttmpField{11, field{0, 6}},
		group: [3]ttmpField{{8, field{0, 32}}, {9, field{0, 32}}, {10, field{0, 32}}},
		trap:  ttmpField{6, field{25, 4}}, parkedLow: 7,
	}
	ttmps94 = ttmpLayout{
		packet: ttmpField{11, field{6, 25}}, inGroup: ttmps9.inGroup, group: ttmps9.group,
		mark: ttmpField{11, field{31, 1}}, trap: ttmps9.trap, parkedLow: 7,
	}
	ttmps12 = ttmpLayout{
		packet: ttmpField{8, field{0, 25}}, inGroup: ttmpField{8, field{25, 5}},
		group: [3]ttmpField{{9, field{0, 32}}, {7, field{0, 16}}, {7, field{16, 16}}},
		hasYZ: ttmpField{8, field{30, 1}}, mark: ttmpField{8, field{31, 1}}, marksVoid: true, isAlwaysSet: true,
		trap: ttmps9.trap, parkedLow: 10,
	}

	scratch9  = scratchLayout{size: field{12, 13}, unit: 1024}
	scratch94 = scratchLayout{size: field{12, 13}, unit: 1024, isArchitected: true}
	scratch11 = scratchLayout{size: field{12, 15}, unit: 256, isPerEngine: true, isArchitected: true}
	scratch12 = scratchLayout{size: field{12, 18}, unit: 256, isPerEngine: true, isArchitected: true}

	// The hidden bits of STATUS are those that the trap handler changed: PRIV,
	// SKIP_EXPORT and HALT.
	hardware9  = hardware{status: 5, halt: 5, haltBit: 13, statusHides: 1<<5 | 1<<13 | 1<<18}
	hardware10 = hardware{status: 5, halt: 5, haltBit: 13, flatScratch: 9, statusHides: 1<<5 | 1<<13 | 1<<18}
	hardware12 = hardware{status: 13, halt: 5, haltBit: 14, flatScratch: 9, statusHides: 1 << 5, noVectors: 1 << 24}
)

const (
	sTrap9  = 0xbf92 << 16
	sTrap11 = 0xbf90 << 16
)

var gfx9 = family{
	name: "gfx9", stateWords: 1,
	vectors: field{0, 6}, block: [2]uint32{4, 4}, scalars: field{6, 3}, local: field{9, 9}, localBlock: 512,
	slot: field{0, 9}, engine: field{11, 2}, hasScratch: field{15, 1}, first: field{17, 1}, last: field{16, 1},
	gap: 64, control: 128, ttmps: 64, named: 102, aliases: 6,
	hardware: hardware9, ttmp: ttmps9, parks: alwaysParks, scratch: scratch9, flags: flags9, trap: sTrap9,
}

var gfx10 = family{
	name: "gfx10", stateWords: 2,
	vectors: field{0, 6}, block: [2]uint32{8, 4}, local: field{10, 8}, localBlock: 512,
	isWave32: field{24, 1}, shared: field{26, 4},
	slot: field{0, 10}, engine: field{24, 2}, hasScratch: field{11, 1}, first: field{12, 1}, last: field{29, 1},
	control: 128, ttmps: 64, named: 106, aliases: 2,
	hardware: hardware10, ttmp: ttmps9, parks: alwaysParks, scratch: scratch9, flags: flags10, trap: sTrap9,
}

// varied returns a copy of a family after change.
func varied(base family, name string, change func(*family)) *family {
	base.name = name
	change(&base)
	return &base
}

var (
	gfx908 = varied(gfx9, "gfx908", func(f *family) {
		f.acc = likeVectors
		f.engine = field{11, 3}
	})
	gfx90a = varied(gfx9, "gfx90a", func(f *family) {
		f.acc = restAccumulation
		f.block = [2]uint32{8, 8}
		f.boundary = field{24, 6}
		f.local = field{9, 8}
		f.engine = field{9, 3}
	})
	gfx94 = varied(*gfx90a, "gfx94x", func(f *family) {
		f.engine = field{9, 2}
		f.ttmp = ttmps94
		f.parks = neverParks
		f.scratch = scratch94
		f.flags = flags94
	})
	gfx950 = varied(*gfx94, "gfx950", func(f *family) { f.localBlock = 1280 })
	gfx103 = varied(gfx10, "gfx10.3", func(f *family) { f.parks = neverParks })
	gfx11  = varied(gfx10, "gfx11", func(f *family) {
		f.engine = field{24, 3}
		f.parks = parksSince9
		f.scratch = scratch11
		f.flags = flags11
		f.hardware.noVectors = 1 << 24
		f.trap = sTrap11
	})
	gfx12 = varied(*gfx11, "gfx12", func(f *family) {
		f.whole = field{6, 1}
		f.hardware = hardware12
		f.ttmp = ttmps12
		f.scratch = scratch12
		f.flags = flags12
	})
	gfx125 = varied(*gfx12, "gfx12.5", func(f *family) {
		f.only32 = true
		f.block = [2]uint32{16, 16}
		f.shared, f.whole = field{}, field{}
		f.local, f.localBlock = field{10, 9}, 1024
		f.last = field{13, 1}
		f.control, f.ttmps = 512, -64
		f.ttmp.trap = ttmpField{11, field{28, 4}}
		f.ttmp.inCluster = [3]ttmpField{{6, field{0, 4}}, {6, field{4, 4}}, {6, field{8, 4}}}
		f.ttmp.last = [3]ttmpField{{6, field{12, 4}}, {6, field{16, 4}}, {6, field{20, 4}}}
		f.parks = neverParks
		f.scratch.hidesAperture = true
	})
)

// families lists the families by major and minor version, and by stepping
// where it decides.
var families = []struct {
	major, minor, stepping uint32
	family                 *family
}{
	{9, 0, 8, gfx908},
	{9, 0, 10, gfx90a},
	{9, 0, anyStepping, &gfx9},
	{9, 4, anyStepping, gfx94},
	{9, 5, anyStepping, gfx950},
	{10, 1, anyStepping, &gfx10},
	{10, 3, anyStepping, gfx103},
	{11, anyStepping, anyStepping, gfx11},
	{12, 0, anyStepping, gfx12},
	{12, 5, anyStepping, gfx125},
}

const anyStepping = ^uint32(0)

// familyOf returns the family of a version (gfx_target_version), or nil.
func familyOf(version uint32) *family {
	major, minor, stepping := version/10000, version/100%100, version%100
	for _, f := range families {
		if f.major == major && (f.minor == minor || f.minor == anyStepping) &&
			(f.stepping == stepping || f.stepping == anyStepping) {
			return f.family
		}
	}
	return nil
}

// processorName returns the compilers' name for the processor of a version.
func processorName(version uint32) string {
	return fmt.Sprintf("gfx%d%x%x", version/10000, version/100%100, version%100)
}
