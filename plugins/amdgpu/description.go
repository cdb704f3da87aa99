// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

const (
	machine = 224 // EM_AMDGPU
	// maxInstruction is the size of image instructions with five dwords.
	maxInstruction = 20
)

// Description returns the constant description of AMDGPU. The caller may
// change it.
//
// There is no frame pointer convention, because the code does not show whether
// a function keeps one, and StackAlign is 0, because return addresses are not
// on the stack: they are in scalar registers, or in lanes of vector ones.
func Description() *sdk.Description {
	return &sdk.Description{
		Name:           "amdgpu",
		Version:        "1.0",
		Recognises:     []sdk.Recogniser{{ELFMachine: machine, OSABI: -1}, {NoteOwner: "AMDGPU", OSABI: -1}},
		ByteOrder:      sdk.LittleEndian,
		AddressBits:    64,
		Registers:      registerRanges(),
		PC:             pc64,
		SP:             sgpr0 + 32, // "Non-Kernel Functions": SGPR32 is the stack pointer,
		FP:             sgpr0 + 33, // "Frame Pointer": SGPR33, where there is one
		ReturnAddress:  pc64,       // "Call Frame Information", 6
		AddressSpaces:  addressSpaces(),
		DefaultRules:   defaultRules(nil),
		CallDistance:   1, // "Call Frame Information": PC-1 is in the call, whose size varies
		MaxInstruction: maxInstruction,
		Relocations:    relocations(),
		Dialects:       dialects(),
		Processors:     laneCounts(),
	}
}

// defaultRules are the rules of columns that a row does not mention: the same
// value ("Call Frame Information", 7), since a function leaves alone the
// registers that it has no right to. Compilers that write CFI mark those that a
// function clobbers.
//
// The stack pointer is another matter: a function that calls another one moves
// it up and has no rule for that. Its value on entry is the caller's, and is
// the CFA, where stack pointers count the bytes of the whole wave. Where they
// count the bytes of a lane (with architected flat scratch), it is a lane's
// part of the CFA.
func defaultRules(p *processor) []cfi.RegisterRule {
	var rules []cfi.RegisterRule
	for _, r := range rangesByNumber() {
		for i := range r.Count {
			rule := cfi.Rule{Kind: cfi.SameValue}
			if r.First+i == sgpr0+32 {
				rule.Kind = cfi.ValOffset
				if p != nil && p.scratch == architectedScratch {
					rule.Kind = cfi.ValOffsetPerLane
				}
			}
			rules = append(rules, cfi.RegisterRule{Column: uint64(r.First + i), Rule: rule})
		}
	}
	return rules
}

// clobberRules are the default rules where call frame information does not
// describe every function. Then the registers that a function changed are not
// known, and only the registers that the calling convention makes it preserve
// have their values ("Non-Kernel Functions").
//
// Conventions differ by compiler: SGPR40 to 47 and every other group of eight up
// to SGPR95 were preserved once, and are not any more. Those are lost, as are
// accumulation registers before gfx90a. A function leaves alone the lanes that
// were not active when it was called, but such code does not tell which they
// were: a vector register that may have changed is lost in all lanes.
func clobberRules(p *processor) []cfi.RegisterRule {
	rules := defaultRules(p)
	for i := range rules {
		if !isPreserved(uint32(rules[i].Column), p) {
			rules[i].Rule = cfi.Rule{Kind: cfi.Undefined}
		}
	}
	return rules
}

// isPreserved reports whether functions leave a register as it was.
func isPreserved(n uint32, p *processor) bool {
	has := func(first, count uint32) bool { return n-first < count }
	striped := func(i uint32) bool { return i/8%2 == 0 }
	switch {
	case has(sgpr0, 64):
		i := n - sgpr0
		return i >= 30 && i < 40 || i >= 48 && striped(i)
	case has(sgpr64, 42):
		i := n - sgpr64 + 64
		return striped(i) || i >= 104 // the last group has ten
	case has(vgpr0w32, 256):
		i := n - vgpr0w32
		return i >= 40 && !striped(i)
	case has(vgpr0w64, 256):
		i := n - vgpr0w64
		return i >= 40 && !striped(i)
	case has(agpr0w32, 256):
		return n-agpr0w32 >= 32 && p != nil && p.hasAlignedTuples
	case has(agpr0w64, 256):
		return n-agpr0w64 >= 32 && p != nil && p.hasAlignedTuples
	case has(vgpr0w32, 512), has(vgpr512, 512), n == vcc32, n == vcc64, n == status:
		return false
	}
	return true
}

// relocations are the types that debugging sections of relocatable objects have
// ("Relocation Records").
func relocations() []sdk.Relocation {
	return []sdk.Relocation{
		{Type: 0, Kind: sdk.RelocationNone},              // R_AMDGPU_NONE
		{Type: 3, Size: 8, Kind: sdk.RelocationAbsolute}, // R_AMDGPU_ABS64
		{Type: 4, Size: 4, Kind: sdk.RelocationRelative}, // R_AMDGPU_REL32
		{Type: 5, Size: 8, Kind: sdk.RelocationRelative}, // R_AMDGPU_REL64
		{Type: 6, Size: 4, Kind: sdk.RelocationAbsolute}, // R_AMDGPU_ABS32
	}
}
