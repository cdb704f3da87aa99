// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"sort"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// What bounds and sizes there are.
const (
	maxOriginChain = 8
	referenceBytes = 8
)

// A die is a debugging information entry in its tree.
type die struct {
	*dwarf.Entry
	unit     *unit
	children []*die
	ranges   [][2]uint64 // of code
}

type unit struct {
	offset dwarf.Offset // of its header
	base   uint64
}

// debugInfo is the debugging information of a program, as debug/dwarf reads it,
// with the trees that debug/dwarf does not keep.
type debugInfo struct {
	dies      map[dwarf.Offset]*die
	functions []*die // that have code
	lists     locexpr.LocationLists
}

func readDebugInfo(t *testing.T, path string) *debugInfo {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	d := &debugInfo{dies: map[dwarf.Offset]*die{}}
	if s := f.Section(".debug_loclists"); s != nil {
		bytes, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		d.lists = locexpr.LocationLists{Section: s.Name, Data: bytes}
	}
	r := data.Reader()
	var stack []*die
	var u *unit
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		if e.Tag == 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		if len(stack) == 0 {
			u = &unit{}
			u.base, _ = e.Val(dwarf.AttrLowpc).(uint64)
		}
		x := &die{Entry: e, unit: u}
		d.dies[e.Offset] = x
		switch e.Tag {
		case dwarf.TagCompileUnit, dwarf.TagSubprogram, dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
			if x.ranges, err = data.Ranges(e); err != nil {
				t.Fatal(err)
			}
		}
		if e.Tag == dwarf.TagSubprogram && len(x.ranges) > 0 {
			d.functions = append(d.functions, x)
		}
		if len(stack) > 0 {
			parent := stack[len(stack)-1]
			parent.children = append(parent.children, x)
		}
		if e.Children {
			stack = append(stack, x)
		}
	}
	d.unitOffsets(t, f)
	return d
}

// unitOffsets finds where the headers of units are: offsets in expressions
// count from there.
func (d *debugInfo) unitOffsets(t *testing.T, f *elf.File) {
	info, err := f.Section(".debug_info").Data()
	if err != nil {
		t.Fatal(err)
	}
	var starts []dwarf.Offset
	for at := uint64(0); at+4 <= uint64(len(info)); at += 4 + uint64(f.ByteOrder.Uint32(info[at:])) {
		starts = append(starts, dwarf.Offset(at))
	}
	for offset, x := range d.dies {
		i := sort.Search(len(starts), func(i int) bool { return starts[i] > offset })
		if x.Tag == dwarf.TagCompileUnit {
			x.unit.offset = starts[i-1]
		}
	}
}

func (x *die) covers(pc uint64) bool {
	for _, r := range x.ranges {
		if r[0] <= pc && pc < r[1] {
			return true
		}
	}
	return false
}

func (d *debugInfo) reference(x *die, attr dwarf.Attr) *die {
	if offset, ok := x.Val(attr).(dwarf.Offset); ok {
		return d.dies[offset]
	}
	return nil
}

// chain is an entry and those that it is an instance of.
func (d *debugInfo) chain(x *die) []*die {
	var out []*die
	for x != nil && len(out) < maxOriginChain {
		out = append(out, x)
		next := d.reference(x, dwarf.AttrAbstractOrigin)
		if next == nil {
			next = d.reference(x, dwarf.AttrSpecification)
		}
		x = next
	}
	return out
}

func (d *debugInfo) attribute(x *die, attr dwarf.Attr) any {
	for _, y := range d.chain(x) {
		if v := y.Val(attr); v != nil {
			return v
		}
	}
	return nil
}

func (d *debugInfo) name(x *die) string {
	name, _ := d.attribute(x, dwarf.AttrName).(string)
	return name
}

// function is the subprogram whose code is at pc.
func (d *debugInfo) function(pc uint64) *die {
	for _, f := range d.functions {
		if f.covers(pc) {
			return f
		}
	}
	return nil
}

