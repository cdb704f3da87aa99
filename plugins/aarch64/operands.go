// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"fmt"
	"math/bits"
)

// operand returns the text of one part of a word. ok is false where it does not exist.
type operand func(w uint32, pc uint64) (text string, ok bool)

// operands has the names that syntaxes have in braces.
var operands = map[string]operand{
	"Xd": register("x", "xzr", 0), "Xn": register("x", "xzr", 5), "Xm": register("x", "xzr", 16), "X2": register("x", "xzr", 10),
	"Wd": register("w", "wzr", 0), "Wn": register("w", "wzr", 5), "Dn": register("d", "d31", 5),
	"Sd": register("x", "sp", 0), "Sn": register("x", "sp", 5), "Sm": register("x", "sp", 16),
	"Rt": sized(0), "Rs": sized(16), "pairT": pairOf(0), "pairS": pairOf(16),

	"low16": func(w uint32, _ uint64) (string, bool) { return fmt.Sprint(w & 0xffff), true },
	"hex16": hex(5, 16, 1), "target19": target19, "condition": oneOf(0, 4, conditionNames[:]...),
	"hint": hintText, "system": systemRegister,

	"size": oneOf(30, 2, "b", "h", "", ""), "order": oneOf(22, 2, "", "l", "a", "al"), "release": oneOf(22, 1, "", "l"), "casOrder": casOrder,
	"imm9": offset(12, 9, 1, false), "imm10": imm10,
	"tag9": offset(12, 9, 16, false), "alwaysTag9": offset(12, 9, 16, true), "tag7": offset(15, 7, 16, false), "alwaysTag7": offset(15, 7, 16, true),
	"tags": oneOf(22, 2, "", "z", "2", "z2"), "tagOffset": hex(16, 6, 16), "tag": hex(10, 4, 1),

	"sign":         oneOf(10, 3, "pacia", "pacib", "pacda", "pacdb", "autia", "autib", "autda", "autdb"),
	"signWithZero": oneOf(10, 3, "paciza", "pacizb", "pacdza", "pacdzb", "autiza", "autizb", "autdza", "autdzb"),
	"stripped":     oneOf(10, 1, "i", "d"), "key": oneOf(10, 1, "a", "b"), "loadKey": oneOf(23, 1, "a", "b"),

	"rotation": decimal(15, 6), "flags": decimal(0, 4),
	"stage": oneOf(22, 2, "p", "m", "e"), "setStage": oneOf(14, 2, "p", "m", "e"), "setOptions": oneOf(12, 2, "", "t", "n", "tn"),
	"copyOptions": oneOf(12, 4, "", "wt", "rt", "t", "wn", "wtwn", "rtwn", "twn", "rn", "wtrn", "rtrn", "trn", "n", "wtn", "rtn", "tn"),

	"bfc": clearedBits, "wide": wideOrLogical, "SRd": stackOrRegister, "bitmask": bitmaskText,

	"sveLoad": sveLoad, "sveLoadShift": sveLoadShift, "sveStore": sveStore, "sveStoreShift": sveStoreShift,
	"mulVL4": mulVL4, "mulVL9": mulVL9, "Vd": decimal(0, 5), "Pd": decimal(0, 4),
	"element": oneOf(22, 2, "b", "h", "s", "d"), "unit": oneOf(22, 2, "b", "h", "w", "d"),
}

// field is count bits of w from bit first on.
func field(w uint32, first, count uint) uint32 { return w >> first & (1<<count - 1) }

func register(letter, last string, first uint) operand {
	return func(w uint32, _ uint64) (string, bool) {
		if n := field(w, first, 5); n != 31 {
			return fmt.Sprint(letter, n), true
		}
		return last, true
	}
}

// sized is a register with the number of bits of the access, at least 32.
func sized(first uint) operand {
	word, half := register("x", "xzr", first), register("w", "wzr", first)
	return func(w uint32, pc uint64) (string, bool) {
		if w>>30 == 3 {
			return word(w, pc)
		}
		return half(w, pc)
	}
}

// pairOf is a register with an even number and the one behind it.
func pairOf(first uint) operand {
	return func(w uint32, pc uint64) (string, bool) {
		letter := "w"
		if w>>30&1 == 1 {
			letter = "x"
		}
		n := field(w, first, 5)
		second := fmt.Sprint(letter, n+1)
		if n == 30 {
			second = letter + "zr"
		}
		return fmt.Sprintf("%s%d, %s", letter, n, second), true
	}
}

// oneOf is a text for each value of count bits.
func oneOf(first, count uint, texts ...string) operand {
	return func(w uint32, _ uint64) (string, bool) {
		n := field(w, first, count)
		if n >= uint32(len(texts)) {
			return "", false
		}
		return texts[n], true
	}
}

// hex is a number of units in count bits.
func hex(first, count uint, unit uint32) operand {
	return func(w uint32, _ uint64) (string, bool) { return fmt.Sprintf("%#x", field(w, first, count)*unit), true }
}

func decimal(first, count uint) operand {
	return func(w uint32, _ uint64) (string, bool) { return fmt.Sprint(field(w, first, count)), true }
}

