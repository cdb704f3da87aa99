// SPDX-License-Identifier: Apache-2.0

package typelayout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

func readTypes(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "types.elf"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reader opens the debug information of a file; nil where it is not readable.
func reader(file []byte) *dwarf.Reader {
	o, err := object.New("types.elf", file)
	if err != nil {
		return nil
	}
	d, err := dwarf.New(o)
	if err != nil {
		return nil
	}
	return d
}

var members = []string{"first", "second", "small", "tag", "wide", "saved", "saved.sp", "next"}

func TestLayoutsOfTypes(t *testing.T) {
	want := sdk.TypeLayout{Size: 64, Members: []sdk.MemberPlace{
		{Offset: 0, Size: 8}, {Offset: 8, Size: 4}, {Offset: 16, Size: 4}, {Offset: 16, Size: 1}, {Offset: 24, Size: 8},
		{Offset: 32, Size: 16}, {Offset: 40, Size: 8}, {Offset: 48, Size: 8},
	}}
	d := reader(readTypes(t))
	for _, typ := range []sdk.RuntimeType{
		{Name: "thread", Members: members}, {Name: "thread_alias", Members: members}, {Unit: "types.cc", Name: "thread", Members: members},
	} {
		if diff := cmp.Diff([]sdk.TypeLayout{want}, Of(d, []sdk.RuntimeType{typ})); diff != "" {
			t.Errorf("%s in %q: -want +got:\n%s", typ.Name, typ.Unit, diff)
		}
	}
}

func TestTypesThatAreNotThere(t *testing.T) {
	d := reader(readTypes(t))
	for name, types := range map[string]sdk.RuntimeType{
		"no type declared":        {Name: "declared"},
		"in a unit /other.cc":     {Unit: "/other.cc", Name: "thread"},
		"thread has no member no": {Name: "thread", Members: []string{"first", "no"}},
		"expected a struct":       {Name: "thread", Members: []string{"first.second"}},
	} {
		l := Of(d, []sdk.RuntimeType{types})[0]
		if !strings.Contains(l.Problem, name) {
			t.Errorf("expected %q, found %q", name, l.Problem)
		}
	}
	if l := Of(d, []sdk.RuntimeType{{Name: "thread", Members: []string{"no", "second"}}})[0]; l.Members[0].Size != 0 || l.Members[1].Size != 4 {
		t.Errorf("the other members: %+v", l)
	}
	if l := Of(nil, []sdk.RuntimeType{{Name: "thread"}})[0]; l.Problem == "" {
		t.Error("no problem without debug information")
	}
}

func TestConstants(t *testing.T) {
	list, err := Constants(reader(readTypes(t)), []sdk.RuntimeConstants{{Prefix: "State_"}, {Unit: "types.cc", Prefix: "kind_"}, {Unit: "/other.cc", Prefix: "Other"}})
	want := []sdk.NamedConstant{{Name: "State_new", Value: 1}, {Name: "State_running", Value: 2}, {Name: "kind_a", Value: 5}, {Name: "kind_b", Value: -6}}
	if diff := cmp.Diff(want, list); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

// FuzzTypes reads layouts and constants of hostile debug information.
func FuzzTypes(f *testing.F) {
	file := readTypes(f)
	f.Add(file)
	for _, at := range []int{len(file) / 8, len(file) / 4, len(file) / 2} {
		damaged := append([]byte{}, file...)
		damaged[at] ^= 0x55
		f.Add(damaged)
	}
	f.Fuzz(func(_ *testing.T, file []byte) {
		d := reader(file)
		_ = object.Guard(func() error {
			for _, l := range Of(d, []sdk.RuntimeType{{Name: "thread", Members: members}, {Unit: "types.cc", Name: "thread_alias", Members: members}}) {
				for _, m := range l.Members {
					if m.Offset > l.Size || m.Size > l.Size-m.Offset {
						panic("a member lies outside its type")
					}
				}
			}
			_, err := Constants(d, []sdk.RuntimeConstants{{Prefix: "State_"}})
			return err
		})
	})
}
