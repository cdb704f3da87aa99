// SPDX-License-Identifier: Apache-2.0

package profilenames

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Profile is a profile whose frames may get names. It refers to the bytes that it was read from.
type Profile struct {
	// Frames are the locations without names that are in a mapping, in the order of the table.
	Frames []Frame
	// Apart counts the others without names, and RuntimeApart the ones in code that a language runtime runs.
	Apart, RuntimeApart int
	// Mappings are the mappings of Frames.
	Mappings []Mapping
	// Named counts the locations that have names.
	Named int

	data   []byte
	format Format
	layout *layout
	body   []span // of the dictionary: OpenTelemetry's may be in several parts
	tables [tables][]span
	// byNumber has the elements of pprof's tables.
	byNumber  [tables]map[uint64]uint32
	facts     map[uint64]fact   // by the index of the attribute
	mappingOf map[uint64]uint32 // by the reference in a location
}

// Frame is a location without names.
type Frame struct {
	Address  uint64
	Mapping  int32  // of Mappings
	location uint32 // of the table
	system   uint32 // the text of System; 0: none
	hasLines bool   // they name nothing
	Type     FrameType
}

// FrameType is an index of the values of profile.frame.type that the profile has; 0: none.
type FrameType uint8

// System returns the name of the symbol of a frame's function where that is all that is known; "": it is not
// known. Profilers of accelerators name the kernel so, and the address counts from the beginning of that.
func (p *Profile) System(f *Frame) string {
	if f.system == 0 {
		return ""
	}
	return string(p.bytes(p.tables[texts][f.system]))
}

// HasSystem reports whether System returns a name.
func (f *Frame) HasSystem() bool { return f.system != 0 }

// Mapping is a mapping of a code object, as the profile has it.
type Mapping struct {
	Start, Limit uint64 // addresses; both 0: unknown
	Offset       uint64 // in the file
	File         string
	// GNU, Go and Hash identify the file: its build IDs, and the eBPF profiler's own hash, as texts.
	GNU, Go, Hash string

	index     uint32
	isMain    bool
	frames    uint32 // that have no names
	wasNamed  bool   // other locations have some
	functions uint32 // frames with names
	files     uint32
	lines     uint32
}

// IsMain reports whether the profile says that the mapping is the program's executable: pprof's first one is.
func (m *Mapping) IsMain() bool { return m.isMain }

// HasNoID reports whether nothing identifies the file.
func (m *Mapping) HasNoID() bool { return m.GNU == "" && m.Go == "" && m.Hash == "" }

// frameTypes are the values of profile.frame.type whose code is in files, by FrameType. OtherFrame is of code
// that a runtime runs.
var frameTypes = []string{"", "native", "kernel", "go", "rust", "cuda", "cuda-pc", "gpu", "amdgpu", "intelgpu"}

// The frame types that are looked up in other ways than native code.
const (
	KernelFrame FrameType = 2
	OtherFrame  FrameType = 255
)

// maxSize bounds a profile, as protocol buffers bound messages.
const maxSize = math.MaxInt32

// errSize is the error of a larger profile.
var errSize = errors.New("it has 2 GiB or more: expected a message that protocol buffers can have")

// Read reads the tables of a profile. Its error names the field.
func Read(data []byte, format Format) (*Profile, error) {
	if len(data) >= maxSize {
		return nil, errSize
	}
	p := &Profile{data: data, format: format, layout: &layouts[format], facts: map[uint64]fact{}, mappingOf: map[uint64]uint32{}}
	if err := p.findBody(); err != nil {
		return nil, err
	}
	for _, part := range p.body {
		if err := p.readTables(part); err != nil {
			return nil, err
		}
	}
	if t := p.tables[texts]; len(t) > 0 && t[0].start != t[0].end {
		return nil, fmt.Errorf("%s[0]: %.40q, expected no text", p.layout.names[texts], p.bytes(t[0]))
	}
	if p.layout.shift > 0 {
		for _, t := range []table{mappings, functions} {
			if err := p.numberElements(t); err != nil {
				return nil, err
			}
		}
	}
	if err := p.readAttributes(); err != nil {
		return nil, err
	}
	return p, p.readLocations()
}

