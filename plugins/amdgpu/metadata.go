// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

// MetadataNote is the type of the notes of owner MetadataOwner that contain
// the metadata of code objects from version 3 on ("Code Object Metadata").
const (
	MetadataOwner = "AMDGPU"
	MetadataNote  = 32 // NT_AMDGPU_METADATA
)

// Bounds on metadata. The largest libraries have some ten thousand kernels with
// a hundred values each; a value of one byte takes a hundred in memory.
const (
	maxMetadata       = 64 << 20 // bytes
	maxMetadataValues = 1 << 22
	maxMetadataDepth  = 16
)

// Map is a map of metadata, in the order of the note.
type Map []Member

// Member is a member of a Map. Its value is nil, a bool, an int64, a uint64
// where that does not fit, a float64, a string, a []byte, a []any or a Map.
type Member struct {
	Name  string
	Value any
}

// Get returns the value of a member; nil where there is none.
func (m Map) Get(name string) any {
	for i := range m {
		if m[i].Name == name {
			return m[i].Value
		}
	}
	return nil
}

// Members yields the members in their order.
func (m Map) Members() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := range m {
			if !yield(m[i].Name, m[i].Value) {
				return
			}
		}
	}
}

// MarshalJSON writes an object with the members in their order.
func (m Map) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m[i].Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m[i].Value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// DecodeMetadata decodes the data of a metadata note: one MessagePack map whose
// keys are strings. The result does not alias data.
func DecodeMetadata(data []byte) (Map, error) {
	if len(data) > maxMetadata {
		return nil, fmt.Errorf("metadata of %d bytes, expected at most %d", len(data), maxMetadata)
	}
	d := metadataDecoder{all: data, rest: data}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	m, ok := v.(Map)
	switch {
	case !ok:
		return nil, fmt.Errorf("offset 0x0: expected a map")
	case len(d.rest) > 0:
		return nil, d.fail(fmt.Errorf("%d bytes behind the map, expected none", len(d.rest)))
	}
	return m, nil
}

type metadataDecoder struct {
	all, rest []byte
	values    int
}

// fail returns an error at the next byte.
func (d *metadataDecoder) fail(err error) error {
	return fmt.Errorf("offset %#x: %w", len(d.all)-len(d.rest), err)
}

func (d *metadataDecoder) value(depth int) (v any, err error) {
	if d.values++; d.values > maxMetadataValues {
		return nil, d.fail(fmt.Errorf("more than %d values", maxMetadataValues))
	}
	if len(d.rest) == 0 {
		return nil, d.fail(fmt.Errorf("no bytes left, expected a value"))
	}
	rest := d.rest
	switch t := msgp.NextType(d.rest); t {
	case msgp.MapType, msgp.ArrayType:
		if depth == maxMetadataDepth {
			return nil, d.fail(fmt.Errorf("values nested more than %d deep", maxMetadataDepth))
		}
		if t == msgp.MapType {
			return d.members(depth)
		}
		return d.elements(depth)
	case msgp.StrType:
		v, rest, err = d.text()
	case msgp.BoolType:
		v, rest, err = msgp.ReadBoolBytes(d.rest)
	case msgp.IntType:
		v, rest, err = msgp.ReadInt64Bytes(d.rest)
	case msgp.UintType:
		var n uint64
		n, rest, err = msgp.ReadUint64Bytes(d.rest)
		if v = n; n <= 1<<63-1 {
			v = int64(n)
		}
	case msgp.Float32Type, msgp.Float64Type:
		var f float64
		if f, rest, err = msgp.ReadFloat64Bytes(d.rest); err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			err = fmt.Errorf("%v, expected a finite number", f)
		}
		v = f
	case msgp.BinType:
		v, rest, err = msgp.ReadBytesBytes(d.rest, nil)
	case msgp.NilType:
		rest, err = msgp.ReadNilBytes(d.rest)
	default:
		err = fmt.Errorf("a value of MessagePack type %s, expected none such in metadata", t)
	}
	if err != nil {
		return nil, d.fail(err)
	}
	d.rest = rest
	return v, nil
}

func (d *metadataDecoder) text() (string, []byte, error) {
	b, rest, err := msgp.ReadStringZC(d.rest)
	if err == nil && !utf8.Valid(b) {
		err = fmt.Errorf("a string that is no UTF-8: %.64q", b)
	}
	return string(b), rest, err
}

func (d *metadataDecoder) members(depth int) (any, error) {
	n, rest, err := msgp.ReadMapHeaderBytes(d.rest)
	if err != nil {
		return nil, d.fail(err)
	}
	d.rest = rest
	m := Map{}
	for range n {
		if d.values++; d.values > maxMetadataValues {
			return nil, d.fail(fmt.Errorf("more than %d values", maxMetadataValues))
		}
		name, rest, err := d.text()
		if err != nil {
			return nil, d.fail(fmt.Errorf("key of a map: %w", err))
		}
		d.rest = rest
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		m = append(m, Member{name, v})
	}
	return m, nil
}

func (d *metadataDecoder) elements(depth int) (any, error) {
	n, rest, err := msgp.ReadArrayHeaderBytes(d.rest)
	if err != nil {
		return nil, d.fail(err)
	}
	d.rest = rest
	list := []any{}
	for range n {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// kernel is a kernel of the metadata.
type kernel struct {
	name   string
	symbol string // of the kernel descriptor
	lanes  uint32 // .wavefront_size; 0: not given
}

// kernelsOf returns the kernels that metadata lists ("Code Object V3
// Metadata", amdhsa.kernels).
func kernelsOf(m Map) []kernel {
	list, _ := m.Get("amdhsa.kernels").([]any)
	var kernels []kernel
	for _, v := range list {
		members, ok := v.(Map)
		if !ok {
			continue
		}
		var k kernel
		k.name, _ = members.Get(".name").(string)
		k.symbol, _ = members.Get(".symbol").(string)
		if n, ok := members.Get(".wavefront_size").(int64); ok && (n == wave32 || n == wave64) {
			k.lanes = uint32(n)
		}
		kernels = append(kernels, k)
	}
	return kernels
}