// offset is a signed number of units in count bits behind the base of an address; unless
// isAlways, 0 is not written.
func offset(first, count uint, unit int64, isAlways bool) operand {
	return func(w uint32, _ uint64) (string, bool) {
		return offsetText(signed(w, first, count)*unit, isAlways), true
	}
}

func offsetText(n int64, isAlways bool) string {
	if n == 0 && !isAlways {
		return ""
	}
	return fmt.Sprintf(", #%d", n)
}

// imm10 is the offset of LDRAA and LDRAB.
func imm10(w uint32, _ uint64) (string, bool) { return offsetText(signedOffset10(w), false), true }

// signedOffset10 is an offset of ten bits, the highest of which is apart.
func signedOffset10(w uint32) int64 {
	return 8 * signed(w>>22&1<<9|field(w, 12, 9), 0, 10)
}

// target19 is the target of a conditional branch.
func target19(w uint32, pc uint64) (string, bool) {
	return fmt.Sprintf("%#x", pc+uint64(4*signed(w, 5, 19))), true //nolint:gosec // modular
}

// casOrder is the order of a compare and swap: acquire and release are bits apart.
func casOrder(w uint32, _ uint64) (text string, ok bool) {
	if field(w, 22, 1) == 1 {
		text = "a"
	}
	if field(w, 15, 1) == 1 {
		text += "l"
	}
	return text, true
}

var conditionNames = [16]string{"eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv"}

// hints has the names of hints by their number (C6.2, HINT and those that it lists).
var hints = map[uint32]string{
	0: "nop", 1: "yield", 2: "wfe", 3: "wfi", 4: "sev", 5: "sevl", 6: "dgh", 7: "xpaclri", 8: "pacia1716", 10: "pacib1716", 12: "autia1716",
	14: "autib1716", 16: "esb", 17: "psb csync", 18: "tsb csync", 20: "csdb", 24: "paciaz", 25: "paciasp", 26: "pacibz", 27: "pacibsp",
	28: "autiaz", 29: "autiasp", 30: "autibz", 31: "autibsp", 32: "bti", 34: "bti c", 36: "bti j", 38: "bti jc",
}

func hintText(w uint32, _ uint64) (string, bool) {
	n := field(w, 5, 7)
	if name := hints[n]; name != "" {
		return name, true
	}
	return fmt.Sprintf("hint #%#x", n), true
}

// systemRegisters are the names of system registers that programs use, by op0, op1, CRn,
// CRm and op2 (D17.2).
var systemRegisters = map[[5]uint32]string{
	{3, 3, 4, 2, 0}: "nzcv", {3, 3, 4, 2, 1}: "daif", {3, 3, 4, 2, 5}: "dit", {3, 3, 4, 2, 6}: "ssbs", {3, 3, 4, 2, 7}: "tco",
	{3, 3, 4, 4, 0}: "fpcr", {3, 3, 4, 4, 1}: "fpsr", {3, 3, 13, 0, 2}: "tpidr_el0", {3, 3, 13, 0, 3}: "tpidrro_el0",
	{3, 3, 13, 0, 5}: "tpidr2_el0", {3, 3, 4, 2, 2}: "svcr", {3, 3, 0, 0, 1}: "ctr_el0", {3, 3, 0, 0, 7}: "dczid_el0",
	{3, 3, 14, 0, 0}: "cntfrq_el0", {3, 3, 14, 0, 1}: "cntpct_el0", {3, 3, 14, 0, 2}: "cntvct_el0", {3, 0, 0, 0, 0}: "midr_el1",
	{3, 0, 0, 0, 5}: "mpidr_el1", {3, 0, 0, 4, 0}: "id_aa64pfr0_el1", {3, 0, 0, 4, 1}: "id_aa64pfr1_el1", {3, 0, 0, 4, 4}: "id_aa64zfr0_el1",
	{3, 0, 0, 6, 0}: "id_aa64isar0_el1", {3, 0, 0, 6, 1}: "id_aa64isar1_el1", {3, 0, 0, 6, 2}: "id_aa64isar2_el1",
	{3, 0, 0, 7, 0}: "id_aa64mmfr0_el1", {3, 0, 0, 7, 1}: "id_aa64mmfr1_el1", {3, 0, 0, 7, 2}: "id_aa64mmfr2_el1",
}

// systemRegister is the name of a system register; one without a name here is written by
// its numbers, as assemblers take it.
func systemRegister(w uint32, _ uint64) (string, bool) {
	n := [5]uint32{field(w, 19, 2), field(w, 16, 3), field(w, 12, 4), field(w, 8, 4), field(w, 5, 3)}
	if name := systemRegisters[n]; name != "" {
		return name, true
	}
	return fmt.Sprintf("s%d_%d_c%d_c%d_%d", n[0], n[1], n[2], n[3], n[4]), true
}

// registerBits is the number of bits of an instruction's registers, by its highest bit.
func registerBits(w uint32) uint32 { return 32 << (w >> 31) }

