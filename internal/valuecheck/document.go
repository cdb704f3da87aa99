// SPDX-License-Identifier: Apache-2.0

// Package valuecheck compares the values of variables that `unwindd stack
// --locals` prints with the values that debuggers print for the same core: every
// variable of every frame of every thread, down to values without parts. Each pair
// is equal, wrong, known to one alone, or to neither. gdb's values come from its
// Python, as trees of bytes, so that two texts are never compared where two values
// can be.
package valuecheck

import (
	"encoding/json"
	"fmt"
)

// Document is the JSON of `unwindd stack --locals`, as far as it is compared.
type Document struct {
	Threads []Thread `json:"threads"`
	Globals []*Value `json:"globals"`
}

// Thread is a thread of ours.
type Thread struct {
	ID     string  `json:"id"`
	Frames []Frame `json:"frames"`
}

// Frame is a frame of ours, or a call inlined into the next one.
type Frame struct {
	PC       string   `json:"pc"`
	Function string   `json:"function"`
	Inlined  bool     `json:"inlined"`
	FoundBy  string   `json:"found_by"`
	Locals   []*Value `json:"locals"`
}

// Value is a value of ours, or a variable.
type Value struct {
	Name       string   `json:"name"`
	Type       string   `json:"type"`
	Value      string   `json:"value"`
	Status     string   `json:"status"`
	Problem    string   `json:"problem"`
	Location   string   `json:"location"`
	Address    string   `json:"address"`
	Kind       string   `json:"kind"`
	Line       int      `json:"line"`
	Artificial bool     `json:"artificial"`
	Shadowed   bool     `json:"shadowed"`
	Lanes      string   `json:"lanes"`
	Children   []*Value `json:"children"`
	More       int      `json:"more"`
	Deep       bool     `json:"deep"` // some parts lie too deep
}

// ReadDocument reads the JSON of `unwindd stack`.
func ReadDocument(text []byte) (*Document, error) {
	d := &Document{}
	return d, json.Unmarshal(text, d)
}

// Peer is a debugger's view of a core.
type Peer struct {
	Threads []PeerThread `json:"threads"`
	Globals []*Node      `json:"globals"`
	IsDelve bool         `json:"-"` // else it is gdb
}

// PeerThread is a thread of a debugger's.
type PeerThread struct {
	ID     string      `json:"id"`
	Frames []PeerFrame `json:"frames"`
}

// PeerFrame is a frame of a debugger's.
type PeerFrame struct {
	Kind      string  `json:"kind"` // normal, inline or tailcall
	PC        string  `json:"pc"`
	Function  string  `json:"function"`
	Own       bool    `json:"own"` // its variables were read
	Variables []*Node `json:"variables"`
}

// Node is a value of a debugger's, or a variable.
type Node struct {
	Name       string  `json:"name"`
	Type       string  `json:"type"`
	Code       string  `json:"code"` // kind of type: int, ptr, struct, text ...
	Size       int     `json:"size"`
	Signed     bool    `json:"signed"`
	Bits       int     `json:"bits"` // of a bit field
	Address    string  `json:"address"`
	Bytes      string  `json:"bytes"` // hex, of a value without parts
	Text       string  `json:"text"`  // as the debugger prints it
	Optimized  bool    `json:"optimized"`
	Synthetic  bool    `json:"synthetic"` // a pointer that was optimized away; the child is its target
	Error      string  `json:"error"`
	Kind       string  `json:"kind"` // parameter, local, base
	Storage    string  `json:"storage"`
	Static     bool    `json:"static"` // in no frame
	Line       int     `json:"line"`
	Block      int     `json:"block"` // how many blocks further out
	Place      string  `json:"place"` // where a variable is, in words
	Artificial bool    `json:"artificial"`
	Elements   int     `json:"elements"` // of an array
	Width      int     `json:"width"`    // of an element of a text
	Cut        bool    `json:"cut"`      // it continues
	Pretty     bool    `json:"pretty"`   // by a pretty printer
	Hint       string  `json:"hint"`     // of a pretty printer: string, array, map
	Children   []*Node `json:"children"`
}

// shown returns a value of ours in a line.
func (v *Value) shown() string {
	switch {
	case v == nil:
		return "<none>"
	case v.Status != "" && v.Status != "ok" && v.Value == "":
		return "<" + v.Status + " " + v.Problem + ">"
	case v.Value != "":
		return v.Value
	}
	return fmt.Sprintf("{%d parts}", len(v.Children))
}

// isDiscriminant reports whether a part is the discriminant of an enum.
func (n *Node) isDiscriminant() bool { return n.Artificial && n.Name == "" }

// variant returns the name of the variant of an enum; "" of other values.
func (v *Value) variant() string {
	if len(v.Children) == 1 && v.Children[0].Kind == "variant" {
		return v.Children[0].Name
	}
	return ""
}
