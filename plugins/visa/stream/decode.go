package stream

import (
	"encoding/binary"
	"fmt"
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

// Decode reads a whole stream. It is read as every layout; the one that ends
// where the stream ends, and makes sense, is it. Where several end there, one is
// taken and Problems says so. Where none does, the error is that of the layout
// that can be read furthest.
func Decode(b []byte) (*Stream, error) {
	if !Is(b) {
		return nil, &Error{Field: "magic_number", Detail: fmt.Sprintf("% x, expected %#x", b[:min(len(b), 4)], uint32(Magic))}
	}
	var fits []*reading
	var furthest *Error
	for _, layout := range Layouts {
		r := readAs(b, layout)
		switch {
		case r.err == nil:
			fits = append(fits, r)
		case furthest == nil || r.err.Offset > furthest.Offset:
			furthest = r.err
		}
	}
	if len(fits) == 0 {
		return nil, furthest
	}
	best := fits[0]
	for _, r := range fits[1:] {
		if r.better(best) {
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
		s.Problems = append(s.Problems, fmt.Sprintf("%d more of this kind", best.oddCount-len(best.oddities)))
	}
	return s, nil
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
			reason = fmt.Sprintf("%s: %s: %s", r.nonsense.Object, r.nonsense.Field, r.nonsense.Detail)
		case r.oddCount > best.oddCount:
			reason = r.oddities[0]
		}
		why = append(why, fmt.Sprintf("not %s (%s)", r.stream.Layout, reason))
	}
	return fmt.Sprintf("the stream can be read as layouts %s: read as %s, %s", strings.Join(names, " and "), best.stream.Layout, strings.Join(why, ", "))
}

// better says whether a reading makes more sense than another.
func (r *reading) better(than *reading) bool {
	if (r.nonsense == nil) != (than.nonsense == nil) {
		return r.nonsense == nil
	}
	return r.oddCount < than.oddCount
}
