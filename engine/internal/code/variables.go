// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
)

// Variables are the variables, parameters and constants in scope at an address.
type Variables struct {
	Function dwarf.Entry // that contains the address
	Levels   int         // the function, and the calls that are inlined at the address
	List     []ScopedVariable
	Problem  string // why some are missing; "" if none are
	// HasPlaces is true where Function has a DW_AT_return_addr or a DW_AT_static_link, or it is
	// not known.
	HasPlaces bool
	// FrameBase is the expression of Function's DW_AT_frame_base at the address, of unit BaseUnit;
	// nil: there is not exactly one.
	FrameBase []byte
	BaseUnit  dwarf.Unit
}

// AlikeFrom counts the variables of List, from an index on, that belong to one function or inlined
// call; with isOne they all do.
func (v *Variables) AlikeFrom(index int, isOne bool) int {
	if isOne {
		return len(v.List) - index
	}
	n := index
	for n < len(v.List) && v.List[n].Level == v.List[index].Level {
		n++
	}
	return n - index
}

// A ScopedVariable is a variable of a function or of an inlined call, with its attributes that
// are the same in all frames.
type ScopedVariable struct {
	dwarf.Entry
	Name string
	// Level counts the inlined calls further in than the one that has it.
	Level        int
	Line         int // DW_AT_decl_line; 0: unknown
	IsParameter  bool
	IsStatic     bool // it has one place for all frames
	IsArtificial bool // DW_AT_artificial
	IsShadowed   bool // a block further in has another one of its name

	Type *dwarf.Type // nil: it cannot be read
	// Location is its place, by its own DW_AT_location or its abstract origin's; nil: it
	// has none.
	Location *dwarf.Location
	Problem  error // why Type or Location cannot be read
	// Here is the expression of Location at the address; nil: there is not exactly one, or it
	// cannot be read. IsGone is true where there is none, and no constant value.
	Here   []byte
	IsGone bool
	// MemorySpace is its memory space in the terms of the source language; "" where it is not
	// known.
	MemorySpace string

	kept *keptReading
}

// keptReading is the result of a ScopedVariable's Remember.
type keptReading struct {
	once   sync.Once
	result any
}

// Remember returns the result of compute, which is called once and whose result is kept as long as
// the variable is: it takes a few times the memory of Here.
func (v *ScopedVariable) Remember(compute func() any) any {
	v.kept.once.Do(func() { v.kept.result = compute() })
	return v.kept.result
}

// NewScopedVariable returns a variable that is in no function.
func NewScopedVariable(e dwarf.Entry) *ScopedVariable {
	v := &ScopedVariable{Entry: e, Name: e.Name(), kept: new(keptReading)}
	v.describe()
	if v.Location != nil {
		v.Here = v.Location.Expr
	}
	return v
}

// describe reads the attributes that are the same in all frames.
func (v *ScopedVariable) describe() {
	v.IsParameter, v.IsStatic = v.Tag() == dw.TagFormalParameter, v.Entry.IsStatic()
	if line, ok, err := v.Number(dw.AttrDeclLine); ok && err == nil && line > 0 {
		v.Line = int(line)
	}
	if n, ok, err := v.Number(dw.AttrArtificial); ok && err == nil {
		v.IsArtificial = n != 0
	}
	if v.Type, v.Problem = v.ValueType(); v.Problem != nil {
		v.Type = nil
		return
	}
	v.Location, v.Problem = v.Placed()
	v.MemorySpace = v.Entry.MemorySpace()
}

// place finds the place at an address.
func (v *ScopedVariable) place(address uint64) {
	if v.Problem != nil {
		return
	}
	if v.Location == nil {
		_, _, err := v.Block(dw.AttrConstValue)
		v.IsGone = err == nil && !v.Has(dw.AttrConstValue)
		return
	}
	exprs, err := v.Location.At(address)
	switch {
	case err != nil: // the evaluation reports it
	case len(exprs) == 1:
		v.Here = exprs[0]
	default:
		v.IsGone = len(exprs) == 0
	}
}

func (v *Variables) findFrameBase(address uint64) {
	l, ok, err := v.Function.Location(dw.AttrFrameBase)
	if err != nil || !ok {
		return
	}
	if exprs, err := l.At(address); err == nil && len(exprs) == 1 {
		v.FrameBase, v.BaseUnit = exprs[0], l.Unit
	}
}

// hasPlaces reports whether a function has an attribute about places of its frame.
func hasPlaces(function dwarf.Entry) bool {
	for _, attr := range []dw.Attr{dw.AttrReturnAddr, dw.AttrStaticLink} {
		if _, ok, err := function.Location(attr); ok || err != nil {
			return true
		}
	}
	return false
}

// maxVariables bounds the variables in scope at one address.
const maxVariables = 1 << 12

// variableBytes is about how much memory a ScopedVariable takes.
const variableBytes = 320

// Variables returns the variables in scope at an address of the object; nil where no function is
// described. They are shared, and must not be changed.
func (o *Object) Variables(address uint64) *Variables {
	return o.VariablesIn(address, dwarf.Entry{})
}

// VariablesIn is Variables for one of several functions with the same code, which
// dwarf.Reader.Equals gave. With the zero Entry it is Variables.
func (o *Object) VariablesIn(address uint64, function dwarf.Entry) *Variables {
	d := o.DWARF()
	if d == nil {
		return nil
	}
	key := nameKey{address: address, function: function}
	found, isKnown := o.answers.variables.find(key)
	if isKnown {
		return found
	}
	found = readVariables(d, address, function)
	bytes := 0
	if found != nil {
		bytes = variableBytes * (1 + len(found.List))
	}
	keep(o, &o.answers.variables, key, found, bytes)
	return found
}

