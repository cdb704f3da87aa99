// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/dw"
)

const (
	tagPointer, tagArray, tagSubrange, tagTypedef = dw.TagPointerType, dw.TagArrayType, dw.TagSubrangeType, dw.TagTypedef
	tagMemberPointer, tagSubroutine, tagBlock     = dw.TagPtrToMemberType, dw.TagSubroutineType, dw.TagLexicalBlock
	tagParameter                                  = dw.TagFormalParameter
	atType, atCount, atUpper, atLower             = dw.AttrType, dw.AttrCount, dw.AttrUpperBound, dw.AttrLowerBound
	atTagOffset                                   = dw.AttrLLVMTagOffset
)

func ref(to string) attr { return attr{atType, fRefAddr, label(to)} }

func marked(m string, attrs ...attr) []attr { return append([]attr{{0, 0, mark(m)}}, attrs...) }

func number(a dw.Attr, n uint64) attr { return attr{a, fData1, n} }

// location is an operation with an address, and what follows it.
func location(address uint64, more ...byte) attr {
	return attr{atLoc, fExprloc, append(append(expr{dw.OpAddr}, words(8, address)...), more...)}
}

func TestVariablesAreFoundByTheirAddresses(t *testing.T) {
	variable := func(n string, attrs ...attr) die { return die{tagVariable, append(attrs, name(n)), nil} }
	r := handmade(t, sections{},
		unitDie(
			die{tagBase, marked("int", number(atByteSize, 4)), nil},
			die{tagTypedef, marked("alias", ref("int")), nil},
			die{tagArray, marked("matrix", ref("alias")), []die{
				{tagSubrange, []attr{number(atCount, 2)}, nil}, {tagSubrange, []attr{number(atLower, 1), number(atUpper, 3)}, nil},
			}},
			die{tagPointer, marked("pointer", ref("int")), nil},
			die{tagMemberPointer, marked("to member", ref("int")), nil},
			die{tagSubroutine, marked("routine"), nil},
			die{tagMemberPointer, marked("to method", ref("routine")), nil},
			die{tagTypedef, marked("endless", ref("endless")), nil},
			// An upper bound is not negative, whatever its highest bit is.
			die{tagArray, marked("long array", ref("int")), []die{{tagSubrange, []attr{number(atUpper, 199)}, nil}}},
			variable("long array", location(0x6000), ref("long array")),
			variable("scalar", location(0x5000), ref("int")),
			variable("matrix", location(0x5010), ref("matrix")),
			variable("pointer", location(0x5040), ref("pointer")),
			variable("to member", location(0x5050), ref("to member")),
			variable("to method", location(0x5060), ref("to method")),
			variable("endless", location(0x5070), ref("endless")),
			variable("untyped", location(0x5080)),
			variable("part", location(0x5090, dw.OpPlusUconst, 8), ref("int")),
			variable("value", location(0x50a0, 0x9f), ref("int")),
			variable("indirect", location(0x50a0, dw.OpDeref), ref("int")),
			variable("removed", location(0), ref("int")),
			variable("declared", marked("declared", number(atDeclLine, 9), ref("matrix"))...),
			die{tagVariable, []attr{{atSpec, fRefAddr, label("declared")}, location(0x50b0)}, nil},
			die{tagSub, append(at64(0x1100, 16), name("f")), []die{{tagBlock, nil, []die{variable("local", location(0x50d0), ref("int"))}}}},
			variable("shared", location(0x50e0), ref("int"))),
		unitDie(variable("shared again", location(0x50e0), ref("int")), variable("wider", location(0x50e0), ref("matrix"))))
	for address, want := range map[uint64]string{
		0x4fff: "", 0x5000: "scalar 4", 0x5003: "scalar 4", 0x5004: "", 0x5010: "matrix 24", 0x5027: "matrix 24", 0x5028: "",
		0x5047: "pointer 8", 0x5048: "", 0x5057: "to member 8", 0x5058: "", 0x506f: "to method 16", 0x5070: "endless 1", 0x5071: "",
		0x5080: "untyped 1", 0x5090: "", 0x5098: "part 4", 0x50a0: "", 1: "", 0x50b0: "declared 24", 0x50c7: "declared 24", 0x50d0: "local 4",
		0x50e0: "shared 4", 0x50e4: "wider 24", 0x631f: "long array 800", 0x6320: "",
	} {
		v, ok, err := r.Variable(address, "")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if ok {
			got = v.Name() + " " + decimal(v.Size)
		}
		if got != want {
			t.Errorf("%#x: %q, want %q", address, got, want)
		}
		if v.Completes != (got == "declared 24") || v.Completes && v.Line != 9 {
			t.Errorf("%#x: completes a declaration: %v, line %d", address, v.Completes, v.Line)
		}
	}
}

