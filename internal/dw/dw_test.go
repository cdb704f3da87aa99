// SPDX-License-Identifier: Apache-2.0

package dw

import (
	godwarf "debug/dwarf"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// identifier makes of "DW_AT_low_pc" and the prefix "Attr" AttrLowpc: one that is compared without
// regard to case.
func identifier(prefix, spelled string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(spelled, "DW_"), "_")
	return strings.ToLower(prefix + strings.ReplaceAll(rest, "_", ""))
}

// declared returns the constants of the package whose names begin with a prefix, in lower case, with
// the names by which the tables spell them.
func declared(t *testing.T, prefix string) (constants []string, spelled map[string]string) {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), ".", nil, 0) //nolint:staticcheck // one package without build tags
	if err != nil {
		t.Fatal(err)
	}
	spelled = map[string]string{}
	for name, f := range packages["dw"].Files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var key, value ast.Expr
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, id := range n.Names {
					if id.IsExported() && id.Obj != nil && id.Obj.Kind == ast.Con && strings.HasPrefix(id.Name, prefix) {
						constants = append(constants, strings.ToLower(id.Name))
					}
				}
			case *ast.KeyValueExpr:
				key, value = n.Key, n.Value
			case *ast.CompositeLit:
				if len(n.Elts) == 2 {
					key, value = n.Elts[0], n.Elts[1]
				}
			}
			id, isIdent := key.(*ast.Ident)
			text, isText := value.(*ast.BasicLit)
			if isIdent && isText && strings.HasPrefix(id.Name, prefix) {
				spelled[strings.ToLower(id.Name)] = strings.Trim(text.Value, `"`)
			}
			return true
		})
	}
	return constants, spelled
}

// TestNames compares the names in the tables with the names of the constants: every constant is in a table, by its
// own name.
func TestNames(t *testing.T) {
	for prefix, unnamed := range map[string][]string{
		"Tag": nil, "Form": nil, "ATE": nil,
		"Attr": nil,
		"CFA":  {"cfahighbits", "cfalowbits"},
		"Op":   {"opbreg0", "opbreg31", "oplit0", "oplit31", "opllvmuser", "oplouser", "opreg0", "opreg31"},
	} {
		constants, spelled := declared(t, prefix)
		if len(constants) < 10 {
			t.Errorf("%s: %d constants", prefix, len(constants))
		}
		for _, name := range constants {
			if text := spelled[name]; text == "" && !slices.Contains(unnamed, name) || text != "" && identifier(prefix, text) != name {
				t.Errorf("%s is spelled %q", name, text)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(spelled)) {
			if !slices.Contains(constants, name) {
				t.Errorf("%s has a name and is no constant", name)
			}
		}
	}
}

// TestNumbers compares the tables with the standard library, which has the tags and attributes of
// DWARF 5 without the ones of vendors.
func TestNumbers(t *testing.T) {
	abbreviated := map[string]string{
		"DW_TAG_lexical_block": "LexDwarfBlock", "DW_TAG_structure_type": "StructType", "DW_TAG_common_block": "CommonDwarfBlock",
		"DW_AT_bit_stride": "StrideSize", "DW_AT_byte_stride": "Stride", "DW_AT_address_class": "AddrClass", "DW_AT_calling_convention": "Calling",
		"DW_AT_data_member_location": "DataMemberLoc", "DW_AT_vtable_elem_location": "VtableElemLoc",
	}
	compared := 0
	compare := func(number uint16, ours, theirs string) {
		if !strings.Contains(ours, "0x") && !strings.Contains(theirs, "(") {
			compared++
			if _, rest, _ := strings.Cut(strings.TrimPrefix(ours, "DW_"), "_"); !strings.EqualFold(strings.ReplaceAll(rest, "_", ""), theirs) && abbreviated[ours] != theirs {
				t.Errorf("%#x is %s, in the standard library %s", number, ours, theirs)
			}
		}
	}
	for n := range uint16(0x100) {
		compare(n, Tag(n).String(), godwarf.Tag(n).String())
		compare(n, Attr(n).String(), godwarf.Attr(n).String())
	}
	if compared < 130 {
		t.Errorf("%d were compared", compared)
	}
}

// TestNoNumberTwice finds constants of one kind with the same number, apart from the pair to which the heterogeneous
// extension gives the same.
func TestNoNumberTwice(t *testing.T) {
	once(t, tagNames[:])
	once(t, formNames[:])
	once(t, slices.DeleteFunc(slices.Clone(attrNames[:]), func(n name[Attr]) bool { return n.text == "DW_AT_LLVM_iterations" }))
}

func once[N ~uint16](t *testing.T, names []name[N]) {
	t.Helper()
	seen := map[N]string{}
	for _, n := range names {
		if other := seen[n.number]; other != "" {
			t.Errorf("%#x is %s and %s", uint16(n.number), other, n.text)
		}
		seen[n.number] = n.text
	}
}

// TestNamesOfNumbers looks up names by numbers.
func TestNamesOfNumbers(t *testing.T) {
	for got, want := range map[string]string{
		Tag(0x2e).String():    "DW_TAG_subprogram",
		Tag(0x7777).String():  "DW_TAG_0x7777",
		Attr(0x02).String():   "DW_AT_location",
		Attr(0x3fff).String(): "DW_AT_0x3fff",
		Form(0x21).String():   "DW_FORM_implicit_const",
		OpName(0x30):          "DW_OP_lit0",
		OpName(0x6f):          "DW_OP_reg31",
		OpName(0x71):          "DW_OP_breg1",
		OpName(0x9f):          "DW_OP_stack_value",
		CFAName(0x47):         "DW_CFA_advance_loc",
		CFAName(0xc0):         "DW_CFA_restore",
		CFAName(0x0f):         "DW_CFA_def_cfa_expression",
		ATEName(0x12):         "DW_ATE_ASCII",
		VendorOpName(2):       "DW_OP_LLVM_form_aspace_address",
	} {
		if got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	for _, nameless := range []string{OpName(0), OpName(OpLLVMUser), CFAName(0x17), ATEName(0), ATEName(0xff), VendorOpName(0x3f)} {
		if nameless != "" {
			t.Errorf("%s, expected none", nameless)
		}
	}
	if n := ATEByName("DW_ATE_float"); n != ATEFloat {
		t.Errorf("DW_ATE_float is %d", n)
	}
	if n := ATEByName("DW_ATE_"); n != 0 {
		t.Errorf("DW_ATE_ is %d", n)
	}
}
