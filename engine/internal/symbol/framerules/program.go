// SPDX-License-Identifier: Apache-2.0

package framerules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// The bounds of a program: its length in bytes, and the tokens of all expressions, which grow with
// each use of a variable. A compiler's program has 50 tokens.
const (
	maxProgram = 4096
	maxTokens  = 4096
)

// Tokens that are neither registers nor numbers.
const (
	search    = ".raSearch"
	undefined = ".undef"
)

// expression is a variable's value in postfix notation, of the registers and the place of the search
// as the program found them.
type expression []string

// program runs a program on expressions instead of values.
type program struct {
	data      *symbol.FrameData
	variables map[string]expression
	stack     []expression
	tokens    int  // in all expressions that were made
	isAligned bool // "@" occurs: the stack pointer was rounded down
}

// constants are the sizes that a program can name.
func (p *program) constant(token string) (uint64, bool) {
	switch token {
	case ".cbParams":
		return p.data.Parameters, true
	case ".cbLocals":
		return p.data.Locals, true
	case ".cbSavedRegs":
		return p.data.SavedRegisters, true
	}
	return 0, false
}

func number(v uint64) string { return strconv.FormatUint(v, 10) }

// errShort is the error of an operator without operands.
var errShort = errors.New("too few operands")

// run runs a program.
func (p *program) run(text string) error {
	if len(text) > maxProgram {
		return fmt.Errorf("a program of %d bytes, expected at most %d", len(text), maxProgram)
	}
	for _, size := range []uint64{p.data.Locals, p.data.SavedRegisters, p.data.Parameters} {
		if size > 1<<31 {
			return fmt.Errorf("a frame with %d bytes of locals, registers or parameters, expected at most 2 GiB", size)
		}
	}
	p.variables = map[string]expression{}
	p.isAligned = strings.Contains(text, "@")
	for _, token := range strings.Fields(text) {
		// Some files have no space behind an assignment.
		if len(token) > 1 && token[0] == '=' {
			if err := p.token("="); err != nil {
				return fmt.Errorf("the program %.200q: %q: %w", text, token, err)
			}
			token = token[1:]
		}
		if err := p.token(token); err != nil {
			return fmt.Errorf("the program %.200q: %q: %w", text, token, err)
		}
	}
	return nil
}

// token executes a token.
func (p *program) token(token string) error {
	n := len(p.stack)
	switch token {
	case "=":
		return p.assign()
	case "^":
		if n < 1 {
			return errShort
		}
		value, err := p.value(p.stack[n-1])
		if err != nil {
			return err
		}
		p.stack = p.stack[:n-1]
		return p.push(value, expression{token})
	case "+", "-", "*", "/", "%", "@":
		if n < 2 {
			return errShort
		}
		a, err := p.value(p.stack[n-2])
		if err != nil {
			return err
		}
		b, err := p.value(p.stack[n-1])
		if err != nil {
			return err
		}
		p.stack = p.stack[:n-2]
		return p.push(a, b, expression{token})
	}
	if v, ok := p.constant(token); ok {
		token = number(v)
	}
	return p.push(expression{token})
}

// push pushes the parts of an expression as one.
func (p *program) push(parts ...expression) error {
	for _, part := range parts {
		p.tokens += len(part)
	}
	if p.tokens > maxTokens {
		return fmt.Errorf("its expressions have more than %d tokens", maxTokens)
	}
	var all expression
	for _, part := range parts {
		all = append(all, part...)
	}
	p.stack = append(p.stack, all)
	return nil
}

// value returns the value of an entry of the stack: a variable that was set has its value.
func (p *program) value(e expression) (expression, error) {
	if len(e) != 1 {
		return e, nil
	}
	token := e[0]
	if value, ok := p.variables[token]; ok {
		return value, nil
	}
	switch {
	case token == ".raSearchStart":
		return expression{search}, nil
	case token == search || token[0] != '$' && token[0] != '.', token == names[ebp], token == names[esp], token == names[ebx]:
		return e, nil
	}
	return nil, errors.New("it has no value yet")
}

// assign sets the variable below the value on top of the stack.
func (p *program) assign() error {
	n := len(p.stack)
	if n < 2 {
		return errShort
	}
	name, value := p.stack[n-2], p.stack[n-1]
	if len(name) != 1 || name[0][0] != '$' && name[0][0] != '.' {
		return fmt.Errorf("%.80q is set, expected the name of a variable", strings.Join(name, " "))
	}
	if len(value) != 1 || value[0] != undefined {
		var err error
		if value, err = p.value(value); err != nil {
			return err
		}
	}
	p.variables[name[0]] = value
	p.stack = p.stack[:n-2]
	return nil
}
