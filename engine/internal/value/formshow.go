// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file makes the values of a form: elements, entries, summaries, strings.

// isFull counts an element and reports whether it is beyond the limit.
func (r *run) isFull() (bool, error) {
	if r.isCounted && r.found >= r.expected {
		return true, r.broken("it has more than the %d elements that it counts", r.expected)
	}
	shown := uint64(len(r.v.Children))
	r.found++
	switch {
	case r.r.left <= 0, shown >= uint64(r.r.limits.Elements):
		if r.isCounted {
			r.v.More = r.expected - shown
			return true, errEnough
		}
		r.v.More++
		return true, nil
	case shown >= maxFailures && allFailed(r.v.Children):
		r.v.More = max(r.expected, shown) - shown
		return true, errEnough
	}
	return false, nil
}

// isTooDeep reports whether an object of the types is nested too deep to be shown.
func (r *run) isTooDeep(types ...*dwarf.Type) bool {
	if r.depth+1 < r.r.limits.Depth {
		return false
	}
	for _, t := range types {
		if t == nil || !r.r.isLeaf(t) {
			return true
		}
	}
	return false
}

// emit reads an element or a part.
func (r *run) emit(ctx context.Context, name string, role trace.ValueRole, b *bound) error {
	if full, err := r.isFull(); full || err != nil {
		return err
	}
	o, t, err := r.object1(ctx, b)
	if err != nil {
		return err
	}
	if r.isTooDeep(t) {
		r.v.IsDeep = true
		return errEnough
	}
	child := r.value(ctx, name, b, o, t)
	child.Role = role
	r.v.Children = append(r.v.Children, child)
	return nil
}

// object1 evaluates an expression, and returns the type of the result.
func (r *run) object1(ctx context.Context, b *bound) (operand, *dwarf.Type, error) {
	o, err := b.eval(ctx, r)
	t := b.t
	if o.t != nil {
		t = o.t
	}
	return o, t, err
}

// value reads the result of an expression.
func (r *run) value(ctx context.Context, name string, b *bound, o operand, t *dwarf.Type) trace.Value {
	if b.class == classNumber {
		v := trace.Value{Name: name, Status: trace.ValueOK}
		r.r.left--
		setText(&v, strconv.FormatUint(o.n, 10))
		if t != nil {
			r.r.numberValue(&v, t, o.n)
		}
		return v
	}
	if t == nil {
		v := trace.Value{Name: name}
		fail(&v, errors.New("nothing says which type it has"))
		return v
	}
	if b.field != nil {
		return r.r.field(ctx, b.field, t, o.l)
	}
	var v trace.Value
	r.r.read(ctx, &v, name, t, o.l, r.depth+1)
	return v
}

// numberValue makes the value of a number with a type.
func (r *Reader) numberValue(v *trace.Value, t *dwarf.Type, n uint64) {
	v.Type = t.String()
	plain, err := t.Plain()
	if err != nil {
		return
	}
	switch {
	case plain.Base != nil:
		setText(v, r.baseText(plain.Base, locexpr.TypedValue(plain.Base, n)))
	case plain.Kind == dwarf.KindPointer || plain.Kind == dwarf.KindSubroutine:
		if setText(v, fmt.Sprintf("%#x", n)); n == 0 {
			setText(v, "0x0")
		} else if name, offset := r.frame.Symbol(n); name != "" {
			setText(v, v.Text+" "+symbolText(name, offset))
		}
	}
}

// entry reads a key and a value.
func (r *run) entry(ctx context.Context, c *boundClause) error {
	place := r.found
	if full, err := r.isFull(); full || err != nil {
		return err
	}
	key, keyType, err := r.object1(ctx, c.exprs[0])
	if err != nil {
		return err
	}
	value, valueType, err := r.object1(ctx, c.exprs[1])
	if err != nil {
		return err
	}
	if r.isTooDeep(keyType, valueType) {
		r.v.IsDeep = true
		return errEnough
	}
	e := trace.Value{Name: "[" + strconv.FormatUint(place, 10) + "]", Role: trace.RoleEntry, Status: trace.ValueOK, Shape: trace.ShapeStructure}
	e.Children = []trace.Value{
		r.value(ctx, "key", c.exprs[0], key, keyType),
		r.value(ctx, "value", c.exprs[1], value, valueType),
	}
	setStatus(&e)
	r.v.Children = append(r.v.Children, e)
	return nil
}

