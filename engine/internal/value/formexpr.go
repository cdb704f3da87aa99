// SPDX-License-Identifier: Apache-2.0

package value

import (
	"fmt"
	"strconv"
	"strings"
)

// This file parses the expressions of the tables of forms. They are written as in C: members by
// . and ->, elements by [ ], the targets of pointers by *, and numbers.

// exprKind is the kind of an expr.
type exprKind uint8

const (
	exprNumber exprKind = iota
	exprText            // "..."
	exprName            // a variable of the form, or a member of the object
	exprMember          // .
	exprArrow           // ->
	exprIndex           // [ ]
	exprUnary           // an operator before its operand
	exprBinary
	exprCall
)

// expr is an expression of a table.
type expr struct {
	kind exprKind
	text string // the name, the operator, or the characters of a text
	n    uint64
	args []*expr
}

// precedence of the operators with two operands; the highest binds first.
var precedence = map[string]int{
	"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4,
	"|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

// exprParser reads one expression of a line.
type exprParser struct {
	rest  string
	token string // the next one; "" at the end
}

func newExprParser(text string) *exprParser {
	p := &exprParser{rest: text}
	p.advance()
	return p
}

// parseExpr parses text that is one expression.
func parseExpr(text string) (*expr, error) {
	p := newExprParser(text)
	e, err := p.binary(1)
	if err == nil && p.token != "" {
		err = fmt.Errorf("%q stands behind the expression", p.token)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return e, nil
}

// parseExprs parses expressions that commas separate.
func parseExprs(text string) ([]*expr, error) {
	p := newExprParser(text)
	list, err := p.list("")
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return list, nil
}

// advance reads the next token.
func (p *exprParser) advance() {
	p.rest = strings.TrimLeft(p.rest, " \t")
	n := 1
	switch {
	case p.rest == "":
		p.token = ""
		return
	case isWord(p.rest[0]):
		for n < len(p.rest) && isWord(p.rest[n]) {
			n++
		}
	case p.rest[0] == '"':
		if i := strings.IndexByte(p.rest[1:], '"'); i >= 0 {
			n = i + 2
		}
	case len(p.rest) > 1 && (p.rest[:2] == "->" || precedence[p.rest[:2]] != 0):
		n = 2
	}
	p.token, p.rest = p.rest[:n], p.rest[n:]
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *exprParser) binary(level int) (*expr, error) {
	left, err := p.unary()
	for err == nil {
		op := p.token
		rank := precedence[op]
		if rank < level {
			break
		}
		p.advance()
		var right *expr
		if right, err = p.binary(rank + 1); err == nil {
			left = &expr{kind: exprBinary, text: op, args: []*expr{left, right}}
		}
	}
	return left, err
}

func (p *exprParser) unary() (*expr, error) {
	switch op := p.token; op {
	case "*", "!", "-", "~", "&":
		p.advance()
		e, err := p.unary()
		return &expr{kind: exprUnary, text: op, args: []*expr{e}}, err
	}
	return p.postfix()
}

func (p *exprParser) postfix() (*expr, error) {
	e, err := p.primary()
	for err == nil {
		switch p.token {
		case ".", "->":
			kind := exprMember
			if p.token == "->" {
				kind = exprArrow
			}
			p.advance()
			if p.token == "" || !isWord(p.token[0]) {
				return nil, fmt.Errorf("%q where a member's name is expected", p.token)
			}
			e = &expr{kind: kind, text: p.token, args: []*expr{e}}
			p.advance()
		case "[":
			p.advance()
			var index *expr
			if index, err = p.binary(1); err == nil {
				e = &expr{kind: exprIndex, args: []*expr{e, index}}
				err = p.expect("]")
			}
		default:
			return e, nil
		}
	}
	return e, err
}

func (p *exprParser) primary() (*expr, error) {
	token := p.token
	switch {
	case token == "(":
		p.advance()
		e, err := p.binary(1)
		if err == nil {
			err = p.expect(")")
		}
		return e, err
	case token == "":
		return nil, fmt.Errorf("the expression ends where an operand is expected")
	case token[0] == '"' && len(token) > 1:
		p.advance()
		return &expr{kind: exprText, text: token[1 : len(token)-1]}, nil
	case token[0] >= '0' && token[0] <= '9':
		p.advance()
		n, err := strconv.ParseUint(token, 0, 64)
		return &expr{kind: exprNumber, n: n}, err
	case !isWord(token[0]):
		return nil, fmt.Errorf("%q where an operand is expected", token)
	}
	p.advance()
	if p.token != "(" {
		return &expr{kind: exprName, text: token}, nil
	}
	p.advance()
	args, err := p.list(")")
	return &expr{kind: exprCall, text: token, args: args}, err
}

// list reads expressions up to a closing token.
func (p *exprParser) list(closing string) (list []*expr, err error) {
	for p.token != closing {
		e, err := p.binary(1)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if p.token == "," {
			p.advance()
		} else if p.token != closing {
			break
		}
	}
	if closing == "" && p.token == "" {
		return list, nil
	}
	return list, p.expect(closing)
}

func (p *exprParser) expect(token string) error {
	if p.token != token {
		return fmt.Errorf("%q where %q is expected", p.token, token)
	}
	p.advance()
	return nil
}
