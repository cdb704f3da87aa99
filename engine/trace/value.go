// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"github.com/unwindd/unwindd/locexpr"
)

// ValueStatus is the state of a value that was read.
type ValueStatus string

// The states of a value.
const (
	ValueOK           ValueStatus = "ok"
	ValueOptimizedOut ValueStatus = "optimized-out" // the debugging information has no place for it
	ValuePartial      ValueStatus = "partial"       // some of its parts are not known
	ValueFailed       ValueStatus = "error"         // Problem has the reason
	ValueUnset        ValueStatus = "unset"         // a variable of a language runtime that has no value yet
)

// ValueRole is the part that a value plays in the one around it.
type ValueRole string

// The roles of values.
const (
	RolePlain   ValueRole = ""        // a member or an element
	RoleBase    ValueRole = "base"    // a base class, whose name is its type's
	RoleVariant ValueRole = "variant" // the current variant of a Rust enum
	RolePointee ValueRole = "pointee" // what a pointer or a reference points to
	RoleEntry   ValueRole = "entry"   // an entry of a map: its children are the key and the value
)

// Value is the value of a variable, or a part of it.
type Value struct {
	Name string
	Role ValueRole
	// Type is the type as its language writes it.
	Type string
	// Text is the value of an object without parts: a number, an enumerator, an address, a
	// string in quotes. For a container it is a summary. HasText is false where there is none.
	Text    string
	HasText bool
	Status  ValueStatus
	// Problem is why Status is not OK, where there is more to tell.
	Problem string
	// Address is the value's address, in Space, where HasAddress.
	Address    uint64
	Space      locexpr.AddressSpace
	HasAddress bool
	// Children are the members, elements or entries, as far as the limits allow. More is how
	// many there are beyond; IsDeep is true where they are nested too deep.
	Children []Value
	More     uint64
	IsDeep   bool

	// Shape is how Children are written.
	Shape ValueShape
}

// ValueShape is how the children of a value are written.
type ValueShape uint8

// The shapes.
const (
	ShapeScalar     ValueShape = iota // there are none
	ShapeStructure                    // {a = 1, b = 2}
	ShapeArray                        // {1, 2}
	ShapeWrapped                      // the one child stands for the whole
	ShapeAssociated                   // {[key] = value}
)

// VariableKind is the kind of a Variable.
type VariableKind string

// The kinds of variables.
const (
	KindParameter VariableKind = "parameter"
	KindLocal     VariableKind = "local"
	KindStatic    VariableKind = "static"   // in a function, at one place for all its frames
	KindConstant  VariableKind = "constant" // DW_TAG_constant, or a variable that is only a value
	KindGlobal    VariableKind = "global"
)

// Variable is a variable, a parameter or a constant with its value.
type Variable struct {
	Value
	Kind VariableKind
	// Line is the line of its declaration; 0: unknown.
	Line int
	// Language is the language of its function, a DW_AT_language.
	Language uint64
	// IsArtificial is true where the compiler made it, such as this.
	IsArtificial bool
	// IsShadowed is true where a variable with its name, in a block further in, hides it.
	IsShadowed bool
	// MemorySpace is its memory space in the terms of the source language, by its
	// DW_AT_LLVM_memory_space: "group"; "" where it is not known.
	MemorySpace string
	// Place is its location; the undefined location where it has none.
	Place locexpr.Location
}

// Location returns the variable's location as text; "" where it has none.
func (v *Variable) Location() string {
	if v.Place.IsUndefined() {
		return ""
	}
	return v.Place.String()
}

// ValueLimits bound how much of a variable is read.
type ValueLimits struct {
	Depth    int  // nested values
	Elements int  // elements of an array or a container, and characters of a string
	Raw      bool // containers are shown by their implementation
}

// DefaultValueLimits are the limits where a user sets none.
var DefaultValueLimits = ValueLimits{Depth: 4, Elements: 200}

// Equal reports whether two values are the same in everything that is printed of them.
func (v *Value) Equal(o *Value) bool {
	if v.Text != o.Text || v.HasText != o.HasText || v.Status != o.Status || v.Problem != o.Problem ||
		v.Name != o.Name || v.Role != o.Role || v.Type != o.Type || v.More != o.More || v.IsDeep != o.IsDeep || v.Shape != o.Shape ||
		v.HasAddress != o.HasAddress || v.Address != o.Address || v.Space != o.Space || len(v.Children) != len(o.Children) {
		return false
	}
	for i := range v.Children {
		if !v.Children[i].Equal(&o.Children[i]) {
			return false
		}
	}
	return true
}
