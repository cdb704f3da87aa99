// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/unwindd/unwindd/locexpr"
)

// Evaluation is the result of an expression. Its JSON is the output of `unwindd eval`.
type Evaluation struct {
	Kind   string  `json:"kind,omitempty"` // "value" or "location"; absent with an error
	Value  *Value  `json:"value,omitempty"`
	Places []Place `json:"places,omitempty"`
	// MorePlaces is the number of omitted places; see maxPlaces.
	MorePlaces int `json:"more_places,omitempty"`
	// IsUninitialized means that the object exists and has no value yet (DW_OP_GNU_uninit).
	IsUninitialized bool        `json:"uninitialized,omitempty"`
	Read            string      `json:"read,omitempty"` // the bytes read from a location, in their order
	Trace           []TraceStep `json:"trace,omitempty"`
	Error           *EvalError  `json:"error,omitempty"`
}

// Value is a value with its type.
type Value struct {
	Type string `json:"type"`
	Hex  string `json:"hex,omitempty"` // a 0x number; of vectors bytes, lane 0 first
	// Pointer is in the place of Hex for an implicit pointer, which has no number (A.2.5.4.4.5).
	Pointer *Place `json:"implicit_pointer,omitempty"`
}

// Place is a single location description, with the members its storage has.
type Place struct {
	Storage   string  `json:"storage"`
	Space     string  `json:"space,omitempty"`
	Address   string  `json:"address,omitempty"`
	Register  string  `json:"register,omitempty"`
	Thread    string  `json:"thread,omitempty"`
	Frame     *int32  `json:"frame,omitempty"`
	Lane      *int32  `json:"lane,omitempty"`
	BitOffset *uint64 `json:"bit_offset,omitempty"`
	Bytes     string  `json:"bytes,omitempty"`
	Parts     []Part  `json:"parts,omitempty"`
	MoreParts int     `json:"more_parts,omitempty"` // omitted parts; see maxPlaces
}

// Part is a bit range of a composite.
type Part struct {
	Bits       uint64  `json:"bits"`
	Places     []Place `json:"places"`
	MorePlaces int     `json:"more_places,omitempty"` // omitted places; see maxPlaces
}

// TraceStep is an operation with the stack after it, its top last.
type TraceStep struct {
	Offset int      `json:"offset"`
	Op     string   `json:"op"`
	Stack  []string `json:"stack"`
}

// EvalError is the reason why there is no result.
type EvalError struct {
	Kind   string `json:"kind"` // "ill-formed" or "evaluation"
	Offset int    `json:"offset"`
	Op     string `json:"op,omitempty"`
	Reason string `json:"reason"`
}

// EvalNames are names for the numbers of an evaluation.
type EvalNames struct {
	// Register and Space name registers and address spaces; without a name the number is
	// written.
	Register func(number uint64) (string, bool)
	Space    func(space locexpr.AddressSpace) (string, bool)
	// Thread names a thread by its handle.
	Thread func(handle uint64) string
}

// space is the name of an address space, or its number.
func (n *EvalNames) space(space locexpr.AddressSpace) string {
	if name, ok := n.Space(space); ok {
		return name
	}
	return fmt.Sprint(uint64(space))
}

// SetResult puts the result of an evaluation into e.
func (e *Evaluation) SetResult(result locexpr.Entry, order locexpr.ByteOrder, names EvalNames) {
	e.IsUninitialized = result.IsUninitialized()
	if result.IsLocation() {
		w := placeWriter{names: names, left: maxPlaces}
		e.Kind = "location"
		e.Places, e.MorePlaces = w.places(result.Location())
		return
	}
	e.Kind = "value"
	v := result.Value()
	if l, ok := v.ImplicitPointer(); ok {
		w := placeWriter{names: names, left: maxPlaces}
		pointer := w.place(l.Place(0))
		e.Value = &Value{Type: typeName(v), Pointer: &pointer}
		return
	}
	e.Value = newValue(v, order)
}

func typeName(v locexpr.Value) string {
	if t := v.Type(); t != nil {
		return t.String()
	}
	return "generic"
}

// SetError puts an error into e.
func (e *Evaluation) SetError(err error) {
	e.Kind, e.Value, e.Places, e.MorePlaces, e.IsUninitialized, e.Read = "", nil, nil, 0, false, ""
	e.Error = &EvalError{Kind: "evaluation", Reason: err.Error()}
	var exprErr *locexpr.Error
	if errors.As(err, &exprErr) {
		if exprErr.Kind == locexpr.IllFormed {
			e.Error.Kind = "ill-formed"
		}
		e.Error.Offset, e.Error.Op, e.Error.Reason = exprErr.Offset, exprErr.Op, exprErr.Err.Error()
	}
}

func newValue(v locexpr.Value, order locexpr.ByteOrder) *Value {
	out := &Value{Type: typeName(v)}
	t := v.Type()
	b := v.Bytes(order)
	if t != nil && t.Elements > 0 {
		out.Hex = hex.EncodeToString(b)
		return out
	}
	digits := make([]byte, len(b))
	for i, x := range b {
		if order == locexpr.BigEndian {
			digits[i] = x
		} else {
			digits[len(b)-1-i] = x
		}
	}
	text := cmp.Or(strings.TrimLeft(hex.EncodeToString(digits), "0"), "0")
	out.Hex = "0x" + text
	return out
}

