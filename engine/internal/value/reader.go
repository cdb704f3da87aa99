// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// Frame is the context in which variables are read: a frame of a stack, or a module of which
// only the globals are there.
type Frame interface {
	// Context returns the context to read locations in that expressions of a unit gave.
	Context(unit dwarf.Unit) locexpr.Context
	// Evaluate evaluates an expression or a location list about an object, such as a
	// DW_AT_data_member_location: initial is the stack before.
	Evaluate(ctx context.Context, l *dwarf.Location, object locexpr.Location, initial ...locexpr.Entry) (locexpr.Location, error)
	// Number returns the integer that an expression gives.
	Number(ctx context.Context, l *dwarf.Location, object locexpr.Location) (int64, error)
	// VariableNumber returns the integer in a variable.
	VariableNumber(ctx context.Context, variable dwarf.Entry) (int64, error)
	// Symbol returns the function or the variable at an address, and the offset from its start;
	// "" where nothing is known.
	Symbol(address uint64) (name string, offset uint64)
	// Module returns the debug information of the module that has an address, and the address
	// in its code object; nil where there is none.
	Module(address uint64) (*dwarf.Reader, uint64)
	// PointerSpace returns the space that pointers with an address class or the number of a space
	// lead to.
	PointerSpace(number locexpr.AddressSpace) locexpr.AddressSpace
	// AddressBits returns the size of an address of a space; 0: it is not known.
	AddressBits(space locexpr.AddressSpace) uint32
}

// Reader reads the values of variables in a frame.
type Reader struct {
	frame    Frame
	limits   trace.ValueLimits
	language uint64
	context  locexpr.Context // of the unit of the variable

	cache   *Cache
	left    int     // values that may still be made
	nesting int     // nested values that are being read
	steps   int     // places of containers that may still be looked at
	word    [8]byte // a number that is being read
	goTypes uint64  // the start of a Go program's types; 0: not looked for
	visited []visit // the objects that are being read, the outermost first
	isOwn   bool    // the value depends on the frame, or on the path to it
}

// visit is an object that is being read: where it leads back to itself it is not read again.
type visit struct {
	address uint64
	t       *dwarf.Type
}

// NewReader makes a Reader for variables of functions in a language: a DW_AT_language. Readers
// with one cache have the same limits.
func NewReader(frame Frame, language uint64, limits trace.ValueLimits, cache *Cache) *Reader {
	if limits.Depth <= 0 {
		limits.Depth = trace.DefaultValueLimits.Depth
	}
	if limits.Elements <= 0 {
		limits.Elements = trace.DefaultValueLimits.Elements
	}
	limits.Depth, limits.Elements = min(limits.Depth, MaxDepth), min(limits.Elements, MaxElements)
	return &Reader{frame: frame, limits: limits, language: language, cache: cache}
}

// Variable reads a variable of a type at l into v, by an expression of a unit; err is why l is not
// known. A problem is v's Status.
func (r *Reader) Variable(ctx context.Context, v *trace.Variable, unit dwarf.Unit, name string, t *dwarf.Type, l locexpr.Location, err error) {
	v.Language = r.language
	if err != nil {
		v.Name = name
		if t != nil {
			v.Type = t.String()
		}
		fail(&v.Value, err)
		return
	}
	v.Place = l
	r.Read(ctx, &v.Value, unit, name, t, l)
}

// Read reads a value of a type at a location that an expression of a unit gave into v.
func (r *Reader) Read(ctx context.Context, v *trace.Value, unit dwarf.Unit, name string, t *dwarf.Type, l locexpr.Location) {
	r.begin(unit)
	r.read(ctx, v, name, t, r.objectAt(t, l), 0)
}

// objectAt returns where an object is that an expression places at a location: an object that
// is smaller than the register or value there is in an end of it, unless it is a number that
// the register has in another format.
func (r *Reader) objectAt(t *dwarf.Type, l locexpr.Location) locexpr.Location {
	plain, err := t.Plain()
	if err != nil || !plain.IsSized || plain.Size > 1<<20 {
		return l
	}
	if l.ConvertedBits() > 0 && plain.Base != nil && plain.Base.Encoding == locexpr.EncodingFloat {
		return l
	}
	return l.Object(8*plain.Size, r.context.ByteOrder())
}

// begin makes the Reader ready for a variable.
func (r *Reader) begin(unit dwarf.Unit) {
	r.left, r.steps, r.nesting, r.visited, r.isOwn = maxValues, maxSteps, 0, r.visited[:0], false
	r.context = r.frame.Context(unit)
}

// fail sets the status of a value that cannot be read.
func fail(v *trace.Value, err error) {
	if IsOptimizedOut(err) {
		v.Status = trace.ValueOptimizedOut
		return
	}
	v.Status, v.Problem = trace.ValueFailed, err.Error()
}

// Fail records why a value is not known; nil: it is.
func Fail(v *trace.Value, err error) {
	if err != nil {
		fail(v, err)
	}
}

// IsOptimizedOut reports whether an error means that the program no longer has the value:
// nothing describes it, or it is after the end of the described part, like the padding of a
// structure in registers.
func IsOptimizedOut(err error) bool {
	return errors.Is(err, locexpr.ErrUndefined) || errors.Is(err, locexpr.ErrOutOfBounds)
}

