// SPDX-License-Identifier: Apache-2.0

package isa

// format is an encoding of instructions, by its name in the instruction set
// documents. A format of gfx12 that replaces an older one (VBUFFER, VIMAGE,
// VFLAT) has its name: the layout tells where its fields are.
type format uint8

const (
	sop2 format = iota
	sopk
	sop1
	sopc
	sopp
	smem
	vop2
	vop1
	vopc
	vop3
	vop3p
	vopd
	vopdY // the second half of VOPD; no layout has it
	vopd3
	vopd3Y // likewise
	vinterp
	vintrp
	ldsdir
	exp
	ds
	mubuf
	mtbuf
	mimg
	vsample
	flat // its segment selects one of these three
	scratch
	global
	tableFormats
)

// field is a run of bits of an instruction, within one word of 32 bits. The zero field
// stands for none.
type field struct{ first, bits uint8 }

// words is an instruction as words of 32 bits. Words after its end are zero.
type words [5]uint32

func (f field) of(w *words) uint32 { return w[f.first/32] >> (f.first % 32) & (1<<f.bits - 1) }

// signed reads a field as a number with a sign.
func (f field) signed(w *words) int32 {
	return int32(f.of(w)<<(32-f.bits)) >> (32 - f.bits)
}

// layout has the fields of a format. The upper nine bits of the first word are from
// first to last in instructions of the format.
type layout struct {
	first, last uint16
	format      format
	size        uint8 // in bytes, without literals and words about lanes and addresses
	op          field
	opHigh      field // the upper bits of the operation's number, where they lie apart
	segment     field // of flat
	sources     [3]field
	dst         field
	second      field // where operations with the flag second write their mask of lanes
	third       field // where operations with the flag both write: src0, or an address
	last3       field // where they write, too; third and last3 are then three registers each
	accumulate  field // says that dst is an accumulation register
	returns     field // an atomic returns the old content of memory
	status      field // a load returns a status in one register more; either bit of two
	warning     field
	toLDS       field // a load goes to LDS, not to a register
	packed      field // an image's components are of 16 bits
	components  field // which an image load returns
	// Addresses of memory.
	vaddr, hasVAddr, index field // for buffers hasVAddr is offen
	base, soffset, offset  field
	baseShift              uint8 // base counts 1<<baseShift registers
	// The words after the layout's own: a literal or a word about lanes, where a source
	// needs it, and as many words of addresses as the field has.
	canHaveLiteral, canHaveLanes bool
	addresses                    field
}

var scalarSources = [3]field{{0, 8}, {8, 8}}

// vop3Sources are the sources of VOP3, VOP3P and VINTERP.
var vop3Sources = [3]field{{32, 9}, {41, 9}, {50, 9}}

// The layouts that all generations share.
var common = []layout{
	{first: 0x100, last: 0x15f, format: sop2, size: 4, op: field{23, 7}, sources: scalarSources, dst: field{16, 7}, canHaveLiteral: true},
	{first: 0x160, last: 0x17c, format: sopk, size: 4, op: field{23, 5}, dst: field{16, 7}},
	{first: 0x17d, last: 0x17d, format: sop1, size: 4, op: field{8, 8}, sources: [3]field{{0, 8}}, dst: field{16, 7}, canHaveLiteral: true},
	{first: 0x17e, last: 0x17e, format: sopc, size: 4, op: field{16, 7}, sources: scalarSources, canHaveLiteral: true},
	{first: 0x17f, last: 0x17f, format: sopp, size: 4, op: field{16, 7}},
	{first: 0x000, last: 0x0f7, format: vop2, size: 4, op: field{25, 6}, sources: [3]field{{0, 9}}, dst: field{17, 8}, canHaveLiteral: true, canHaveLanes: true},
	{first: 0x0f8, last: 0x0fb, format: vopc, size: 4, op: field{17, 8}, sources: [3]field{{0, 9}}, canHaveLiteral: true, canHaveLanes: true},
	{first: 0x0fc, last: 0x0ff, format: vop1, size: 4, op: field{9, 8}, sources: [3]field{{0, 9}}, dst: field{17, 8}, third: field{0, 8}, canHaveLiteral: true, canHaveLanes: true},
}

