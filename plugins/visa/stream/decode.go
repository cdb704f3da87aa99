// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Is reports whether bytes begin as a stream does.
func Is(b []byte) bool { return len(b) >= 4 && binary.LittleEndian.Uint32(b) == Magic }

// Error is an error in a stream: an impossible value, or bytes that cannot be
// read.
type Error struct {
	Layout Layout // the layout of the attempt; 0 for errors of all
	Object string // the object, "" for the header
	Field  string // its field
	Offset uint64 // bytes from the beginning of the stream
	Detail string // the found and the expected value
}

// Error names the object, the field, the offset and the expected value.
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

// LayoutErrors are the errors of a stream of no layout: one for each layout, the
// one that was read furthest first.
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

// Decode reads a whole stream. It tries every layout, and takes the one that
// ends where the stream ends and makes sense. Where several do, it takes one and
// Problems tells. An error is an *Error, or LayoutErrors where the layouts'
// errors differ.
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

// common returns the single error of layouts that fail before they differ.
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

// ambiguity is the problem of a stream that several layouts fit, with the reason
// for the chosen one.
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

// isBetter reports whether a reading makes more sense than another one.
func (r *reading) isBetter(than *reading) bool {
	if (r.nonsense == nil) != (than.nonsense == nil) {
		return r.nonsense == nil
	}
	return r.oddCount < than.oddCount
}
