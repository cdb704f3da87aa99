// SPDX-License-Identifier: Apache-2.0

// Package framerules translates frame data of 32-bit x86, of PDB files and of STACK WIN records of
// Breakpad's symbol files, into rows of call frame information.
package framerules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/postfix"
	"github.com/unwindd/unwindd/locexpr"
)

// word is the size of a register and of a return address.
const word = 4

// The reasons why frame data has no row for a place in its code.
var (
	ErrPrologue = errors.New("the frame is being made there, and frame data does not say how far")
	ErrEpilogue = errors.New("the frame is being left there, and frame data does not say how far")
)

// Position is the place of a frame in the code of frame data.
type Position struct {
	Address uint64
	// IsExact is set where the code at Address is about to execute; else it is in a call.
	IsExact bool
	// IsFirst is set where the frame data begins a function, and is not about the part of one that
	// follows an instruction of its prologue.
	IsFirst bool
}

// Row fills row with the rules of frame data at a position, and reuses its slices.
//
// isSearched reports that the CFA is where a debugger begins to search for the return address, as
// .raSearch and FPO without a program have it: from the stack pointer of code that is about to
// execute. In a call the parameters of the called function lie below it: their size is to be added.
//
// A register that may have been saved where frame data does not say is Undefined.
func Row(row *cfi.Row, d *symbol.FrameData, place Position, registers postfix.Registers) (isSearched bool, err error) {
	*row = cfi.Row{Start: d.Start, End: d.End, Rules: row.Rules[:0], CallSite: row.CallSite[:0]}
	m, err := newMachine(registers)
	if err != nil {
		return false, err
	}
	row.ReturnAddress = m.columns[eip]
	b := builder{machine: m, data: d, row: row}
	hasFrame, err := b.position(place)
	if err != nil {
		return false, err
	}
	if !hasFrame {
		b.entry()
		return false, nil
	}
	return b.program()
}

// position reports whether the frame is there at a position; it is not at the first instruction.
func (b *builder) position(p Position) (hasFrame bool, err error) {
	d := b.data
	switch {
	case !p.IsExact:
		return true, nil
	case d.Epilogue > 0 && d.Epilogue < d.End-d.Start && p.Address >= d.End-d.Epilogue:
		return false, ErrEpilogue
	case !p.IsFirst || p.Address-d.Start >= d.Prologue:
		return true, nil
	case strings.Contains(d.Program, search) && d.Locals+d.SavedRegisters == 0:
		return true, nil // frame data of its own follows for what the prologue does
	case p.Address == d.Start:
		return false, nil
	}
	return false, ErrPrologue
}

// The registers that frame data is about, as indexes.
const (
	eip = iota
	esp
	ebp
	ebx
	esi
	edi
	registerCount
)

// names are the registers' names in programs.
var names = [registerCount]string{"$eip", "$esp", "$ebp", "$ebx", "$esi", "$edi"}

// machine has the columns of the registers.
type machine struct {
	registers postfix.Registers
	columns   [registerCount]uint64
}

func newMachine(registers postfix.Registers) (m machine, err error) {
	m.registers = registers
	for i, name := range names {
		var ok bool
		if m.columns[i], ok = registers(name); !ok {
			return m, fmt.Errorf("frame data is of 32-bit x86: the architecture has no register %s", name)
		}
	}
	return m, nil
}

// builder makes a row of frame data.
type builder struct {
	machine
	data *symbol.FrameData
	row  *cfi.Row
}

// entry is the row of a function's first instruction.
func (b *builder) entry() {
	b.row.End = b.row.Start + 1
	b.row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: b.columns[esp], Offset: word, Space: locexpr.DefaultSpace}
	b.set(eip, cfi.Rule{Kind: cfi.Offset, Offset: -word})
	for _, r := range []int{ebp, ebx, esi, edi} {
		b.set(r, cfi.Rule{Kind: cfi.SameValue})
	}
}

// set adds the rule of a register.
func (b *builder) set(register int, rule cfi.Rule) {
	list := b.row.Rules
	i := 0
	for i < len(list) && list[i].Column < b.columns[register] {
		i++
	}
	list = append(list, cfi.RegisterRule{})
	copy(list[i+1:], list[i:])
	list[i] = cfi.RegisterRule{Column: b.columns[register], Rule: rule}
	b.row.Rules = list
}

// The programs of FPO without one. The frame lies above the parameters of the called function: the
// saved registers, the locals, and the return address. ebp, where it was pushed, is the second of the
// saved registers from their end, whatever lies behind them.
const (
	keepsBase = "$eip .raSearch ^ = $esp .raSearch 4 + ="
	savesBase = keepsBase + " $ebp .raSearch .cbLocals - 8 - ^ ="
)