var layouts9 = []layout{
	{first: 0x180, last: 0x187, format: smem, size: 8, op: field{18, 8}, dst: field{6, 7}, returns: field{16, 1}},
	{first: 0x188, last: 0x18f, format: exp, size: 8},
	{first: 0x1a0, last: 0x1a6, format: vop3, size: 8, op: field{16, 10}, sources: vop3Sources, dst: field{0, 8}, second: field{8, 7}, third: field{32, 8}},
	{first: 0x1a7, last: 0x1a7, format: vop3p, size: 8, op: field{16, 7}, sources: vop3Sources, dst: field{0, 8}, accumulate: field{15, 1}},
	{first: 0x1a8, last: 0x1af, format: vintrp, size: 4, op: field{16, 2}, dst: field{18, 8}},
	{first: 0x1b0, last: 0x1b7, format: ds, size: 8, op: field{17, 8}, dst: field{56, 8}, accumulate: field{25, 1}},
	{
		first: 0x1b8, last: 0x1bf, format: flat, size: 8, op: field{18, 7}, segment: field{14, 2}, sources: [3]field{{40, 8}}, dst: field{56, 8},
		accumulate: field{55, 1}, returns: field{16, 1}, toLDS: field{13, 1}, vaddr: field{32, 8}, base: field{48, 7}, offset: field{0, 13},
	},
	{
		first: 0x1c0, last: 0x1c7, format: mubuf, size: 8, op: field{18, 7}, sources: [3]field{{40, 8}}, dst: field{40, 8}, accumulate: field{55, 1},
		returns: field{14, 1}, status: field{55, 1}, toLDS: field{16, 1}, vaddr: field{32, 8}, hasVAddr: field{12, 1}, index: field{13, 1},
		base: field{48, 5}, baseShift: 2, soffset: field{56, 8}, offset: field{0, 12},
	},
	{first: 0x1d0, last: 0x1d7, format: mtbuf, size: 8, op: field{15, 4}, dst: field{40, 8}, accumulate: field{55, 1}, status: field{55, 1}, soffset: field{56, 8}},
	{
		first: 0x1e0, last: 0x1e7, format: mimg, size: 8, op: field{18, 7}, dst: field{40, 8}, accumulate: field{16, 1}, status: field{16, 1},
		warning: field{17, 1}, packed: field{63, 1}, components: field{8, 4},
	},
}

var layouts10 = []layout{
	{first: 0x190, last: 0x197, format: vintrp, size: 4, op: field{16, 2}, dst: field{18, 8}},
	{first: 0x198, last: 0x198, format: vop3p, size: 8, op: field{16, 7}, sources: vop3Sources, dst: field{0, 8}, canHaveLiteral: true},
	{first: 0x1a8, last: 0x1af, format: vop3, size: 8, op: field{16, 10}, sources: vop3Sources, dst: field{0, 8}, second: field{8, 7}, third: field{32, 8}, canHaveLiteral: true},
	{first: 0x1b0, last: 0x1b7, format: ds, size: 8, op: field{18, 8}, dst: field{56, 8}},
	{
		first: 0x1b8, last: 0x1bf, format: flat, size: 8, op: field{18, 7}, segment: field{14, 2}, sources: [3]field{{40, 8}}, dst: field{56, 8},
		returns: field{16, 1}, toLDS: field{13, 1}, vaddr: field{32, 8}, base: field{48, 7}, offset: field{0, 12},
	},
	{
		first: 0x1c0, last: 0x1c7, format: mubuf, size: 8, op: field{18, 8}, sources: [3]field{{40, 8}}, dst: field{40, 8}, returns: field{14, 1},
		status: field{55, 1}, toLDS: field{16, 1}, vaddr: field{32, 8}, hasVAddr: field{12, 1}, index: field{13, 1},
		base: field{48, 5}, baseShift: 2, soffset: field{56, 8}, offset: field{0, 12},
	},
	{first: 0x1d0, last: 0x1d7, format: mtbuf, size: 8, op: field{16, 3}, opHigh: field{53, 1}, dst: field{40, 8}, status: field{55, 1}, soffset: field{56, 8}},
	{
		first: 0x1e0, last: 0x1e7, format: mimg, size: 8, op: field{18, 7}, opHigh: field{0, 1}, dst: field{40, 8}, status: field{16, 1},
		warning: field{17, 1}, packed: field{63, 1}, components: field{8, 4}, addresses: field{1, 2},
	},
	{first: 0x1e8, last: 0x1ef, format: smem, size: 8, op: field{18, 8}, dst: field{6, 7}, returns: field{16, 1}},
	{first: 0x1f0, last: 0x1f7, format: exp, size: 8},
}

