// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"errors"
	"testing"
)

// TestOperationsThatCFIMustNotUse finds what A.6.4.2 forbids without an evaluation, also
// where a branch goes around it.
func TestOperationsThatCFIMustNotUse(t *testing.T) {
	for _, text := range []string{
		"addrx 0", "call2 0", "call4 0", "call_ref 0", "const_type 0x11 00000000", "constx 0", "convert 0", "deref_type 4 0x11",
		"fbreg 0", "implicit_pointer 0 0", "regval_type 3 0x11", "reinterpret 0x11", "xderef_type 4 0x11", "push_object_address",
		"LLVM_push_lane", "LLVM_push_iteration", "call_frame_cfa", "entry_value { reg5 }", "skip 2; fbreg 0; lit1",
	} {
		code, err := Parse(text, TextOptions{Dialect: Canonical})
		if err != nil {
			t.Fatal(err)
		}
		var e *Error
		if err := CheckCFI(code, Canonical, 8, LittleEndian); !errors.As(err, &e) || e.Kind != IllFormed || !errors.Is(err, ErrNotInCFI) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"breg7 8", "LLVM_call_frame_entry_reg 3", "reg30; piece 4; reg31; piece 4"} {
		code, err := Parse(text, TextOptions{Dialect: Canonical})
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckCFI(code, Canonical, 8, LittleEndian); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
