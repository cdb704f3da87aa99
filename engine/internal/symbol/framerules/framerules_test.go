// SPDX-License-Identifier: Apache-2.0

package framerules

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// columns are the registers of i386 as DWARF numbers them.
var columns = map[string]uint64{"$eax": 0, "$ecx": 1, "$edx": 2, "$ebx": 3, "$esp": 4, "$ebp": 5, "$esi": 6, "$edi": 7, "$eip": 8}

func register(name string) (uint64, bool) {
	n, ok := columns[name]
	return n, ok
}

// text writes a row: the CFA, and the rules by column.
func text(row *cfi.Row) string {
	var b strings.Builder
	if row.CFA.Kind == cfi.CFARegister {
		fmt.Fprintf(&b, "r%d%+d", row.CFA.Register, row.CFA.Offset)
	} else {
		fmt.Fprintf(&b, "(%x)", row.CFA.Expr)
	}
	for _, r := range row.Rules {
		fmt.Fprintf(&b, " %d:", r.Column)
		switch r.Rule.Kind {
		case cfi.Undefined:
			b.WriteString("u")
		case cfi.SameValue:
			b.WriteString("s")
		case cfi.Offset:
			fmt.Fprintf(&b, "c%+d", r.Rule.Offset)
		case cfi.ValOffset:
			fmt.Fprintf(&b, "v%+d", r.Rule.Offset)
		case cfi.Register:
			fmt.Fprintf(&b, "r%d", r.Rule.Register)
		case cfi.Expression:
			fmt.Fprintf(&b, "[%x]", r.Rule.Expr)
		default:
			fmt.Fprintf(&b, "(%x)", r.Rule.Expr)
		}
	}
	return b.String()
}

func TestFrameDataIsRows(t *testing.T) {
	const end = 0x1040
	inBody := Position{Address: 0x1020, IsExact: true, IsFirst: true}
	for name, c := range map[string]struct {
		data       symbol.FrameData
		at         Position
		want       string
		isSearched bool
	}{
		"a frame at ebp": {
			symbol.FrameData{Prologue: 3, SavedRegisters: 8, Locals: 4, Program: "$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + = $L $T0 .cbSavedRegs - = $P $T0 8 + .cbParams + = $ebx $T0 8 - ^ ="},
			inBody, "r5+8 3:c-16 5:c-8 6:u 7:u 8:c-4", false,
		},
		"no spaces behind assignments": {
			symbol.FrameData{Program: "$T0 $ebp =$eip $T0 4 + ^ =$ebp $T0 ^ =$esp $T0 8 + ="},
			inBody, "r5+8 3:u 5:c-8 6:u 7:u 8:c-4", false,
		},
		"a search": {
			symbol.FrameData{SavedRegisters: 8, Locals: 0x24, Program: "$T2 $esp .cbLocals + .cbSavedRegs + = $T0 .raSearchStart = $eip $T0 ^ = $esp $T0 4 + = $ebp $T0 8 - ^ = $ebx $T0 4 - ^ ="},
			inBody, "r4+48 3:c-8 5:c-12 6:s 7:s 8:c-4", true,
		},
		"a search in which registers were saved that it does not restore": {
			symbol.FrameData{SavedRegisters: 8, Program: "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + = $ebx $T0 4 - ^ ="},
			inBody, "r4+12 3:c-8 5:s 6:u 7:u 8:c-4", true,
		},
		"code that a function of a frame at ebp calls in its own frame": {
			symbol.FrameData{SavedRegisters: 0xc, Locals: 0x24, Program: "$T0 $ebp = $T2 $esp = $T1 .raSearchStart = $eip $T1 ^ = $ebp $T0 = $esp $T1 4 + ="},
			inBody, "r4+52 3:u 5:s 6:u 7:u 8:c-4", true,
		},
		"a stack pointer that was rounded down": {
			symbol.FrameData{Locals: 0x40, Program: "$T0 $ebp 4 + = $T1 $T0 8 - 16 @ = $eip .raSearch ^ = $ebp $T0 4 - ^ = $esp .raSearch 4 + ="},
			inBody, "r5+8 3:u 5:c-8 6:u 7:u 8:c-4", false,
		},
		"a frame at ebx": {
			symbol.FrameData{Program: "$T0 $ebx 504 + = $eip $T0 4 + ^ = $ebx $T0 ^ = $esp $T0 8 + ="},
			inBody, "r3+512 3:c-8 5:s 6:u 7:u 8:c-4", false,
		},
		"FPO": {
			symbol.FrameData{IsFPO: true, Locals: 0x10},
			inBody, "r4+20 3:s 5:s 6:s 7:s 8:c-4", true,
		},
		"FPO that saves registers": {
			symbol.FrameData{IsFPO: true, Locals: 0x10, SavedRegisters: 8},
			inBody, "r4+28 3:u 5:s 6:u 7:u 8:c-4", true,
		},
		"FPO that saves ebp": {
			symbol.FrameData{IsFPO: true, Locals: 0x10, SavedRegisters: 12, AllocatesBasePointer: true},
			inBody, "r4+32 3:u 5:c-28 6:u 7:u 8:c-4", true,
		},
		"a register without a value": {
			symbol.FrameData{Program: "$eip $ebp 4 + ^ = $esp $ebp 8 + = $ebp $ebp ^ = $ebx .undef ="},
			inBody, "r5+8 3:u 5:c-8 6:u 7:u 8:c-4", false,
		},
		"the first instruction": {
			symbol.FrameData{Prologue: 3, Program: "$eip $ebp 4 + ^ = $esp $ebp 8 + = $ebp $ebp ^ ="},
			Position{0x1000, true, true}, "r4+4 3:s 5:s 6:s 7:s 8:c-4", false,
		},
		"a call at the start": {
			symbol.FrameData{Prologue: 3, Program: "$eip $ebp 4 + ^ = $esp $ebp 8 + = $ebp $ebp ^ ="},
			Position{0x1000, false, true}, "r5+8 3:u 5:c-8 6:u 7:u 8:c-4", false,
		},
		"a part of a prologue": {
			symbol.FrameData{Prologue: 7, SavedRegisters: 4, Program: "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + = $ebp $T0 4 - ^ ="},
			Position{0x1000, true, false}, "r4+8 3:s 5:c-8 6:s 7:s 8:c-4", true,
		},
		"a prologue whose parts have frame data": {
			symbol.FrameData{Prologue: 7, Program: "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + ="},
			Position{0x1002, true, true}, "r4+4 3:s 5:s 6:s 7:s 8:c-4", true,
		},
	} {
		c.data.Start, c.data.End = 0x1000, end
		var row cfi.Row
		isSearched, err := Row(&row, &c.data, c.at, register)
		if got := text(&row); err != nil || got != c.want || isSearched != c.isSearched || row.ReturnAddress != 8 {
			t.Errorf("%s: %s, searched %v, %v\nexpected %s, %v", name, got, isSearched, err, c.want, c.isSearched)
		}
	}
}