// A scope is a block with variables.
type scope struct {
	variables []*die
}

// levels are the scopes at pc, the innermost first, of each inlined call and
// then of the function.
func (d *debugInfo) levels(f *die, pc uint64) [][]scope {
	levels := [][]scope{nil}
	for x := f; x != nil; {
		last := len(levels) - 1
		levels[last] = append([]scope{{d.variablesOf(x)}}, levels[last]...)
		var next *die
		for _, c := range x.children {
			if (c.Tag == dwarf.TagLexDwarfBlock || c.Tag == dwarf.TagInlinedSubroutine) && c.covers(pc) {
				next = c
				break
			}
		}
		if next != nil && next.Tag == dwarf.TagInlinedSubroutine {
			levels = append(levels, nil)
		}
		x = next
	}
	for i, j := 0, len(levels)-1; i < j; i, j = i+1, j-1 {
		levels[i], levels[j] = levels[j], levels[i]
	}
	return levels
}

// variablesOf are the variables and parameters of a block, those included that
// only its abstract instance has (DWARF 5, 3.3.8.2): they are optimized out, or
// the same in every instance. The entries of parameter packs, which gdb does
// not read, are left out.
func (d *debugInfo) variablesOf(block *die) []*die {
	var out []*die
	seen := map[*die]bool{}
	for _, x := range block.children {
		if y := d.reference(x, dwarf.AttrAbstractOrigin); y != nil {
			seen[y] = true
		}
		if isVariable(x) && d.name(x) != "" {
			out = append(out, x)
		}
	}
	if origin := d.reference(block, dwarf.AttrAbstractOrigin); origin != nil {
		out = append(out, d.inherited(origin, seen)...)
	}
	return out
}

func (d *debugInfo) inherited(block *die, seen map[*die]bool) []*die {
	var out []*die
	for _, x := range block.children {
		switch {
		case seen[x]:
		case isVariable(x) && d.name(x) != "":
			out = append(out, x)
		case x.Tag == dwarf.TagLexDwarfBlock && len(x.ranges) == 0:
			out = append(out, d.inherited(x, seen)...)
		}
	}
	return out
}

func isVariable(x *die) bool {
	declaration, _ := x.Val(dwarf.AttrDeclaration).(bool)
	return (x.Tag == dwarf.TagVariable || x.Tag == dwarf.TagFormalParameter) && !declaration
}

// size is the size of what an entry's type describes, in bytes.
func (d *debugInfo) size(x *die) (int64, error) {
	if x == nil {
		return 0, errors.New("the type is no pointer")
	}
	offset, ok := d.attribute(x, dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return 0, fmt.Errorf("entry %#x has no type", x.Offset)
	}
	count := int64(1)
	for typ := d.dies[offset]; typ != nil; typ = d.reference(typ, dwarf.AttrType) {
		if size, ok := typ.Val(dwarf.AttrByteSize).(int64); ok {
			return count * size, nil
		}
		switch typ.Tag {
		case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
			return count * referenceBytes, nil
		case dwarf.TagArrayType:
			for _, c := range typ.children {
				upper, ok := c.Val(dwarf.AttrUpperBound).(int64)
				if c.Tag != dwarf.TagSubrangeType || !ok {
					return 0, fmt.Errorf("array type %#x has no constant bounds", typ.Offset)
				}
				count *= upper + 1
			}
		}
	}
	return 0, fmt.Errorf("entry %#x has a type without a size", x.Offset)
}

// pointer is the pointer or reference type of an entry; nil where it has
// another type.
func (d *debugInfo) pointer(x *die) *die {
	offset, _ := d.attribute(x, dwarf.AttrType).(dwarf.Offset)
	for typ := d.dies[offset]; typ != nil; typ = d.reference(typ, dwarf.AttrType) {
		switch typ.Tag {
		case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
			return typ
		}
	}
	return nil
}
