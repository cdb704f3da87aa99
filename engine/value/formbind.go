package value

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/locexpr"
)

// This file binds the expressions of a form to a type: members become offsets. A form
// of which a member is missing is for another version of the library.

// A class says what an expression gives.
type class uint8

const (
	classType   class = iota
	classPlace        // where an object is
	classNumber       // an integer, or an address with the type of a pointer
)

// A bound is an expression that is bound to a type.
type bound struct {
	class class
	// t is the type: of the object at a place, or of a number that was read. It is nil of
	// a number that was computed, and where only the object says which type it is.
	t *dwarf.Type
	// field is the bit field that a place is; nil: none.
	field *dwarf.Member
	// constant is the value of a number that depends on no object.
	constant   uint64
	isConstant bool
	eval       func(*run) (operand, error)
}

// An operand is what an expression gave.
type operand struct {
	n uint64
	l locexpr.Location
	t *dwarf.Type // where the bound does not say it
}

// A boundForm is a form for the objects of one type.
type boundForm struct {
	*form
	name    string // of the type, without its arguments
	short   string // the type as people write it
	clauses []boundClause
	slots   int // variables
	shape   shape
}

// A boundClause is a clause for the objects of one type.
type boundClause struct {
	*clause
	slot, indexSlot int // the variable that it sets
	exprs           []*bound
	parts           []*bound // of the summary; nil: plain text
	leaves          []*bound
}

// A variable of a form.
type variable struct {
	name string
	slot int
	b    *bound
}

// A binder binds one form to one type.
type binder struct {
	t     *dwarf.Type // the type, by the name that the form matched
	plain *dwarf.Type
	scope []variable
	slots int
}

// errNotBound says that a type is not one that a form is for.
var errNotBound = errors.New("the type has no such part")

func notBound(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotBound, fmt.Sprintf(format, args...))
}

// bind binds a form to a type.
func bind(f *form, t, plain *dwarf.Type) (*boundForm, error) {
	b := &binder{t: t, plain: plain}
	out := &boundForm{form: f, shape: structure, name: shownName(t), short: typeText(t)}
	for i := range f.clauses {
		c := &f.clauses[i]
		bc, err := b.clause(c)
		if err != nil {
			return nil, err
		}
		out.clauses = append(out.clauses, bc)
		switch c.op {
		case opItem, opLeaves:
			out.shape = array
		case opEntry:
			out.shape = associated
		}
	}
	out.slots = b.slots
	return out, nil
}

// shownName is what summaries call a type: its name without arguments, of Rust without
// the modules around it.
func shownName(t *dwarf.Type) string {
	name := withoutArguments(formName(t))
	if i := strings.LastIndex(name, "::"); i >= 0 && t.Unit().Language() == dwarf.LangRust {
		name = name[i+2:]
	}
	return name
}

// declare makes a variable.
func (b *binder) declare(name string, of *bound) int {
	slot := b.slots
	b.slots++
	v := *of
	if (of.class != classType || of.eval != nil) && !of.isConstant {
		v.eval = func(r *run) (operand, error) { return r.slots[slot], nil }
	}
	b.scope = append(b.scope, variable{name, slot, &v})
	return slot
}

var plainNumber = &bound{class: classNumber}