// findBody finds the parts of the dictionary.
func (p *Profile) findBody() error {
	whole := span{0, uint32(len(p.data))}
	if p.format == Pprof {
		p.body = []span{whole}
		return nil
	}
	return p.fieldsOf(whole, "as a message ProfilesData of OpenTelemetry", func(f field) error {
		if f.number == dictionary && f.kind == protowire.BytesType {
			p.body = append(p.body, f.text)
		}
		return nil
	})
}

// readTables finds the elements of the tables in a part of the dictionary.
func (p *Profile) readTables(part span) error {
	what := "as a profile of pprof"
	if p.format == OTLP {
		what = "dictionary"
	}
	var count [tables]int
	err := p.fieldsOf(part, what, func(f field) error {
		if t, ok := p.tableOf(f.number); ok {
			count[t]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for t, n := range count {
		p.tables[t] = slices.Grow(p.tables[t], n)
	}
	return p.fieldsOf(part, what, func(f field) error {
		t, ok := p.tableOf(f.number)
		if !ok {
			return nil
		}
		if f.kind != protowire.BytesType {
			return fmt.Errorf("%s[%d]: offset %#x: it has the wire type %d, expected %d", p.layout.names[t], len(p.tables[t]), f.whole.start, f.kind, protowire.BytesType)
		}
		p.tables[t] = append(p.tables[t], f.text)
		return nil
	})
}

// tableOf is the table of a field of the dictionary.
func (p *Profile) tableOf(number protowire.Number) (table, bool) {
	for t, n := range p.layout.fields {
		if n == number {
			return table(t), true
		}
	}
	return 0, false
}

// numberElements reads the numbers of the elements of one of pprof's tables.
func (p *Profile) numberElements(t table) error {
	p.byNumber[t] = make(map[uint64]uint32, len(p.tables[t]))
	for i, s := range p.tables[t] {
		what := fmt.Sprintf("%s[%d]", p.layout.names[t], i)
		number := uint64(0)
		err := p.fieldsOf(s, what, func(f field) error {
			if f.number == ownNumber && f.kind == protowire.VarintType {
				number = f.value
			}
			return nil
		})
		if err != nil {
			return err
		}
		if _, isTwice := p.byNumber[t][number]; isTwice || number == 0 {
			return fmt.Errorf("%s.id: %d, expected a number above zero that no other one has", what, number)
		}
		p.byNumber[t][number] = uint32(i)
	}
	return nil
}

// fact is an attribute of which frames are looked up.
type fact struct{ key, text string }

// readAttributes finds the attributes that tell what frames are in.
func (p *Profile) readAttributes() error {
	wanted := map[uint64]string{}
	for i, s := range p.tables[texts] {
		switch text := p.bytes(s); string(text) {
		case keyFrameType, keyGNU, keyGo, keyHash:
			wanted[uint64(i)] = string(text)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for i, s := range p.tables[attributes] {
		if err := p.readAttribute(uint64(i), s, wanted); err != nil {
			return err
		}
	}
	return nil
}

func (p *Profile) readAttribute(index uint64, s span, wanted map[uint64]string) error {
	what := fmt.Sprintf("%s[%d]", p.layout.names[attributes], index)
	var key uint64
	var value span
	err := p.fieldsOf(s, what, func(f field) error {
		switch {
		case f.number == attributeKey && f.kind == protowire.VarintType:
			key = f.value
		case f.number == attributeValue && f.kind == protowire.BytesType:
			value = f.text
		}
		return nil
	})
	if err != nil || wanted[key] == "" {
		return err
	}
	out := fact{key: wanted[key]}
	err = p.fieldsOf(value, what+".value", func(f field) (err error) {
		switch {
		case f.number == anyText && f.kind == protowire.BytesType:
			out.text = string(p.bytes(f.text))
		case f.number == anyStrindex && f.kind == protowire.VarintType:
			out.text, err = p.text(what+".value.string_value_strindex", f.value)
		}
		return err
	})
	p.facts[index] = out
	return err
}
