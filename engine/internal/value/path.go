// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Path is a variable or a part of one, as a user writes it: "a", "a.b[3]", "p->next", "*p",
// "**argv", "ns::global.x".
type Path struct {
	Name  string // of the variable
	steps []step
	text  string
}

// step leads from an object to a part of it. The zero step leads to the target of a pointer.
type step struct {
	member  string
	index   int64
	isIndex bool
}

// maxPathSteps bounds the steps of a Path.
const maxPathSteps = 256

// ParsePath reads a Path.
func ParsePath(text string) (Path, error) {
	p := Path{text: text}
	rest := strings.TrimSpace(text)
	stars := 0
	for strings.HasPrefix(rest, "*") {
		stars++
		rest = strings.TrimSpace(rest[1:])
	}
	p.Name, rest = cutName(rest)
	if p.Name == "" {
		return p, fmt.Errorf("%q: expected the name of a variable", text)
	}
	for rest != "" {
		var s step
		var err error
		if s, rest, err = cutStep(rest); err != nil {
			return p, fmt.Errorf("%q: %w", text, err)
		}
		p.steps = append(p.steps, s)
	}
	for range stars {
		p.steps = append(p.steps, step{})
	}
	if len(p.steps) > maxPathSteps {
		return p, fmt.Errorf("%d steps, expected at most %d", len(p.steps), maxPathSteps)
	}
	return p, nil
}

// cutName cuts off the name of a variable, which may include namespaces and template arguments.
func cutName(text string) (name, rest string) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '<' || c == '(':
			depth++
		case c == '>' || c == ')':
			depth--
		case depth <= 0 && (c == '.' || c == '[' || c == '-' && strings.HasPrefix(text[i:], "->")):
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// cutStep cuts off ".member", "->member" or "[index]".
func cutStep(text string) (s step, rest string, err error) {
	if strings.HasPrefix(text, "[") {
		number, rest, ok := strings.Cut(text[1:], "]")
		if !ok {
			return s, "", errors.New("expected ]")
		}
		s.isIndex = true
		if s.index, err = strconv.ParseInt(strings.TrimSpace(number), 0, 64); err != nil {
			return s, "", fmt.Errorf("index %q: expected a number", number)
		}
		return s, rest, nil
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "->"), ".")
	s.member, rest = cutName(text)
	if s.member == "" {
		return s, "", errors.New("expected the name of a member")
	}
	return s, rest, nil
}

// String returns the text that the path was parsed from.
func (p Path) String() string { return p.text }

// Select reads the part of a variable that a path names. The variable has a type, and is at a
// location from an expression of a unit.
func (r *Reader) Select(ctx context.Context, unit dwarf.Unit, p Path, t *dwarf.Type, l locexpr.Location) (trace.Value, locexpr.Location, error) {
	r.begin(unit)
	l = r.objectAt(t, l)
	for i, s := range p.steps {
		plain, object, err := r.referred(ctx, t, l)
		if err != nil {
			return trace.Value{}, l, err
		}
		next, place, err := r.stepTo(ctx, plain, object, s)
		if errors.Is(err, errNoStep) { // in a container, whose elements only its form knows
			v, err := r.selectForm(ctx, t, object, p.steps[i:])
			v.Name = p.text
			return v, locexpr.UndefinedLocation(), err
		}
		if err != nil {
			return trace.Value{}, l, err
		}
		t, l = next, place
	}
	var v trace.Value
	r.read(ctx, &v, p.text, t, l, 0)
	return v, l, nil
}

// referred returns the object that a reference refers to, or the object itself.
func (r *Reader) referred(ctx context.Context, t *dwarf.Type, l locexpr.Location) (*dwarf.Type, locexpr.Location, error) {
	plain, err := t.Plain()
	if err != nil {
		return nil, l, err
	}
	if plain.Kind != dwarf.KindReference && plain.Kind != dwarf.KindRvalueReference {
		return plain.Complete(), l, nil
	}
	target, err := r.target(ctx, plain, l)
	if err != nil {
		return nil, l, err
	}
	element, err := plain.Element()
	if err != nil {
		return nil, l, err
	}
	return r.referred(ctx, element, target)
}

// target returns where a pointer or a reference leads.
func (r *Reader) target(ctx context.Context, t *dwarf.Type, l locexpr.Location) (locexpr.Location, error) {
	if target, ok := r.implicitTarget(ctx, t, l); ok {
		return target, nil
	}
	address, err := r.address(ctx, t, l)
	if err != nil {
		return l, err
	}
	return r.memory(t, address), nil
}

// errNoStep is the error for a part that an object does not have.
var errNoStep = errors.New("no such part")

// stepTo returns a part of an object.
func (r *Reader) stepTo(ctx context.Context, t *dwarf.Type, l locexpr.Location, s step) (*dwarf.Type, locexpr.Location, error) {
	switch {
	case s.isIndex && t.Kind == dwarf.KindArray:
		return r.elementAt(ctx, t, l, s.index)
	case t.Kind == dwarf.KindPointer:
		element, err := t.Element()
		if err != nil {
			return nil, l, err
		}
		target, err := r.target(ctx, t, l)
		if err == nil && s.index != 0 {
			target, err = displaced(target, s.index, element.Size)
		}
		if err != nil || s.member == "" {
			return element, target, err
		}
		plain, place, err := r.referred(ctx, element, target)
		if err != nil {
			return nil, l, err
		}
		return r.stepTo(ctx, plain, place, s)
	case s.member != "":
		m, place, err := r.memberNamed(ctx, t, l, s.member, 0)
		if err != nil {
			return nil, l, err
		}
		if m == nil {
			return nil, l, fmt.Errorf("%s of a %s: %w", s.member, t, errNoStep)
		}
		return m.Type, place, nil
	}
	return nil, l, fmt.Errorf("[%d] of a %s: %w", s.index, t, errNoStep)
}

