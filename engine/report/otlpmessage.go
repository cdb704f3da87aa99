// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"math"

	"github.com/google/pprof/profile"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// The fields whose contents are encoded before their length is known.
const (
	otlpResourceProfiles protowire.Number = 1 // of ProfilesData
	otlpDictionary       protowire.Number = 2 // of ProfilesData
	otlpScopeProfiles    protowire.Number = 2 // of ResourceProfiles
	otlpProfiles         protowire.Number = 2 // of ScopeProfiles
)

// otlpScope names the maker of the profiles.
const otlpScope = "github.com/unwindd/unwindd"

// otlpHeaders bounds the headers of a resource, a scope and a profile, and the lengths of all
// enclosing fields, together.
const otlpHeaders = 512

// otlpTable is an encoded table of the dictionary.
type otlpTable[K comparable] struct {
	index   map[K]int32
	keys    []K // by index
	encoded []byte
}

// otlpMessage is a ProfilesData under construction. Its parts are encoded at once, so that
// many samples do not take the memory of as many objects.
type otlpMessage struct {
	b     *otlpBuilder
	limit int
	err   error

	strings                                            otlpTable[string]
	attributes, functions, mappings, locations, stacks otlpTable[uint32]
	links                                              []byte

	resources []byte // complete ones
	profiles  []byte // of the current resource, complete ones
	samples   []byte // of the current profile
	// value and process are of the current profile; -1 where there is none.
	value   int32
	process int64
	count   int // of samples
	// sample, profile and dictionary are objects to encode with.
	sample     profiles.Sample
	profile    profiles.Profile
	dictionary profiles.ProfilesDictionary
	stack      profiles.Stack
}

// newOTLPMessage is a message without samples. Each table begins with the zero value
// (ProfilesDictionary).
func newOTLPMessage(b *otlpBuilder, limit int) *otlpMessage {
	m := &otlpMessage{b: b, limit: limit, value: -1, process: -1}
	m.sample.Values = make([]int64, 1)
	m.profile.Samples = []*profiles.Sample{&m.sample}
	m.string("")
	put(m, &m.attributes, 0, &profiles.ProfilesDictionary{AttributeTable: []*profiles.KeyValueAndUnit{{}}})
	put(m, &m.functions, 0, &profiles.ProfilesDictionary{FunctionTable: []*profiles.Function{{}}})
	put(m, &m.mappings, 0, &profiles.ProfilesDictionary{MappingTable: []*profiles.Mapping{{}}})
	put(m, &m.locations, 0, &profiles.ProfilesDictionary{LocationTable: []*profiles.Location{{}}})
	put(m, &m.stacks, 0, &profiles.ProfilesDictionary{StackTable: []*profiles.Stack{{}}})
	m.links = m.marshal(nil, &profiles.ProfilesDictionary{LinkTable: []*profiles.Link{{}}})
	return m
}

func (m *otlpMessage) marshal(b []byte, message proto.Message) []byte {
	b, err := proto.MarshalOptions{}.MarshalAppend(b, message)
	if err != nil && m.err == nil {
		m.err = err
	}
	return b
}

// put adds an entry to a table: a dictionary with nothing else.
func put[K comparable](m *otlpMessage, t *otlpTable[K], key K, entry *profiles.ProfilesDictionary) int32 {
	if t.index == nil {
		t.index = map[K]int32{}
	}
	i := int32(len(t.keys)) //nolint:gosec // an entry has two bytes, and a message at most 2 GiB
	t.index[key] = i
	t.keys = append(t.keys, key)
	t.encoded = m.marshal(t.encoded, entry)
	return i
}

// otlpMark is a state of a message, by the size of each of its parts.
type otlpMark struct {
	value                                                       int32
	process                                                     int64
	samples                                                     int
	strings, attributes, functions, mappings, locations, stacks [2]int
}

func (t *otlpTable[K]) mark() [2]int { return [2]int{len(t.keys), len(t.encoded)} }

// cut removes the entries behind a mark.
func (t *otlpTable[K]) cut(mark [2]int) {
	for _, key := range t.keys[mark[0]:] {
		delete(t.index, key)
	}
	t.keys, t.encoded = t.keys[:mark[0]], t.encoded[:mark[1]]
}

func (m *otlpMessage) mark() otlpMark {
	return otlpMark{
		value: m.value, process: m.process, samples: len(m.samples),
		strings: m.strings.mark(), attributes: m.attributes.mark(), functions: m.functions.mark(),
		mappings: m.mappings.mark(), locations: m.locations.mark(), stacks: m.stacks.mark(),
	}
}

func (m *otlpMessage) cut(mark otlpMark) {
	m.value, m.process, m.samples = mark.value, mark.process, m.samples[:mark.samples]
	m.strings.cut(mark.strings)
	m.attributes.cut(mark.attributes)
	m.functions.cut(mark.functions)
	m.mappings.cut(mark.mappings)
	m.locations.cut(mark.locations)
	m.stacks.cut(mark.stacks)
}

