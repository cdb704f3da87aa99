// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// The marks of recognised files.
const (
	machineIntelGT = 205        // EM_INTELGT: zebin
	machineGen     = 0xb6       // the ELF files of a kernel's DWARF
	streamMagic    = 0xdeadd010 // of a vISA debug stream
	containerMagic = 0x494e5443 // "INTC": of a container of debug information
)

const maxInstruction = 16 // bytes; a compacted one has 8

// Description returns the constant description of Gen. The caller may change
// it.
//
// The stack pointer and the frame pointer are parts of GRF registers, which
// depend on the compiler's ABI; neither has a register number. StackAlign is 0,
// because a stack lies in the scratch space and not where a stack pointer alone
// leads to.
func Description() *sdk.Description {
	return &sdk.Description{
		Name:    "visa",
		Version: "1.0",
		Recognises: []sdk.Recogniser{
			{ELFMachine: machineIntelGT, OSABI: -1},
			{ELFMachine: machineGen, OSABI: -1},
			{OSABI: -1, Magic: binary.LittleEndian.AppendUint32(nil, streamMagic)},
			{OSABI: -1, Magic: binary.LittleEndian.AppendUint32(nil, containerMagic)},
		},
		ByteOrder:      sdk.LittleEndian,
		AddressBits:    64,
		Registers:      registerRanges(),
		PC:             ip,
		SP:             sdk.NoRegister,
		FP:             sdk.NoRegister,
		ReturnAddress:  ip, // older compilers' CIEs name another column
		AddressSpaces:  addressSpaces(),
		DefaultRules:   defaultRules(),
		CallDistance:   1,
		MaxInstruction: maxInstruction,
		Relocations:    relocations(),
		Dialects:       dialects(),
		Processors:     laneCounts(),
		Companions:     []string{".dbg"},
	}
}

// defaultRules are the rules of columns that neither a row nor its CIE mentions.
// The base registers are the thread's, whichever function it is in. Which GRF
// registers a function keeps depends on how many there are (with 128 it keeps
// those from r60 on, with 256 those from r124 on) and on whether it is a
// subroutine, so CIEs list them; elsewhere it is not known.
func defaultRules() []cfi.RegisterRule {
	var rules []cfi.RegisterRule
	for _, r := range registerRanges() {
		rule := cfi.Rule{Kind: cfi.Undefined}
		switch {
		case r.First == ip: // a row of this architecture has its rule
			continue
		case r.Class == sdk.Control:
			rule.Kind = cfi.SameValue
		}
		for i := range r.Count {
			rules = append(rules, cfi.RegisterRule{Column: uint64(r.First + i), Rule: rule})
		}
	}
	return rules
}

// relocations returns the types that debugging sections of zebin have.
func relocations() []sdk.Relocation {
	return []sdk.Relocation{
		{Type: 0, Kind: sdk.RelocationNone},              // R_ZE_NONE
		{Type: 1, Size: 8, Kind: sdk.RelocationAbsolute}, // R_ZE_SYM_ADDR
		{Type: 2, Size: 4, Kind: sdk.RelocationAbsolute}, // R_ZE_SYM_ADDR_32
	}
}
