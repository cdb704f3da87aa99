// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/locexpr"
)

// This file finds types that only an object has: by the function, the table of functions or the
// descriptor of a type that it points to.

// callClassArg binds classarg(f, "name"), the first argument of the class template with a name
// that the function f is a member of. The form is not for other functions.
func (b *binder) callClassArg(args []*expr) (*bound, error) {
	return b.typeBehind(args, func(_ context.Context, r *run, function uint64) (*dwarf.Type, error) {
		return r.classArgument(function, args[1].text)
	})
}

func (r *run) classArgument(function uint64, name string) (*dwarf.Type, error) {
	d, offset := r.r.frame.Module(function)
	if d == nil {
		return nil, errOtherForm
	}
	scopes, err := d.Scopes(offset)
	if err != nil || len(scopes) == 0 {
		return nil, errOtherForm
	}
	class, err := scopes[len(scopes)-1].Around()
	if err != nil || class.IsZero() || withoutArguments(class.Name()) != name {
		return nil, errOtherForm
	}
	t, err := class.AsType()
	if err != nil {
		return nil, err
	}
	parts, err := t.Parts()
	if err != nil {
		return nil, err
	}
	return templateArgument(parts, 0)
}

// callVtableType binds vtabletype(address), the type that a table of functions of a Rust trait
// is for. With a table that is not described, such as the standard library's own, the object is
// shown raw.
func (b *binder) callVtableType(args []*expr) (*bound, error) {
	return b.typeBehind(args, func(ctx context.Context, r *run, address uint64) (*dwarf.Type, error) {
		d, offset := r.r.frame.Module(address)
		if d == nil {
			return nil, errOtherForm // the table's module does not describe it
		}
		e := d.ImplementedBy(offset)
		if e.IsZero() {
			return nil, errOtherForm
		}
		return e.AsType()
	})
}

// callGoType binds gotype(address), the type of a type descriptor of Go's runtime.
func (b *binder) callGoType(args []*expr) (*bound, error) {
	return b.typeBehind(args, func(ctx context.Context, r *run, address uint64) (*dwarf.Type, error) {
		d, offset := r.r.frame.Module(address)
		if d == nil {
			return nil, errOtherForm
		}
		e := d.GoType(address - r.goTypes(ctx, d))
		if e.IsZero() {
			e = d.GoType(offset) // older versions have the address
		}
		if e.IsZero() {
			return nil, errOtherForm
		}
		return e.AsType()
	})
}

// typeBehind binds a type that is found by a number, the first argument.
func (b *binder) typeBehind(args []*expr, find func(context.Context, *run, uint64) (*dwarf.Type, error)) (*bound, error) {
	n, err := b.number(args[0])
	if err != nil {
		return nil, err
	}
	return n.then(classType, nil, func(ctx context.Context, r *run, o operand) (operand, error) {
		t, err := find(ctx, r, o.n)
		return operand{t: t}, err
	}), nil
}

// goTypes returns the start of the type descriptors, from which DW_AT_go_runtime_type counts:
// moduledata.types of Go's runtime.
func (r *run) goTypes(ctx context.Context, d *dwarf.Reader) uint64 {
	if r.r.goTypes != 0 {
		return r.r.goTypes
	}
	list, err := d.Globals("runtime.firstmoduledata")
	if err != nil || len(list) == 0 {
		return 0
	}
	t, err := list[0].ValueType()
	if err != nil {
		return 0
	}
	placed, err := list[0].Placed()
	if err != nil || placed == nil {
		return 0
	}
	l, err := r.r.frame.Evaluate(ctx, placed, locexpr.UndefinedLocation())
	if err != nil {
		return 0
	}
	m, bits, err := findMember(t, "types", 0)
	if err != nil || m == nil {
		return 0
	}
	if l, err = l.Offset(bits); err != nil {
		return 0
	}
	r.r.goTypes, _ = r.load(ctx, l, 8)
	return r.r.goTypes
}

// callGoData binds godata(x, T), the object of type T in an interface: the word x itself where
// values of the type are pointers, else the object that x points to.
func (b *binder) callGoData(args []*expr) (*bound, error) {
	x, err := b.expr(args[0])
	if err != nil {
		return nil, err
	}
	t, err := b.expr(args[1])
	if err != nil {
		return nil, err
	}
	word, err := loaded(x)
	if err != nil || t.eval == nil {
		return nil, notBound("what an interface holds is a word of a type")
	}
	return &bound{class: classPlace, eval: func(ctx context.Context, r *run) (operand, error) {
		typed, err := t.eval(ctx, r)
		if err != nil {
			return typed, err
		}
		o, err := x.eval(ctx, r)
		if err == nil && !isPointerShaped(typed.t, 0) {
			if o, err = word.eval(ctx, r); err == nil {
				o.l = r.memory(o.n)
			}
		}
		o.t = typed.t
		return o, err
	}}, nil
}

// isPointerShaped reports whether values of a Go type are one pointer: pointers, maps,
// channels, functions, and types with only one of them.
func isPointerShaped(t *dwarf.Type, depth int) bool {
	plain, err := t.Plain()
	if err != nil || depth > maxBases {
		return false
	}
	switch plain.Kind {
	case dwarf.KindPointer, dwarf.KindSubroutine:
		return true
	case dwarf.KindStructure:
		parts, err := plain.Parts()
		if err != nil || len(parts.Members) != 1 {
			return false
		}
		element, err := parts.Members[0].ValueType()
		return err == nil && isPointerShaped(element, depth+1)
	case dwarf.KindArray:
		dimensions, err := plain.Dimensions()
		if err != nil || len(dimensions) != 1 {
			return false
		}
		n, ok := dimensions[0].Elements()
		e, err := plain.Element()
		return err == nil && ok && n == 1 && isPointerShaped(e, depth+1)
	}
	return false
}
