package value

import (
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/symbol/dwarf"
)

// This file computes: the operators and functions of expressions of forms.

func (b *binder) unary(e *expr) (*bound, error) {
	x, err := b.expr(e.args[0])
	if err != nil {
		return nil, err
	}
	switch e.text {
	case "*":
		return deref(x)
	case "&":
		return addressOf(x)
	}
	if x, err = loaded(x); err != nil {
		return nil, err
	}
	var compute func(n uint64) uint64
	switch e.text {
	case "!":
		compute = func(n uint64) uint64 { return truth(n == 0) }
	case "-":
		compute = func(n uint64) uint64 { return -n }
	default:
		compute = func(n uint64) uint64 { return ^n }
	}
	return &bound{class: classNumber, eval: func(r *run) (operand, error) {
		o, err := x.eval(r)
		return operand{n: compute(o.n)}, err
	}}, nil
}

// addressOf is the address of a place in memory.
func addressOf(x *bound) (*bound, error) {
	if x.class != classPlace {
		return nil, notBound("the address of what is no object")
	}
	return &bound{class: classNumber, eval: func(r *run) (operand, error) {
		o, err := x.eval(r)
		if err != nil {
			return o, err
		}
		_, address, ok := o.l.MemoryAddress()
		if !ok {
			return o, errNoAddress
		}
		return operand{n: address}, nil
	}}, nil
}

// errNoAddress says that an object is not in memory as a whole.
var errNoAddress = errors.New("the object is not in memory")

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

var errDivision = errors.New("a division by 0")

func (b *binder) binary(e *expr) (*bound, error) {
	x, err := b.number(e.args[0])
	if err != nil {
		return nil, err
	}
	y, err := b.number(e.args[1])
	if err != nil {
		return nil, err
	}
	op := e.text
	if op == "&&" || op == "||" {
		return &bound{class: classNumber, eval: func(r *run) (operand, error) {
			o, err := x.eval(r)
			if err != nil || (o.n != 0) == (op == "||") {
				return operand{n: truth(o.n != 0)}, err
			}
			o, err = y.eval(r)
			return operand{n: truth(o.n != 0)}, err
		}}, nil
	}
	signed := isSignedNumber(x) || isSignedNumber(y)
	return &bound{class: classNumber, eval: func(r *run) (operand, error) {
		m, err := x.eval(r)
		if err != nil {
			return m, err
		}
		n, err := y.eval(r)
		if err != nil {
			return n, err
		}
		value, err := calculate(op, m.n, n.n, signed)
		return operand{n: value}, err
	}}, nil
}

func isSignedNumber(x *bound) bool {
	return x.t != nil && x.t.Base != nil && isSigned(x.t.Base)
}

func calculate(op string, a, b uint64, signed bool) (uint64, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/", "%":
		if b == 0 {
			return 0, errDivision
		}
		if op == "/" {
			return a / b, nil
		}
		return a % b, nil
	case "&":
		return a & b, nil
	case "|":
		return a | b, nil
	case "^":
		return a ^ b, nil
	case "<<":
		return a << min(b, 64), nil
	case ">>":
		return a >> min(b, 64), nil
	case "==":
		return truth(a == b), nil
	case "!=":
		return truth(a != b), nil
	}
	if signed { // an order of which 0 is in the middle
		a, b = a^1<<63, b^1<<63
	}
	switch op {
	case "<":
		return truth(a < b), nil
	case "<=":
		return truth(a <= b), nil
	case ">":
		return truth(a > b), nil
	}
	return truth(a >= b), nil
}

// builtins are the functions of expressions.
var builtins map[string]func(b *binder, args []*expr) (*bound, error)

func init() {
	builtins = map[string]func(b *binder, args []*expr) (*bound, error){
		"sizeof": (*binder).callSizeof, "arg": (*binder).callArg, "nested": (*binder).callNested,
		"typeof": (*binder).callTypeof, "element": (*binder).callElement, "at": (*binder).callAt, "cast": (*binder).callCast,
		"after": (*binder).callAfter, "derived": (*binder).callDerived, "word": (*binder).callWord, "byte": (*binder).callByte,
		"either": (*binder).callEither, "choose": (*binder).callChoose,
		"args": (*binder).callArgs, "leaf": (*binder).callLeaf, "key": (*binder).callGoKey, "elem": (*binder).callGoElem,
		"classarg": (*binder).callClassArg, "gotype": (*binder).callGoType, "godata": (*binder).callGoData, "vtabletype": (*binder).callVtableType,
	}
}

func wantArgs(args []*expr, low, high int) error {
	if len(args) < low || len(args) > high {
		return errors.New("a function has another number of arguments")
	}
	return nil
}