// displaced returns the location of the element with an index from a pointer on.
func displaced(l locexpr.Location, index int64, size uint64) (locexpr.Location, error) {
	if index >= 0 {
		return offset(l, uint64(index), int64(min(size, 1<<62)))
	}
	if size > 1<<32 || -index > 1<<24 {
		return l, fmt.Errorf("element %d of %d bytes: %w", index, size, locexpr.ErrOutOfBounds)
	}
	return l.Offset(index * int64(size) * 8)
}

// elementAt returns the element of an array with an index in its outermost dimension.
func (r *Reader) elementAt(ctx context.Context, t *dwarf.Type, l locexpr.Location, index int64) (*dwarf.Type, locexpr.Location, error) {
	dimensions, err := t.Dimensions()
	if err != nil {
		return nil, l, err
	}
	element, err := t.Element()
	if err != nil {
		return nil, l, err
	}
	if len(dimensions) != 1 {
		return nil, l, fmt.Errorf("[%d] of a %s: %w", index, t, errNoStep)
	}
	x, err := r.extent(ctx, &dimensions[0], l)
	if err != nil {
		return nil, l, err
	}
	if x.count > 0 && (index < x.lower || uint64(index-x.lower) >= x.count) {
		return nil, l, fmt.Errorf("[%d] of a %s: expected %d to %d", index, t, x.lower, x.lower+int64(x.count)-1)
	}
	size := int64(min(element.Size, 1<<62))
	if x.stride != 0 {
		size = x.stride
	}
	if l, err = r.dataLocation(ctx, t, l); err != nil {
		return nil, l, err
	}
	place, err := offset(l, uint64(index-x.lower), size)
	return element, place, err
}

// memberNamed returns a member of an object, of its base classes or of an unnamed one; nil
// where there is none.
func (r *Reader) memberNamed(ctx context.Context, t *dwarf.Type, l locexpr.Location, name string, depth int) (*dwarf.Member, locexpr.Location, error) {
	parts, err := t.Parts()
	if err != nil || depth > maxBases {
		return nil, l, err
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role == dwarf.VariantPart {
			chosen, err := r.chosenVariant(ctx, m, l)
			if err != nil || chosen == nil {
				continue
			}
			for k := range chosen.Members {
				if c := &chosen.Members[k]; c.Name == name {
					place, err := r.memberLocation(ctx, c, l)
					return c, place, err
				}
			}
			continue
		}
		isInner := m.Role == dwarf.BaseClass || m.Name == ""
		if m.Name != name && !isInner || m.Type == nil {
			continue
		}
		place, err := r.memberLocation(ctx, m, l)
		if err != nil {
			return nil, l, err
		}
		if m.Name == name && m.Role == dwarf.DataMember {
			if m.FieldBits > 0 {
				return nil, l, fmt.Errorf("%s is a bit field: %w", name, errNoStep)
			}
			return m, place, nil
		}
		plain, err := m.Type.Plain()
		if err != nil {
			return nil, l, err
		}
		if found, place, err := r.memberNamed(ctx, plain.Complete(), place, name, depth+1); found != nil || err != nil {
			return found, place, err
		}
	}
	return nil, l, nil
}

// selectForm reads an object as a whole and returns the part of it that steps name.
func (r *Reader) selectForm(ctx context.Context, t *dwarf.Type, l locexpr.Location, steps []step) (trace.Value, error) {
	limits := r.limits
	defer func() { r.limits = limits }()
	r.limits.Depth = min(limits.Depth+len(steps), MaxDepth)
	for _, s := range steps {
		if s.isIndex && s.index >= int64(r.limits.Elements) {
			r.limits.Elements = int(min(s.index, MaxElements-1)) + 1
		}
	}
	var v trace.Value
	r.read(ctx, &v, "", t, l, 0)
	for _, s := range steps {
		next := partOf(&v, s)
		if next == nil {
			if v.Status == trace.ValueFailed {
				return v, errors.New(v.Problem)
			}
			return v, fmt.Errorf("a %s has no part %s", v.Type, s)
		}
		v = *next
	}
	return v, nil
}

// partOf returns the child that a step names; nil where there is none.
func partOf(v *trace.Value, s step) *trace.Value {
	name := s.String()
	for i := range v.Children {
		c := &v.Children[i]
		if c.Name == name || s.member != "" && c.Name == s.member || (s == step{}) && c.Role == trace.RolePointee {
			return c
		}
	}
	for i := range v.Children {
		if c := &v.Children[i]; c.Role == trace.RoleBase || c.Role == trace.RoleVariant || c.Role == trace.RolePointee || c.Name == "" {
			if found := partOf(c, s); found != nil {
				return found
			}
		}
	}
	return nil
}

// String returns the step as a user writes it.
func (s step) String() string {
	switch {
	case s.isIndex:
		return fmt.Sprintf("[%d]", s.index)
	case s.member != "":
		return "." + s.member
	}
	return "*"
}