// program fills the row by the program of the frame data.
func (b *builder) program() (isSearched bool, err error) {
	text := b.data.Program
	switch {
	case text != "":
	case b.data.AllocatesBasePointer:
		text = savesBase
	default:
		text = keepsBase
	}
	p := program{data: b.data}
	if err := p.run(text); err != nil {
		return false, err
	}
	top, back := p.variables[names[esp]], p.variables[names[eip]]
	if top == nil || back == nil {
		return false, fmt.Errorf("the program %.200q does not set both $eip and $esp", text)
	}
	isSearched, err = b.cfa(top, p.isAligned)
	if err != nil {
		return false, fmt.Errorf("the program %.200q: $esp: %w", text, err)
	}
	for i := range names {
		if err := b.register(i, p.variables[names[i]], isSearched, p.isAligned); err != nil {
			return false, fmt.Errorf("the program %.200q: %s: %w", text, names[i], err)
		}
	}
	b.unmentioned(&p, isSearched)
	return isSearched, nil
}

// errExpression is the error of an expression that has no rule.
var errExpression = errors.New("expected an expression of $esp, $ebp, $ebx and constants")

// atBase is the place of the return address where the stack pointer was rounded down: ebp was pushed
// right below it.
var atBase = []string{names[ebp], "4", "+"}

// cfa sets the rule of the CFA, which is the stack pointer before the return address was pushed.
func (b *builder) cfa(e expression, isAligned bool) (isSearched bool, err error) {
	compiled := postfix.New(b.machine.registers)
	for _, token := range e {
		parts := []string{token}
		switch {
		case token != search:
		case isAligned:
			parts = atBase
		default:
			isSearched = true
			parts = []string{names[esp], number(b.data.Locals + b.data.SavedRegisters), "+"}
		}
		for _, part := range parts {
			if !compiled.Add([]byte(part)) {
				return false, errExpression
			}
		}
	}
	var ok bool
	if b.row.CFA, ok = compiled.CFA(); !ok || isSearched && b.row.CFA.Kind != cfi.CFARegister {
		return false, errExpression
	}
	return isSearched, nil
}

// register sets the rule of a register that the program sets. A search has its result in the CFA.
func (b *builder) register(register int, e expression, isSearched, isAligned bool) error {
	if e == nil || register == esp {
		return nil
	}
	if len(e) == 1 && e[0] == undefined {
		b.set(register, cfi.Rule{Kind: cfi.Undefined})
		return nil
	}
	compiled := postfix.New(b.machine.registers)
	for _, token := range e {
		parts := []string{token}
		switch {
		case token != search:
		case isAligned:
			parts = atBase
		case !isSearched:
			return errors.New("the return address is searched, and the stack pointer does not follow from its place")
		default:
			// The CFA is the place of the search plus what the program adds to it.
			more := b.row.CFA.Offset - int64(b.data.Locals+b.data.SavedRegisters) //nolint:gosec // bounded by program.run
			parts = []string{postfix.CFAName, strconv.FormatInt(more, 10), "-"}
		}
		for _, part := range parts {
			if !compiled.Add([]byte(part)) {
				return errExpression
			}
		}
	}
	rule, ok := compiled.Rule(b.columns[register], &b.row.CFA)
	if !ok {
		return errExpression
	}
	b.set(register, rule)
	return nil
}

// unmentioned sets the rules of registers that a function preserves and the program does not set.
// ebp keeps its value: debuggers need it, so that compilers set it wherever it was saved. The others
// do where the program restores as many registers as were saved. A frame at ebp has no such count:
// registers that are saved in its middle are not counted.
func (b *builder) unmentioned(p *program, isSearched bool) {
	restored := uint64(0)
	for _, r := range []int{ebp, ebx, esi, edi} {
		if e := p.variables[names[r]]; len(e) > 0 && e[len(e)-1] == "^" {
			restored++
		}
	}
	others := cfi.Rule{Kind: cfi.Undefined}
	isCounted := b.data.Program != "" || !b.data.AllocatesBasePointer
	if isSearched && isCounted && restored*word >= b.data.SavedRegisters {
		others.Kind = cfi.SameValue
	}
	for _, r := range []int{ebp, ebx, esi, edi} {
		if _, isSet := p.variables[names[r]]; isSet {
			continue
		}
		if r == ebp {
			b.set(r, cfi.Rule{Kind: cfi.SameValue})
		} else {
			b.set(r, others)
		}
	}
}
