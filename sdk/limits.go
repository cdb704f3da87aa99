// SPDX-License-Identifier: Apache-2.0

package sdk

// The limits of messages between engine and plugin. They are far above the needs of
// real machines, and low enough that hostile counts cost neither time nor memory out of
// proportion.
const (
	// MaxRegisters is how many registers an architecture, and so one Registers, may
	// have.
	MaxRegisters = 1 << 16
	// MaxRegisterBits is the size of the largest register.
	MaxRegisterBits = 1 << 20
	// MaxRegisterData is how many bytes the registers of one answer may have in
	// all.
	MaxRegisterData = 1 << 29
	// MaxDescriptionList is how many entries a list of a description may have:
	// register ranges, register sets, address spaces, symbols, relocations,
	// dialects and the operations of a dialect.
	MaxDescriptionList = 1 << 10
	// MaxLanes is how many lanes a thread or a function may have.
	MaxLanes = 1 << 12
	// MaxName is the length of a name in bytes: of an architecture, a register,
	// an address space, an operation, a section.
	MaxName = 256
	// MaxText is the length in bytes of texts for people: reasons, problems, symbol
	// names, paths, instructions.
	MaxText = 1 << 16
	// MaxExpression is the length of an expression in bytes.
	MaxExpression = 1 << 16
	// MaxRules is how many rules one row may have.
	MaxRules = MaxRegisters
	// MaxBatch is how many entries one list of a request or an answer may have.
	MaxBatch = 1 << 22
	// MaxFile is how many bytes a file may have that ReadSection returns whole.
	MaxFile = 256 << 20
	// MaxCompanions is how many companions a code object may have.
	MaxCompanions = 8
	// MaxSuffix is the length in bytes of the endings of their names.
	MaxSuffix = 16
	// MaxLLVMName is the length in bytes of a member of an LLVMTarget.
	MaxLLVMName = 128
	// MaxInstructionBytes is the length of the longest instruction in bytes.
	MaxInstructionBytes = 256
)
