// SPDX-License-Identifier: Apache-2.0

package aarch64

import "strings"

// This file completes the disassembler, which ends at ARMv8.0 and gets some words wrong:
// it has the texts of words by their bits (Arm Architecture Reference Manual for
// A-profile, C4.1, C6.2 and C8.2).

// syntax is the text of the words w with w & mask == value. Names in braces stand for
// operands.
type syntax struct {
	mask, value uint32
	text        string
}

// syntaxes are tried in order; the first that fits counts.
var syntaxes = []syntax{
	{0xffff0000, 0x00000000, "udf #{low16}"},
	{0xffe0001f, 0xd4000002, "hvc #{hex16}"},
	{0xffe0001f, 0xd4000003, "smc #{hex16}"},
	{0xfffff01f, 0xd503201f, "{hint}"},
	{0xffffffff, 0xd50330ff, "sb"},
	{0xffffffe0, 0xd50b7520, "ic ivau, {Xd}"},
	{0xfff00000, 0xd5300000, "mrs {Xd}, {system}"},
	{0xfff00000, 0xd5100000, "msr {system}, {Xd}"},
	{0xff000010, 0x54000010, "bc.{condition} {target19}"},

	// Atomic operations of ARMv8.1; first the ones that discard the old value.
	{0x3fa0fc1f, 0x3820001f, "stadd{release}{size} {Rs}, [{Sn}]"},
	{0x3fa0fc1f, 0x3820101f, "stclr{release}{size} {Rs}, [{Sn}]"},
	{0x3fa0fc1f, 0x3820201f, "steor{release}{size} {Rs}, [{Sn}]"},
	{0x3fa0fc1f, 0x3820301f, "stset{release}{size} {Rs}, [{Sn}]"},
	{0x3fa0fc1f, 0x3820401f, "stsmax{release}{size} {Rs}, [{Sn}]"},
	{0x3fa0fc1f, 0x3820501f, "stsmin{release}{size} {Rs}, [{Sn}]"},
	{0x3fa0fc1f, 0x3820601f, "stumax{release}{size} {Rs}, [{Sn}]"},
	{0x3fa0fc1f, 0x3820701f, "stumin{release}{size} {Rs}, [{Sn}]"},
	{0x3f20fc00, 0x38200000, "ldadd{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3f20fc00, 0x38201000, "ldclr{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3f20fc00, 0x38202000, "ldeor{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3f20fc00, 0x38203000, "ldset{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3f20fc00, 0x38204000, "ldsmax{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3f20fc00, 0x38205000, "ldsmin{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3f20fc00, 0x38206000, "ldumax{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3f20fc00, 0x38207000, "ldumin{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3f20fc00, 0x38208000, "swp{order}{size} {Rs}, {Rt}, [{Sn}]"},
	{0x3fa07c00, 0x08a07c00, "cas{casOrder}{size} {Rs}, {Rt}, [{Sn}]"},
	{0xbfa17c01, 0x08207c00, "casp{casOrder} {pairS}, {pairT}, [{Sn}]"},

	// Ordered accesses: of ARMv8.1 (LORegions), 8.3 and 8.4 (RCpc).
	{0x3ffffc00, 0x08df7c00, "ldlar{size} {Rt}, [{Sn}]"},
	{0x3ffffc00, 0x089f7c00, "stllr{size} {Rt}, [{Sn}]"},
	{0x3ffffc00, 0x38bfc000, "ldapr{size} {Rt}, [{Sn}]"},
	{0x3fe00c00, 0x19000000, "stlur{size} {Rt}, [{Sn}{imm9}]"},
	{0x3fe00c00, 0x19400000, "ldapur{size} {Rt}, [{Sn}{imm9}]"},
	{0xffe00c00, 0x99800000, "ldapursw {Xd}, [{Sn}{imm9}]"},
	{0xbfe00c00, 0x19800000, "ldapurs{size} {Xd}, [{Sn}{imm9}]"},
	{0xbfe00c00, 0x19c00000, "ldapurs{size} {Wd}, [{Sn}{imm9}]"},

	// Pointer authentication of ARMv8.3.
	{0xffffe000, 0xdac10000, "{sign} {Xd}, {Sn}"},
	{0xffffe3e0, 0xdac123e0, "{signWithZero} {Xd}"},
	{0xfffffbe0, 0xdac143e0, "xpac{stripped} {Xd}"},
	{0xffe0fc00, 0x9ac03000, "pacga {Xd}, {Xn}, {Sm}"},
	{0xfffff800, 0xd71f0800, "bra{key} {Xn}, {Sd}"},
	{0xfffff800, 0xd73f0800, "blra{key} {Xn}, {Sd}"},
	{0xfffff81f, 0xd61f081f, "bra{key}z {Xn}"},
	{0xfffff81f, 0xd63f081f, "blra{key}z {Xn}"},
	{0xfffffbff, 0xd65f0bff, "reta{key}"},
	{0xfffffbff, 0xd69f0bff, "ereta{key}"},
	{0xff200c00, 0xf8200400, "ldra{loadKey} {Xd}, [{Sn}{imm10}]"},
	{0xff200c00, 0xf8200c00, "ldra{loadKey} {Xd}, [{Sn}{imm10}]!"},

	// Memory tags of ARMv8.5.
	{0xffe00c00, 0xd9600000, "ldg {Xd}, [{Sn}{tag9}]"},
	{0xff200c00, 0xd9200800, "st{tags}g {Sd}, [{Sn}{tag9}]"},
	{0xff200c00, 0xd9200400, "st{tags}g {Sd}, [{Sn}]{alwaysTag9}"},
	{0xff200c00, 0xd9200c00, "st{tags}g {Sd}, [{Sn}{alwaysTag9}]!"},
	{0xffc00000, 0x69000000, "stgp {Xd}, {X2}, [{Sn}{tag7}]"},
	{0xffc00000, 0x68800000, "stgp {Xd}, {X2}, [{Sn}]{alwaysTag7}"},
	{0xffc00000, 0x69800000, "stgp {Xd}, {X2}, [{Sn}{alwaysTag7}]!"},
	{0xfffffc00, 0x9adf1000, "irg {Sd}, {Sn}"},
	{0xffe0fc00, 0x9ac01000, "irg {Sd}, {Sn}, {Xm}"},
	{0xffe0fc00, 0x9ac01400, "gmi {Xd}, {Sn}, {Xm}"},
	{0xffe0fc00, 0x9ac00000, "subp {Xd}, {Sn}, {Sm}"},
	{0xffe0fc1f, 0xbac0001f, "cmpp {Sn}, {Sm}"},
	{0xffe0fc00, 0xbac00000, "subps {Xd}, {Sn}, {Sm}"},
	{0xffc0c000, 0x91800000, "addg {Sd}, {Sn}, #{tagOffset}, #{tag}"},
	{0xffc0c000, 0xd1800000, "subg {Sd}, {Sn}, #{tagOffset}, #{tag}"},

	// Flags of ARMv8.4 and 8.5; a conversion of ARMv8.3.
	{0xffffffff, 0xd500401f, "cfinv"},
	{0xffffffff, 0xd500403f, "xaflag"},
	{0xffffffff, 0xd500405f, "axflag"},
	{0xffe07c10, 0xba000400, "rmif {Xn}, #{rotation}, #{flags}"},
	{0xfffffc1f, 0x3a00080d, "setf8 {Wn}"},
	{0xfffffc1f, 0x3a00480d, "setf16 {Wn}"},
	{0xfffffc00, 0x1e7e0000, "fjcvtzs {Wd}, {Dn}"},

	// Copying and setting memory, of ARMv8.8.
	{0xffe00c00, 0x19c00400, "set{setStage}{setOptions} [{Xd}]!, {Xn}!, {Xm}"},
	{0xffe00c00, 0x1dc00400, "setg{setStage}{setOptions} [{Xd}]!, {Xn}!, {Xm}"},
	{0xff200c00, 0x19000400, "cpyf{stage}{copyOptions} [{Xd}]!, [{Xm}]!, {Xn}!"},
	{0xff200c00, 0x1d000400, "cpy{stage}{copyOptions} [{Xd}]!, [{Xm}]!, {Xn}!"},

	// Words that the disassembler writes in another way.
	{0x7f8003e0, 0x330003e0, "{bfc}"},
	{0x7f8003e0, 0x320003e0, "{wide} {SRd}, {bitmask}"},

	// SVE: the instructions of compiled loops over arrays and of the C library's
	// functions.
	{0xfe00e000, 0xa4004000, "{sveLoad}, [{Sn}, {Xm}{sveLoadShift}]"},
	{0xfe10e000, 0xa400a000, "{sveLoad}, [{Sn}{mulVL4}]"},
	{0xfe00e000, 0xe4004000, "{sveStore}, [{Sn}, {Xm}{sveStoreShift}]"},
	{0xfe10e000, 0xe400e000, "{sveStore}, [{Sn}{mulVL4}]"},
	{0xffc0e000, 0x85804000, "ldr z{Vd}, [{Sn}{mulVL9}]"},
	{0xffc0e000, 0xe5804000, "str z{Vd}, [{Sn}{mulVL9}]"},
	{0xffc0e010, 0x85800000, "ldr p{Pd}, [{Sn}{mulVL9}]"},
	{0xffc0e010, 0xe5800000, "str p{Pd}, [{Sn}{mulVL9}]"},
	{0xff3ffff0, 0x2518e3e0, "ptrue p{Pd}.{element}"},
	{0xff20fc10, 0x25201c00, "whilelo p{Pd}.{element}, {Xn}, {Xm}"},
	{0xff3fffe0, 0x0420e3e0, "cnt{unit} {Xd}"},
}

// write returns the text of a word that fits. ok is false where an operand does not exist.
func (f *syntax) write(w uint32, pc uint64) (text string, ok bool) {
	var b strings.Builder
	rest := f.text
	for {
		before, behind, isOpen := strings.Cut(rest, "{")
		b.WriteString(before)
		if !isOpen {
			return b.String(), true
		}
		name, after, _ := strings.Cut(behind, "}")
		operand, ok := operands[name](w, pc)
		if !ok {
			return "", false
		}
		b.WriteString(operand)
		rest = after
	}
}
