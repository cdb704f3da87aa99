// SPDX-License-Identifier: Apache-2.0

package locexpr_test

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/locexpr"
)

// A variable that was spilled into lane 5 of the vector register of DWARF number
// 2560, as the canonical dialect encodes it.
func ExampleParse() {
	expr, err := locexpr.Parse("regx 2560; LLVM_offset_uconst 20", locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%x\n", expr)

	_, err = locexpr.Parse("lit4; const1u 300", locexpr.TextOptions{})
	fmt.Println(err)
	// Output:
	// 908014e90514
	// expression text: offset 14: DW_OP_const1u: operand 1: a number from 0 to 255 is expected, found "300"
}

// What GCC writes for a parameter whose register was overwritten.
func ExampleFormat() {
	expr := []byte{0xa3, 0x01, 0x55, 0x9f}
	fmt.Println(locexpr.Format(expr, locexpr.DWARF5, 8, locexpr.LittleEndian))
	// Output:
	// DW_OP_entry_value { DW_OP_reg5 }; DW_OP_stack_value
}

// names are those of a small part of x86-64.
type names struct{}

var registers = []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"}

func (names) Register(name string) (uint64, bool) {
	for number, n := range registers {
		if strings.EqualFold(n, name) {
			return uint64(number), true
		}
	}
	return 0, false
}

func (names) RegisterName(number uint64) (string, bool) {
	if number >= uint64(len(registers)) {
		return "", false
	}
	return registers[number], true
}

func (names) Space(string) (locexpr.AddressSpace, bool)     { return 0, false }
func (names) SpaceName(locexpr.AddressSpace) (string, bool) { return "", false }

// Registers by the names of an architecture, in both directions.
func ExampleFormatText() {
	o := locexpr.TextOptions{Names: names{}}
	expr, err := locexpr.Parse("bregx RSP, 16; deref; addr 0x4010; plus", o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(locexpr.FormatText(expr, o))
	// Output:
	// DW_OP_bregx rsp 16; DW_OP_deref; DW_OP_addr 0x4010; DW_OP_plus
}

// A list of two entries whose ranges overlap: from 0x1008 to 0x1010 the object
// is in both places.
func ExampleLocationLists_At() {
	lists := locexpr.LocationLists{Section: ".debug_loclists", Data: []byte{
		0x04, 0x00, 0x10, 0x01, 0x50, // DW_LLE_offset_pair 0 16: DW_OP_reg0
		0x04, 0x08, 0x20, 0x02, 0x91, 0x70, // DW_LLE_offset_pair 8 32: DW_OP_fbreg -16
		0x00, // DW_LLE_end_of_list
	}}
	for _, pc := range []uint64{0x1000, 0x1008, 0x1020} {
		exprs, err := lists.At(0, pc, 0x1000, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("0x%x:", pc)
		for _, expr := range exprs {
			fmt.Printf(" [%s]", locexpr.FormatText(expr, locexpr.TextOptions{}))
		}
		fmt.Println()
	}
	// Output:
	// 0x1000: [DW_OP_reg0]
	// 0x1008: [DW_OP_reg0] [DW_OP_fbreg -16]
	// 0x1020:
}
