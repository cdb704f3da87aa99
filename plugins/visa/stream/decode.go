// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Is says whether bytes begin as a stream does.
func Is(b []byte) bool { return len(b) >= 4 && binary.LittleEndian.Uint32(b) == Magic }

// An Error is what a stream has that cannot be, or cannot be read.
type Error struct {
	Layout Layout // which layout it was read as; 0 for what all have in common
	Object string // which object, "" for the header
	Field  string // which field of it
	Offset uint64 // bytes from the beginning of the stream
	Detail string // what was found and what was expected
}

// Error names the object, the field, the offset and what was expected.
func (e *Error) Error() string {
	s := fmt.Sprintf("vISA stream+%#x: ", e.Offset)
	if e.Layout != 0 {
		s = fmt.Sprintf("vISA stream+%#x (layout %s): ", e.Offset, e.Layout)
	}
	if e.Object != "" {
		s += "object " + e.Object + ": "
	}
	return s + e.Field + ": " + e.Detail
}

// LayoutErrors are the errors of a stream that is of no layout: one for each, of
// the layout that can be read furthest first.
type LayoutErrors []*Error

// Error names all of them.
func (e LayoutErrors) Error() string {
	var s []string
	for _, x := range e {
		s = append(s, x.Error())
	}
	return strings.Join(s, "; ")
}

// Unwrap returns the errors of the layouts.
func (e LayoutErrors) Unwrap() []error {
	var list []error
	for _, x := range e {
		list = append(list, x)
	}
	return list
}

// Decode reads a whole stream. It is read as every layout; the one that ends
// where the stream ends, and makes sense, is it. Where several end there, one is
// taken and Problems says so. An error is an *Error, or LayoutErrors where each
// layout has another.
func Decode(b []byte) (*Stream, error) {
	if !Is(b) {
		return nil, &Error{Field: "magic_number", Detail: fmt.Sprintf("% x, expected %#x", b[:min(len(b), 4)], uint32(Magic))}
	}
	var fits []*reading
	var failed LayoutErrors
	for _, layout := range Layouts {
		if r := readAs(b, layout); r.err == nil {
			fits = append(fits, r)
		} else {
			failed = append(failed, r.err)
		}
	}
	if len(fits) == 0 {
		return nil, failed.common()
	}
	best := fits[0]
	for _, r := range fits[1:] {
		if r.isBetter(best) {
			best = r
		}
	}
	if best.nonsense != nil {
		return nil, best.nonsense
	}
	s := best.stream
	if len(fits) > 1 {
		s.Problems = append(s.Problems, ambiguity(fits, best))
	}
	s.Problems = append(s.Problems, best.oddities...)
	if best.oddCount > len(best.oddities) {
		s.Problems = append(s.Problems, fmt.Sprintf("and %d more problems", best.oddCount-len(best.oddities)))
	}
	return s, nil
}

// common is one error where all layouts have the same, before they differ.
func (e LayoutErrors) common() error {
	slices.SortStableFunc(e, func(a, b *Error) int { return cmp.Compare(b.Offset, a.Offset) })
	one := *e[0]
	for _, other := range e[1:] {
		if other.Offset != one.Offset || other.Field != one.Field || other.Detail != one.Detail {
			return e
		}
	}
	one.Layout = 0
	return &one
}

// ambiguity says that a stream can be read in several ways, and why one is taken.
func ambiguity(fits []*reading, best *reading) string {
	var names, why []string
	for _, r := range fits {
		names = append(names, r.stream.Layout.String())
		if r == best {
			continue
		}
		reason := "it is the later one"
		switch {
		case r.nonsense != nil:
			reason = fmt.Sprintf("object %s: %s: %s", r.nonsense.Object, r.nonsense.Field, r.nonsense.Detail)
		case r.oddCount > best.oddCount:
			reason = r.oddities[0]
		}
		why = append(why, fmt.Sprintf("not %s (%s)", r.stream.Layout, reason))
	}
	return fmt.Sprintf("the stream can be read as layouts %s: read as %s, %s", strings.Join(names, " and "), best.stream.Layout, strings.Join(why, ", "))
}

// isBetter says whether a reading makes more sense than another.
func (r *reading) isBetter(than *reading) bool {
	if (r.nonsense == nil) != (than.nonsense == nil) {
		return r.nonsense == nil
	}
	return r.oddCount < than.oddCount
}
