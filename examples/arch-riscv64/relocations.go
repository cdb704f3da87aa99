// SPDX-License-Identifier: Apache-2.0

package riscv64

import "github.com/unwindd/unwindd/sdk"

// relocations are the types that sections of call frame information and debugging
// information have (psABI, "Relocations"). Linkers make code shorter, so an assembler
// does not know the distance of two places: it is written as two relocations of one
// field.
func relocations() []sdk.Relocation {
	const (
		absolute, relative = sdk.RelocationAbsolute, sdk.RelocationRelative
		set, add, subtract = sdk.RelocationSet, sdk.RelocationAdd, sdk.RelocationSubtract
	)
	return []sdk.Relocation{
		{Type: 0, Kind: sdk.RelocationNone},                       // R_RISCV_NONE
		{Type: 1, Size: 4, Kind: absolute},                        // R_RISCV_32
		{Type: 2, Size: 8, Kind: absolute},                        // R_RISCV_64
		{Type: 8, Size: 4, Kind: absolute},                        // R_RISCV_TLS_DTPREL32
		{Type: 9, Size: 8, Kind: absolute},                        // R_RISCV_TLS_DTPREL64
		{Type: 33, Size: 1, Kind: add},                            // R_RISCV_ADD8
		{Type: 34, Size: 2, Kind: add},                            // R_RISCV_ADD16
		{Type: 35, Size: 4, Kind: add},                            // R_RISCV_ADD32
		{Type: 36, Size: 8, Kind: add},                            // R_RISCV_ADD64
		{Type: 37, Size: 1, Kind: subtract},                       // R_RISCV_SUB8
		{Type: 38, Size: 2, Kind: subtract},                       // R_RISCV_SUB16
		{Type: 39, Size: 4, Kind: subtract},                       // R_RISCV_SUB32
		{Type: 40, Size: 8, Kind: subtract},                       // R_RISCV_SUB64
		{Type: 43, Kind: sdk.RelocationNone},                      // R_RISCV_ALIGN
		{Type: 51, Kind: sdk.RelocationNone},                      // R_RISCV_RELAX
		{Type: 52, Size: 1, Kind: subtract, Field: sdk.FieldLow6}, // R_RISCV_SUB6
		{Type: 53, Size: 1, Kind: set, Field: sdk.FieldLow6},      // R_RISCV_SET6
		{Type: 54, Size: 1, Kind: set},                            // R_RISCV_SET8
		{Type: 55, Size: 2, Kind: set},                            // R_RISCV_SET16
		{Type: 56, Size: 4, Kind: set},                            // R_RISCV_SET32
		{Type: 57, Size: 4, Kind: relative},                       // R_RISCV_32_PCREL
		{Type: 60, Kind: set, Field: sdk.FieldULEB128},            // R_RISCV_SET_ULEB128
		{Type: 61, Kind: subtract, Field: sdk.FieldULEB128},       // R_RISCV_SUB_ULEB128
	}
}
