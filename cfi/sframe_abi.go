// SPDX-License-Identifier: Apache-2.0

package cfi

import "slices"

// sframeABI is the part of the SFrame format that is left to an ABI (The SFrame Format, 2.2.1
// and chapter 3), in the ABI's DWARF register numbers.
type sframeABI struct {
	name       string
	machine    uint16 // e_machine
	big        bool
	sp, fp, ra uint64
	// fixedRA means that the header gives the return address's offset from the
	// CFA; else rows do.
	fixedRA bool
	// both means that rows track the frame pointer and the return address, or
	// neither.
	both bool
	// signed means that return addresses can be signed.
	signed bool
	// A row's CFA is at base + offset*scale + bias, the caller's stack pointer
	// at CFA - bias.
	scale, bias int64
	// registers means that an odd offset is a register number.
	registers bool
	// preserved are the other registers that functions preserve.
	preserved []uint64

	rules      []RegisterRule // of every row; the rules of fp and ra are filled in
	fpAt, raAt int
}

// sframeABIs are the ABIs by sfh_abi_arch.
var sframeABIs = map[uint8]*sframeABI{
	1: aarch64ABI("AArch64, big endian", true), // SFRAME_ABI_AARCH64_ENDIAN_BIG
	2: aarch64ABI("AArch64, little endian", false),
	3: newSFrameABI(sframeABI{ // SFRAME_ABI_AMD64_ENDIAN_LITTLE
		name: "AMD64", machine: 62, sp: 7, fp: 6, ra: 16, fixedRA: true, scale: 1,
		preserved: []uint64{3, 12, 13, 14, 15}, // rbx, r12 to r15 (psABI 3.2.1)
	}),
	4: newSFrameABI(sframeABI{ // SFRAME_ABI_S390X_ENDIAN_BIG
		name: "s390x", machine: 22, big: true, sp: 15, fp: 11, ra: 14, scale: 8, bias: 160, registers: true,
		// r6 to r10, r12, r13 and f8 to f15 (s390x ELF ABI, 1.2.2)
		preserved: []uint64{6, 7, 8, 9, 10, 12, 13, 24, 25, 26, 27, 28, 29, 30, 31},
	}),
}

func aarch64ABI(name string, big bool) *sframeABI {
	return newSFrameABI(sframeABI{
		name: name, machine: 183, big: big, sp: 31, fp: 29, ra: 30, both: true, signed: true, scale: 1,
		// x19 to x28 and v8 to v15 (AAPCS64, 6.1)
		preserved: []uint64{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 72, 73, 74, 75, 76, 77, 78, 79},
	})
}

func newSFrameABI(a sframeABI) *sframeABI {
	for _, column := range a.preserved {
		a.rules = append(a.rules, RegisterRule{column, Rule{Kind: Undefined}})
	}
	a.rules = append(a.rules,
		RegisterRule{a.sp, Rule{Kind: ValOffset, Offset: -a.bias}}, // 3.3, appendix A
		RegisterRule{Column: a.fp}, RegisterRule{Column: a.ra})
	slices.SortFunc(a.rules, func(x, y RegisterRule) int { return int(x.Column) - int(y.Column) })
	a.fpAt, _ = find(a.rules, a.fp)
	a.raAt, _ = find(a.rules, a.ra)
	return &a
}

// setABI checks that the section can be of the ABI.
func (t *SFrame) setABI(number uint8) error {
	a := sframeABIs[number]
	switch {
	case a == nil:
		return t.errorf(4, ErrSFrameABI, "identifier %d, expected 1 to 4", number)
	case a.big != t.big:
		return t.errorf(4, ErrSFrameABI, "%s, in a section with byte order %v", a.name, t.section.Order)
	case t.section.AddressSize != 8:
		return t.errorf(4, ErrAddressSize, "%d bytes, %s has 8", t.section.AddressSize, a.name)
	case a.fixedRA != (t.fixedRA != 0):
		return t.errorf(6, ErrSFrameABI, "%s with a fixed offset of %d for the return address", a.name, t.fixedRA)
	}
	t.abi = a
	return nil
}