// typeArg binds an argument that is a type, or an object whose type is meant.
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

func typeOf(t *dwarf.Type) *bound { return &bound{class: classType, t: t} }

// sizeof(T) is the size of a type, or of an object's type, in bytes.
func (b *binder) callSizeof(args []*expr) (*bound, error) {
	if err := wantArgs(args, 1, 1); err != nil {
		return nil, err
	}
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

// typeof(x) is the type of an object.
func (b *binder) callTypeof(args []*expr) (*bound, error) {
	if err := wantArgs(args, 1, 1); err != nil {
		return nil, err
	}
	t, err := b.typeArg(args[0])
	if err != nil {
		return nil, err
	}
	return typeOf(t), nil
}

// element(T) is what a pointer of the type points to, or an array is of.
func (b *binder) callElement(args []*expr) (*bound, error) {
	if err := wantArgs(args, 1, 1); err != nil {
		return nil, err
	}
	t, err := b.typeArg(args[0])
	if err != nil {
		return nil, err
	}
	plain, err := t.Plain()
	if err != nil {
		return nil, err
	}
	if plain.Kind == dwarf.KindArray {
		t, err = plain.Element()
	} else {
		t, err = pointee(plain)
	}
	if err != nil {
		return nil, err
	}
	return typeOf(t), nil
}

// arg(n) is the n-th argument of the object's template, arg(n, T) that of another
// type's. Where n is found in the object, so is the type.
func (b *binder) callArg(args []*expr) (*bound, error) {
	if err := wantArgs(args, 1, 2); err != nil {
		return nil, err
	}
	of := b.plain
	if len(args) == 2 {
		t, err := b.typeArg(args[1])
		if err != nil {
			return nil, err
		}
		if of, err = t.Plain(); err != nil {
			return nil, err
		}
	}
	parts, err := of.Parts()
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
		t, err := templateArgument(parts, n.constant)
		if err != nil {
			return nil, err
		}
		return typeOf(t), nil
	}
	return &bound{class: classType, eval: func(r *run) (operand, error) {
		o, err := n.eval(r)
		if err != nil {
			return o, err
		}
		t, err := templateArgument(parts, o.n)
		if errors.Is(err, errNotBound) {
			err = fmt.Errorf("nothing says what its type %d is", o.n)
		}
		return operand{t: t}, err
	}}, nil
}

// templateNumber is an argument that is a number.
func templateNumber(parts *dwarf.Parts, n uint64) (uint64, bool) {
	if n >= uint64(len(parts.Arguments)) || parts.Arguments[n].Tag() != dwarf.TagTemplateValue {
		return 0, false
	}
	number, ok, err := parts.Arguments[n].Number(dwarf.AttrConstValue)
	return uint64(number), ok && err == nil
}

func templateArgument(parts *dwarf.Parts, n uint64) (*dwarf.Type, error) {
	if n >= uint64(len(parts.Arguments)) || parts.Arguments[n].Tag() != dwarf.TagTemplateType {
		return nil, notBound("argument %d of the template is no type", n)
	}
	return parts.Arguments[n].ValueType()
}

// args() is the number of arguments of the object's template.
func (b *binder) callArgs(args []*expr) (*bound, error) {
	if err := wantArgs(args, 0, 0); err != nil {
		return nil, err
	}
	parts, err := b.plain.Parts()
	if err != nil {
		return nil, err
	}
	return constantOf(uint64(len(parts.Arguments))), nil
}

// nested(name) is a type that is declared in the object's class or a base of it,
// nested(name, T) in another.
func (b *binder) callNested(args []*expr) (*bound, error) {
	if err := wantArgs(args, 1, 2); err != nil {
		return nil, err
	}
	of := b.plain
	if len(args) == 2 {
		t, err := b.typeArg(args[1])
		if err != nil {
			return nil, err
		}
		of = t
	}
	t, err := nestedType(of, args[0].text, 0)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, notBound("%s has no type %s", of, args[0].text)
	}
	return typeOf(t), nil
}

