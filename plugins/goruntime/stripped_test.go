// SPDX-License-Identifier: Apache-2.0

package goruntime

import (
	"context"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// structs reads the sizes of structs and the places of their members, by the standard library.
func structs(t *testing.T, exe string) map[string]*dwarf.StructType {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*dwarf.StructType{}
	r := d.Reader()
	for e, err := r.Next(); e != nil && err == nil; e, err = r.Next() {
		name, _ := e.Val(dwarf.AttrName).(string)
		if e.Tag != dwarf.TagStructType || name != "runtime.g" && name != "runtime.m" {
			continue
		}
		typ, err := d.Type(e.Offset)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = typ.(*dwarf.StructType)
	}
	return found
}

// place returns the place of a member by its path.
func place(s *dwarf.StructType, path string) (f field) {
	for name := range strings.SplitSeq(path, ".") {
		if s == nil {
			return field{}
		}
		inside := s
		s = nil
		for _, m := range inside.Field {
			if m.Name != name {
				continue
			}
			f = field{f.offset + uint64(m.ByteOffset), uint64(m.Type.Size())}
			typ := m.Type
			for {
				def, isDef := typ.(*dwarf.TypedefType)
				if !isDef {
					break
				}
				typ = def.Type
			}
			s, _ = typ.(*dwarf.StructType)
			break
		}
	}
	return f
}

// TestKnownLayoutIsThatOfDWARF compares the layout known of this version of Go with its DWARF.
func TestKnownLayoutIsThatOfDWARF(t *testing.T) {
	oracle.Tools(t, "go")
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { select {} }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "program")
	oracle.With{Env: []string{"CGO_ENABLED=0", "GOFLAGS="}}.Run(t, "go", "build", "-o", exe, source)
	name, _, _ := strings.Cut(runtime.Version(), " ")
	got, err := layoutOf(name)
	if err != nil {
		t.Fatal(err)
	}
	all := structs(t, exe)
	for _, s := range []struct {
		name    string
		size    uint64
		members []wanted
	}{{"runtime.g", got.g.size, got.g.wanted()}, {"runtime.m", got.m.size, got.m.wanted()}} {
		typ := all[s.name]
		if typ == nil {
			t.Fatalf("the program has no %s", s.name)
		}
		for _, w := range s.members {
			if diff := cmp.Diff(place(typ, w.path), *w.to, cmp.AllowUnexported(field{})); diff != "" {
				t.Errorf("%s.%s (-DWARF +known):\n%s", s.name, w.path, diff)
			}
		}
		if s.size > uint64(typ.Size()) {
			t.Errorf("%s has %d bytes, known are %d", s.name, typ.Size(), s.size)
		}
	}
}

func TestVersionsWithoutKnownLayout(t *testing.T) {
	for name, isKnown := range map[string]bool{"go1.17.13": false, "go1.18": true, "go1.22.1": true, "go1.27rc1": true, "go1.31.2": true} {
		if l, err := layoutOf(name); (err == nil) != isKnown || (l != nil) != isKnown {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// oneSection is an engine with a section.
type oneSection struct {
	sdk.RuntimeEngine
	data []byte
}

func (e oneSection) ReadSection(context.Context, uint64, string) ([]byte, error) {
	if e.data == nil {
		return nil, errors.New("no section")
	}
	return e.data, nil
}

func TestObjectsThatDoNotSayTheirVersion(t *testing.T) {
	head := "\xff Go buildinf:\x08\x02" + strings.Repeat("\x00", 16)
	for data, want := range map[string]string{"": "", "short": "", head: "", head + "\x10go1.2": "", head + "\x05xx1.2": "", head + "\x06go1.26": "go1.26"} {
		r := &reader{process: &process{request: &sdk.OpenRuntimeRequest{}}, ctx: t.Context(), engine: oneSection{data: []byte(data)}}
		if got, err := r.goVersion(); got != want || (err != nil) != (want == "") || err != nil && !errors.Is(err, errNoVersion) {
			t.Errorf("%q: %q, %v, expected %q", data, got, err, want)
		}
	}
}

func TestElementsThatShareMemory(t *testing.T) {
	for _, c := range []struct{ list, want []uint64 }{
		{nil, nil},
		{[]uint64{0x300, 0x100, 0x200}, []uint64{0x300, 0x100, 0x200}},
		{[]uint64{0x200, 0x100, 0x200}, []uint64{0x200, 0x100}},
		{[]uint64{0x208, 0x200, 0x1f8}, []uint64{0x1f8}},
		{[]uint64{0, ^uint64(0), ^uint64(0xff), 1}, []uint64{1}},
	} {
		if diff := cmp.Diff(c.want, apart(c.list, 0x100)); diff != "" {
			t.Errorf("%#x (-want +got):\n%s", c.list, diff)
		}
	}
}