var layouts11 = []layout{
	{first: 0x190, last: 0x197, format: vopd, size: 8, op: field{22, 4}, opHigh: field{17, 5}, sources: [3]field{{0, 9}, {32, 9}}, dst: field{56, 8}, second: field{49, 7}, canHaveLiteral: true},
	{first: 0x198, last: 0x198, format: vop3p, size: 8, op: field{16, 7}, sources: vop3Sources, dst: field{0, 8}, canHaveLiteral: true, canHaveLanes: true},
	{first: 0x19a, last: 0x19b, format: vinterp, size: 8, op: field{16, 7}, sources: vop3Sources, dst: field{0, 8}},
	{first: 0x19c, last: 0x19d, format: ldsdir, size: 4, op: field{20, 2}, dst: field{0, 8}},
	{first: 0x1a8, last: 0x1af, format: vop3, size: 8, op: field{16, 10}, sources: vop3Sources, dst: field{0, 8}, second: field{8, 7}, third: field{32, 8}, canHaveLiteral: true, canHaveLanes: true},
	{first: 0x1b0, last: 0x1b7, format: ds, size: 8, op: field{18, 8}, dst: field{56, 8}, third: field{32, 8}},
	{
		first: 0x1b8, last: 0x1bf, format: flat, size: 8, op: field{18, 7}, segment: field{16, 2}, sources: [3]field{{40, 8}}, dst: field{56, 8},
		returns: field{14, 1}, vaddr: field{32, 8}, hasVAddr: field{55, 1}, base: field{48, 7}, offset: field{0, 13},
	},
	{
		first: 0x1c0, last: 0x1c7, format: mubuf, size: 8, op: field{18, 8}, sources: [3]field{{40, 8}}, dst: field{40, 8}, returns: field{14, 1},
		status: field{53, 1}, vaddr: field{32, 8}, hasVAddr: field{54, 1}, index: field{55, 1}, base: field{48, 5}, baseShift: 2, soffset: field{56, 8}, offset: field{0, 12},
	},
	{first: 0x1d0, last: 0x1d7, format: mtbuf, size: 8, op: field{15, 4}, dst: field{40, 8}, status: field{53, 1}, soffset: field{56, 8}},
	{
		first: 0x1e0, last: 0x1e7, format: mimg, size: 8, op: field{18, 8}, dst: field{40, 8}, status: field{53, 1}, warning: field{54, 1},
		packed: field{17, 1}, components: field{8, 4}, addresses: field{0, 1},
	},
	{first: 0x1e8, last: 0x1ef, format: smem, size: 8, op: field{18, 8}, dst: field{6, 7}},
	{first: 0x1f0, last: 0x1f7, format: exp, size: 8},
}

// layouts12 are the layouts of gfx12 that gfx1250 has, too.
var layouts12 = []layout{
	{
		first: 0x188, last: 0x18f, format: mubuf, size: 12, op: field{14, 8}, sources: [3]field{{32, 8}}, dst: field{32, 8}, returns: field{52, 1},
		status: field{22, 1}, vaddr: field{64, 8}, hasVAddr: field{62, 1}, index: field{63, 1}, base: field{41, 9}, soffset: field{0, 7}, offset: field{72, 24},
	},
	{first: 0x190, last: 0x197, format: vopd, size: 8, op: field{22, 4}, opHigh: field{17, 5}, sources: [3]field{{0, 9}, {32, 9}}, dst: field{56, 8}, second: field{49, 7}, canHaveLiteral: true},
	{first: 0x198, last: 0x198, format: vop3p, size: 8, op: field{16, 7}, sources: vop3Sources, dst: field{0, 8}, canHaveLiteral: true, canHaveLanes: true},
	{
		first: 0x1a0, last: 0x1a7, format: mimg, size: 12, op: field{14, 8}, dst: field{32, 8}, third: field{80, 8}, last3: field{88, 8}, status: field{55, 1},
		packed: field{5, 1}, components: field{22, 4},
	},
	{first: 0x1a8, last: 0x1af, format: vop3, size: 8, op: field{16, 10}, sources: vop3Sources, dst: field{0, 8}, second: field{8, 7}, third: field{32, 8}, canHaveLiteral: true, canHaveLanes: true},
	{first: 0x1b0, last: 0x1b7, format: ds, size: 8, op: field{18, 8}, dst: field{56, 8}, third: field{32, 8}},
	{
		first: 0x1d8, last: 0x1df, format: flat, size: 12, op: field{14, 8}, segment: field{24, 2}, sources: [3]field{{55, 8}}, dst: field{32, 8},
		returns: field{52, 1}, vaddr: field{64, 8}, hasVAddr: field{49, 1}, base: field{0, 7}, offset: field{72, 24},
	},
	{first: 0x1e8, last: 0x1ef, format: smem, size: 8, op: field{13, 6}, dst: field{6, 7}},
}

// drawing12 are the layouts of gfx12 for graphics, which gfx1250 lacks.
var drawing12 = []layout{
	{first: 0x19a, last: 0x19b, format: vinterp, size: 8, op: field{16, 5}, sources: vop3Sources, dst: field{0, 8}},
	{first: 0x19c, last: 0x19d, format: ldsdir, size: 4, op: field{20, 2}, dst: field{0, 8}},
	{
		first: 0x1c8, last: 0x1cf, format: vsample, size: 12, op: field{14, 8}, dst: field{32, 8}, status: field{3, 1}, warning: field{40, 1},
		packed: field{5, 1}, components: field{22, 4},
	},
	{first: 0x1f0, last: 0x1f7, format: exp, size: 8},
}

// layouts125 are the layouts of gfx1250 that gfx12 lacks or has with other
// fields.
var layouts125 = []layout{
	{first: 0x198, last: 0x199, format: vop3p, size: 8, op: field{16, 8}, sources: vop3Sources, dst: field{0, 8}, canHaveLiteral: true, canHaveLanes: true},
	{first: 0x19e, last: 0x19f, format: vopd3, size: 12, op: field{18, 6}, opHigh: field{12, 6}, sources: [3]field{{0, 9}, {32, 9}}, dst: field{64, 8}, second: field{88, 8}},
}