func (b *binder) clause(c *clause) (bc boundClause, err error) {
	bc.clause = c
	exprs := c.exprs
	switch c.op {
	case opFor:
		if err = b.numbers(&bc, exprs...); err == nil {
			bc.slot = b.declare(c.name, plainNumber)
		}
		return bc, err
	case opFollow, opTree:
		if err = b.numbers(&bc, exprs[0]); err != nil {
			return bc, err
		}
		bc.slot = b.declare(c.name, bc.exprs[0])
		return bc, b.numbers(&bc, exprs[1:]...)
	case opBTree:
		if err = b.numbers(&bc, exprs[0], exprs[1]); err != nil {
			return bc, err
		}
		bc.slot = b.declare(c.name, bc.exprs[0])
		bc.indexSlot = b.declare(c.index, plainNumber)
		return bc, b.numbers(&bc, exprs[2:]...)
	case opLet, opPlace:
		x, err := b.expr(exprs[0])
		if err == nil && c.op == opLet && x.class == classPlace {
			x, err = loaded(x)
		}
		if err != nil {
			return bc, err
		}
		bc.exprs = append(bc.exprs, x)
		bc.slot = b.declare(c.name, x)
		return bc, nil
	case opWhen, opIf, opCheck, opCount:
		return bc, b.numbers(&bc, exprs...)
	case opText:
		if err := b.numbers(&bc, exprs...); err != nil {
			return bc, err
		}
		return bc, b.summary(&bc)
	case opString, opUTF8:
		return bc, b.text(&bc, exprs)
	case opLeaves:
		x, err := b.expr(exprs[0])
		if err == nil {
			bc.leaves, err = leaves(x, c.name)
		}
		return bc, err
	}
	for _, e := range exprs { // places and numbers
		x, err := b.expr(e)
		if err != nil {
			return bc, err
		}
		if x.class == classType {
			return bc, notBound("a type is no value")
		}
		bc.exprs = append(bc.exprs, x)
	}
	return bc, nil
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

// text binds the characters of a string, which are an array or what a pointer points to,
// and how many they are.
func (b *binder) text(bc *boundClause, exprs []*expr) error {
	x, err := b.expr(exprs[0])
	if err != nil {
		return err
	}
	if bc.op == opUTF8 { // of bytes
		if x, err = loaded(x); err != nil {
			return err
		}
		bc.exprs = append(bc.exprs, &bound{class: classPlace, eval: at(x)})
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
	case x.class == classPlace && plain.Kind == dwarf.KindBase: // the first of them
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

// number binds an expression that gives a number.
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
		call := builtins[e.text]
		if call == nil {
			return nil, fmt.Errorf("%q is no function", e.text)
		}
		return call(b, e.args)
	}
	return nil, notBound("%q is no value", e.text)
}

func constantOf(n uint64) *bound {
	return &bound{
		class: classNumber, isConstant: true, constant: n,
		eval: func(*run) (operand, error) { return operand{n: n}, nil },
	}
}

// name is a variable of the form, the object itself, or a member of the object.
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

// this is the object.
func (b *binder) this() *bound {
	return &bound{class: classPlace, t: b.plain, eval: func(r *run) (operand, error) { return operand{l: r.object}, nil }}
}

func (b *binder) wordSize() uint64 { return uint64(b.t.Unit().AddressSize()) }

// member is a member of the object at a place: its own, or that of a base class or of a
// member without a name.
func member(x *bound, name string) (*bound, error) {
	if x.class != classPlace || x.t == nil {
		return nil, notBound("%s of what is no object", name)
	}
	m, bits, err := findMember(x.t, name, 0)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, notBound("%s has no member %s", x.t, name)
	}
	return part(x, m, bits)
}

// part is a member at an offset.
func part(x *bound, m *dwarf.Member, bits int64) (*bound, error) {
	t, err := m.ValueType()
	if err != nil {
		return nil, err
	}
	y := &bound{class: classPlace, t: t, eval: moved(x, bits)}
	if m.FieldBits > 0 {
		y.field = m
	}
	return y, nil
}

// moved is a place so many bits behind another.
func moved(x *bound, bits int64) func(*run) (operand, error) {
	if bits == 0 {
		return x.eval
	}
	return func(r *run) (operand, error) {
		o, err := x.eval(r)
		if err == nil {
			o.l, err = o.l.Offset(bits)
		}
		return o, err
	}
}

// maxBases bounds the classes within one another in which a member is looked for.
const maxBases = 24