// add adds a sample, unless the message has others and would become too large.
func (m *otlpMessage) add(s *otlpSum) bool {
	process := int64(m.b.groups[s.group].process)
	if process != m.process || s.value != m.value {
		m.closeProfile()
	}
	if process != m.process {
		m.closeResource()
	}
	mark := m.mark()
	if m.value < 0 {
		m.process, m.value = process, s.value
		m.valueType(s.value) // its texts count for the size
	}
	m.addSample(s)
	if m.count > 0 && m.size() > m.limit {
		m.cut(mark)
		return false
	}
	m.count++
	return true
}

// size is a lower bound of the message's size in bytes.
func (m *otlpMessage) size() int {
	return otlpHeaders + len(m.resources) + len(m.profiles) + len(m.samples) + m.dictionarySize()
}

func (m *otlpMessage) dictionarySize() (n int) {
	for _, table := range m.tables() {
		n += len(table)
	}
	return n
}

// tables are the encoded tables, in the order of their numbers.
func (m *otlpMessage) tables() [7][]byte {
	return [7][]byte{
		m.mappings.encoded, m.locations.encoded, m.functions.encoded, m.links,
		m.strings.encoded, m.attributes.encoded, m.stacks.encoded,
	}
}

// finish completes the message. A message without samples has a profile without samples for
// each value.
func (m *otlpMessage) finish() error {
	if m.count == 0 {
		for i := range m.b.r.values {
			m.value = int32(i) //nolint:gosec // there are few values
			m.closeProfile()
		}
		m.process = math.MaxInt64
	}
	m.closeProfile()
	m.closeResource()
	return m.err
}

// write writes the message, which is complete.
func (m *otlpMessage) write(w io.Writer) error {
	header := protowire.AppendTag(nil, otlpDictionary, protowire.BytesType)
	header = protowire.AppendVarint(header, uint64(m.dictionarySize()))
	tables := m.tables()
	for _, part := range append([][]byte{m.resources, header}, tables[:]...) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// closeProfile completes the current profile, if there is one.
func (m *otlpMessage) closeProfile() {
	if m.value < 0 {
		return
	}
	b, v := m.b, &m.b.r.values[m.value]
	header := profiles.Profile{SampleType: m.valueType(m.value)}
	window := b.window(v.event)
	header.DurationNano = window.last - window.first
	if start, ok := b.wallTime(v.event, window.first); ok && window.isKnown {
		header.TimeUnixNano = start
	}
	if weight := b.r.valueOf[v.event+1]; b.periods[weight] > 0 {
		header.Period, header.PeriodType = b.periods[weight], m.valueType(int32(weight)) //nolint:gosec // there are few values
	}
	encoded := m.marshal(nil, &header)
	m.profiles = protowire.AppendTag(m.profiles, otlpProfiles, protowire.BytesType)
	m.profiles = protowire.AppendVarint(m.profiles, uint64(len(encoded)+len(m.samples)))
	m.profiles = append(append(m.profiles, encoded...), m.samples...)
	m.samples, m.value = m.samples[:0], -1
}

// wallTime is a time of an event's clock in nanoseconds since 1970, where it is known.
func (b *otlpBuilder) wallTime(event int16, t uint64) (nanoseconds uint64, isKnown bool) {
	if !b.r.p.HasWallOffset || event >= 0 && b.r.p.Events[event].OtherClock || t > math.MaxInt64 {
		return 0, false
	}
	wall := int64(t) + b.r.p.WallOffset // an overflow is negative
	return uint64(max(wall, 0)), wall > 0
}

// closeResource completes the current resource, if there is one.
func (m *otlpMessage) closeResource() {
	if m.process < 0 {
		return
	}
	scope := m.marshal(nil, &profiles.ScopeProfiles{Scope: &common.InstrumentationScope{Name: otlpScope}})
	attributes := &resource.Resource{}
	if m.process < int64(len(m.b.processes)) {
		if pid := m.b.processes[m.process]; pid >= 0 {
			attributes.Attributes = []*common.KeyValue{{Key: otlpProcessID, Value: number(int64(pid))}}
		}
	}
	header := m.marshal(nil, &profiles.ResourceProfiles{Resource: attributes})
	within := len(scope) + len(m.profiles)
	m.resources = protowire.AppendTag(m.resources, otlpResourceProfiles, protowire.BytesType)
	m.resources = protowire.AppendVarint(m.resources, uint64(len(header)+protowire.SizeTag(otlpScopeProfiles)+protowire.SizeBytes(within)))
	m.resources = append(m.resources, header...)
	m.resources = protowire.AppendTag(m.resources, otlpScopeProfiles, protowire.BytesType)
	m.resources = protowire.AppendVarint(m.resources, uint64(within))
	m.resources = append(append(m.resources, scope...), m.profiles...)
	m.profiles, m.process = m.profiles[:0], -1
}

func number(n int64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
}

// addSample adds a sample to the current profile.
func (m *otlpMessage) addSample(s *otlpSum) {
	m.sample.StackIndex = m.stackOf(s)
	m.sample.AttributeIndices = m.attributesOf(m.sample.AttributeIndices[:0], m.b.groups[s.group].attributes)
	m.sample.Values[0] = s.sum
	m.samples = m.marshal(m.samples, &m.profile)
}

// valueType is the type of a value. It adds the texts of the type, and of its period, to the
// message.
func (m *otlpMessage) valueType(value int32) *profiles.ValueType {
	r := m.b.r
	v := &r.values[value]
	if weight := r.valueOf[v.event+1]; int(value) != weight && m.b.periods[weight] > 0 {
		m.valueType(int32(weight)) //nolint:gosec // there are few values
	}
	return &profiles.ValueType{TypeStrindex: m.string(oneLine(v.name)), UnitStrindex: m.string(oneLine(v.unit))}
}

func (m *otlpMessage) string(s string) int32 {
	if i, ok := m.strings.index[s]; ok {
		return i
	}
	return put(m, &m.strings, s, &profiles.ProfilesDictionary{StringTable: []string{s}})
}

// attributesOf appends the indices of attributes.
func (m *otlpMessage) attributesOf(list []int32, attributes []uint32) []int32 {
	for _, n := range attributes {
		i, ok := m.attributes.index[n]
		if !ok {
			i = m.addAttribute(n)
		}
		list = append(list, i)
	}
	return list
}

func (m *otlpMessage) addAttribute(n uint32) int32 {
	a := &m.b.attributes[n]
	out := &profiles.KeyValueAndUnit{KeyStrindex: m.string(a.key)}
	if a.isNumber {
		out.Value = number(a.number)
	} else {
		out.Value = &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: a.text}}
	}
	return put(m, &m.attributes, n, &profiles.ProfilesDictionary{AttributeTable: []*profiles.KeyValueAndUnit{out}})
}

