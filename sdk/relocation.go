// SPDX-License-Identifier: Apache-2.0

package sdk

import "github.com/unwindd/unwindd/sdk/reloc"

// Relocation describes one relocation type of a machine, as far as debug
// sections use it.
type Relocation = reloc.Entry

// The kinds of relocations: S is the symbol's value, A the addend, P the
// place, and V the value at the place. See reloc.Kind.
const (
	RelocationNone        = reloc.None
	RelocationAbsolute    = reloc.Absolute    // S + A
	RelocationRelative    = reloc.Relative    // S + A - P
	RelocationSet         = reloc.Set         // S + A, low bits
	RelocationAdd         = reloc.Add         // V + S + A, low bits
	RelocationSubtract    = reloc.Subtract    // V - S - A, low bits
	RelocationAddRelative = reloc.AddRelative // V + S + A - P, low bits
	RelocationRelativePA  = reloc.RelativePA  // S + A - P - 8
)

// The formats of the field that a relocation writes.
const (
	FieldBytes   = reloc.Bytes   // whole bytes
	FieldLow6    = reloc.Low6    // the low six bits of a byte; the others do not change
	FieldULEB128 = reloc.ULEB128 // an unsigned LEB128 number, whose length does not change; its Size is 0
)