// functionBytes is about how much memory an entry takes in a map.
const functionBytes = 64

// Function returns the function that contains an address of the object, by its debug information;
// the zero Entry where none is described. The answer is remembered. It is called inside
// object.Guard.
func (o *Object) Function(address uint64) (function dwarf.Entry, err error) {
	function, isKnown := o.answers.functions.find(address)
	if isKnown {
		return function, nil
	}
	if d := o.DWARF(); d != nil {
		scopes, err := d.Scopes(address)
		if err != nil {
			return dwarf.Entry{}, err
		}
		if len(scopes) > 0 {
			function = scopes[len(scopes)-1].Entry
		}
	}
	keep(o, &o.answers.functions, address, function, functionBytes)
	return function, nil
}

func readVariables(d *dwarf.Reader, address uint64, function dwarf.Entry) *Variables {
	scopes, err := d.ScopesIn(address, function)
	if err != nil {
		return &Variables{Problem: err.Error()}
	}
	if len(scopes) == 0 {
		return nil
	}
	v := &Variables{Function: scopes[len(scopes)-1].Entry}
	v.HasPlaces = hasPlaces(v.Function)
	v.findFrameBase(address)
	level := newVariableLevel()
	for _, s := range scopes {
		first := len(v.List)
		for e, err := range s.Variables() {
			if err != nil {
				v.Problem = err.Error()
				break
			}
			if len(v.List) == maxVariables {
				v.Problem = "there are more variables than are listed"
				break
			}
			found := ScopedVariable{Entry: e, Name: e.Name(), Level: v.Levels, kept: new(keptReading)}
			if found.Name == "" {
				continue // a compiler's own, such as the length of an array, or a parameter without a name
			}
			found.describe()
			found.place(address)
			if level.lists(&found) {
				v.List = append(v.List, found)
			}
		}
		for i := range v.List[first:] {
			level.names[v.List[first+i].Name] = true
		}
		if s.Tag() != dw.TagLexicalBlock {
			v.Levels++
			level = newVariableLevel()
		}
	}
	slices.SortStableFunc(v.List, func(a, b ScopedVariable) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(isSecond(a.IsParameter), isSecond(b.IsParameter)))
	})
	return v
}

// A variableLevel has the variables of a function or of an inlined call that were read so far.
type variableLevel struct {
	names map[string]bool      // in blocks further in
	roots map[dwarf.Entry]bool // their abstract origins
}

func newVariableLevel() variableLevel {
	return variableLevel{map[string]bool{}, map[dwarf.Entry]bool{}}
}

// lists reports whether to list a variable, and sets IsShadowed. gcc writes a variable that is gone
// once more, as an instance of the same abstract variable without a place.
func (l *variableLevel) lists(v *ScopedVariable) bool {
	v.IsShadowed = l.names[v.Name]
	root, err := v.Root()
	if err != nil {
		return true
	}
	isKnown := l.roots[root]
	l.roots[root] = true
	return !isKnown || v.Location != nil || v.Has(dw.AttrConstValue)
}

func isSecond(isFirst bool) int {
	if isFirst {
		return 0
	}
	return 1
}

// dataSymbols are the symbols of data of an object, by address.
type dataSymbols struct {
	once sync.Once
	list []dataSymbol
}

type dataSymbol struct {
	start, size uint64
	name        string
}

// DataSymbol returns the variable that the symbol tables have at an address, demangled, and the
// offset of the address from its start; "" where there is none.
func (o *Object) DataSymbol(address uint64) (name string, offset uint64) {
	d := &o.answers.data
	d.once.Do(o.findData)
	list := d.list
	i := sort.Search(len(list), func(i int) bool { return list[i].start > address }) - 1
	if i < 0 || address-list[i].start >= max(list[i].size, 1) {
		return "", 0
	}
	return symbol.Demangle(symbol.StripVersion(list[i].name)), address - list[i].start
}

// DebugInfoSize returns the bytes of .debug_info in the files of the object.
func (o *Object) DebugInfoSize() (size uint64) {
	for _, file := range o.laidFiles() {
		if s := file.Section(".debug_info"); s != nil {
			size += s.Size
		}
	}
	return size
}

// laidFiles returns the object's file and its debug file, as far as there are such.
func (o *Object) laidFiles() []*object.Object {
	o.resolver()
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc([]*object.Object{o.laid, o.debug.laid}, func(file *object.Object) bool { return file == nil })
}

func (o *Object) findData() {
	d := &o.answers.data
	for _, file := range o.laidFiles() {
		err := file.EachSymbol(func(s *object.Symbol) {
			if s.Type == elf.STT_OBJECT && s.Defined() && s.Name != "" {
				d.list = append(d.list, dataSymbol{s.Address, s.Size, s.Name})
			}
		})
		if err != nil {
			o.Problem("symbols of data: %v", err)
		}
	}
	if p := o.PDB(); p != nil {
		if err := p.Data(func(name string, address, size uint64) {
			d.list = append(d.list, dataSymbol{address, size, name})
		}); err != nil {
			o.Problem("symbols of data: %v", err)
		}
	}
	slices.SortStableFunc(d.list, func(a, b dataSymbol) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.size, b.size))
	})
	o.grow(len(d.list) * symbolBytes)
}

// symbolBytes is about how much memory a dataSymbol takes.
const symbolBytes = 48
