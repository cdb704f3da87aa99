// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// describe writes a scope with its variables: "mix(a int, b int)".
func describe(t *testing.T, s Scope) string {
	t.Helper()
	var variables []string
	for v, err := range s.Variables() {
		if err != nil {
			t.Fatal(err)
		}
		typ, err := v.Type()
		if err != nil {
			t.Fatal(err)
		}
		name := "void"
		if !typ.IsZero() {
			name = typ.Name()
		}
		variables = append(variables, v.Name()+" "+name)
	}
	kind := s.Name()
	if s.Tag() == dw.TagLexicalBlock {
		kind = "{}"
	}
	return kind + "(" + strings.Join(variables, ", ") + ")"
}

func TestScopesAreThoseAtAnAddressWithTheirVariables(t *testing.T) {
	tests := []struct {
		address uint64
		want    string
	}{
		{0x4000f3, "next(by int, this ) < {}(i int) < work(v int, c Counter, sum int)"},
		{0x4000b5, "twice(v int) < mix(b int, a int) < c_name(v int)"},
		{0x4000d0, "{}(i int) < work(v int, c Counter, sum int)"},
		{0x400113, ""},
	}
	for _, file := range []string{"small5", "small4"} {
		r := openReader(t, "testdata/"+file)
		for _, test := range tests {
			scopes, err := r.Scopes(test.address)
			if err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, s := range scopes {
				parts = append(parts, describe(t, s))
			}
			if got := strings.Join(parts, " < "); got != test.want {
				t.Errorf("%s, %#x: %s\nwant %s", file, test.address, got, test.want)
			}
		}
	}
}

// Scopes and frames are found in different ways.
func TestScopesEqualFramesEverywhere(t *testing.T) {
	for _, s := range subjects {
		if !slices.Contains([]string{"gcc 5", "gcc 4", "gcc split 4", "gcc package 5", "clang split 5", "gcc dwz shared 4", "clang 4", "gcc type units 5"}, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			whole, path := s.build(t)
			r := openMapped(t, path)
			located, blocks := 0, 0
			for _, a := range textAddresses(t, whole, 4000) {
				frames, err := r.Frames(nil, a)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, f := range frames {
					if f.Name != "" {
						want = append(want, f.Name)
					}
				}
				scopes, err := r.Scopes(a)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, s := range scopes {
					if s.Tag() == dw.TagLexicalBlock {
						blocks++
					} else if s.Name() != "" {
						got = append(got, s.Name())
					}
					located += locate(t, s, a)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%#x: scopes %q, frames %q", a, got, want)
				}
			}
			if located < 100 || blocks == 0 && strings.HasPrefix(s.name, "gcc") {
				t.Errorf("only %d variables have a location, %d blocks", located, blocks)
			}
			t.Logf("%d locations", located)
		})
	}
}

// locate reads the variables of a scope, and returns how many are anywhere.
func locate(t *testing.T, s Scope, address uint64) (located int) {
	t.Helper()
	for v, err := range s.Variables() {
		if err != nil {
			t.Fatal(err)
		}
		l, ok, err := v.Location(dw.AttrLocation)
		if err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		if !ok {
			continue
		}
		expressions, err := l.At(address)
		if err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		located += len(expressions)
	}
	return located
}

func TestCallSitesAreFoundByReturnAddress(t *testing.T) {
	for _, s := range subjects {
		if s.name != "gcc 5" && s.name != "gcc 4" && s.name != "gcc split 5" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			_, path := s.build(t)
			r := openMapped(t, path)
			found := 0
			for _, u := range r.main.everyUnit() {
				b, err := u.open()
				if err != nil {
					t.Fatal(err)
				}
				if b, err = r.splitOf(b); err != nil {
					t.Fatal(err)
				}
				w := b.walk(b.first)
				for w.off < b.end {
					a, entry, err := w.next()
					if err != nil {
						t.Fatal(err)
					}
					if a == nil {
						continue
					}
					if a.tag == dw.TagCallSite || a.tag == dw.TagGNUCallSite {
						e := Entry{b, entry, a}
						attr := dw.AttrCallReturnPC
						if a.tag == dw.TagGNUCallSite {
							attr = dw.AttrLowPC
						}
						pc, ok, err := e.Address(attr)
						if err != nil || !ok {
							t.Fatalf("%v: no return address, error %v", e, err)
						}
						site, err := r.CallSite(pc)
						if err != nil || site.Offset() != entry {
							t.Errorf("%#x: %v, error %v, want %v", pc, site, err, e)
						}
						found++
					}
					if err := w.pass(a, entry); err != nil {
						t.Fatal(err)
					}
				}
			}
			if found < 5 {
				t.Errorf("only %d call sites", found)
			}
		})
	}
	r := openReader(t, "testdata/small5")
	for _, pc := range []uint64{0, 0x4000b1, ^uint64(0)} {
		if site, err := r.CallSite(pc); err != nil || !site.IsZero() {
			t.Errorf("%#x: %v, error %v, want none", pc, site, err)
		}
	}
}

