// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/dw"
)

var updatePage = flag.Bool("update", false, "write the tables of operations in docs/plugin-protocol.md")

// pageTables are the parts of docs/plugin-protocol.md that are made here: what is between the comments.
var pageTables = regexp.MustCompile(`(?s)(<!-- made: (\w+) -->\n).*?(<!-- end -->)`)

// TestProtocolPage compares the operations and dialects in docs/plugin-protocol.md with the tables of
// the evaluator: who writes a plugin without Go has them from there. With -update it writes the page.
func TestProtocolPage(t *testing.T) {
	const path = "../docs/plugin-protocol.md"
	tables := map[string]func() string{"dialects": dialectsPage, "vendors": vendorsPage, "operations": operationsPage}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := pageTables.ReplaceAllStringFunc(string(text), func(part string) string {
		m := pageTables.FindStringSubmatch(part)
		table := tables[m[2]]
		if table == nil {
			t.Errorf("%s: there is no table %q", path, m[2])
			return part
		}
		delete(tables, m[2])
		return m[1] + table() + m[3]
	})
	for name := range tables {
		t.Errorf("%s has no table %s", path, name)
	}
	example := regexp.MustCompile(`address space 2, is .([0-9a-f ]+).: (.*\n.*)\.\n`).FindStringSubmatch(string(text))
	if example == nil {
		t.Fatalf("%s has no example", path)
	}
	code, err := hex.DecodeString(strings.ReplaceAll(example[1], " ", ""))
	if got := FormatText(code, TextOptions{Dialect: Canonical}); err != nil || got != strings.Join(strings.Fields(strings.NewReplacer("`", "", ",", ";").Replace(example[2])), " ") {
		t.Errorf("%s: %s is %s, not %s: %v", path, example[1], got, example[2], err)
	}
	switch {
	case want == string(text):
	case *updatePage:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has (-) what is not so (+); write it with -update:\n%s", path, cmp.Diff(string(text), want))
	}
}

// pageOperands are the operands of operations in the page's words.
var pageOperands = map[OperandKind]string{
	Unsigned1: "u8", Unsigned2: "u16", Unsigned4: "u32", Unsigned8: "u64",
	Signed1: "i8", Signed2: "i16", Signed4: "i32", Signed8: "i64",
	ULEB: "uleb", SLEB: "sleb", RegisterNum: "uleb register", Address: "address", EntryOffset: "u32 or u64 entry",
	Branch: "i16 distance", Block: "uleb size, bytes", Expression: "uleb size, expression", TypeOffset: "uleb type",
	UnitEntry2: "u16 entry", UnitEntry4: "u32 entry", Block1: "u8 size, bytes", EncodedPointer: "pointer",
}

func operandsOnPage(op *Operation) string {
	var words []string
	for _, kind := range op.Operands {
		if kind != NoOperand {
			words = append(words, pageOperands[kind])
		}
	}
	return strings.Join(words, "; ")
}

// forbiddenOnPage is the mark of operations that rows must not have.
func forbiddenOnPage(op *Operation) string {
	if op.isBarredFromCFI {
		return "no"
	}
	return ""
}

// vendorsPage is the table of the operations that follow DW_OP_LLVM_user in the canonical dialect.
func vendorsPage() string {
	var b strings.Builder
	b.WriteString("| operation | operands | in rows | `canonical` | `llvm-user` | `llvm-legacy` | `intel` |\n|---|---|---|---|---|---|---|\n")
	user := Canonical.tables().user
	for _, number := range slices.Sorted(maps.Keys(user)) {
		op := user[number]
		fmt.Fprintf(&b, "| `%s` | %s | %s |", op.Name, operandsOnPage(op), forbiddenOnPage(op))
		for _, d := range []*Dialect{Canonical, LLVMUser, LLVMLegacy, Intel} {
			_, e, ok := d.Lookup(op.Name)
			switch {
			case !ok:
				b.WriteString(" |")
			case e.User == 0:
				fmt.Fprintf(&b, " `%02x` |", e.Opcode)
			default:
				fmt.Fprintf(&b, " `%02x %02x` |", e.Opcode, e.User)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// operationsPage is the table of the operations that every dialect has.
func operationsPage() string {
	var b strings.Builder
	b.WriteString("| opcode | operation | operands | in rows |\n|---|---|---|---|\n")
	table := &DWARF5.tables().operations
	for opcode := 0; opcode < len(table); opcode++ {
		op := &table[opcode]
		if op.Name == "" {
			continue
		}
		code, name := fmt.Sprintf("`%02x`", opcode), "`"+op.Name+"`"
		switch byte(opcode) {
		case dw.OpLit0, dw.OpReg0, dw.OpBreg0: // 32 of each
			last := opcode + 31
			code += fmt.Sprintf(" to `%02x`", last)
			name += " to `" + table[last].Name + "`"
			opcode = last
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code, name, operandsOnPage(op), forbiddenOnPage(op))
	}
	return b.String()
}

// dialectsPage is the table of the built-in dialects.
func dialectsPage() string {
	notes := map[*Dialect]string{
		DWARF5:     "the operations of DWARF 2 to 5 and GNU's; what \"\" stands for",
		Canonical:  "on the wire: an object has none of it",
		LLVMUser:   "compilers that write `DW_OP_LLVM_user`, the numbers that are published",
		LLVMLegacy: "compilers that write the same operations in one byte, as ROCm's do",
		Intel:      "Intel's graphics compiler",
	}
	var b strings.Builder
	b.WriteString("| dialect | of |\n|---|---|\n")
	for _, d := range Dialects {
		fmt.Fprintf(&b, "| `%s` | %s |\n", d.Name, notes[d])
	}
	return b.String()
}
