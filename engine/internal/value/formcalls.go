// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
)

// This file has the functions of expressions of forms.

// builtin is a function of expressions, with its number of arguments.
type builtin struct {
	least, most int
	bind        func(b *binder, args []*expr) (*bound, error)
}

// manyArgs is the most arguments of a function that takes any number.
const manyArgs = 1 << 10

var builtins map[string]builtin

func init() {
	builtins = map[string]builtin{
		"sizeof": {1, 1, (*binder).callSizeof}, "typeof": {1, 1, (*binder).callTypeof}, "element": {1, 1, (*binder).callElement},
		"arg": {1, 2, (*binder).callArg}, "args": {0, 0, (*binder).callArgs}, "nested": {1, 2, (*binder).callNested},
		"classarg": {2, 2, (*binder).callClassArg}, "at": {2, 2, (*binder).callAt}, "cast": {2, 2, (*binder).callCast},
		"after": {2, manyArgs, (*binder).callAfter}, "derived": {2, manyArgs, (*binder).callDerived},
		"word": {1, 1, (*binder).callWord}, "byte": {1, 1, (*binder).callByte}, "leaf": {3, 3, (*binder).callLeaf},
		"either": {1, manyArgs, (*binder).callEither}, "choose": {3, 3, (*binder).callChoose},
		"key": {0, 0, (*binder).callGoKey}, "elem": {0, 0, (*binder).callGoElem},
		"gotype": {1, 1, (*binder).callGoType}, "godata": {2, 2, (*binder).callGoData}, "vtabletype": {1, 1, (*binder).callVtableType},
	}
}

// call binds a function with its arguments.
func (b *binder) call(name string, args []*expr) (*bound, error) {
	f, ok := builtins[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("%q is no function", name)
	case len(args) < f.least || len(args) > f.most:
		return nil, fmt.Errorf("%s has %d arguments, expected %d to %d", name, len(args), f.least, f.most)
	}
	return f.bind(b, args)
}

// typeArg binds an argument that is a type, or an object whose type is used.
func (b *binder) typeArg(e *expr) (*dwarf.Type, error) {
	x, err := b.expr(e)
	if err == nil && x.t == nil {
		err = notBound("only an object says which type it is")
	}
	if err != nil {
		return nil, err
	}
	return x.t, nil
}

// typeOf returns an expression that is a type, unless that was not found.
func typeOf(t *dwarf.Type, err error) (*bound, error) {
	if err != nil {
		return nil, err
	}
	return &bound{class: classType, t: t}, nil
}

// callSizeof binds sizeof(T), the size of a type, or of an object's type, in bytes.
func (b *binder) callSizeof(args []*expr) (*bound, error) {
	t, err := b.typeArg(args[0])
	if err != nil {
		return nil, err
	}
	n, err := sizeOf(t)
	if err != nil {
		return nil, err
	}
	return constantOf(n), nil
}

// callTypeof binds typeof(x), the type of an object.
func (b *binder) callTypeof(args []*expr) (*bound, error) { return typeOf(b.typeArg(args[0])) }

// callElement binds element(T), the type that pointers of a type point to, or that arrays
// consist of.
func (b *binder) callElement(args []*expr) (*bound, error) {
	t, err := b.typeArg(args[0])
	if err != nil {
		return nil, err
	}
	plain, err := t.Plain()
	if err != nil {
		return nil, err
	}
	if plain.Kind == dwarf.KindArray {
		return typeOf(plain.Element())
	}
	return typeOf(pointee(plain))
}

// callArg binds arg(n), the n-th argument of the object's template, or arg(n, T), of another
// type's. Where n is found in the object, so is the type.
func (b *binder) callArg(args []*expr) (*bound, error) {
	argument, err := b.typeOr(args[1:])
	if err != nil {
		return nil, err
	}
	parts, err := partsOf(argument)
	if err != nil {
		return nil, err
	}
	n, err := b.number(args[0])
	if err != nil {
		return nil, err
	}
	if n.isConstant {
		if number, ok := templateNumber(parts, n.constant); ok {
			return constantOf(number), nil
		}
		return typeOf(templateArgument(parts, n.constant))
	}
	return n.then(classType, nil, func(_ context.Context, _ *run, o operand) (operand, error) {
		t, err := templateArgument(parts, o.n)
		if errors.Is(err, errNotBound) {
			err = fmt.Errorf("nothing says what its type %d is", o.n)
		}
		return operand{t: t}, err
	}), nil
}

// typeOr binds an argument that is a type; without one it is the object's.
func (b *binder) typeOr(args []*expr) (*dwarf.Type, error) {
	if len(args) == 0 {
		return b.plain, nil
	}
	return b.typeArg(args[0])
}

// templateNumber returns an argument that is a number.
func templateNumber(parts *dwarf.Parts, n uint64) (uint64, bool) {
	if n >= uint64(len(parts.Arguments)) || parts.Arguments[n].Tag() != dw.TagTemplateValueParameter {
		return 0, false
	}
	number, ok, err := parts.Arguments[n].Number(dw.AttrConstValue)
	return uint64(number), ok && err == nil
}

