// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/sdk"
)

// containerKernel is a kernel of a container that a test writes.
type containerKernel struct {
	name          string // with its NUL and padding
	first, second string
}

func testContainer(kernels ...containerKernel) []byte {
	var b []byte
	for _, n := range []uint32{containerMagic, 1081, 0, 12, 9, 0, uint32(len(kernels))} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	for _, k := range kernels {
		for _, n := range []int{len(k.name), len(k.first), len(k.second)} {
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		}
		b = append(b, k.name...)
		b = append(b, make([]byte, -len(k.name)&3)...)
		b = append(b, k.first+k.second...)
	}
	return b
}

func TestContainersOfDebugInformation(t *testing.T) {
	for _, c := range []struct {
		name    string
		kernels []containerKernel
		want    []sdk.NestedObject
	}{
		{"empty", nil, nil},
		{"two kernels", []containerKernel{{"alpha\x00\x00\x00", "first", ""}, {"b\x00\x00\x00", "second!", ""}},
			[]sdk.NestedObject{{Name: "alpha", Offset: 48, Size: 5}, {Name: "b", Offset: 48 + 5 + 16, Size: 7}}},
		{"a name without its padding", []containerKernel{{"alpha\x00", "first", ""}}, []sdk.NestedObject{{Name: "alpha", Offset: 48, Size: 5}}},
		{"a kernel without debug information", []containerKernel{{"a\x00\x00\x00", "", ""}, {"b\x00\x00\x00", "x", ""}},
			[]sdk.NestedObject{{Name: "b", Offset: 60, Size: 1}}},
		{"both pieces", []containerKernel{{"a\x00\x00\x00", "xy", "z"}},
			[]sdk.NestedObject{{Name: "a", Offset: 44, Size: 2}, {Name: "a", Offset: 46, Size: 1}}},
	} {
		data := testContainer(c.kernels...)
		got, err := Nested(data)
		if d := cmp.Diff(c.want, got); d != "" || err != nil || !Recognises(data) {
			t.Errorf("%s: %v\n%s", c.name, err, d)
		}
		for n := range data {
			if _, err := readContainer(data[:n]); err == nil {
				t.Errorf("%s: cut to %d of %d bytes it is read", c.name, n, len(data))
			}
		}
	}
}

func TestContainersThatAreNone(t *testing.T) {
	good := func() []byte { return testContainer(containerKernel{"alpha\x00\x00\x00", "first", "second"}) }
	set := func(at int, n uint32) []byte {
		b := good()
		binary.LittleEndian.PutUint32(b[at:], n)
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"another magic", set(0, streamMagic), "offset 0x0: magic 0xdeadd010"},
		{"too many kernels", set(24, 1<<32-1), "offset 0x18: 4294967295 kernels, expected at most 2 in 59 bytes"},
		{"a kernel that is not there", set(24, 2), "the header of kernel 1 is not in the 59 bytes"},
		{"fewer kernels", set(24, 0), "offset 0x1c: 31 bytes after 0 kernels, expected the end"},
		{"a long name", set(28, 1<<32-1), "kernel 0 has a name of 4294967295 bytes"},
		{"a name that reaches into what follows", set(28, 12), "kernel 0 has a name of 12 bytes"},
		{"no name", set(28, 0), "the name of kernel 0 is \"\""},
		{"a name without a NUL", set(28, 5), "the name of kernel 0 is \"alpha\""},
		{"a name that is no text", set(40, 0xff), "the name of kernel 0 is \"\\xff\""},
		{"a large piece", set(32, 1<<32-1), "debug information of 4294967295 and 6"},
		{"a large second piece", set(36, 7), "debug information of 5 and 7"},
		{"a small piece", set(32, 4), "offset 0x3a: 1 bytes after 1 kernels"},
		{"more than it says", append(good(), 0), "1 bytes after 1 kernels"},
	} {
		if _, err := Nested(c.data); err == nil && c.name != "another magic" || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
		if _, err := readContainer(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
	if Recognises([]byte{0x10, 0xd0, 0xad}) || Recognises(nil) || !Recognises([]byte{0x10, 0xd0, 0xad, 0xde}) {
		t.Error("what is recognised")
	}
}

func FuzzContainer(f *testing.F) {
	f.Add(testContainer())
	f.Add(testContainer(containerKernel{"a\x00", "1", "2"}, containerKernel{"b\x00\x00\x00", "", "22"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := readContainer(data)
		if err != nil {
			return
		}
		end := uint64(containerHeader)
		for _, n := range list {
			if n.Offset < end || n.Offset+n.Size > uint64(len(data)) || n.Size == 0 || n.Name == "" {
				t.Errorf("%+v after %#x, of %d bytes", n, end, len(data))
			}
			end = n.Offset + n.Size
		}
		if err := (&sdk.OpenObjectAnswer{Nested: list}).Validate(Description(), nil); err != nil {
			t.Error(err)
		}
	})
}