func decimal(n uint64) string {
	if n >= 10 {
		return decimal(n/10) + string(rune('0'+n%10))
	}
	return string(rune('0' + n))
}

func TestLocalsAreThoseOfTheFunctionOrTheInlinedCall(t *testing.T) {
	variable := func(tag dw.Tag, n string, e expr, attrs ...attr) die {
		attrs = append(attrs, name(n))
		if e != nil {
			attrs = append(attrs, attr{atLoc, fExprloc, e})
		}
		return die{tag, attrs, nil}
	}
	f := sub(append(at64(0x1100, 0x40), name("f"), attr{atFrame, fExprloc, expr{dw.OpReg0 + 6}})...)
	f.children = []die{
		variable(tagParameter, "parameter", expr{dw.OpFbreg, 0x70}, ref("int"), number(atDeclLine, 3), number(atTagOffset, 128)),
		{tagBlock, nil, []die{
			variable(tagVariable, "by register", expr{dw.OpBreg0 + 6, 8}),
			variable(tagVariable, "of another", expr{dw.OpBreg0 + 7, 8}),
			variable(tagVariable, "behind a pointer", expr{dw.OpFbreg, 4, dw.OpDeref}),
			variable(tagVariable, "computed", expr{dw.OpFbreg, 4, 0x9f}),
		}},
		{tagInlined, append(at64(0x1110, 8), attr{atOrigin, fRefAddr, label("g")}), []die{
			{tagVariable, []attr{{atOrigin, fRefAddr, label("x")}, {atLoc, fExprloc, expr{dw.OpFbreg, 0x78}}}, nil},
			variable(tagVariable, "no base there", expr{dw.OpBreg0 + 6, 8}),
		}},
		variable(tagVariable, "last", nil),
	}
	g := sub(marked("g", name("g"))...)
	g.children = []die{{tagVariable, marked("x", name("x"), ref("int"), number(atDeclLine, 5)), nil}}
	r := handmade(t, sections{}, unitDie(die{tagBase, marked("int", number(atByteSize, 4)), nil}, g, f,
		sub(append(at64(0x1200, 0x10), name("empty"))...)))
	inlined := []symbol.Local{
		{Function: "g", Name: "x", Line: 5, Size: 4, HasSize: true, FrameOffset: -8, HasFrameOffset: true},
		{Function: "g", Name: "no base there"},
	}
	all := []symbol.Local{
		{Function: "f", Name: "parameter", Line: 3, Size: 4, HasSize: true, FrameOffset: -16, HasFrameOffset: true, TagOffset: 128, HasTagOffset: true},
		{Function: "f", Name: "by register", FrameOffset: 8, HasFrameOffset: true},
		{Function: "f", Name: "of another"},
		{Function: "f", Name: "behind a pointer", FrameOffset: 4, HasFrameOffset: true},
		{Function: "f", Name: "computed"},
		inlined[0], inlined[1],
		{Function: "f", Name: "last"},
	}
	for address, want := range map[uint64][]symbol.Local{0x1100: all, 0x1110: inlined, 0x1118: all, 0x1200: nil, 0x1300: nil} {
		got, err := r.Locals(nil, address)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%#x: (-want +got)\n%s", address, diff)
		}
	}
}

// LLVM 22 gives attributes of the heterogeneous extension other numbers than it prints.
func TestAttributesHaveTheirSecondNumbersToo(t *testing.T) {
	kernel := sub(append(at64(0x1000, 16), name("kernel"), number(0x3e11, 64), attr{0x3e12, fExprloc, expr{0x30}},
		number(0x3e0f, 3), number(0x3e10, 5), number(0x3e13, 4))...)
	scopes, err := handmade(t, sections{}, unitDie(kernel)).Scopes(0x1004)
	if err != nil || len(scopes) != 1 {
		t.Fatalf("scopes %v, error %v, want one", scopes, err)
	}
	for attr, want := range map[dw.Attr]int64{dw.AttrLLVMLanes: 64, dw.AttrLLVMMemorySpace: 3, dw.AttrLLVMAddressSpace: 5, dw.AttrLLVMVectorSize: 4} {
		if n, ok, err := scopes[0].Number(attr); n != want || !ok || err != nil {
			t.Errorf("%#x: %d, %v, error %v, want %d", uint16(attr), n, ok, err, want)
		}
	}
	if l, ok, err := scopes[0].Location(dw.AttrLLVMLanePC); !ok || err != nil || len(l.Expr) != 1 {
		t.Errorf("DW_AT_LLVM_lane_pc: %v, %v, error %v", l.Expr, ok, err)
	}
}
