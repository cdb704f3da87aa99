// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"reflect"
	"strings"

	"pgregory.net/rapid"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk/reloc"
)

// lastOf is the last value of each enumeration of the messages.
var lastOf = map[reflect.Type]uint64{
	reflect.TypeFor[cfi.RuleKind]():        uint64(cfi.ValOffsetPerLane),
	reflect.TypeFor[cfi.CFAKind]():         uint64(cfi.CFAExpression),
	reflect.TypeFor[reloc.Kind]():          uint64(RelocationRelativePA),
	reflect.TypeFor[reloc.Field]():         uint64(FieldULEB128),
	reflect.TypeFor[ByteOrder]():           uint64(BigEndian),
	reflect.TypeFor[RegisterClass]():       uint64(Control),
	reflect.TypeFor[RegisterSource]():      uint64(MinidumpContext),
	reflect.TypeFor[SpaceScope]():          uint64(LaneScope),
	reflect.TypeFor[Narrow]():              uint64(NarrowConverted),
	reflect.TypeFor[locexpr.FloatFormat](): uint64(locexpr.FloatDoubleDouble),
	reflect.TypeFor[ThreadLocalVariant]():  uint64(ThreadLocalVariantII),
	reflect.TypeFor[RowPriority]():         uint64(OverridesCFI),
	reflect.TypeFor[FunctionKind]():        uint64(StackSwitchFunction),
	reflect.TypeFor[MapKind]():             uint64(OpaqueMap),
	reflect.TypeFor[ReturnClass]():         uint64(AfterIndirectCall),

	reflect.TypeFor[InstructionKind](): uint64(SystemCallInstruction),
	reflect.TypeFor[ManagedKind]():     uint64(Entry),
	reflect.TypeFor[ManagedStatus]():   uint64(ValueUnreadable),
}

// A filler sets every field of a message by reflection, so that a field that
// is added later is tested without anyone remembering it.
type filler struct {
	number  func(limit uint64) uint64 // 0 to limit
	length  func() int
	present func() bool
	text    func() string
	level   int // of the children of a variable
}

// fullFiller gives every field a value that is not zero, and no two alike where
// their type allows it.
func fullFiller() *filler {
	var n uint64
	return &filler{
		number: func(limit uint64) uint64 {
			n++
			if limit < 255 {
				return 1 + n%limit
			}
			return n%min(limit, 1<<62) + 1
		},
		length:  func() int { return 2 },
		present: func() bool { return true },
		text:    func() string { n++; return fmt.Sprint("text", n) },
	}
}

func randomFiller(t *rapid.T) *filler {
	return &filler{
		number: func(limit uint64) uint64 { return rapid.Uint64Range(0, limit).Draw(t, "number") },
		length: func() int { return rapid.IntRange(0, 3).Draw(t, "length") },
		present: func() bool {
			return rapid.Bool().Draw(t, "present")
		},
		text: func() string { return rapid.StringN(0, 8, 24).Draw(t, "text") },
	}
}

func (f *filler) fill(v reflect.Value) {
	switch m := v.Addr().Interface().(type) {
	case *Registers:
		var number uint32
		for range f.length() {
			number += 1 + uint32(f.number(255))
			value := make([]byte, f.length())
			for i := range value {
				value[i] = byte(f.number(255))
			}
			m.Set(number, value)
		}
		return
	case *ClassifyReturnRequest:
		n := f.length()
		for range n {
			m.PCs = append(m.PCs, f.number(1<<64-1))
			m.Offsets = append(m.Offsets, uint32(len(m.Code)))
			for range f.length() {
				m.Code = append(m.Code, byte(f.number(255)))
			}
		}
		if n > 0 {
			m.Offsets = append(m.Offsets, uint32(len(m.Code)))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if _, isTree := v.Addr().Interface().(*ManagedVariable); isTree && v.Type().Field(i).Name == "Children" {
				f.fillChildren(v.Field(i))
				continue
			}
			f.fill(v.Field(i))
		}
		// Lists that stand beside each other have as many elements.
		switch m := v.Addr().Interface().(type) {
		case *PositionMap:
			m.Positions = m.Positions[:min(len(m.PCs), len(m.Positions))]
			m.PCs = m.PCs[:len(m.Positions)]
			if len(m.PCs) == 0 {
				m.PCs, m.Positions = nil, nil
			}
		case *Variable:
			n := min(len(m.Start), len(m.End), len(m.Locations))
			m.Start, m.End, m.Locations = m.Start[:n], m.End[:n], m.Locations[:n]
			if n == 0 {
				m.Start, m.End, m.Locations = nil, nil, nil
			}
		case *ClassifyReturnAnswer:
			n := min(len(m.Classes), len(m.Targets))
			m.Classes, m.Targets = m.Classes[:n], m.Targets[:n]
			if n == 0 {
				m.Classes, m.Targets = nil, nil
			}
		}
	case reflect.Pointer:
		if f.present() {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Slice:
		n := f.length()
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.present())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		limit := uint64(1)<<v.Type().Bits() - 1
		if last, ok := lastOf[v.Type()]; ok {
			limit = last
		}
		v.SetUint(f.number(limit))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.number(1<<64-1)) >> (64 - v.Type().Bits()))
		if v.Int() == 0 && f.present() {
			v.SetInt(-1)
		}
	default:
		panic("a kind of field that no message had: " + v.Type().String())
	}
}

// treeLevels is how many levels of children a variable gets.
const treeLevels = 2

func (f *filler) fillChildren(v reflect.Value) {
	if f.level < treeLevels {
		f.level++
		f.fill(v)
		f.level--
	}
}

// zeroFields names the fields under v that are zero, following slices and
// pointers.
func zeroFields(at string, v reflect.Value) []string {
	if v.IsZero() && !strings.HasSuffix(at, strings.Repeat(".Children[]", treeLevels)+".Children") {
		return []string{at}
	}
	var names []string
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			names = append(names, zeroFields(at+"."+v.Type().Field(i).Name, v.Field(i))...)
		}
	case reflect.Pointer:
		names = zeroFields(at, v.Elem())
	case reflect.Slice, reflect.Array:
		if v.Len() > 0 && v.Type().Elem().Kind() != reflect.Uint32 {
			names = zeroFields(at+"[]", v.Index(v.Len()-1))
		}
	}
	return names
}