func nestedType(t *dwarf.Type, name string, depth int) (*dwarf.Type, error) {
	plain, err := t.Plain()
	if err != nil || depth > maxBases {
		return nil, err
	}
	parts, err := plain.Parts()
	if err != nil {
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

// at(address, T) is the object of a type at an address.
func (b *binder) callAt(args []*expr) (*bound, error) {
	if err := wantArgs(args, 2, 2); err != nil {
		return nil, err
	}
	n, err := b.number(args[0])
	if err != nil {
		return nil, err
	}
	t, err := b.expr(args[1])
	if err != nil {
		return nil, err
	}
	return retyped(&bound{class: classPlace, eval: at(n)}, t), nil
}

// cast(x, T) is what is at the place x as an object of type T, or the number x as one of
// type T.
func (b *binder) callCast(args []*expr) (*bound, error) {
	if err := wantArgs(args, 2, 2); err != nil {
		return nil, err
	}
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

// retyped is a place or a number with another type, which the object may say.
func retyped(x, t *bound) *bound {
	y := *x
	y.t, y.field = t.t, nil
	if t.t != nil || t.eval == nil {
		return &y
	}
	y.eval = func(r *run) (operand, error) {
		o, err := x.eval(r)
		if err != nil {
			return o, err
		}
		of, err := t.eval(r)
		o.t = of.t
		return o, err
	}
	return &y
}

// derived(x, T, U...) is the first member that a class has beside its base x, of those
// that it has of types T, U...: it may stand in the padding at the end of the base.
func (b *binder) callDerived(args []*expr) (*bound, error) { return b.behind(args, dataSize) }

// dataSize is the size of what a structure holds, without the padding behind it.
func dataSize(t *dwarf.Type) (uint64, error) {
	plain, err := t.Plain()
	if err != nil {
		return 0, err
	}
	if plain.Kind != dwarf.KindStructure {
		return sizeOf(plain)
	}
	parts, err := plain.Parts()
	if err != nil {
		return 0, err
	}
	end := uint64(0)
	for i := range parts.Members {
		m := &parts.Members[i]
		of, err := m.ValueType()
		if err != nil {
			return 0, err
		}
		size, err := sizeOf(of)
		if err != nil {
			return 0, err
		}
		if m.Bits < 0 || m.At != nil || m.FieldBits > 0 {
			return 0, notBound("%s has no size of its own", plain)
		}
		end = max(end, uint64(m.Bits)/8+size)
	}
	return end, nil
}

// after(x, T) is the object of type T that follows the object x, aligned as members are.
// after(x, T, U...) is the first member of a structure that follows x, which has members
// of the other types too.
func (b *binder) callAfter(args []*expr) (*bound, error) { return b.behind(args, sizeOf) }

func (b *binder) behind(args []*expr, sizeOf func(*dwarf.Type) (uint64, error)) (*bound, error) {
	if err := wantArgs(args, 2, len(args)); err != nil {
		return nil, err
	}
	x, err := b.expr(args[0])
	if err != nil {
		return nil, err
	}
	if x.class != classPlace || x.t == nil {
		return nil, notBound("what is no object is followed by none")
	}
	size, err := sizeOf(x.t)
	if err != nil {
		return nil, err
	}
	if size > 1<<32 {
		return nil, notBound("%s is too large", x.t)
	}
	var first *dwarf.Type
	align := uint64(1)
	for _, a := range args[1:] {
		t, err := b.typeArg(a)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = t
		}
		align = max(align, alignment(t, 0))
	}
	size = (size + align - 1) &^ (align - 1)
	return &bound{class: classPlace, t: first, eval: moved(x, int64(size*8))}, nil
}

// alignment is what objects of a type are aligned to: what is said of the type, else
// that of its members, or its size.
func alignment(t *dwarf.Type, depth int) uint64 {
	plain, err := t.Plain()
	if err != nil || plain.IsZero() || depth > maxBases {
		return 1
	}
	if n, ok, err := plain.Number(dwarf.AttrAlignment); ok && err == nil && n > 0 && n <= 1<<16 && n&(n-1) == 0 {
		return uint64(n)
	}
	switch plain.Kind {
	case dwarf.KindArray:
		if e, err := plain.Element(); err == nil {
			return alignment(e, depth+1)
		}
	case dwarf.KindStructure, dwarf.KindUnion:
		parts, err := plain.Parts()
		most := uint64(1)
		if err != nil {
			return most
		}
		for i := range parts.Members {
			if of, err := parts.Members[i].ValueType(); err == nil {
				most = max(most, alignment(of, depth+1))
			}
		}
		return most
	}
	n, err := sizeOf(plain)
	if err != nil || n == 0 || n&(n-1) != 0 {
		return 1
	}
	if plain.Unit().AddressSize() == 4 {
		return min(n, 4)
	}
	return min(n, 16)
}

// word(address) is the word at an address, byte(address) the byte.
func (b *binder) callWord(args []*expr) (*bound, error) { return b.unsigned(args, b.wordSize()) }

func (b *binder) callByte(args []*expr) (*bound, error) { return b.unsigned(args, 1) }

func (b *binder) unsigned(args []*expr, size uint64) (*bound, error) {
	if err := wantArgs(args, 1, 1); err != nil {
		return nil, err
	}
	n, err := b.number(args[0])
	if err != nil {
		return nil, err
	}
	return &bound{class: classNumber, eval: func(r *run) (operand, error) {
		o, err := n.eval(r)
		if err != nil {
			return o, err
		}
		value, err := r.load(r.memory(o.n), size)
		return operand{n: value}, err
	}}, nil
}

// either(x, y...) is the first of its arguments that the type has.
func (b *binder) callEither(args []*expr) (x *bound, err error) {
	err = wantArgs(args, 1, len(args))
	for _, a := range args {
		if x, err = b.expr(a); err == nil {
			return x, nil
		}
	}
	return nil, err
}

// choose(c, x, y) is x where c holds, else y: numbers.
func (b *binder) callChoose(args []*expr) (*bound, error) {
	if err := wantArgs(args, 3, 3); err != nil {
		return nil, err
	}
	var list [3]*bound
	for i := range list {
		var err error
		if list[i], err = b.number(args[i]); err != nil {
			return nil, err
		}
	}
	return &bound{class: classNumber, t: list[1].t, eval: func(r *run) (operand, error) {
		o, err := list[0].eval(r)
		if err != nil {
			return o, err
		}
		if o.n != 0 {
			return list[1].eval(r)
		}
		return list[2].eval(r)
	}}, nil
}

// key() and elem() are the types that Go says of a map, a channel or a slice.
func (b *binder) callGoKey([]*expr) (*bound, error) { return b.referenced(dwarf.AttrGoKey) }

func (b *binder) callGoElem([]*expr) (*bound, error) { return b.referenced(dwarf.AttrGoElem) }

func (b *binder) referenced(attr dwarf.Attr) (*bound, error) {
	e, err := b.t.Reference(attr)
	if err != nil {
		return nil, err
	}
	if e.IsZero() {
		return nil, notBound("%s has no %s", b.t, attr)
	}
	t, err := e.AsType()
	if err != nil {
		return nil, err
	}
	return typeOf(t), nil
}

// leaf(x, name, n) is the member of a name that the n-th base class of x has.
func (b *binder) callLeaf(args []*expr) (*bound, error) {
	if err := wantArgs(args, 3, 3); err != nil {
		return nil, err
	}
	x, err := b.expr(args[0])
	if err != nil {
		return nil, err
	}
	list, err := leaves(x, args[1].text)
	if err != nil {
		return nil, err
	}
	if args[2].n >= uint64(len(list)) {
		return nil, notBound("%d members %s", len(list), args[1].text)
	}
	return list[args[2].n], nil
}

// leaves are the members of one name of all base classes, by the number that is the
// first argument of the class's template.
func leaves(x *bound, name string) ([]*bound, error) {
	if x.class != classPlace || x.t == nil {
		return nil, notBound("what is no object has no base classes")
	}
	var list []leaf
	if err := collectLeaves(&list, x, name, 0); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, notBound("no members %s", name)
	}
	out := make([]*bound, len(list))
	for _, x := range list {
		if x.index >= uint64(len(out)) || out[x.index] != nil {
			return nil, notBound("the members %s have no order", name)
		}
		out[x.index] = x.b
	}
	return out, nil
}

type leaf struct {
	index uint64
	b     *bound
}

// maxLeaves bounds the members of one name of base classes.
const maxLeaves = 256

func collectLeaves(list *[]leaf, x *bound, name string, depth int) error {
	plain, err := x.t.Plain()
	if err != nil {
		return err
	}
	parts, err := plain.Parts()
	if err != nil {
		return err
	}
	if depth > maxLeaves || len(*list) > maxLeaves {
		return notBound("more than %d members %s", maxLeaves, name)
	}
	before := len(*list)
	index, hasIndex := templateNumber(parts, 0)
	var base *bound
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.At != nil || m.Role == dwarf.VariantPart {
			continue
		}
		y, err := part(x, m, m.Bits)
		if err != nil {
			return err
		}
		switch {
		case m.Role == dwarf.BaseClass:
			base = y
			err = collectLeaves(list, y, name, depth+1)
		case m.Name == name && hasIndex:
			*list = append(*list, leaf{index, y})
		case m.Name == name:
			return notBound("the members %s have no order", name)
		}
		if err != nil {
			return err
		}
	}
	if len(*list) == before && hasIndex && base != nil && len(parts.Members) == 1 {
		*list = append(*list, leaf{index, base}) // the class is the base of its place, because it is empty
	}
	return nil
}
