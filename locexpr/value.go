package locexpr

import (
	"encoding/binary"
	"fmt"
)

// Kind is the kind of result that an evaluation is to have (A.2.5.1).
type Kind uint8

// The kinds of results.
const (
	AnyKind      Kind = iota // not specified: what is on top of the stack
	ValueKind                // a value
	LocationKind             // a location description
)

// A BaseType is the type of a value (A.2.5.2). The generic type, an integer of
// the size of an address and of unspecified signedness, is the nil *BaseType.
type BaseType struct {
	Name     string
	Encoding uint8  // DW_ATE_*
	Bits     uint32 // size
}

// A Value is a value with its type (A.2.5.2). The zero Value is 0 of the
// generic type.
type Value struct {
	typ     *BaseType
	bits    uint32 // size; 0: not known yet, which is so for GenericValue
	word    uint64
	pointer *Location // an implicit pointer value: the location it was read from (A.2.5.4.4.5)
}

// GenericValue returns a value of the generic type. An evaluation cuts it to
// the size that the generic type has there.
func GenericValue(u uint64) Value { return Value{word: u} }

// Type returns the type of v; nil is the generic type.
func (v Value) Type() *BaseType { return v.typ }

// Bits returns the size of v in bits. It is 64 for a GenericValue that was not
// the result of an evaluation.
func (v Value) Bits() uint64 {
	if v.bits == 0 {
		return 64
	}
	return uint64(v.bits)
}

// Uint64 returns the value of an integer of up to 64 bits, zero-extended. An
// implicit pointer value has none, see ImplicitPointer, and gives 0.
func (v Value) Uint64() uint64 { return v.word }

// Bytes returns the value as the bytes of a location storage of Bits bits.
func (v Value) Bytes(order ByteOrder) []byte {
	n := v.Bits()
	word := binary.LittleEndian.AppendUint64(nil, packStream(v.word, uint32(n), order))
	return word[:(n+7)/8]
}

// ImplicitPointer returns the implicit pointer location that v was read from
// (A.2.5.4.4.5). ok is false for every other value.
func (v Value) ImplicitPointer() (l Location, ok bool) {
	if v.pointer == nil {
		return Location{}, false
	}
	return *v.pointer, true
}

// String returns an integer as a 0x number.
func (v Value) String() string {
	if v.pointer != nil {
		return v.pointer.String()
	}
	return fmt.Sprintf("0x%x", v.word)
}

// entryKind says what an Entry holds. The kinds up to addressEntry are integers
// in value.word that convert into each other, which is what most operations
// meet.
type entryKind uint8

const (
	genericEntry  entryKind = iota // a value of the generic type that is no implicit pointer
	addressEntry                   // a memory byte address of the default space, in the scope of the evaluation; only inside an evaluation
	valueEntry                     // any other value
	locationEntry                  // a location description
)

// An Entry is an entry of the stack: a value or a location description. The
// zero Entry is 0 of the generic type.
type Entry struct {
	kind     entryKind
	value    Value
	location Location
}

// ValueEntry returns an entry that holds a value.
func ValueEntry(v Value) Entry {
	if v.typ != nil || v.pointer != nil {
		return Entry{kind: valueEntry, value: v}
	}
	return Entry{kind: genericEntry, value: v}
}

// LocationEntry returns an entry that holds a location description.
func LocationEntry(l Location) Entry { return Entry{kind: locationEntry, location: l} }

// IsLocation reports whether the entry is a location description, not a value.
func (e Entry) IsLocation() bool { return e.kind == locationEntry || e.kind == addressEntry }

// Value returns the value that the entry holds, the zero Value when it is a
// location description.
func (e Entry) Value() Value {
	if e.IsLocation() {
		return Value{}
	}
	return e.value
}

// Location returns the location description that the entry holds, the undefined
// one when it is a value.
func (e Entry) Location() Location {
	if e.kind != locationEntry {
		return Location{}
	}
	return e.location
}

// String returns the value or the location for people to read.
func (e Entry) String() string {
	if e.IsLocation() {
		return e.Location().String()
	}
	return e.value.String()
}