// stackOf is the index of a sample's stack; 0 for a stack without frames.
func (m *otlpMessage) stackOf(s *otlpSum) int32 {
	if i, ok := m.stacks.index[s.stack]; ok {
		return i
	}
	stacks := m.b.r.p.Stacks
	m.stack.LocationIndices = m.stack.LocationIndices[:0]
	for n := s.index; n != 0; n = stacks[n].Caller {
		m.stack.LocationIndices = append(m.stack.LocationIndices, m.location(m.b.stacks.location[stacks[n].Frame]))
	}
	m.dictionary.StackTable = append(m.dictionary.StackTable[:0], &m.stack)
	return put(m, &m.stacks, s.stack, &m.dictionary)
}

func (m *otlpMessage) location(n uint32) int32 {
	if i, ok := m.locations.index[n]; ok {
		return i
	}
	l := &m.b.locations[n]
	out := &profiles.Location{Address: l.address, MappingIndex: m.mapping(l.mapping), AttributeIndices: m.attributesOf(nil, l.attributes)}
	for i := range l.lines {
		line := &l.lines[i]
		out.Lines = append(out.Lines, &profiles.Line{
			FunctionIndex: m.function(line.Function), Line: max(line.Line, 0), Column: max(line.Column, 0),
		})
	}
	return put(m, &m.locations, n, &profiles.ProfilesDictionary{LocationTable: []*profiles.Location{out}})
}

func (m *otlpMessage) mapping(n uint32) int32 {
	if i, ok := m.mappings.index[n]; ok {
		return i
	}
	mapping := &m.b.mappings[n]
	out := &profiles.Mapping{MemoryStart: mapping.start, MemoryLimit: mapping.limit, FileOffset: mapping.offset, FilenameStrindex: m.string(mapping.file)}
	if mapping.buildID != 0 {
		out.AttributeIndices = m.attributesOf(nil, []uint32{mapping.buildID})
	}
	return put(m, &m.mappings, n, &profiles.ProfilesDictionary{MappingTable: []*profiles.Mapping{out}})
}

func (m *otlpMessage) function(f *profile.Function) int32 {
	n := uint32(f.ID) //nolint:gosec // counted from 1
	if i, ok := m.functions.index[n]; ok {
		return i
	}
	out := &profiles.Function{
		NameStrindex: m.string(f.Name), SystemNameStrindex: m.string(f.SystemName), FilenameStrindex: m.string(f.Filename),
		StartLine: max(f.StartLine, 0),
	}
	return put(m, &m.functions, n, &profiles.ProfilesDictionary{FunctionTable: []*profiles.Function{out}})
}
