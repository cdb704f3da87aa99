// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/dw"
)

// Every name of every dialect, in every spelling, is the operation that going over all
// opcodes finds.
func TestLookupFindsTheFirstOfAName(t *testing.T) {
	twice, err := Canonical.Extend("twice", []Encoding{{Opcode: 0xe0, Name: "DW_OP_dup"}, {Opcode: 0xe1, Name: "DW_OP_plus"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Dialect{DWARF5, Canonical, LLVMLegacy, twice} {
		check := func(name string) {
			t.Helper()
			want, encoding, isKnown := lookupByOpcodes(d, name)
			op, e, ok := d.Lookup(name)
			if op != want || e != encoding || ok != isKnown {
				t.Errorf("%s: %q is %v %v %t, expected %v %v %t", d, name, op, e, ok, want, encoding, isKnown)
			}
		}
		for opcode := range d.tables().operations {
			name := d.tables().operations[opcode].Name
			for _, name := range []string{name, strings.TrimPrefix(name, "DW_OP_"), strings.ToUpper(name), strings.ToLower(name), "DW_OP_" + name, name + "x"} {
				check(name)
			}
		}
		for _, op := range d.tables().user {
			check(op.Name)
			check(strings.ToUpper(op.Name))
		}
		check("")
		check("DW_OP_")
	}
}

func lookupByOpcodes(d *Dialect, name string) (op *Operation, e Encoding, ok bool) {
	name = strings.ToLower(name)
	matches := func(op *Operation) bool {
		full := strings.ToLower(op.Name)
		return full == name || full == "dw_op_"+name
	}
	for opcode := range d.tables().operations {
		if op := &d.tables().operations[opcode]; op.eval != nil && matches(op) {
			return op, Encoding{Opcode: byte(opcode), Name: op.Name}, true
		}
	}
	for number, candidate := range d.tables().user {
		if matches(candidate) && (!ok || number < e.User) {
			op, e, ok = candidate, Encoding{Opcode: dw.OpLLVMUser, User: number, Name: candidate.Name}, true
		}
	}
	return op, e, ok
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		if _, _, ok := Canonical.Lookup("DW_OP_stack_value"); !ok {
			b.Fatal("not found")
		}
	}
}
