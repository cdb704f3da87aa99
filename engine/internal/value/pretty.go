// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// prettyForm reads an object by a form of its type, where a table has one. It returns false
// where none applies.
func (r *Reader) prettyForm(ctx context.Context, v *trace.Value, t, plain *dwarf.Type, l locexpr.Location, depth int) bool {
	for _, f := range formsOf(t, plain) {
		raw := *v
		x := run{r: r, form: f, object: l, slots: make([]operand, f.slots), depth: depth, v: v}
		v.Shape = f.shape
		err := x.do(ctx, 0)
		if errors.Is(err, errOtherForm) {
			*v = raw
			continue
		}
		x.finish(ctx, raw, plain, err)
		return true
	}
	return false
}

// finish sets the status of the value after reading.
func (r *run) finish(ctx context.Context, raw trace.Value, plain *dwarf.Type, err error) {
	if r.isWhole {
		return
	}
	if errors.Is(err, errEnough) {
		err = nil
	} else if err == nil && r.isCounted && !r.v.IsDeep && r.found < r.expected {
		err = r.broken("%d elements are there of %d", r.found, r.expected)
	}
	if err == nil {
		setStatus(r.v)
		return
	}
	if r.hasBegun {
		r.v.More = 0
		if r.isCounted && r.expected > uint64(len(r.v.Children)) {
			r.v.More = r.expected - uint64(len(r.v.Children))
		}
		r.v.Status, r.v.Problem = trace.ValuePartial, err.Error()
		return
	}
	// Nothing is certain: the object is shown raw.
	*r.v = raw
	r.r.raw(ctx, r.v, plain, plain, r.object, r.depth)
	if IsOptimizedOut(err) || errors.Is(err, errNoAddress) {
		return
	}
	if b := new(brokenError); !errors.As(err, &b) { // such as memory that the target does not have
		err = fmt.Errorf("%s: %w", r.form.name, err)
	}
	r.v.Status, r.v.Problem = trace.ValueFailed, err.Error()
}

// formBytes is about the size of a boundForm.
const formBytes = 4096

// formsOf returns the forms for objects of a type, by its own name or by the name of its
// underlying type.
func formsOf(t, plain *dwarf.Type) []*boundForm {
	for range maxBases {
		if t.IsZero() {
			return nil
		}
		list, _ := t.Remember(func() (any, int) {
			list := findForms(t, plain)
			return list, len(list) * formBytes
		}).([]*boundForm)
		if list != nil || t == plain {
			return list
		}
		var err error
		if t, err = t.Element(); err != nil {
			return nil
		}
	}
	return nil
}

// findForms looks a type up in the tables.
func findForms(t, plain *dwarf.Type) []*boundForm {
	if t.Kind == dwarf.KindBase || t.Kind == dwarf.KindEnumeration || t.Kind == dwarf.KindArray || plain.IsDeclaration {
		return nil
	}
	table := tables()[languageOf(t.Unit())]
	if table == nil {
		return nil
	}
	var list []*boundForm
	for _, f := range table.matching(formName(t)) {
		if b, err := bind(f, t, plain); err == nil {
			list = append(list, b)
		}
	}
	return list
}

// goKinds are the kinds of types of Go that are recognised by their kind, and not by their name
// (the constants of package internal/abi).
var goKinds = map[int64]string{18: "chan", 19: "func", 20: "interface", 21: "map", 23: "slice", 24: "string"}

// formName returns a type's name as patterns have it: without the namespaces for versions of
// the library.
func formName(t *dwarf.Type) string {
	if t.Unit().Language() == dw.LangGo {
		if n, ok, err := t.Number(dw.AttrGoKind); ok && err == nil {
			return goKinds[n]
		}
		return ""
	}
	if t.Kind != dwarf.KindStructure && t.Kind != dwarf.KindUnion && t.Kind != dwarf.KindPointer {
		return ""
	}
	if t.Name == "" {
		return ""
	}
	return withoutVersion(t.QualifiedName())
}

// withoutVersion leaves out the inline namespaces of the C++ library, such as __1 and __cxx11:
// namespaces inside std:: whose names begin with two underscores. Internal names of the library
// are not in the tables.
func withoutVersion(name string) string {
	prefix, args := name, ""
	if i := strings.IndexByte(name, '<'); i >= 0 {
		prefix, args = name[:i], name[i:]
	}
	if !strings.HasPrefix(prefix, "std::") || !strings.Contains(prefix, "::__") {
		return name
	}
	var kept []string
	parts := strings.Split(prefix, "::")
	for i, part := range parts {
		if i == len(parts)-1 || !strings.HasPrefix(part, "__") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "::") + args
}

// isLeaf reports whether values of a type have no parts: numbers, and strings.
func (r *Reader) isLeaf(t *dwarf.Type) bool {
	plain, err := t.Plain()
	if err != nil || isSimple(plain) {
		return true
	}
	return r.isText(t)
}

// isText reports whether values of a type are shown as strings, where they are valid.
func (r *Reader) isText(t *dwarf.Type) bool {
	plain, err := t.Plain()
	if err != nil || r.limits.Raw || isSimple(plain) {
		return false
	}
	forms := formsOf(t, plain)
	return len(forms) > 0 && forms[0].isText
}

// wholeRunes leaves out a truncated character of UTF-8 at the end.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}
