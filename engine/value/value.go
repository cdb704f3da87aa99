// SPDX-License-Identifier: Apache-2.0

package value

import "github.com/unwindd/unwindd/locexpr"

// Status is the state of a value that was read.
type Status string

// The states of a value.
const (
	OK           Status = "ok"
	OptimizedOut Status = "optimized-out" // the debugging information has no place for it
	Partial      Status = "partial"       // some of its parts are not known
	Failed       Status = "error"         // Problem has the reason
)

// Role is the part that a value plays in the one around it.
type Role string

// The roles of values.
const (
	Plain   Role = ""        // a member or an element
	Base    Role = "base"    // a base class, whose name is its type's
	Variant Role = "variant" // the current variant of a Rust enum
	Pointee Role = "pointee" // what a pointer or a reference points to
	Entry   Role = "entry"   // an entry of a map: its children are the key and the value
)

// Value is the value of a variable, or a part of it.
type Value struct {
	Name string
	Role Role
	// Type is the type as its language writes it.
	Type string
	// Text is the value of an object without parts: a number, an enumerator, an address, a
	// string in quotes. For a container it is a summary. HasText is false where there is none.
	Text    string
	HasText bool
	Status  Status
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
	Shape shape
}

// shape is how the children of a value are written.
type shape uint8

// The shapes.
const (
	scalar     shape = iota // there are none
	structure               // {a = 1, b = 2}
	array                   // {1, 2}
	wrapped                 // the one child stands for the whole
	associated              // {[key] = value}
)

// VariableKind is the kind of a Variable.
type VariableKind string

// The kinds of variables.
const (
	Parameter VariableKind = "parameter"
	Local     VariableKind = "local"
	Static    VariableKind = "static"   // in a function, at one place for all its frames
	Constant  VariableKind = "constant" // DW_TAG_constant, or a variable that is only a value
	Global    VariableKind = "global"
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

// Limits bound how much of a variable is read.
type Limits struct {
	Depth    int  // nested values
	Elements int  // elements of an array or a container, and characters of a string
	Raw      bool // containers are shown by their implementation
}

// DefaultLimits are the limits where a user sets none.
var DefaultLimits = Limits{Depth: 4, Elements: 200}

// maxValues bounds the values of one variable, with all its parts.
const maxValues = 1 << 14

// The largest of each limit.
const (
	MaxDepth    = 64
	MaxElements = 1 << 20
	// MaxNesting bounds the nested values, base classes included.
	MaxNesting = 2 * MaxDepth
)

// setStatus sets the status of a value that consists of its children.
func setStatus(v *Value) {
	known, unknown := 0, 0
	for i := range v.Children {
		switch v.Children[i].Status {
		case OK:
			known++
		case Partial:
			known++
			unknown++
		default:
			unknown++
		}
	}
	switch {
	case unknown == 0:
		v.Status = OK
	case known > 0:
		v.Status = Partial
	default:
		v.Status, v.Problem = v.Children[0].Status, v.Children[0].Problem
		for i := range v.Children {
			if v.Children[i].Status != v.Status {
				v.Status, v.Problem = Partial, ""
			}
		}
	}
}

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
