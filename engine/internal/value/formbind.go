// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// This file binds the expressions of a form to a type: members become offsets. A form with a
// member that the type lacks is for another version of the library.

// class is the kind of result of an expression.
type class uint8

const (
	classType   class = iota
	classPlace        // the location of an object
	classNumber       // an integer, or an address with the type of a pointer
)

// bound is an expression that is bound to a type.
type bound struct {
	class class
	// t is the type of the object at a place, or of a number that was read. It is nil for a
	// number that was computed, and where only the object has its type.
	t *dwarf.Type
	// field is the bit field at a place; nil: none.
	field *dwarf.Member
	// constant is the value of a number that depends on no object.
	constant   uint64
	isConstant bool
	eval       func(context.Context, *run) (operand, error)
}

// operand is the result of an expression.
type operand struct {
	n uint64
	l locexpr.Location
	t *dwarf.Type // where the bound has none
}

// then returns an expression of a class and a type that is computed from the result of x.
func (x *bound) then(c class, t *dwarf.Type, compute func(context.Context, *run, operand) (operand, error)) *bound {
	return &bound{class: c, t: t, eval: func(ctx context.Context, r *run) (operand, error) {
		o, err := x.eval(ctx, r)
		if err != nil {
			return operand{}, err
		}
		return compute(ctx, r, o)
	}}
}

// boundForm is a form for the objects of one type.
type boundForm struct {
	*form
	name    string // of the type, without its arguments
	short   string // the type as people write it
	clauses []boundClause
	slots   int // variables
	shape   trace.ValueShape
}

// boundClause is a clause for the objects of one type.
type boundClause struct {
	*clause
	slot, indexSlot int // the variable that it sets
	exprs           []*bound
	parts           []*bound // of the summary; nil: plain text
	leaves          []*bound
}

// variable is a variable of a form.
type variable struct {
	name string
	slot int
	b    *bound
}

// binder binds one form to one type.
type binder struct {
	t     *dwarf.Type // the type, by the name that the form matched
	plain *dwarf.Type
	scope []variable
	slots int
}

// errNotBound is the error for a type that a form is not for.
var errNotBound = errors.New("the type has no such part")

func notBound(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotBound, fmt.Sprintf(format, args...))
}

// bind binds a form to a type.
func bind(f *form, t, plain *dwarf.Type) (*boundForm, error) {
	b := &binder{t: t, plain: plain}
	out := &boundForm{form: f, shape: trace.ShapeStructure, name: shownName(t), short: typeText(t)}
	for i := range f.clauses {
		bc := boundClause{clause: &f.clauses[i]}
		if err := b.clause(&bc); err != nil {
			return nil, err
		}
		out.clauses = append(out.clauses, bc)
		switch bc.op {
		case opItem, opLeaves:
			out.shape = trace.ShapeArray
		case opEntry:
			out.shape = trace.ShapeAssociated
		}
	}
	out.slots = b.slots
	return out, nil
}

// shownName returns the name of a type in summaries: without arguments, and for Rust without
// the modules around it.
func shownName(t *dwarf.Type) string {
	name := withoutArguments(formName(t))
	if i := strings.LastIndex(name, "::"); i >= 0 && t.Unit().Language() == dw.LangRust {
		name = name[i+2:]
	}
	return name
}

// declare makes a variable.
func (b *binder) declare(name string, typed *bound) int {
	slot := b.slots
	b.slots++
	v := *typed
	if (typed.class != classType || typed.eval != nil) && !typed.isConstant {
		v.eval = func(ctx context.Context, r *run) (operand, error) { return r.slots[slot], nil }
	}
	b.scope = append(b.scope, variable{name, slot, &v})
	return slot
}

var plainNumber = &bound{class: classNumber}

// clause binds a clause, which bc has, to the type.
func (b *binder) clause(bc *boundClause) (err error) {
	c, exprs := bc.clause, bc.clause.exprs
	switch c.op {
	case opFor:
		if err = b.numbers(bc, exprs...); err == nil {
			bc.slot = b.declare(c.name, plainNumber)
		}
		return err
	case opFollow, opTree:
		if err = b.numbers(bc, exprs[0]); err != nil {
			return err
		}
		bc.slot = b.declare(c.name, bc.exprs[0])
		return b.numbers(bc, exprs[1:]...)
	case opBTree:
		if err = b.numbers(bc, exprs[0], exprs[1]); err != nil {
			return err
		}
		bc.slot = b.declare(c.name, bc.exprs[0])
		bc.indexSlot = b.declare(c.index, plainNumber)
		return b.numbers(bc, exprs[2:]...)
	case opLet, opPlace:
		return b.named(bc)
	case opWhen, opIf, opCheck, opCount:
		return b.numbers(bc, exprs...)
	case opText:
		if err := b.numbers(bc, exprs...); err != nil {
			return err
		}
		return b.summary(bc)
	case opString, opUTF8:
		return b.text(bc, exprs)
	case opLeaves:
		x, err := b.expr(exprs[0])
		if err == nil {
			bc.leaves, err = leaves(x, c.name)
		}
		return err
	}
	for _, e := range exprs { // places and numbers
		x, err := b.expr(e)
		if err != nil {
			return err
		}
		if x.class == classType {
			return notBound("a type is no value")
		}
		bc.exprs = append(bc.exprs, x)
	}
	return nil
}

