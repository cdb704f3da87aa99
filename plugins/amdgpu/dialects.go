// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/sdk"
)

// The dialects. Both are in circulation, and the byte 0xe9 stands for another
// thing in each, so each code object names its own.
const (
	// userDialect has the extension's operations as numbers after
	// DW_OP_LLVM_user (heterogeneous extension, A.7.7.1).
	userDialect = "llvm-user"
	// legacyDialect has a byte for each, as ROCm's compilers write them, and
	// LLVM's main branch in call frame information.
	legacyDialect = "llvm-legacy"
)

// dialects are the tables of both.
func dialects() []sdk.Dialect {
	byUser, byOpcode := sdk.Dialect{Name: userDialect}, sdk.Dialect{Name: legacyDialect}
	for _, o := range dw.VendorOps {
		if number := o.Published(); number != 0 {
			byUser.Operations = append(byUser.Operations, sdk.DialectOperation{Opcode: dw.OpLLVMUser, User: number, Name: o.Name})
		}
		if o.Legacy != 0 {
			byOpcode.Operations = append(byOpcode.Operations, sdk.DialectOperation{Opcode: o.Legacy, Name: o.Name})
		}
	}
	return []sdk.Dialect{byUser, byOpcode}
}