// whole reads the value that stands for the object: alone, or after its summary.
func (r *run) whole(ctx context.Context, c *boundClause) error {
	b := c.exprs[0]
	o, t, err := r.object1(ctx, b)
	if err != nil {
		return err
	}
	if r.v.HasText {
		r.hasBegun = true
		if r.isTooDeep(t) {
			r.v.IsDeep = true
			return nil
		}
		r.v.Shape = trace.ShapeWrapped
		r.v.Children = append(r.v.Children, r.value(ctx, "value", b, o, t))
		return nil
	}
	depth := r.depth
	if depth >= r.r.limits.Depth && !r.r.isLeaf(t) {
		r.v.IsDeep = true
		return nil
	}
	r.depth = depth - 1 // it is the object itself
	child := r.value(ctx, r.v.Name, b, o, t)
	r.depth = depth
	child.Type = r.v.Type
	*r.v = child
	r.isWhole = true
	return errEnough
}

// summary sets the value's text, if it has none yet.
func (r *run) summary(ctx context.Context, c *boundClause) error {
	if r.v.HasText {
		return nil
	}
	if len(c.exprs) > 0 {
		if n, err := r.number(ctx, c.exprs[0]); err != nil || n == 0 {
			return err
		}
	}
	var b strings.Builder
	for i := range c.clause.parts {
		text, err := r.textPart(ctx, &c.clause.parts[i], c.parts[i])
		if err != nil {
			return err
		}
		b.WriteString(text)
	}
	setText(r.v, b.String())
	return nil
}

// textPart returns the text of a part of a summary; x is its expression, if it is one.
func (r *run) textPart(ctx context.Context, p *textPart, x *bound) (string, error) {
	switch {
	case p.isName:
		return r.form.name, nil
	case p.isType:
		return r.v.Type, nil
	case p.isShort:
		return r.form.short, nil
	case x == nil:
		return p.text, nil
	case x.class == classType && x.eval == nil:
		return typeText(x.t), nil
	}
	o, err := x.eval(ctx, r)
	switch {
	case err != nil:
		return "", err
	case x.class == classType && o.t == nil:
		return "", r.broken("nothing says which type it holds")
	case x.class == classType:
		return typeText(o.t), nil
	case p.isCode:
		return r.symbol(o.n), nil
	case p.isHex:
		return fmt.Sprintf("%#x", o.n), nil
	case isSignedNumber(x):
		return strconv.FormatInt(int64(o.n), 10), nil
	case p.isCount && o.n == 1:
		return "1 element", nil
	case p.isCount:
		return strconv.FormatUint(o.n, 10) + " elements", nil
	}
	return strconv.FormatUint(o.n, 10), nil
}

// symbol returns the name of a function, or its address.
func (r *run) symbol(address uint64) string {
	name, offset := r.r.frame.Symbol(address)
	switch {
	case name == "":
		return fmt.Sprintf("%#x", address)
	case offset != 0:
		return fmt.Sprintf("%s+%d", name, offset)
	}
	return name
}

// text reads a string.
func (r *run) text(ctx context.Context, c *boundClause) error {
	o, err := c.exprs[0].eval(ctx, r)
	if err != nil {
		return err
	}
	count, err := r.number(ctx, c.exprs[1])
	if err != nil {
		return err
	}
	if count > 1<<48 {
		return r.broken("it would have %d characters", count)
	}
	size := uint64(1)
	var element *dwarf.Type
	if c.op != opUTF8 {
		if element, err = c.exprs[0].t.Plain(); err != nil {
			return err
		}
		if size = element.Size; element.Base == nil || size == 0 || size > 4 {
			return notBound("%s is no character", element)
		}
	}
	n := min(count, uint64(r.r.limits.Elements))
	var b []byte
	if n > 0 {
		if b, err = r.r.bytes(ctx, o.l, n*size); err != nil {
			return err
		}
	}
	var text string
	if c.op == opUTF8 {
		if n < count {
			b = wholeRunes(b)
		}
		text = strconv.Quote(string(b))
	} else {
		codes := make([]rune, n)
		for i := range codes {
			codes[i] = rune(integer(b[uint64(i)*size:uint64(i+1)*size], r.r.context.ByteOrder()))
		}
		text = quoted(codes, element.Base)
	}
	if n < count {
		text += "..."
	}
	r.v.Shape = trace.ShapeScalar
	setText(r.v, text)
	return nil
}
