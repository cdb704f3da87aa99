// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"testing"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// table is a dialect of the description.
func table(t *testing.T, name string) *locexpr.Dialect {
	t.Helper()
	for _, d := range Description().Dialects {
		if d.Name == name {
			table, err := d.Table()
			if err != nil {
				t.Fatal(err)
			}
			return table
		}
	}
	t.Fatalf("no dialect %s", name)
	return nil
}

// publishedOperations are the numbers of the extension's table "DWARF Operation
// Encodings" and of the older one-byte form.
var publishedOperations = []sdk.DialectOperation{
	{User: 1, Name: "DW_OP_LLVM_nop"},
	{User: 2, Opcode: 0xe1, Name: "DW_OP_LLVM_form_aspace_address"},
	{User: 3, Opcode: 0xe2, Name: "DW_OP_LLVM_push_lane"},
	{User: 4, Opcode: 0xe3, Name: "DW_OP_LLVM_offset"},
	{User: 5, Opcode: 0xe4, Name: "DW_OP_LLVM_offset_uconst"},
	{User: 6, Opcode: 0xe5, Name: "DW_OP_LLVM_bit_offset"},
	{User: 7, Opcode: 0xe6, Name: "DW_OP_LLVM_call_frame_entry_reg"},
	{User: 8, Opcode: 0xe7, Name: "DW_OP_LLVM_undefined"},
	{User: 9, Opcode: 0xe8, Name: "DW_OP_LLVM_aspace_bregx"},
	{Opcode: 0xe9, Name: "DW_OP_LLVM_aspace_implicit_pointer"},
	{User: 10, Opcode: 0xea, Name: "DW_OP_LLVM_piece_end"},
	{User: 11, Opcode: 0xeb, Name: "DW_OP_LLVM_extend"},
	{User: 12, Opcode: 0xec, Name: "DW_OP_LLVM_select_bit_piece"},
}

func TestDialectsHaveThePublishedNumbers(t *testing.T) {
	user, legacy := table(t, userDialect), table(t, legacyDialect)
	for _, o := range publishedOperations {
		if _, e, ok := user.Lookup(o.Name); o.User != 0 && (!ok || e.Opcode != 0xe9 || e.User != o.User) {
			t.Errorf("user: %s is %#x %d %v, want 0xe9 %d", o.Name, e.Opcode, e.User, ok, o.User)
		}
		if _, e, ok := legacy.Lookup(o.Name); o.Opcode != 0 && (!ok || e.Opcode != o.Opcode || e.User != 0) {
			t.Errorf("legacy: %s is %#x %d %v, want %#x", o.Name, e.Opcode, e.User, ok, o.Opcode)
		}
	}
	for _, name := range []string{"DW_OP_LLVM_aspace_implicit_pointer", "DW_OP_LLVM_push_iteration", "DW_OP_LLVM_overlay", "DW_OP_LLVM_bit_overlay"} {
		if _, e, ok := user.Lookup(name); ok {
			t.Errorf("user: %s is %#x %d, but nobody published a number", name, e.Opcode, e.User)
		}
	}
}

// Dialects that have the name of one that is built in have all of it.
func TestDialectsAreThoseThatAreBuiltIn(t *testing.T) {
	for name, builtIn := range map[string]*locexpr.Dialect{userDialect: locexpr.LLVMUser, legacyDialect: locexpr.LLVMLegacy} {
		own := table(t, name)
		if builtIn.Name != name {
			t.Errorf("%s is built in as %s", name, builtIn.Name)
		}
		for _, o := range dw.VendorOps {
			_, want, wantOK := builtIn.Lookup(o.Name)
			_, got, ok := own.Lookup(o.Name)
			if ok != wantOK || got != want {
				t.Errorf("%s: %s is %+v %v, built in as %+v %v", name, o.Name, got, ok, want, wantOK)
			}
		}
	}
}
