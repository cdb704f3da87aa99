// SPDX-License-Identifier: Apache-2.0

package typelayout

import (
	"fmt"
	"iter"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/sdk"
)

// Of returns the layouts of types in the debug information of a code object, one for each, in
// order. Where that is nil, each has a problem. It runs inside object.Guard.
func Of(d *dwarf.Reader, types []sdk.RuntimeType) []sdk.TypeLayout {
	list := make([]sdk.TypeLayout, len(types))
	units := map[string]*unitTypes{}
	for i := range types {
		if d == nil {
			list[i].Problem = "there is no debug information"
			continue
		}
		list[i] = layoutOf(d, &types[i], units)
	}
	return list
}

// layoutOf returns the layout of a type: of several with its name the first that has all
// members.
func layoutOf(d *dwarf.Reader, t *sdk.RuntimeType, units map[string]*unitTypes) (best sdk.TypeLayout) {
	found, err := typesNamed(d, t, units)
	if err != nil {
		return sdk.TypeLayout{Problem: err.Error()}
	}
	best.Problem = fmt.Sprintf("the debug information has no type %s%s", t.Name, inUnit(t.Unit))
	for _, e := range found {
		l := readType(e, t.Members)
		if l.Problem == "" {
			return l
		}
		if l.Members != nil && best.Members == nil {
			best = l
		}
	}
	return best
}

func inUnit(unit string) string {
	if unit == "" {
		return ""
	}
	return " in a unit " + unit
}

// readType reads the layout of a type.
func readType(e dwarf.Entry, paths []string) (l sdk.TypeLayout) {
	t, err := withoutNames(e)
	if err == nil {
		l.Size, err = sizeOf(t)
	}
	if err != nil {
		return sdk.TypeLayout{Problem: err.Error()}
	}
	l.Members = make([]sdk.MemberPlace, len(paths))
	for i, path := range paths {
		_, place, err := findMember(t, path)
		if err == nil && (place.Offset > l.Size || place.Size > l.Size-place.Offset) {
			err = fmt.Errorf("%v: member %s has %d bytes at %#x of %#x", t, path, place.Size, place.Offset, l.Size)
		}
		switch {
		case err == nil:
			l.Members[i] = place
		case l.Problem == "":
			l.Problem = err.Error()
		}
	}
	return l
}

// typesNamed returns the types that have the name of one.
func typesNamed(d *dwarf.Reader, t *sdk.RuntimeType, units map[string]*unitTypes) ([]dwarf.Entry, error) {
	if t.Unit == "" {
		return d.TypesNamed(t.Name)
	}
	u := units[t.Unit]
	if u == nil {
		u = readUnits(d, t.Unit)
		units[t.Unit] = u
	}
	return u.byName[t.Name], u.err
}

// unitTypes are the types that units of a name define outside of functions.
type unitTypes struct {
	byName map[string][]dwarf.Entry
	err    error
}

// maxAlike bounds the types of one name that are looked at.
const maxAlike = 64

func readUnits(d *dwarf.Reader, name string) *unitTypes {
	u := &unitTypes{byName: map[string][]dwarf.Entry{}}
	for e, err := range entries(d, name) {
		if err != nil {
			u.err = err
			return u
		}
		if tag := e.Tag(); hasMembers[tag] || tag == dw.TagTypedef {
			if name := e.Name(); name != "" && !e.Has(dw.AttrDeclaration) && len(u.byName[name]) < maxAlike {
				u.byName[name] = append(u.byName[name], e)
			}
		}
	}
	return u
}

// entries yields the entries of units outside of functions and types: of the units of a name,
// or of all for "".
func entries(d *dwarf.Reader, unit string) iter.Seq2[dwarf.Entry, error] {
	return func(yield func(dwarf.Entry, error) bool) {
		units, err := d.UnitsNamed(unit)
		if err != nil {
			yield(dwarf.Entry{}, err)
			return
		}
		for _, u := range units {
			root, err := u.Root()
			if err != nil {
				continue // of several with the name others may be read
			}
			if !children(root, maxSteps, yield) {
				return
			}
		}
	}
}

// children yields the children of an entry, and in place of a namespace its children.
func children(e dwarf.Entry, steps int, yield func(dwarf.Entry, error) bool) bool {
	for child, err := range e.Children() {
		if err != nil {
			return true // what comes before it counts
		}
		if child.Tag() == dw.TagNamespace && steps > 0 {
			if !children(child, steps-1, yield) {
				return false
			}
			continue
		}
		if !yield(child, nil) {
			return false
		}
	}
	return true
}

// maxConstants bounds the constants that are found.
const maxConstants = 1 << 16

// Constants returns the constants and enumerators whose names begin with prefixes, each once,
// in the order of the debug information; none where that is nil. The error is why some may be
// missing. It runs inside object.Guard.
func Constants(d *dwarf.Reader, wanted []sdk.RuntimeConstants) (list []sdk.NamedConstant, err error) {
	if d == nil || len(wanted) == 0 {
		return nil, nil
	}
	c := constants{prefixes: map[string][]string{}, known: map[sdk.NamedConstant]bool{}}
	var units []string
	for _, w := range wanted {
		if c.prefixes[w.Unit] == nil {
			units = append(units, w.Unit)
		}
		c.prefixes[w.Unit] = append(c.prefixes[w.Unit], w.Prefix)
	}
	for _, unit := range units {
		for e, err := range entries(d, unit) {
			if err != nil {
				return c.list, err
			}
			switch e.Tag() {
			case dw.TagConstant:
				c.add(e, unit)
			case dw.TagEnumerationType:
				for enumerator, err := range e.Children() {
					if err == nil && enumerator.Tag() == dw.TagEnumerator {
						c.add(enumerator, unit)
					}
				}
			}
			if len(c.list) > maxConstants {
				return c.list[:maxConstants], fmt.Errorf("the debug information has more than %d constants whose names begin with %q", maxConstants, c.prefixes[unit])
			}
		}
	}
	return c.list, nil
}

// constants collects constants.
type constants struct {
	prefixes map[string][]string // by unit
	known    map[sdk.NamedConstant]bool
	list     []sdk.NamedConstant
}

// add adds a constant where its name has one of the prefixes.
func (c *constants) add(e dwarf.Entry, unit string) {
	name := e.Name()
	for _, prefix := range c.prefixes[unit] {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		value, ok, err := e.Number(dw.AttrConstValue)
		if n := (sdk.NamedConstant{Name: name, Value: value}); ok && err == nil && !c.known[n] {
			c.known[n] = true
			c.list = append(c.list, n)
		}
		return
	}
}
