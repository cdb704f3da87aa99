// SPDX-License-Identifier: Apache-2.0

package profilenames

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// location has the facts about a location that decide whether it is named.
type location struct {
	mapping  uint64
	address  uint64
	hasLines bool
	isNamed  bool
	system   uint64 // the text of a function that has no other name; 0: none
	kind     FrameType
}

// readLocations finds the locations without names.
func (p *Profile) readLocations() error {
	for i, s := range p.tables[locations] {
		l := location{}
		if err := p.readLocation(s, &l); err != nil {
			return fmt.Errorf("%s[%d]%w", p.layout.names[locations], i, err)
		}
		if l.isNamed {
			p.Named++
		}
		if l.mapping == 0 && (l.isNamed || l.system != 0 || l.address == 0) {
			if !l.isNamed && l.system != 0 {
				p.Named++
			}
			continue
		}
		m, err := p.mapping(l.mapping)
		if err != nil {
			return fmt.Errorf("%s[%d]%w", p.layout.names[locations], i, err)
		}
		switch {
		case l.isNamed:
			p.Mappings[m].wasNamed = true
			continue
		case m < 0 && l.kind == OtherFrame:
			p.RuntimeApart++
			continue
		case m < 0:
			p.Apart++
			continue
		case l.system >= uint64(len(p.tables[texts])) && l.system != 0:
			return fmt.Errorf("%s[%d]%w", p.layout.names[locations], i, p.indexError(p.layout.function, l.system, texts))
		}
		p.Mappings[m].frames++
		p.Frames = append(p.Frames, Frame{Address: l.address, Mapping: m, location: uint32(i), hasLines: l.hasLines, Type: l.kind, system: uint32(l.system)})
	}
	return nil
}

// readLocation reads a location. Errors begin with the field.
func (p *Profile) readLocation(s span, l *location) error {
	shift := p.layout.shift
	return p.fieldsOf(s, "", func(f field) error {
		switch number := f.number - shift; {
		case number == locationMapping && f.kind == protowire.VarintType:
			l.mapping = f.value
		case number == locationAddress && f.kind == protowire.VarintType:
			l.address = f.value
		case number == locationLines && f.kind == protowire.BytesType:
			l.hasLines = true
			if l.isNamed {
				return nil
			}
			name, system, err := p.functionOf(f.text)
			l.isNamed = name
			if l.system == 0 {
				l.system = system
			}
			return err
		case number == locationAttributes && shift == 0:
			return p.numbers(f, ".attribute_indices", func(index uint64) error {
				if index >= uint64(len(p.tables[attributes])) && index != 0 {
					return p.indexError(".attribute_indices", index, attributes)
				}
				if fact := p.facts[index]; fact.key == keyFrameType {
					l.kind = frameType(fact.text)
				}
				return nil
			})
		}
		return nil
	})
}

func frameType(text string) FrameType {
	if i := slices.Index(frameTypes, text); i >= 0 {
		return FrameType(i)
	}
	return OtherFrame
}

// functionOf reports whether the function of a line has a name or a file, and returns the text of its symbol.
func (p *Profile) functionOf(line span) (is bool, system uint64, err error) {
	what := p.layout.function
	var reference uint64
	err = p.fieldsOf(line, p.layout.lines, func(f field) error {
		if f.number == lineFunction && f.kind == protowire.VarintType {
			reference = f.value
		}
		return nil
	})
	if err != nil {
		return false, 0, err
	}
	s, ok, err := p.element(what, functions, reference)
	if err != nil || !ok {
		return false, 0, err
	}
	err = p.fieldsOf(s, what, func(f field) error {
		switch n := f.number - p.layout.shift; {
		case f.kind != protowire.VarintType || f.value == 0:
		case n == functionName, n == functionFile:
			is = true
		case n == functionSystem:
			system = f.value
		}
		return nil
	})
	return is, system, err
}

// mapping returns the mapping that a location refers to; -1: none.
func (p *Profile) mapping(reference uint64) (int32, error) {
	if m, ok := p.mappingOf[reference]; ok {
		return int32(m), nil
	}
	s, ok, err := p.element(p.layout.mapping, mappings, reference)
	if err != nil || !ok {
		return -1, err
	}
	m := Mapping{}
	if err := p.readMapping(s, &m); err != nil {
		return -1, fmt.Errorf(": %s %d%w", p.layout.names[mappings], reference, err)
	}
	n := uint32(len(p.Mappings))
	m.index = uint32(reference)
	if p.layout.shift > 0 {
		m.index = p.byNumber[mappings][reference]
		m.isMain = m.index == 0
	}
	p.Mappings = append(p.Mappings, m)
	p.mappingOf[reference] = n
	return int32(n), nil
}

// readMapping reads a mapping. Errors begin with the field.
func (p *Profile) readMapping(s span, m *Mapping) error {
	shift := p.layout.shift
	return p.fieldsOf(s, "", func(f field) (err error) {
		switch number := f.number - shift; {
		case number == mappingAttributes && shift == 0:
			return p.numbers(f, ".attribute_indices", func(index uint64) error {
				if index >= uint64(len(p.tables[attributes])) && index != 0 {
					return p.indexError(".attribute_indices", index, attributes)
				}
				m.identify(p.facts[index])
				return nil
			})
		case f.kind != protowire.VarintType:
		case number == mappingStart:
			m.Start = f.value
		case number == mappingLimit:
			m.Limit = f.value
		case number == mappingOffset:
			m.Offset = f.value
		case number == mappingFile:
			m.File, err = p.text(".filename_strindex", f.value)
		case number == mappingAttributes:
			m.GNU, err = p.text(".build_id", f.value)
		}
		return err
	})
}

// identify adds an attribute.
func (m *Mapping) identify(f fact) {
	switch f.key {
	case keyGNU:
		m.GNU = f.text
	case keyGo:
		m.Go = f.text
	case keyHash:
		m.Hash = f.text
	}
}
