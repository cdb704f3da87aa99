package amdgpu

import (
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

const (
	machine = 224 // EM_AMDGPU
	// maxInstruction is that of image instructions with five dwords.
	maxInstruction = 20
)

// Description returns what is constant about AMDGPU. The caller may change it.
//
// There is no frame pointer convention, because the code says nothing of a
// function's that keeps one, and StackAlign is 0, because return addresses are
// not on the stack: they are in scalar registers, or in lanes of vector ones.
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
// value ("Call Frame Information", 7), since a function does not touch registers
// that it was not given. Compilers that write CFI mark those that a function
// clobbers.
//
// The stack pointer is another matter: a function that calls another one moves
// it up and says nothing of that. What it was on entry is the caller's, and is
// the CFA, where stack pointers count the bytes of the whole wave. Where they
// count those of a lane (with architected flat scratch), the CFA is a multiple
// of it that only the wave size tells, and it is not known here.
func defaultRules(p *processor) []cfi.RegisterRule {
	var rules []cfi.RegisterRule
	for _, r := range rangesByNumber() {
		for i := range r.Count {
			rule := cfi.Rule{Kind: cfi.SameValue}
			if r.First+i == sgpr0+32 {
				rule.Kind = cfi.ValOffset
				if p != nil && p.scratch == architectedScratch {
					rule.Kind = cfi.Undefined
				}
			}
			rules = append(rules, cfi.RegisterRule{Column: uint64(r.First + i), Rule: rule})
		}
	}
	return rules
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
