// SPDX-License-Identifier: Apache-2.0

package profilenames

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// span is a part of the profile's bytes.
type span struct{ start, end uint32 }

// field is a field of a message. value is of a number, text of a message, a text or packed numbers.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64
	text   span
	whole  span // with its tag
}

// fieldsOf calls each with the fields of the message in a part of the bytes.
func (p *Profile) fieldsOf(message span, what string, each func(f field) error) error {
	at := message.start
	for at < message.end {
		rest := p.data[at:message.end]
		f := field{}
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return fmt.Errorf("%s: offset %#x: expected a field: %w", what, at, protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(number, kind, rest[n:])
		if size < 0 {
			return fmt.Errorf("%s: offset %#x: field %d: %w", what, at, number, protowire.ParseError(size))
		}
		f.number, f.kind, f.whole = number, kind, span{at, at + uint32(n+size)}
		switch kind {
		case protowire.VarintType:
			f.value, _ = protowire.ConsumeVarint(rest[n:])
		case protowire.BytesType:
			b, _ := protowire.ConsumeBytes(rest[n:])
			f.text = span{f.whole.end - uint32(len(b)), f.whole.end}
		}
		at = f.whole.end
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// bytes are the bytes of a part.
func (p *Profile) bytes(s span) []byte { return p.data[s.start:s.end] }

// numbers calls each with the numbers of a repeated field, packed or not.
func (p *Profile) numbers(f field, what string, each func(value uint64) error) error {
	if f.kind == protowire.VarintType {
		return each(f.value)
	}
	rest := p.bytes(f.text)
	for len(rest) > 0 {
		v, n := protowire.ConsumeVarint(rest)
		if n < 0 {
			return fmt.Errorf("%s: offset %#x: a packed number: %w", what, f.text.end-uint32(len(rest)), protowire.ParseError(n))
		}
		if err := each(v); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// indexError is the error of an index that no element of a table has.
func (p *Profile) indexError(what string, value uint64, t table) error {
	if p.layout.shift > 0 && t != texts {
		return fmt.Errorf("%s: %d: no %s has this number", what, value, p.layout.names[t])
	}
	return fmt.Errorf("%s: %d: expected an index of %s, which has %d", what, int64(value), p.layout.names[t], len(p.tables[t]))
}

// text returns the text of an index.
func (p *Profile) text(what string, index uint64) (string, error) {
	if index == 0 {
		return "", nil
	}
	if index >= uint64(len(p.tables[texts])) {
		return "", p.indexError(what, index, texts)
	}
	return string(p.bytes(p.tables[texts][index])), nil
}

// element returns the part of an element of a table, which what refers to; ok is false for none.
func (p *Profile) element(what string, t table, reference uint64) (s span, ok bool, err error) {
	if reference == 0 {
		return s, false, nil
	}
	index := reference
	if p.layout.shift > 0 {
		i, known := p.byNumber[t][reference]
		if !known {
			return s, false, p.indexError(what, reference, t)
		}
		index = uint64(i)
	}
	if index >= uint64(len(p.tables[t])) {
		return s, false, p.indexError(what, reference, t)
	}
	return p.tables[t][index], true, nil
}