// errTooMany is the error for a variable with more values than are read.
var errTooMany = fmt.Errorf("more than %d values", maxValues)

// errNested is the error for a value that is nested deeper than any may be. Base classes and
// unnamed members do not count for Limits.Depth: only false debugging information has so many.
var errNested = fmt.Errorf("more than %d values within one another", MaxNesting)

// read reads a value of a type into v.
func (r *Reader) read(ctx context.Context, v *trace.Value, name string, t *dwarf.Type, l locexpr.Location, depth int) {
	*v = trace.Value{Name: name, Type: t.String(), Status: trace.ValueOK}
	if space, address, ok := l.MemoryAddress(); ok {
		v.Space, v.Address, v.HasAddress = space, address, true
	}
	if r.left--; r.left < 0 {
		fail(v, errTooMany)
		return
	}
	if r.nesting++; r.nesting > MaxNesting {
		r.nesting--
		fail(v, errNested)
		return
	}
	defer func() { r.nesting-- }()
	plain, err := t.Plain()
	if err != nil {
		fail(v, err)
		return
	}
	if l.IsUndefined() {
		v.Status = trace.ValueOptimizedOut
		return
	}
	if r.limits.Raw || !r.prettyForm(ctx, v, t, plain, l, depth) {
		r.raw(ctx, v, t, plain, l, depth)
	}
}

// raw reads a value by the structure of its type.
func (r *Reader) raw(ctx context.Context, v *trace.Value, t, plain *dwarf.Type, l locexpr.Location, depth int) {
	switch plain.Kind {
	case dwarf.KindStructure, dwarf.KindUnion:
		r.object(ctx, v, plain, l, depth)
	case dwarf.KindArray:
		r.array(ctx, v, plain, l, depth)
	case dwarf.KindVoid:
		fail(v, errors.New("the type is void"))
	case dwarf.KindBase, dwarf.KindSubrange:
		r.base(ctx, v, t, l)
	case dwarf.KindEnumeration:
		r.enumeration(ctx, v, plain, l)
	case dwarf.KindPointer, dwarf.KindUnspecified:
		r.pointer(ctx, v, plain, l, depth)
	case dwarf.KindReference, dwarf.KindRvalueReference:
		r.reference(ctx, v, plain, l, depth)
	case dwarf.KindMemberPointer:
		r.memberPointer(ctx, v, plain, l)
	case dwarf.KindString:
		r.fortranString(ctx, v, plain, l)
	case dwarf.KindSubroutine:
		setText(v, r.symbolText(v.Address))
	default:
		fail(v, fmt.Errorf("%s: tag %#x is not one of a type", plain.Entry, uint16(plain.Tag())))
	}
}

func setText(v *trace.Value, text string) { v.Text, v.HasText = text, true }

// dataLocation returns where the data of an object is, which may be elsewhere than its
// descriptor: DW_AT_data_location (DWARF 5, 5.18.1). An array that is not allocated or
// associated has none.
func (r *Reader) dataLocation(ctx context.Context, t *dwarf.Type, l locexpr.Location) (locexpr.Location, error) {
	if !t.IsDescribed {
		return l, nil
	}
	for _, attr := range []dw.Attr{dw.AttrAllocated, dw.AttrAssociated} {
		b, err := t.Bound(attr)
		if err != nil || !b.HasValue() {
			continue
		}
		if n, err := r.bound(ctx, &b, l); err == nil && n == 0 {
			return l, fmt.Errorf("the array has no elements yet: %s is 0", attr)
		}
	}
	b, err := t.Bound(dw.AttrDataLocation)
	if err != nil || b.Location == nil {
		return l, err
	}
	return r.frame.Evaluate(ctx, b.Location, l)
}

// bound returns a number in a type's description, for an object.
func (r *Reader) bound(ctx context.Context, b *dwarf.Bound, object locexpr.Location) (int64, error) {
	switch {
	case b.IsKnown:
		return b.Value, nil
	case b.Location != nil:
		r.isOwn = true
		return r.frame.Number(ctx, b.Location, object)
	case !b.Variable.IsZero():
		r.isOwn = true
		return r.frame.VariableNumber(ctx, b.Variable)
	}
	return 0, errors.New("it is not said")
}

// bytes reads the bytes of a value.
func (r *Reader) bytes(ctx context.Context, l locexpr.Location, size uint64) ([]byte, error) {
	const maxBytes = 1 << 20
	if size > maxBytes {
		return nil, fmt.Errorf("%d bytes, at most %d are read", size, maxBytes)
	}
	b := make([]byte, size)
	return b, l.Read(ctx, r.context, b, size*8)
}

// visit records that an object is being read; it returns false where it already is.
func (r *Reader) visit(address uint64, t *dwarf.Type) bool {
	for _, v := range r.visited {
		if v.address == address && v.t == t {
			r.isOwn = true
			return false
		}
	}
	r.visited = append(r.visited, visit{address, t})
	return true
}

func (r *Reader) leave() { r.visited = r.visited[:len(r.visited)-1] }
