// SPDX-License-Identifier: Apache-2.0

package otlpjson

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// identifiers are the fields that are in hexadecimal.
var identifiers = map[protoreflect.Name]bool{"profile_id": true, "trace_id": true, "span_id": true}

// filler sets all fields of messages, each to another value.
type filler struct {
	next    int
	renamed []string // bytes in base64, each with the same ones in hexadecimal
}

func (f *filler) fill(m protoreflect.Message, depth int, kind protoreflect.Name) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i)
		if d.ContainingOneof() != nil && d.Name() != kind {
			continue // a value is of one kind
		}
		if d.IsList() {
			for range 2 {
				list := m.Mutable(d).List()
				list.Append(f.value(d, list.NewElement(), depth))
			}
			continue
		}
		m.Set(d, f.value(d, m.NewField(d), depth))
	}
}

// value returns a value of a field; empty is one that may be filled.
func (f *filler) value(d protoreflect.FieldDescriptor, empty protoreflect.Value, depth int) protoreflect.Value {
	f.next++
	switch d.Kind() {
	case protoreflect.MessageKind:
		if depth < 8 {
			f.fill(empty.Message(), depth+1, oneofs[f.next%len(oneofs)])
		}
		return empty
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprintf("text %d \u00fc", f.next))
	case protoreflect.BytesKind:
		b := fmt.Appendf(nil, "bytes \xff\xfe%d", f.next)
		if identifiers[d.Name()] {
			f.renamed = append(f.renamed, base64.StdEncoding.EncodeToString(b), hex.EncodeToString(b))
		}
		return protoreflect.ValueOfBytes(b)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(f.next) + 0.25)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(-f.next))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(-f.next) << 40)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(f.next))
	}
	return protoreflect.ValueOfUint64(uint64(f.next) << 40)
}

// oneofs are the kinds of a value.
var oneofs = []protoreflect.Name{
	"string_value", "bool_value", "int_value", "double_value", "bytes_value", "string_value_strindex", "array_value", "kvlist_value",
}

// TestEveryFieldIsConverted compares requests in which every field is set, as JSON, with themselves.
func TestEveryFieldIsConverted(t *testing.T) {
	for begin := range oneofs {
		f := filler{next: begin}
		want := &profiles.ProfilesData{}
		f.fill(want.ProtoReflect(), 0, "")
		text, err := protojson.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.NewReplacer(f.renamed...).Replace(string(text)))
		b, err := Request(text)
		if err != nil {
			t.Fatal(err)
		}
		got := &profiles.ProfilesData{}
		if err := proto.Unmarshal(b, got); err != nil || !proto.Equal(got, want) {
			t.Fatalf("%v:\n%v\nexpected\n%v", err, got, want)
		}
	}
}

// TestJSONThatIsNoRequest has each place named where it is wrong.
func TestJSONThatIsNoRequest(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "unexpected EOF",
		"7":                                  "expected an object",
		"[]":                                 "expected an object",
		"{}{}":                               "expected nothing behind the request",
		`{"dictionary":[]}`:                  "dictionary: expected an object",
		`{"resourceProfiles":{}}`:            "resourceProfiles: expected a list",
		`{"resourceProfiles":[7]}`:           "expected an object",
		`{"dictionary":{"stringTable":[7]}}`: "stringTable: expected a string",
		`{"dictionary":{"stringTable":["a"`:  "unexpected EOF",
		`{"dictionary":{"stackTable":[{"locationIndices":[""]}]}}`:         `locationIndices: "" is no number`,
		`{"dictionary":{"stackTable":[{"locationIndices":[4294967296]}]}}`: `"4294967296" is no number`,
		`{"dictionary":{"stackTable":[{"locationIndices":[1.5]}]}}`:        `"1.5" is no number`,
		`{"dictionary":{"linkTable":[{"traceId":"xy"}]}}`:                  "traceId: expected bytes in hexadecimal",
		`{"dictionary":{"linkTable":[{"traceId":7}]}}`:                     "traceId: expected bytes in hexadecimal",
		nested(maxDepth): "nested more than 64 deep",
		`{"unknown":` + strings.Repeat("[", 20_000): "exceeded max depth",
	} {
		if _, err := Request([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, expected %q", text, err, want)
		}
	}
	for _, text := range []string{"{}", "null", `{"later":{"a":[1,{}]},"resourceProfiles":null,"dictionary":null}`, nested(20)} {
		if _, err := Request([]byte(text)); err != nil {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

// nested is a request with a value of lists in lists.
func nested(depth int) string {
	return `{"dictionary":{"attributeTable":[{"value":` + strings.Repeat(`{"arrayValue":{"values":[`, depth) + strings.Repeat("]}}", depth) + "}]}}"
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(nested(3)))
	f.Add([]byte(`{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[{"values":[1,"-2"],"timestampsUnixNano":["3"]}]}]}]}],"dictionary":{"stringTable":["","a"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Request(text)
		if err != nil {
			return
		}
		if len(b) > 5*len(text) {
			t.Errorf("%d bytes of %d", len(b), len(text))
		}
		d := &profiles.ProfilesData{}
		if err := proto.Unmarshal(b, d); err != nil && !strings.Contains(err.Error(), "UTF-8") {
			t.Error(err)
		}
	})
}
