// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/sdk"
)

// dialectToy is the toy machine with a dialect in which 0xf0 drops an entry and
// 0xf7 0 pushes one. In standard DWARF they are DW_OP_GNU_uninit and a conversion
// to the generic type, which leave the stack as it is.
type dialectToy struct {
	toy
	answer sdk.OpenObjectAnswer
}

const other = "other"

func (*dialectToy) Describe(context.Context) (*sdk.Description, error) {
	d := toyDescription(nil)
	d.Dialects = []sdk.Dialect{{Name: other, Operations: []sdk.DialectOperation{
		{Opcode: 0xf0, Name: "DW_OP_drop"}, {Opcode: 0xf7, Name: "DW_OP_const1u"},
	}}}
	return d, nil
}

func (a *dialectToy) OpenObject(context.Context, sdk.Engine, *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return &a.answer, nil
}

// dialectCode is three functions whose CIEs have the augmentations zR, zPR and
// zPLR, and a CFA that depends on the dialect: 8 above the stack pointer in
// standard DWARF, 16 in the other.
//
// Two units have producers of their own. The expressions of each depend on its
// dialect: 8 in standard DWARF, 16 in the other.
const dialectCode = `
	.text
	.macro function name:req more:vararg
\name:	.cfi_startproc simple
	\more
	.cfi_return_column 3
	.cfi_escape 0x0f, 5, 0x70, 16, 0x70, 8, 0xf0
	.cfi_offset 3, -8
	.skip 16, 0x90
	.cfi_endproc
	.endm
	function plain
	function personal, .cfi_personality 0x1b, plain
	.macro both
	.cfi_personality 0x1b, plain
	.cfi_lsda 0x1b, plain
	.endm
	function exceptional, both
.Lend:
	.section .debug_abbrev
	.byte 1, 0x11, 1, 0x25, 8, 0x11, 1, 0x12, 6, 0, 0  # unit: producer, low_pc, high_pc
	.byte 2, 0x11, 1, 0x25, 8, 0, 0                    # unit: producer
	.byte 3, 0x2e, 0, 3, 8, 0x11, 1, 0x12, 6, 0x40, 0x18, 0x8b,0x7c, 0x18, 0, 0 # function: name, low_pc, high_pc, frame_base, lane_pc
	.byte 4, 0x34, 0, 3, 8, 2, 0x18, 0, 0              # variable: name, location, an expression
	.byte 5, 0x34, 0, 3, 8, 2, 0x17, 0, 0              # variable: name, location, a list
	.byte 0
	.macro header n
.Lunit\n:
	.long .Lunit_end\n-.Lunit_start\n
.Lunit_start\n:
	.short 5
	.byte 1, 8
	.long .debug_abbrev
	.endm
	.macro variable n name op operand:vararg
.Lvariable\n\name:
	.byte 4
	.asciz "\name"
	.uleb128 .Lvariable_end\n\name-.Lvariable_start\n\name
.Lvariable_start\n\name:
	.byte \op
	\operand
.Lvariable_end\n\name:
	.endm
	.macro variables n away
	variable \n own, 0x38, .byte 0x40, 0xf7, 0, 0x15, 1
	variable \n base, 0x91, .byte 0
	variable \n call, 0x99, .long .Lvariable\n\()own-.Lunit\n
	variable \n away, 0x9a, .long .Lvariable\away\()own
	variable \n list, 0x9a, .long .Llist\away
.Llist\n:
	.byte 5
	.asciz "listed"
	.long .Llists\n
	.endm
	.section .debug_info
	header 0
	.byte 1
	.asciz "first 1.0"
	.quad .text
	.long .Lend-.text
	.byte 3
	.asciz "function"
	.quad .text
	.long .Lend-.text
	.byte 6, 0x38, 0x40, 0xf7, 0, 0x15, 1
	.byte 6, 0x38, 0x40, 0xf7, 0, 0x15, 1
	variables 0, 1
	.byte 0
.Lunit_end0:
	header 1
	.byte 2
	.asciz "second 2.0"
	variables 1, 0
	.byte 0
.Lunit_end1:
	.section .debug_loclists
.Llists0:
	.byte 5, 6, 0x38, 0x40, 0xf7, 0, 0x15, 1, 0
.Llists1:
	.byte 5, 6, 0x38, 0x40, 0xf7, 0, 0x15, 1, 0
`

func dialectObject(t *testing.T) []byte {
	t.Helper()
	path := assemble(t, dialectCode, "-shared", "-nostdlib", "-Wl,-Ttext=0x1000", "-Wl,--build-id=none")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[18], b[19] = 0x34, 0x12 // e_machine: the toy's
	return b
}