// findMember finds a member by its name, and its offset in bits; nil: there is none. A
// member of a virtual base is none: only the object says where it is.
func findMember(t *dwarf.Type, name string, depth int) (*dwarf.Member, int64, error) {
	plain, err := t.Plain()
	if err != nil || depth > maxBases || plain.Kind != dwarf.KindStructure && plain.Kind != dwarf.KindUnion {
		return nil, 0, err
	}
	parts, err := plain.Parts()
	if err != nil {
		return nil, 0, err
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role == dwarf.DataMember && m.Name == name && m.At == nil {
			return m, m.Bits, nil
		}
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role == dwarf.VariantPart { // the variant is a member of its own name
			for j := range m.Variants {
				for k := range m.Variants[j].Members {
					if m := &m.Variants[j].Members[k]; m.Name == name && m.At == nil {
						return m, m.Bits, nil
					}
				}
			}
			continue
		}
		if m.At != nil || m.Role == dwarf.DataMember && m.Name != "" {
			continue
		}
		of, err := m.ValueType()
		if err != nil {
			return nil, 0, err
		}
		if found, bits, err := findMember(of, name, depth+1); found != nil || err != nil {
			return found, bits + m.Bits, err
		}
	}
	return nil, 0, nil
}

// onlyMember is the member of a structure that has only one with a size, as
// Unique<T>, which is NonNull<T>, which is *const T.
func onlyMember(t *dwarf.Type) (*dwarf.Member, error) {
	parts, err := t.Parts()
	if err != nil {
		return nil, err
	}
	var only *dwarf.Member
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role == dwarf.VariantPart || m.At != nil {
			return nil, notBound("%s is no number", t)
		}
		of, err := m.ValueType()
		if err != nil {
			return nil, err
		}
		if isEmpty(of, 0) {
			continue
		}
		if only != nil {
			return nil, notBound("%s is no number", t)
		}
		only = m
	}
	if only == nil {
		return nil, notBound("%s is empty", t)
	}
	return only, nil
}

// isEmpty says whether a type has no data.
func isEmpty(t *dwarf.Type, depth int) bool {
	plain, err := t.Plain()
	if err != nil || depth > maxBases {
		return false
	}
	if plain.IsSized && plain.Size == 0 {
		return true
	}
	if plain.Kind != dwarf.KindStructure || plain.IsDeclaration {
		return false
	}
	parts, err := plain.Parts()
	if err != nil {
		return false
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role != dwarf.BaseClass {
			return false
		}
		if of, err := m.ValueType(); err != nil || !isEmpty(of, depth+1) {
			return false
		}
	}
	return true
}

// loaded is the number at a place. Of a structure that has one member with a size it is
// that member's.
func loaded(x *bound) (*bound, error) {
	if x.class == classNumber {
		return x, nil
	}
	if x.class != classPlace || x.t == nil {
		return nil, notBound("what is no object has no number")
	}
	if x.field != nil {
		return loadedField(x)
	}
	plain, err := x.t.Plain()
	if err != nil {
		return nil, err
	}
	for range maxBases {
		if plain.Kind != dwarf.KindStructure {
			break
		}
		m, err := onlyMember(plain)
		if err != nil {
			return nil, err
		}
		if x, err = part(x, m, m.Bits); err != nil {
			return nil, err
		}
		if plain, err = x.t.Plain(); err != nil {
			return nil, err
		}
	}
	size := plain.Size
	switch plain.Kind {
	case dwarf.KindPointer, dwarf.KindReference, dwarf.KindRvalueReference, dwarf.KindSubroutine:
		if !plain.IsSized {
			size = uint64(plain.Unit().AddressSize())
		}
	case dwarf.KindBase, dwarf.KindEnumeration, dwarf.KindSubrange:
	default:
		return nil, notBound("%s is no number", plain)
	}
	if size == 0 || size > 8 {
		return nil, notBound("%s is no number of at most 8 bytes", plain)
	}
	signed := plain.Base != nil && isSigned(plain.Base)
	return &bound{class: classNumber, t: plain, eval: func(r *run) (operand, error) {
		o, err := x.eval(r)
		if err != nil {
			return operand{}, err
		}
		n, err := r.load(o.l, size)
		if shift := 64 - 8*size; signed {
			n = uint64(int64(n<<shift) >> shift)
		}
		return operand{n: n}, err
	}}, nil
}