const (
	tagBase, tagVariable                    = dw.TagBaseType, dw.TagVariable
	atEncoding, atByteSize, atLoc, atFrame  = dw.AttrEncoding, dw.AttrByteSize, dw.AttrLocation, dw.AttrFrameBase
	atLanes, atLanePC, atActive, atVector   = dw.AttrLLVMLanes, dw.AttrLLVMLanePC, dw.AttrLLVMActiveLane, dw.AttrLLVMVectorSize
	atAugmentation, atMemorySpace, fExprloc = dw.AttrLLVMAugmentation, dw.AttrLLVMMemorySpace, dw.FormExprloc
)

func TestAttributesOfTheHeterogeneousExtensionAreRead(t *testing.T) {
	kernel := sub(append(at64(0x1000, 16), name("kernel"), attr{atLanes, fData1, uint64(64)},
		attr{atLanePC, fExprloc, expr{0x30}}, attr{atActive, fSec, uint64(0)}, attr{atFrame, fExprloc, expr{0x9c}})...)
	kernel.children = []die{{tagVariable, []attr{name("x"), {atMemorySpace, fData1, uint64(3)}, {atLoc, fExprloc, expr{0x91, 4}}}, nil}}
	u := unitDie(
		die{tagBase, []attr{name("float4"), {atEncoding, fData1, uint64(4)}, {atByteSize, fData1, uint64(4)}, {atVector, fData1, uint64(4)}}, nil},
		kernel)
	u.attrs = append(u.attrs, attr{atAugmentation, fString, "[amd:v0.0]"})
	r := handmade(t, sections{}, u)
	r.main.loc.make(func() ([]byte, error) {
		// [0x1000, 0x1008): DW_OP_lit1, relative to the unit's base.
		return append(append(words(8, 0, 8), 1, 0, 0x31), words(8, 0, 0)...), nil
	})
	scopes, err := r.Scopes(0x1004)
	if err != nil || len(scopes) != 1 {
		t.Fatalf("scopes %v, error %v, want one", scopes, err)
	}
	k := scopes[0]
	if n, ok, err := k.Number(dw.AttrLLVMLanes); n != 64 || !ok || err != nil {
		t.Errorf("lanes %d, %v, error %v, want 64", n, ok, err)
	}
	for _, test := range []struct {
		attr    dw.Attr
		address uint64
		want    string
	}{
		{dw.AttrLLVMLanePC, 0x1004, "[30]"},
		{dw.AttrLLVMActiveLane, 0x1004, "[31]"},
		{dw.AttrLLVMActiveLane, 0x1009, "[]"},
		{dw.AttrFrameBase, 0x1009, "[9c]"},
	} {
		l, ok, err := k.Location(test.attr)
		if !ok || err != nil {
			t.Fatalf("%v: %v, error %v", test.attr, ok, err)
		}
		got, err := l.At(test.address)
		if err != nil || fmt.Sprintf("%x", got) != test.want {
			t.Errorf("%v at %#x: %x, error %v, want %s", test.attr, test.address, got, err, test.want)
		}
	}
	if _, ok, err := k.Location(dw.AttrLLVMIterations); ok || err != nil {
		t.Errorf("the number of lanes is a location: %v, error %v", ok, err)
	}
	for v := range k.Variables() {
		if n, ok, err := v.Number(dw.AttrLLVMMemorySpace); v.Name() != "x" || n != 3 || !ok || err != nil {
			t.Errorf("%s: memory space %d, %v, error %v, want x, 3", v.Name(), n, ok, err)
		}
	}
	if got := k.Unit().Augmentation(); got != "[amd:v0.0]" {
		t.Errorf("augmentation %q", got)
	}
	root, err := k.Unit().Root()
	if err != nil {
		t.Fatal(err)
	}
	for c := range root.Children() {
		if c.Tag() != dw.TagBaseType {
			continue
		}
		got, err := k.Unit().BaseType(c.Offset() - k.Unit().Offset())
		want := locexpr.BaseType{Name: "float4", Encoding: locexpr.EncodingFloat, Bits: 32, Elements: 4}
		if err != nil || *got != want {
			t.Errorf("base type %+v, error %v, want %+v", got, err, want)
		}
	}
	for _, off := range []uint64{0, 1, k.Offset() - k.Unit().Offset(), 1 << 40} {
		if got, err := k.Unit().BaseType(off); err == nil {
			t.Errorf("base type at %#x: %+v, want an error", off, got)
		}
	}
}

func TestEmbeddedSourceIsTheFilesText(t *testing.T) {
	for _, s := range subjects {
		if s.name != "clang embedded source" {
			continue
		}
		_, path := s.build(t)
		r := openMapped(t, path)
		seen := map[string]bool{}
		for _, a := range textAddresses(t, path, 4000) {
			frames, err := r.Frames(nil, a)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				if f.File == "" || seen[f.File] {
					continue
				}
				seen[f.File] = true
				want, err := os.ReadFile(f.File)
				if err != nil {
					t.Fatal(err)
				}
				if f.Source != string(want) {
					t.Errorf("%s: %d bytes of source, want the file's %d", f.File, len(f.Source), len(want))
				}
			}
		}
		if !slices.ContainsFunc([]string{"shapes.cpp", "shapes.h"}, func(name string) bool {
			return slices.ContainsFunc(keys(seen), func(path string) bool { return filepath.Base(path) == name })
		}) {
			t.Errorf("files %v", keys(seen))
		}
	}
}

func keys(m map[string]bool) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}