// named binds a clause that gives a name to a place or, with opLet, to a number, which is
// loaded where the expression is a place.
func (b *binder) named(bc *boundClause) error {
	x, err := b.expr(bc.clause.exprs[0])
	if err == nil && bc.op == opLet && x.class == classPlace {
		x, err = loaded(x)
	}
	if err != nil {
		return err
	}
	bc.exprs = append(bc.exprs, x)
	bc.slot = b.declare(bc.clause.name, x)
	return nil
}

// numbers binds expressions that give numbers.
func (b *binder) numbers(bc *boundClause, exprs ...*expr) error {
	for _, e := range exprs {
		x, err := b.number(e)
		if err != nil {
			return err
		}
		bc.exprs = append(bc.exprs, x)
	}
	return nil
}

// text binds the characters of a string, an array or the target of a pointer, and their number.
func (b *binder) text(bc *boundClause, exprs []*expr) error {
	x, err := b.expr(exprs[0])
	if err != nil {
		return err
	}
	if bc.op == opUTF8 { // of bytes
		if x, err = loaded(x); err != nil {
			return err
		}
		bc.exprs = append(bc.exprs, atAddress(x, nil))
		return b.numbers(bc, exprs[1])
	}
	if x.t == nil {
		return notBound("nothing says what its characters are")
	}
	plain, err := x.t.Plain()
	if err != nil {
		return err
	}
	switch {
	case x.class == classPlace && plain.Kind == dwarf.KindArray:
		y := *x
		x = &y
		x.t, err = plain.Element()
	case x.class == classPlace && plain.Kind == dwarf.KindBase: // the first character
	default:
		x, err = deref(x)
	}
	if err != nil {
		return err
	}
	bc.exprs = append(bc.exprs, x)
	return b.numbers(bc, exprs[1])
}

func (b *binder) summary(bc *boundClause) error {
	for _, p := range bc.clause.parts {
		var x *bound
		if p.expr != nil {
			var err error
			if x, err = b.expr(p.expr); err != nil {
				return err
			}
			if x.class == classPlace {
				if x, err = loaded(x); err != nil {
					return err
				}
			}
		}
		bc.parts = append(bc.parts, x)
	}
	return nil
}

// number binds an expression for a number.
func (b *binder) number(e *expr) (*bound, error) {
	x, err := b.expr(e)
	if err != nil {
		return nil, err
	}
	switch x.class {
	case classNumber:
		return x, nil
	case classPlace:
		return loaded(x)
	}
	return nil, notBound("a type is no number")
}

// expr binds an expression.
func (b *binder) expr(e *expr) (*bound, error) {
	switch e.kind {
	case exprNumber:
		return constantOf(e.n), nil
	case exprName:
		return b.name(e.text)
	case exprMember, exprArrow:
		x, err := b.expr(e.args[0])
		if err == nil && e.kind == exprArrow {
			x, err = deref(x)
		}
		if err != nil {
			return nil, err
		}
		return member(x, e.text)
	case exprIndex:
		return b.index(e)
	case exprUnary:
		return b.unary(e)
	case exprBinary:
		return b.binary(e)
	case exprCall:
		return b.call(e.text, e.args)
	}
	return nil, notBound("%q is no value", e.text)
}

func constantOf(n uint64) *bound {
	return &bound{
		class: classNumber, isConstant: true, constant: n,
		eval: func(context.Context, *run) (operand, error) { return operand{n: n}, nil },
	}
}

// name returns a variable of the form, the object itself, or a member of the object.
func (b *binder) name(name string) (*bound, error) {
	for i := len(b.scope) - 1; i >= 0; i-- {
		if b.scope[i].name == name {
			return b.scope[i].b, nil
		}
	}
	switch name {
	case "this":
		return b.this(), nil
	case "wordsize":
		return constantOf(b.wordSize()), nil
	}
	return member(b.this(), name)
}

// this returns the object.
func (b *binder) this() *bound {
	return &bound{class: classPlace, t: b.plain, eval: func(_ context.Context, r *run) (operand, error) { return operand{l: r.object}, nil }}
}

func (b *binder) wordSize() uint64 { return uint64(b.t.Unit().AddressSize()) }
