// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/sdk"
)

// dialect is the dialect of Intel's graphics compiler, in all its versions: an
// operation that later ones do not write has not been replaced by another.
const dialect = "intel"

func dialects() []sdk.Dialect {
	d := sdk.Dialect{Name: dialect}
	for _, o := range dw.VendorOps {
		if o.Intel != 0 {
			d.Operations = append(d.Operations, sdk.DialectOperation{Opcode: o.Intel, Name: o.Name})
		}
	}
	return []sdk.Dialect{d}
}