func templateArgument(parts *dwarf.Parts, n uint64) (*dwarf.Type, error) {
	if n >= uint64(len(parts.Arguments)) || parts.Arguments[n].Tag() != dw.TagTemplateTypeParameter {
		return nil, notBound("argument %d of the template is no type", n)
	}
	return parts.Arguments[n].ValueType()
}

// callArgs binds args(), the number of arguments of the object's template.
func (b *binder) callArgs(args []*expr) (*bound, error) {
	parts, err := b.plain.Parts()
	if err != nil {
		return nil, err
	}
	return constantOf(uint64(len(parts.Arguments))), nil
}

// callNested binds nested(name), a type that is declared in the object's class or a base of it,
// or nested(name, T), in another.
func (b *binder) callNested(args []*expr) (*bound, error) {
	nested, err := b.typeOr(args[1:])
	if err != nil {
		return nil, err
	}
	t, err := nestedType(nested, args[0].text, 0)
	if err == nil && t == nil {
		err = notBound("%s has no type %s", nested, args[0].text)
	}
	return typeOf(t, err)
}

func nestedType(t *dwarf.Type, name string, depth int) (*dwarf.Type, error) {
	parts, err := partsOf(t)
	if err != nil || depth > maxBases {
		return nil, err
	}
	for _, e := range parts.Types {
		if e.Name() == name {
			return e.AsType()
		}
	}
	for i := range parts.Members {
		if m := &parts.Members[i]; m.Role == dwarf.BaseClass {
			base, err := m.ValueType()
			if err != nil {
				return nil, err
			}
			if found, err := nestedType(base, name, depth+1); found != nil || err != nil {
				return found, err
			}
		}
	}
	return nil, nil
}

// callAt binds at(address, T), the object of a type at an address.
func (b *binder) callAt(args []*expr) (*bound, error) {
	n, err := b.number(args[0])
	if err != nil {
		return nil, err
	}
	t, err := b.expr(args[1])
	if err != nil {
		return nil, err
	}
	return retyped(atAddress(n, nil), t), nil
}

// callCast binds cast(x, T), the place x as an object of type T, or the number x as one of type
// T.
func (b *binder) callCast(args []*expr) (*bound, error) {
	x, err := b.expr(args[0])
	if err != nil {
		return nil, err
	}
	t, err := b.expr(args[1])
	if err != nil {
		return nil, err
	}
	if x.class == classType {
		return nil, notBound("a type is cast")
	}
	return retyped(x, t), nil
}

// retyped returns a place or a number with another type, which may depend on the object.
func retyped(x, t *bound) *bound {
	y := *x
	y.t, y.field = t.t, nil
	if t.t != nil || t.eval == nil {
		return &y
	}
	y.eval = x.then(x.class, nil, func(ctx context.Context, r *run, o operand) (operand, error) {
		typed, err := t.eval(ctx, r)
		o.t = typed.t
		return o, err
	}).eval
	return &y
}

// callWord binds word(address), the word at an address, and callByte byte(address), the byte.
func (b *binder) callWord(args []*expr) (*bound, error) { return b.unsigned(args, b.wordSize()) }

func (b *binder) callByte(args []*expr) (*bound, error) { return b.unsigned(args, 1) }

func (b *binder) unsigned(args []*expr, size uint64) (*bound, error) {
	n, err := b.number(args[0])
	if err != nil {
		return nil, err
	}
	return n.then(classNumber, nil, func(ctx context.Context, r *run, o operand) (operand, error) {
		value, err := r.load(ctx, r.memory(o.n), size)
		return operand{n: value}, err
	}), nil
}

// callEither binds either(x, y...), the first of its arguments that the type has.
func (b *binder) callEither(args []*expr) (x *bound, err error) {
	for _, a := range args {
		if x, err = b.expr(a); err == nil {
			return x, nil
		}
	}
	return nil, err
}

// callChoose binds choose(c, x, y), the number x where c is true, else y.
func (b *binder) callChoose(args []*expr) (*bound, error) {
	var list [3]*bound
	for i := range list {
		var err error
		if list[i], err = b.number(args[i]); err != nil {
			return nil, err
		}
	}
	return list[0].then(classNumber, list[1].t, func(ctx context.Context, r *run, o operand) (operand, error) {
		if o.n != 0 {
			return list[1].eval(ctx, r)
		}
		return list[2].eval(ctx, r)
	}), nil
}

// callGoKey and callGoElem bind key() and elem(), the types in Go's description of a map, a
// channel or a slice.
func (b *binder) callGoKey([]*expr) (*bound, error) { return b.referenced(dw.AttrGoKey) }

func (b *binder) callGoElem([]*expr) (*bound, error) { return b.referenced(dw.AttrGoElem) }

func (b *binder) referenced(attr dw.Attr) (*bound, error) {
	e, err := b.t.Reference(attr)
	if err != nil {
		return nil, err
	}
	if e.IsZero() {
		return nil, notBound("%s has no %s", b.t, attr)
	}
	return typeOf(e.AsType())
}
