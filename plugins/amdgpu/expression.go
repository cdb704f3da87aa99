// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/unwindd/unwindd/locexpr"
)

// expression is an expression that is being written: as text, operation by
// operation, which locexpr assembles at the end. The CFA lies on the stack when
// it begins (DWARF 5, 6.4.1.10); depth is how many entries lie above it.
type expression struct {
	text  []byte // "DW_OP_x operand; DW_OP_y; ": every operation ends with separator
	depth int
}

const separator = "; "

// begin empties the expression.
func (e *expression) begin() { e.text, e.depth = e.text[:0], 0 }

// op writes operations, after which the stack has change more entries.
func (e *expression) op(change int, text string) {
	e.text = append(append(e.text, text...), separator...)
	e.depth += change
}

// opWith writes an operation with a number as its operand.
func (e *expression) opWith(change int, name string, operand int64) {
	e.text = append(append(e.text, name...), ' ')
	e.text = append(strconv.AppendInt(e.text, operand, 10), separator...)
	e.depth += change
}

// number pushes a constant.
func (e *expression) number(n int64) {
	if n >= 0 && n < 32 {
		e.text = strconv.AppendInt(append(e.text, "DW_OP_lit"...), n, 10)
		e.op(1, "")
		return
	}
	e.opWith(1, "DW_OP_consts", n)
}

// register pushes the location of a register.
func (e *expression) register(dwarf uint32) { e.opWith(1, "DW_OP_regx", int64(dwarf)) }

// cfa pushes the CFA once more.
func (e *expression) cfa() {
	if e.depth == 0 {
		e.op(1, "DW_OP_dup")
		return
	}
	e.opWith(1, "DW_OP_pick", int64(e.depth))
}

// offset moves a location by bytes.
func (e *expression) offset(n int64) {
	switch {
	case n == 0:
	case n > 0:
		e.opWith(0, "DW_OP_LLVM_offset_uconst", n)
	default:
		e.number(n)
		e.op(-1, "DW_OP_LLVM_offset")
	}
}

// value replaces a location by its content of a number of bytes.
func (e *expression) value(bytes uint32) { e.opWith(0, "DW_OP_deref_size", int64(bytes)) }

// piece adds a location to the composite below it, or begins one.
func (e *expression) piece(bytes uint32, first bool) {
	e.opWith(0, "DW_OP_piece", int64(bytes))
	if !first {
		e.depth--
	}
}

// assembler turns the text of expressions into bytes. It has locexpr assemble
// each operation once and keeps its bytes: the rows of all functions repeat the
// same few hundred operations, and an expression is the bytes of its operations
// one after the other.
type assembler struct {
	mu         sync.RWMutex
	operations map[string][]byte // by their text; whole expressions, too
}

// maxOperations bounds the operations that an assembler keeps. Operands come from
// the code that is read, so a hostile object can demand any number of them.
const maxOperations = 1 << 14

// assembly is the assembler of all rows.
var assembly assembler

// assemble returns the bytes of a text of operations that end with separator.
func (a *assembler) assemble(text []byte) (out []byte) {
	for {
		if out, text = a.assembleKnown(out, text); len(text) == 0 {
			return out
		}
		n := bytes.IndexByte(text, separator[0])
		out, text = append(out, a.learn(string(text[:n]))...), text[n+len(separator):]
	}
}

// assembleKnown appends the bytes to out, up to an operation that was not assembled
// before, and returns the text from there on.
func (a *assembler) assembleKnown(out, text []byte) (_, rest []byte) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for len(text) > 0 {
		n := bytes.IndexByte(text, separator[0])
		code, isKnown := a.operations[string(text[:n])]
		if !isKnown {
			break
		}
		out, text = append(out, code...), text[n+len(separator):]
	}
	return out, text
}

// expression returns the bytes of a whole text. They are kept, too, and shared by all
// rows with this text, so they must not be changed.
func (a *assembler) expression(text []byte) []byte {
	a.mu.RLock()
	code, isKnown := a.operations[string(text)]
	a.mu.RUnlock()
	if !isKnown {
		code = slices.Clip(a.assemble(text))
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.operations) < maxOperations {
			a.operations[string(text)] = code
		}
	}
	return code
}

// learn assembles an operation for the first time.
func (a *assembler) learn(operation string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.operations == nil || len(a.operations) >= maxOperations {
		a.operations = registerOperations()
	}
	code, isKnown := a.operations[operation]
	if !isKnown {
		code = parse(operation)
		a.operations[operation] = code
	}
	return code
}

// registerOperations are the operations that push the location of a register, by
// their text. They are most operations of rows, and assembling them all at once
// takes the time of a few dozen that are assembled alone.
func registerOperations() map[string][]byte {
	var all expression
	var texts []string
	for _, r := range registerRanges() {
		for i := range r.Count {
			start := len(all.text)
			all.register(r.First + i)
			texts = append(texts, string(all.text[start:len(all.text)-len(separator)]))
		}
	}
	code := parse(string(all.text))
	operations := make(map[string][]byte, 2*len(texts))
	for instruction, err := range locexpr.Decode(code, locexpr.Canonical, 8, locexpr.LittleEndian) {
		if err != nil {
			panic(fmt.Sprintf("amdgpu: what was assembled cannot be read: %v", err))
		}
		operations[texts[len(operations)]] = slices.Clip(code[instruction.Offset:][:instruction.Size])
	}
	return operations
}

// parse assembles a text of this package. It panics where it cannot: the text is
// wrong then, and no input causes that.
func parse(text string) []byte {
	code, err := locexpr.Parse(text, locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		panic(fmt.Sprintf("amdgpu: %v", err))
	}
	return code
}