func TestFrameDataWithoutARowSaysWhy(t *testing.T) {
	const base = "$eip $ebp 4 + ^ = $esp $ebp 8 + = $ebp $ebp ^ ="
	double := "$T0 $ebp = " + strings.Repeat("$T0 $T0 $T0 + = ", 60) + base
	for program, want := range map[string]string{
		"$eip $ebp 4 + ^ =":                  "both $eip and $esp",
		"$eip +":                             "too few operands",
		"=":                                  "too few operands",
		"^":                                  "too few operands",
		"4 $ebp =":                           "expected the name of a variable",
		"$eip $T5 ^ =":                       "has no value yet",
		"$eip $esi ^ =":                      "has no value yet",
		"$eip .raSearch ^ = $esp .cbMore =":  "has no value yet",
		"$eip what ^ = $esp $ebp 8 + =":      "expected an expression",
		"$esp .raSearch 8 * = $eip $esp ^ =": "expected an expression",
		"$esp $ebp 8 + = $eip .raSearch ^ =": "does not follow from its place",
		"$esp .undef = $eip $ebp ^ =":        "expected an expression",
		double:                               "more than 4096 tokens",
		strings.Repeat("$esp ", 1000):        "expected at most 4096",
	} {
		d := symbol.FrameData{Start: 0x1000, End: 0x1040, Program: program}
		var row cfi.Row
		if _, err := Row(&row, &d, Position{Address: 0x1000}, register); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, expected %q", program, err, want)
		}
	}
	for name, c := range map[string]struct {
		data symbol.FrameData
		at   uint64
		want error
	}{
		"prologue": {symbol.FrameData{Prologue: 3, Program: base}, 0x1001, ErrPrologue},
		"FPO":      {symbol.FrameData{Prologue: 3, IsFPO: true, Locals: 8}, 0x1001, ErrPrologue},
		"epilogue": {symbol.FrameData{Epilogue: 2, Program: base}, 0x103e, ErrEpilogue},
	} {
		c.data.Start, c.data.End = 0x1000, 0x1040
		var row cfi.Row
		if _, err := Row(&row, &c.data, Position{Address: c.at, IsExact: true, IsFirst: true}, register); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", name, err, c.want)
		}
	}
	var row cfi.Row
	d := symbol.FrameData{Start: 0x1000, End: 0x1040, Locals: 1 << 40}
	if _, err := Row(&row, &d, Position{Address: 0x1000}, register); err == nil || !strings.Contains(err.Error(), "at most 2 GiB") {
		t.Errorf("4 GiB of locals: %v", err)
	}
	if _, err := Row(&row, &d, Position{Address: 0x1000}, func(string) (uint64, bool) { return 0, false }); err == nil || !strings.Contains(err.Error(), "no register $eip") {
		t.Errorf("another architecture: %v", err)
	}
}

func FuzzPrograms(f *testing.F) {
	f.Add("$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + = $ebx $T0 8 - ^ =", uint32(4), uint32(8))
	f.Add("$T0 .raSearch = $T1 $T0 4 - 8 @ = $eip $T0 ^ = $esp $T0 4 + = $ebp $T0 4 * ^ / % =", uint32(0), uint32(1<<31))
	f.Fuzz(func(t *testing.T, program string, saved, locals uint32) {
		d := symbol.FrameData{Start: 0x1000, End: 0x1040, SavedRegisters: uint64(saved), Locals: uint64(locals), Program: program}
		var row cfi.Row
		isSearched, err := Row(&row, &d, Position{Address: 0x1000}, register)
		if err == nil && isSearched && (row.CFA.Kind != cfi.CFARegister || row.CFA.Register != 4) {
			t.Errorf("a search that does not begin at the stack pointer: %s", text(&row))
		}
	})
}