// maxPlaces bounds the written places of a location, including places of parts. It is four
// times the number that an evaluation makes at most; but composites may share parts, and
// written out they can have exponentially more places.
const maxPlaces = 1 << 14

// bytesPerPlace is the number of bytes of an implicit location that count as a place.
const bytesPerPlace = 64

// placeWriter writes out the places of a location.
type placeWriter struct {
	names EvalNames
	left  int // of maxPlaces
}

// places also returns the number of omitted places.
func (w *placeWriter) places(l locexpr.Location) (list []Place, more int) {
	for i := range l.NumPlaces() {
		if w.left <= 0 && i > 0 {
			return list, l.NumPlaces() - i
		}
		list = append(list, w.place(l.Place(i)))
	}
	return list, 0
}

func (w *placeWriter) parts(p locexpr.Place) (list []Part, more int) {
	parts := p.Parts()
	for i, part := range parts {
		if w.left <= 0 {
			return list, len(parts) - i
		}
		out := Part{Bits: part.Bits}
		out.Places, out.MorePlaces = w.places(part.Location)
		list = append(list, out)
	}
	return list, 0
}

// place is a place with the members that its storage has.
func (w *placeWriter) place(p locexpr.Place) Place {
	names := w.names
	w.left--
	out := Place{}
	bits := p.BitOffset
	scope := func() {
		out.Thread = names.Thread(p.Scope.Thread)
		frame := p.Scope.Frame
		out.Frame = &frame
		if p.Scope.Lane >= 0 {
			lane := p.Scope.Lane
			out.Lane = &lane
		}
	}
	switch p.Storage {
	case locexpr.Memory:
		out.Storage = "memory"
		out.Space = names.space(p.Space)
		out.Address = address(p.Address + bits/8)
		bits %= 8
		if p.Space != locexpr.DefaultSpace {
			scope()
		}
	case locexpr.Register:
		out.Storage = "register"
		out.Register = fmt.Sprint(p.Register)
		if name, ok := names.Register(p.Register); ok {
			out.Register = name
		}
		scope()
	case locexpr.Implicit:
		b := p.ImplicitBytes()
		w.left -= len(b) / bytesPerPlace
		out.Storage, out.Bytes = "implicit", hex.EncodeToString(b)
	case locexpr.ImplicitPointer:
		out.Storage = "implicit-pointer"
		if p.Space != locexpr.DefaultSpace {
			out.Space = names.space(p.Space)
		}
		entry, displacement, _ := p.ImplicitPointer()
		out.Address = fmt.Sprintf("%s%+d", address(entry), displacement)
	case locexpr.Composite:
		out.Storage = "composite"
		out.Parts, out.MoreParts = w.parts(p)
	default:
		out.Storage = "undefined"
	}
	if p.Storage != locexpr.Undefined && p.Storage != locexpr.ImplicitPointer || bits != 0 {
		out.BitOffset = &bits
	}
	return out
}

// WriteJSON writes an evaluation as one JSON value and a newline.
func (e *Evaluation) WriteJSON(w io.Writer) error { return WriteJSON(w, e) }

// WriteText writes an evaluation for people: the trace, then the result.
func (e *Evaluation) WriteText(w io.Writer) error {
	b := NewPrinter(w)
	for _, s := range e.Trace {
		b.printf("%4d  %-40s  %s\n", s.Offset, s.Op, strings.Join(s.Stack, " | "))
	}
	switch {
	case e.Error != nil:
		// The error itself goes to standard error.
	case e.Value != nil && e.Value.Pointer != nil:
		b.printf("value %s ", e.Value.Type)
		writePlaces(b, []Place{*e.Value.Pointer}, 0, "")
	case e.Value != nil:
		b.printf("value %s %s\n", e.Value.Type, e.Value.Hex)
	default:
		writePlaces(b, e.Places, e.MorePlaces, "")
	}
	if e.IsUninitialized {
		b.printf("uninitialized\n")
	}
	if e.Read != "" {
		b.printf("read %s\n", e.Read)
	}
	return b.Flush()
}

func writePlaces(b *Printer, list []Place, more int, indent string) {
	for _, p := range list {
		b.printf("%s%s", indent, p.Storage)
		for _, part := range []string{p.Space, p.Address, p.Register, p.Bytes} {
			if part != "" {
				b.printf(" %s", part)
			}
		}
		if p.Lane != nil {
			b.printf(" lane %d", *p.Lane)
		}
		if p.BitOffset != nil && *p.BitOffset != 0 {
			b.printf(" bit %d", *p.BitOffset)
		}
		b.printf("\n")
		for _, part := range p.Parts {
			b.printf("%s  %d bits\n", indent, part.Bits)
			writePlaces(b, part.Places, part.MorePlaces, indent+"    ")
		}
		if p.MoreParts > 0 {
			b.printf("%s  %d parts more\n", indent, p.MoreParts)
		}
	}
	if more > 0 {
		b.printf("%s%d places more\n", indent, more)
	}
}