// clearedBits is the operands of BFC: BFM with the zero register, where it inserts.
func clearedBits(w uint32, pc uint64) (string, bool) {
	rotate, last, size := field(w, 16, 6), field(w, 10, 6), registerBits(w)
	name, letter := "w", "wzr"
	if size == 64 {
		name, letter = "x", "xzr"
	}
	if isWide := field(w, 22, 1) == 1; isWide != (size == 64) || rotate >= size || last >= size {
		return "", false
	}
	rd, _ := register(name, letter, 0)(w, pc)
	if last >= rotate {
		return fmt.Sprintf("bfxil %s, %s, #%d, #%d", rd, letter, rotate, last-rotate+1), true
	}
	return fmt.Sprintf("bfc %s, #%d, #%d", rd, size-rotate, last+1), true
}

// bitmask is the immediate of a logical instruction (DecodeBitMasks of the pseudocode).
func bitmask(w uint32) (value uint64, ok bool) {
	rotate, last := field(w, 16, 6), field(w, 10, 6)
	length := bits.Len32(field(w, 22, 1)<<6|^last&0x3f) - 1
	if length < 1 {
		return 0, false
	}
	size := uint32(1) << length
	if size > registerBits(w) || last&(size-1) == size-1 {
		return 0, false
	}
	element := uint64(1)<<(last&(size-1)+1) - 1
	if rotate &= size - 1; rotate > 0 {
		element = element>>rotate | element<<(size-rotate)
	}
	if size < 64 {
		element &= 1<<size - 1
	}
	for ; size < 64; size *= 2 {
		element |= element << size
	}
	if registerBits(w) == 32 {
		element &= 1<<32 - 1
	}
	return element, true
}

func bitmaskText(w uint32, _ uint64) (string, bool) {
	value, ok := bitmask(w)
	return fmt.Sprintf("#%#x", value), ok
}

// wideOrLogical is the name of ORR of an immediate with the zero register: MOV where no
// MOVZ or MOVN gives the same.
func wideOrLogical(w uint32, _ uint64) (string, bool) {
	value, ok := bitmask(w)
	if ok && field(w, 0, 5) != 31 && (isWideMove(value, registerBits(w)) || isWideMove(^value, registerBits(w))) {
		return "orr", true
	}
	return "mov", ok
}

// isWideMove reports whether at most 16 of a number's bits, from a multiple of 16 on, are set.
func isWideMove(value uint64, size uint32) bool {
	if size == 32 {
		value &= 1<<32 - 1
	}
	return value == 0 || value>>(bits.TrailingZeros64(value)&^15) < 1<<16
}

// stackOrRegister is a destination that may be the stack pointer, and the zero register
// where the instruction is ORR.
func stackOrRegister(w uint32, pc uint64) (string, bool) {
	mnemonic, ok := wideOrLogical(w, pc)
	name, stack := "w", "wsp"
	if registerBits(w) == 64 {
		name, stack = "x", "sp"
	}
	text, _ := register(name, stack, 0)(w, pc)
	if mnemonic == "orr" {
		text += ", " + name + "zr"
	}
	return text, ok
}

// The loads of SVE to one vector, by their dtype, and how far each shifts its index.
var sveLoads = [16]struct {
	text, element string
	shift         uint32
}{
	{"ld1b", "b", 0}, {"ld1b", "h", 0}, {"ld1b", "s", 0}, {"ld1b", "d", 0}, {"ld1sw", "d", 2}, {"ld1h", "h", 1}, {"ld1h", "s", 1}, {"ld1h", "d", 1},
	{"ld1sh", "d", 1}, {"ld1sh", "s", 1}, {"ld1w", "s", 2}, {"ld1w", "d", 2}, {"ld1sb", "d", 0}, {"ld1sb", "s", 0}, {"ld1sb", "h", 0}, {"ld1d", "d", 3},
}

func sveLoad(w uint32, _ uint64) (string, bool) {
	l := &sveLoads[field(w, 21, 4)]
	return fmt.Sprintf("%s {z%d.%s}, p%d/z", l.text, field(w, 0, 5), l.element, field(w, 10, 3)), true
}

func sveLoadShift(w uint32, _ uint64) (string, bool) {
	return shiftText(sveLoads[field(w, 21, 4)].shift), field(w, 16, 5) != 31
}

func sveStore(w uint32, _ uint64) (string, bool) {
	size, element := field(w, 23, 2), field(w, 21, 2)
	return fmt.Sprintf("st1%c {z%d.%c}, p%d", "bhwd"[size], field(w, 0, 5), "bhsd"[element], field(w, 10, 3)), size <= element
}

func sveStoreShift(w uint32, _ uint64) (string, bool) {
	return shiftText(field(w, 23, 2)), field(w, 16, 5) != 31
}

func shiftText(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", lsl #%d", n)
}

// mulVL4 and mulVL9 are offsets that count vectors.
func mulVL4(w uint32, _ uint64) (string, bool) { return vectorsText(signed(w, 16, 4)), true }

func mulVL9(w uint32, _ uint64) (string, bool) {
	return vectorsText(signed(field(w, 16, 6)<<3|field(w, 10, 3), 0, 9)), true
}

func vectorsText(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", #%d, mul vl", n)
}
