// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
)

func TestMetadataKeepsEveryValueInItsOrder(t *testing.T) {
	b := msgp.AppendMapHeader(nil, 9)
	add := func(name string, value func([]byte) []byte) { b = value(msgp.AppendString(b, name)) }
	add("z", func(b []byte) []byte { return msgp.AppendString(b, "text") })
	add("a", func(b []byte) []byte { return msgp.AppendInt64(b, -5) })
	add("large", func(b []byte) []byte { return msgp.AppendUint64(b, math.MaxUint64) })
	add("small", func(b []byte) []byte { return msgp.AppendUint64(b, 1000) })
	add("yes", func(b []byte) []byte { return msgp.AppendBool(b, true) })
	add("f", func(b []byte) []byte { return msgp.AppendFloat32(b, 0.5) })
	add("none", msgp.AppendNil)
	add("list", func(b []byte) []byte {
		return msgp.AppendInt(msgp.AppendMapHeader(msgp.AppendArrayHeader(b, 2), 0), 1)
	})
	add("bytes", func(b []byte) []byte { return msgp.AppendBytes(b, []byte{1, 2}) })
	m, err := DecodeMetadata(b)
	if err != nil {
		t.Fatal(err)
	}
	want := Map{
		{"z", "text"}, {"a", int64(-5)}, {"large", uint64(math.MaxUint64)}, {"small", int64(1000)}, {"yes", true},
		{"f", 0.5}, {"none", nil}, {"list", []any{Map{}, int64(1)}}, {"bytes", []byte{1, 2}},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(m)
	if want := `{"z":"text","a":-5,"large":18446744073709551615,"small":1000,"yes":true,"f":0.5,"none":null,"list":[{},1],"bytes":"AQI="}`; err != nil || string(text) != want {
		t.Errorf("%s %v, want %s", text, err, want)
	}
	var names []string
	for name := range m.Members() {
		names = append(names, name)
	}
	if strings.Join(names, " ") != "z a large small yes f none list bytes" || m.Get("a") != int64(-5) || m.Get("b") != nil {
		t.Errorf("members %q", names)
	}
}

func TestMetadataThatIsRefused(t *testing.T) {
	nested := []byte{0x81, 0xa1, 'a'}
	for range maxMetadataDepth {
		nested = append(nested, 0x91)
	}
	many := append([]byte{0x81, 0xa1, 'a', 0xdd, 0x00, 0x7f, 0xff, 0xff}, make([]byte, 1<<23)...)
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"nothing", "offset 0x0: no bytes left", nil},
		{"no map", "offset 0x0: expected a map", []byte{0x91, 0x01}},
		{"bytes behind it", "offset 0x1: 2 bytes behind the map", []byte{0x80, 0, 0}},
		{"a key that is a number", "offset 0x1: key of a map", []byte{0x81, 0x01, 0x02}},
		{"a key of no UTF-8", "no UTF-8", []byte{0x81, 0xa1, 0xff, 0x02}},
		{"a value that is missing", "offset 0x3: no bytes left", []byte{0x81, 0xa1, 'a'}},
		{"a string that is cut", "offset 0x3", []byte{0x81, 0xa1, 'a', 0xd9, 0xff, 'x'}},
		{"an extension", "MessagePack type", []byte{0x81, 0xa1, 'a', 0xd4, 0x05, 0x01}},
		{"a byte that begins nothing", "MessagePack type", []byte{0x81, 0xa1, 'a', 0xc1}},
		{"a map of four billion members", "offset 0x5: key of a map", []byte{0xdf, 0xff, 0xff, 0xff, 0xff}},
		{"a list of four billion elements", "offset 0x8: no bytes left", []byte{0x81, 0xa1, 'a', 0xdd, 0xff, 0xff, 0xff, 0xff}},
		{"a number that is none", "NaN, expected a finite number", []byte{0x81, 0xa1, 'a', 0xca, 0x7f, 0xc0, 0, 0}},
		{"values nested deep", "nested more than 16 deep", nested},
		{"millions of values", "more than 4194304 values", many},
		{"many megabytes", "expected at most 67108864", make([]byte, maxMetadata+1)},
	} {
		m, err := DecodeMetadata(c.data)
		if m != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v %v, want %q", c.name, m, err, c.want)
		}
	}
}

// FuzzMetadata decodes any bytes; what can be decoded can be written as JSON.
func FuzzMetadata(f *testing.F) {
	for _, file := range []string{"testdata/amd_k.gfx1100.co", "testdata/amd_h.gfx90a.co"} {
		data, ok := metadataNote(readObject(f, file).data[".note"])
		if !ok {
			f.Fatal("no metadata")
		}
		f.Add(data)
	}
	f.Add([]byte{0x81, 0xa1, 'a', 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMetadata(b)
		if (m == nil) != (err != nil) {
			t.Errorf("%v %v", m, err)
		}
		if err != nil {
			return
		}
		if _, err := json.Marshal(m); err != nil {
			t.Error(err)
		}
		kernelsOf(m)
	})
}