// loadedField is the number in a bit field.
func loadedField(x *bound) (*bound, error) {
	field := x.field
	if field.FieldBits > 64 {
		return nil, notBound("a bit field of %d bits", field.FieldBits)
	}
	return &bound{class: classNumber, t: x.t, eval: func(r *run) (operand, error) {
		o, err := x.eval(r)
		if err != nil {
			return operand{}, err
		}
		n, err := r.loadBits(o.l, field.FieldBits)
		return operand{n: n}, err
	}}, nil
}

// deref is what a pointer points to.
func deref(x *bound) (*bound, error) {
	n, err := loaded(x)
	if err != nil {
		return nil, err
	}
	t, err := pointee(n.t)
	if err != nil {
		return nil, err
	}
	return &bound{class: classPlace, t: t, eval: at(n)}, nil
}

// pointee is the type that pointers of a type point to.
func pointee(t *dwarf.Type) (*dwarf.Type, error) {
	if t == nil {
		return nil, notBound("a number is no pointer")
	}
	plain, err := t.Plain()
	if err != nil {
		return nil, err
	}
	switch plain.Kind {
	case dwarf.KindPointer, dwarf.KindReference, dwarf.KindRvalueReference:
	default:
		return nil, notBound("%s is no pointer", plain)
	}
	e, err := plain.Element()
	if err == nil && e.Kind == dwarf.KindVoid {
		err = notBound("%s is no pointer to an object", plain)
	}
	return e, err
}

// at is the place at an address.
func at(n *bound) func(*run) (operand, error) {
	return func(r *run) (operand, error) {
		o, err := n.eval(r)
		return operand{l: r.memory(o.n)}, err
	}
}

// index is an element of an array, or of what a pointer points to.
func (b *binder) index(e *expr) (*bound, error) {
	x, err := b.expr(e.args[0])
	if err != nil {
		return nil, err
	}
	i, err := b.number(e.args[1])
	if err != nil {
		return nil, err
	}
	if x.class == classType || x.t == nil {
		return nil, notBound("an element of what is no array")
	}
	var element *dwarf.Type
	plain, err := x.t.Plain()
	if err != nil {
		return nil, err
	}
	if x.class == classPlace && plain.Kind == dwarf.KindArray {
		element, err = plain.Element()
	} else if x, err = deref(x); err == nil {
		element = x.t
	}
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(element)
	if err != nil {
		return nil, err
	}
	return &bound{class: classPlace, t: element, eval: func(r *run) (operand, error) {
		o, err := x.eval(r)
		if err != nil {
			return o, err
		}
		n, err := i.eval(r)
		if err != nil {
			return n, err
		}
		o.l, err = offset(o.l, n.n, size)
		return o, err
	}}, nil
}

// sizeOf is the size of a type, in bytes.
func sizeOf(t *dwarf.Type) (uint64, error) {
	plain, err := t.Plain()
	if err != nil {
		return 0, err
	}
	switch {
	case plain.IsSized:
		return plain.Size, nil
	case plain.Kind == dwarf.KindPointer && !plain.IsZero():
		return uint64(plain.Unit().AddressSize()), nil
	case plain.Kind == dwarf.KindArray:
		dimensions, err := plain.Dimensions()
		if err != nil || len(dimensions) != 1 {
			return 0, notBound("%s has no size", plain)
		}
		n, ok := dimensions[0].Elements()
		e, err := plain.Element()
		if err != nil || !ok || n > 1<<32 || !e.IsSized || e.Size > 1<<24 {
			return 0, notBound("%s has no size", plain)
		}
		return n * e.Size, nil
	}
	return 0, notBound("%s has no size", plain)
}
