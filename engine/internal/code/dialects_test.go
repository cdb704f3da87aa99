// SPDX-License-Identifier: Apache-2.0

package code

import (
	"testing"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// TestBuiltInDialects: a description need not list the operations of a dialect that is built in.
func TestBuiltInDialects(t *testing.T) {
	for _, builtIn := range []*locexpr.Dialect{locexpr.LLVMUser, locexpr.LLVMLegacy, locexpr.Intel} {
		for what, listed := range map[string][]sdk.Dialect{"not listed": nil, "listed": {{Name: builtIn.Name}}} {
			m := &Machine{Description: &sdk.Description{Name: "warp", Dialects: listed}}
			d, err := m.Dialect(builtIn.Name)
			if err != nil {
				t.Fatalf("%s, %s: %v", builtIn.Name, what, err)
			}
			operation := "DW_OP_LLVM_push_lane"
			if builtIn == locexpr.Intel {
				operation = "DW_OP_INTEL_push_simd_lane"
			}
			_, want, _ := builtIn.Lookup(operation)
			if _, got, ok := d.Lookup(operation); !ok || got != want {
				t.Errorf("%s, %s: %s is %+v, expected %+v", builtIn.Name, what, operation, got, want)
			}
		}
	}
}