// openDialect opens the object as a module about which the plugin says answer.
func openDialect(t *testing.T, file []byte, answer sdk.OpenObjectAnswer) (*Target, *target.Module, *trace.Thread) {
	t.Helper()
	o, err := object.New("toy.so", file)
	if err != nil {
		t.Fatal(err)
	}
	m := &target.Module{
		Module: trace.Module{
			Path:     "toy.so",
			Arch:     "toy",
			Segments: []trace.Segment{{Address: 0x1000, Size: 0x30, Start: codeStart, Executable: true}},
		},
		Object: o,
	}
	// The return address of a frame of 8 bytes is that of one of 16 bytes too.
	s := withModules{newState(0x1014, 0x1014, 0x1024, 0x1024, 0, 0, 0).thread(0x1004, stackStart, 0, 0), []*target.Module{m}}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{&dialectToy{answer: answer}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.Attach(s), m, s.threads[0]
}

func TestTheFirstOverrideThatFitsAnAugmentationIsInForce(t *testing.T) {
	file := dialectObject(t)
	type overrides = []sdk.DialectOverride
	for _, c := range []struct {
		name   string
		answer sdk.OpenObjectAnswer
		want   string // sizes of the frames of plain, personal and exceptional
	}{
		{"nothing is said", sdk.OpenObjectAnswer{}, "8 8 8"},
		{"the object has a dialect", sdk.OpenObjectAnswer{Dialect: other}, "16 16 16"},
		{"an augmentation has a dialect", sdk.OpenObjectAnswer{Overrides: overrides{{Augmentation: "zP", Dialect: other}}}, "8 16 16"},
		{"an augmentation has standard DWARF", sdk.OpenObjectAnswer{Dialect: other, Overrides: overrides{{Augmentation: "zP"}}}, "16 8 8"},
		{"one of two augmentations has standard DWARF", sdk.OpenObjectAnswer{
			Overrides: overrides{{Augmentation: "zPL"}, {Augmentation: "zP", Dialect: other}}}, "8 16 8"},
		{"an augmentation is a prefix", sdk.OpenObjectAnswer{Dialect: other, Overrides: overrides{{Augmentation: "zPRx"}}}, "16 16 16"},
		{"a producer is no augmentation", sdk.OpenObjectAnswer{Overrides: overrides{{Producer: "z", Dialect: other}}}, "8 8 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tt, _, th := openDialect(t, file, c.answer)
			var got []string
			stack := tt.Walk(context.Background(), th)
			sp, above := uint64(stackStart), uint64(0)
			for _, f := range stack.Frames {
				if f.HasCFA && f.ModuleOffset != above {
					got = append(got, fmt.Sprint(f.CFA-sp))
				}
				sp, above = f.CFA, f.ModuleOffset
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s\n%+v", diff, stack)
			}
		})
	}
}

func TestEveryExpressionOfAUnitIsInTheDialectOfItsProducer(t *testing.T) {
	file := dialectObject(t)
	for _, c := range []struct {
		name          string
		answer        sdk.OpenObjectAnswer
		first, second uint64 // what the expressions of the units give
	}{
		{"nothing is said", sdk.OpenObjectAnswer{}, 8, 8},
		{"the object has a dialect", sdk.OpenObjectAnswer{Dialect: other}, 16, 16},
		{"a producer has a dialect", sdk.OpenObjectAnswer{Overrides: []sdk.DialectOverride{{Producer: "first", Dialect: other}}}, 16, 8},
		{"a producer has standard DWARF", sdk.OpenObjectAnswer{Dialect: other, Overrides: []sdk.DialectOverride{{Producer: "second"}}}, 16, 8},
		{"the function's producer has standard DWARF", sdk.OpenObjectAnswer{Dialect: other, Overrides: []sdk.DialectOverride{{Producer: "first"}}}, 8, 16},
		{"a producer is a prefix", sdk.OpenObjectAnswer{Overrides: []sdk.DialectOverride{{Producer: "first 1.0.1", Dialect: other}}}, 8, 8},
		{"an augmentation is no producer", sdk.OpenObjectAnswer{Overrides: []sdk.DialectOverride{{Augmentation: "d", Dialect: other}}}, 8, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			tt, _, th := openDialect(t, file, c.answer)
			_, frames := tt.process.Activations(context.Background(), th)
			checkUnits(t, frames[0], [2]uint64{c.first, c.second})
		})
	}
}

// checkUnits evaluates the expressions of both units in a frame of the function,
// which the first has.
func checkUnits(t *testing.T, f walk.Activation, units [2]uint64) {
	t.Helper()
	reader := f.Module().Code.DWARF()
	scopes, err := reader.Scopes(f.Lookup())
	if err != nil || len(scopes) != 1 {
		t.Fatalf("%d scopes, expected 1: %v", len(scopes), err)
	}
	function := scopes[0].Entry
	evaluated := 0
	check := func(e dwarf.Entry, attribute dw.Attr, want uint64) {
		t.Helper()
		l, ok, err := e.Location(attribute)
		if err != nil || !ok {
			t.Fatalf("%s: %v", e, err)
		}
		exprs, err := l.At(f.Lookup())
		if err != nil || len(exprs) != 1 {
			t.Fatalf("%s: %d expressions, expected 1: %v", e, len(exprs), err)
		}
		place, err := f.Evaluate(t.Context(), function, l.Unit, exprs[0])
		if _, got, ok := place.MemoryAddress(); err != nil || !ok || got != want {
			t.Errorf("%s in the unit at %#x: %s, expected the address %d: %v", e, l.Unit.Offset(), place, want, err)
		}
		evaluated++
	}
	check(function, dw.AttrLLVMLanePC, units[0])
	first, second := function.Unit(), dwarf.Unit{}
	for e, err := range reader.Expressions() {
		if err != nil {
			t.Fatal(err)
		}
		if at, err := first.Entry(e.Entry); err == nil && at.Unit().Offset() != first.Offset() {
			second = at.Unit()
		}
	}
	for i, unit := range []dwarf.Unit{first, second} {
		// What a variable calls is in the other unit, except for call and base:
		// the frame base is the function's, wherever it is asked for.
		own, away := units[i], units[1-i]
		want := map[string]uint64{"own": own, "call": own, "listed": own, "base": units[0], "away": away, "list": away}
		root, err := unit.Root()
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range root.Children() {
			if err != nil {
				t.Fatal(err)
			}
			if want, ok := want[e.Name()]; ok {
				check(e, dw.AttrLocation, want)
			}
		}
	}
	if evaluated != 13 {
		t.Errorf("%d expressions were evaluated, expected 13", evaluated)
	}
}
