// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// sections is an engine that has the sections of one code object.
type sections struct {
	sdk.Engine
	data map[string][]byte
}

func (s sections) ReadSection(_ context.Context, _ uint64, name string) ([]byte, error) {
	b, ok := s.data[name]
	if !ok {
		return nil, fmt.Errorf("no section %s", name)
	}
	return slices.Clone(b), nil
}

// A testObject is a code object whose sections can be changed.
type testObject struct {
	req  sdk.OpenObjectRequest
	data map[string][]byte
}

func readObject(t testing.TB, path string) *testObject {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o := &testObject{req: sdk.OpenObjectRequest{Object: 1, Path: path, Machine: uint16(f.Machine), OSABI: uint8(f.OSABI)}, data: map[string][]byte{}}
	o.req.Flags = binary.LittleEndian.Uint32(file[48:])
	for _, s := range f.Sections {
		o.req.Sections = append(o.req.Sections, sdk.SectionInfo{Name: s.Name, Type: uint32(s.Type), Flags: uint64(s.Flags), Address: s.Addr, Size: s.Size})
		if s.Type != elf.SHT_NOBITS {
			if o.data[s.Name], err = s.Data(); err != nil && s.Size > 0 {
				t.Fatal(err)
			}
		}
	}
	return o
}

func (o *testObject) open(t testing.TB) *sdk.OpenObjectAnswer {
	t.Helper()
	a, err := New().OpenObject(context.Background(), sections{data: o.data}, &o.req)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(Description(), &o.req); err != nil {
		t.Fatal(err)
	}
	return a
}

// section is the description of a section, to be changed.
func (o *testObject) section(name string) *sdk.SectionInfo {
	i := slices.IndexFunc(o.req.Sections, func(s sdk.SectionInfo) bool { return s.Name == name })
	return &o.req.Sections[i]
}

// ruleOf is the default rule of a column in an answer.
func ruleOf(a *sdk.OpenObjectAnswer, column uint64) cfi.RuleKind {
	for _, r := range a.DefaultRules {
		if r.Column == column {
			return r.Rule.Kind
		}
	}
	return cfi.Unspecified
}

func TestObjectsOfCompilers(t *testing.T) {
	for _, c := range []struct {
		file, processor string
		kernel          sdk.Function
		full            bool
	}{
		{"amd_k.gfx1100.co", "gfx1100", sdk.Function{Name: "kern", Start: 0x2200, End: 0x22f4, Lanes: 32, Kind: sdk.KernelFunction}, false},
		{"amd_h.gfx90a.co", "gfx90a", sdk.Function{Name: "_Z2hkPii", Start: 0x1800, End: 0x18ec, Lanes: 64, Kind: sdk.KernelFunction}, false},
		{"amd_h.gfx90a.cfi.co", "gfx90a", sdk.Function{Name: "_Z2hkPii", Start: 0x1800, End: 0x18ec, Lanes: 64, Kind: sdk.KernelFunction}, true},
	} {
		t.Run(c.file, func(t *testing.T) {
			a := readObject(t, "testdata/"+c.file).open(t)
			if a.Processor != c.processor || a.Dialect != userDialect || len(a.Problems) > 0 {
				t.Errorf("processor %q, dialect %q, problems %q", a.Processor, a.Dialect, a.Problems)
			}
			if diff := cmp.Diff([]sdk.Function{c.kernel}, a.Functions); diff != "" {
				t.Error(diff)
			}
			if (a.DefaultRules == nil) != c.full {
				t.Errorf("%d default rules", len(a.DefaultRules))
			}
		})
	}
}

// What functions preserve is the convention of every compiler at once: the
// guide's, and that of later ones, which preserve scalar registers in groups.
func TestClobberedRegistersAreLostWhereNothingSaysWhatAFunctionChanged(t *testing.T) {
	names := Description().Names(64)
	a := readObject(t, "testdata/amd_h.gfx90a.co").open(t)
	for kind, registers := range map[cfi.RuleKind]string{
		cfi.Undefined: "s0 s3 s4 s29 s40 s47 s56 s63 s72 s79 s88 s95 v0 v39 v48 v55 v64 v71 v240 v247 a0 a31 vcc status",
		cfi.SameValue: "s30 s31 s33 s34 s39 s48 s55 s64 s71 s80 s87 s96 s103 s104 s105 v40 v47 v56 v63 v248 v255 a32 a255 exec pc",
		cfi.ValOffset: "s32",
	} {
		for _, name := range strings.Fields(registers) {
			n, ok := names.Register(name)
			if got := ruleOf(a, n); !ok || got != kind {
				t.Errorf("%s (%d): rule %d, want %d", name, n, got, kind)
			}
		}
	}
	k := readObject(t, "testdata/amd_k.gfx1100.co").open(t)
	if got := ruleOf(k, 64); got != cfi.ValOffsetPerLane {
		t.Errorf("SGPR32 of gfx1100, whose stack pointer counts the bytes of a lane: rule %d", got)
	}
	// Of gfx908, which is before gfx90a, no accumulation register is preserved.
	o := readObject(t, "testdata/amd_h.gfx90a.co")
	o.req.Flags = 0x530
	if got := ruleOf(o.open(t), uint64(agpr0w64)+40); got != cfi.Undefined {
		t.Errorf("a40 of gfx908: rule %d", got)
	}
	// v256 and up are of waves of 32 lanes.
	for _, n := range []uint64{uint64(vgpr0w32) + 256, uint64(vgpr512) + 511} {
		if got := ruleOf(k, n); got != cfi.Undefined {
			t.Errorf("register %d: rule %d", n, got)
		}
	}
}

func TestOneFunctionWithoutRowsIsEnoughToLoseWhatItMayClobber(t *testing.T) {
	o := readObject(t, "testdata/amd_h.gfx90a.cfi.co")
	frame := o.data[".debug_frame"]
	table, err := cfi.NewTable(cfi.Section{Name: ".debug_frame", Data: frame, Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	for fde, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name   string
			change func(b []byte)
		}{
			{"an FDE without rules", func(b []byte) { // its instructions are nops
				end := fde.Offset + 4 + uint64(binary.LittleEndian.Uint32(b[fde.Offset:]))
				clear(b[fde.Offset+24 : end])
			}},
			{"an FDE of other code", func(b []byte) { binary.LittleEndian.PutUint64(b[fde.Offset+8:], 0x100000) }},
		} {
			b := slices.Clone(frame)
			c.change(b)
			o.data[".debug_frame"] = b
			a := o.open(t)
			if kernel := fde.Start == a.Functions[0].Start; (a.DefaultRules == nil) != kernel {
				t.Errorf("%s for %#x: %d default rules", c.name, fde.Start, len(a.DefaultRules))
			}
		}
	}
	o.data[".debug_frame"] = nil
	o.section(".debug_frame").Size = 0
	if a := o.open(t); a.DefaultRules == nil {
		t.Error("no call frame information: no default rules")
	}
}

// debugFrame is a section with a CIE and an FDE with one rule, an expression.
func debugFrame(expr []byte) []byte {
	entry := func(body []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	b := entry([]byte{0xff, 0xff, 0xff, 0xff, 4, 0, 8, 0, 4, 4, 16})
	fde := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{0, 0, 0, 0}, 0x1600), 0x400)
	return append(b, entry(append(fde, append([]byte{0x30, 0x40, 0, 6, 0x10, 65, byte(len(expr))}, expr...)...))...)
}

func TestDialectIsTheOneInWhichAllExpressionsCanBeDecoded(t *testing.T) {
	for _, c := range []struct {
		expr []byte
		want string
	}{
		{[]byte{0x90, 0x29, 0xe9, 0x05, 0x10}, userDialect},
		{[]byte{0x90, 0x29, 0xe4, 0x10}, legacyDialect},
		{[]byte{0x90, 0x29, 0x90, 0x20, 0xe6, 0x11, 0x94, 8, 0xec, 32, 64}, legacyDialect},
		{[]byte{0x90, 0x29}, userDialect},
		{[]byte{0xe9, 0x01}, userDialect}, // a nop; of the older form half an operation
		{[]byte{0xff}, userDialect},       // of neither
	} {
		o := readObject(t, "testdata/amd_h.gfx90a.cfi.co")
		o.data[".debug_frame"] = debugFrame(c.expr)
		if a := o.open(t); a.Dialect != c.want {
			t.Errorf("%x: %q, want %q", c.expr, a.Dialect, c.want)
		}
	}
}

func TestKernelsByTheirDescriptors(t *testing.T) {
	const path = "testdata/amd_k.gfx1100.co"
	descriptor := func(o *testObject) []byte { return o.data[".rodata"] }
	for _, c := range []struct {
		name    string
		change  func(o *testObject)
		lanes   uint32 // 0: there is no kernel
		problem string
	}{
		{"as compiled", func(*testObject) {}, 32, ""},
		{"without metadata", func(o *testObject) { o.section(".note").Type = 1 }, 32, ""},
		{"stripped", func(o *testObject) { o.section(".symtab").Size = 0 }, 32, ""},
		{"of 64 lanes, which the metadata does not say", func(o *testObject) { descriptor(o)[57] &^= 4 }, 64, "of 64 lanes by its descriptor, of 32 by the metadata"},
		{"of 32 lanes on gfx90a", func(o *testObject) { o.req.Flags = 0x53f }, 32, "but those of gfx90a have 64"},
		{"without descriptors", func(o *testObject) { o.section(".symtab").Size, o.section(".dynsym").Size = 0, 0 }, 0, "metadata lists 1 kernels, but no symbol"},
		{"whose entry is in no code", func(o *testObject) { binary.LittleEndian.PutUint64(descriptor(o)[16:], 1<<40) }, 0, "is in no section of code"},
		{"whose entry is data", func(o *testObject) { binary.LittleEndian.PutUint64(descriptor(o)[16:], 0) }, 0, "is in no section of code"},
		{"whose descriptor is in no section", func(o *testObject) { o.section(".rodata").Address = 0x800000 }, 0, "its address, 0x5c0, is in no section"},
		{"whose descriptor is cut", func(o *testObject) { o.data[".rodata"] = o.data[".rodata"][:63] }, 0, "is in no section"},
		{"of a relocatable object", func(o *testObject) {
			for i := range o.req.Sections {
				o.req.Sections[i].Address = 0
			}
		}, 0, ""},
		{"with metadata of noise", func(o *testObject) { o.data[".note"][0x20] = 0xc1 }, 32, "section .note: note of AMDGPU"},
		{"with notes that are cut", func(o *testObject) { o.data[".note"] = o.data[".note"][:100] }, 32, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := readObject(t, path)
			c.change(o)
			a := o.open(t)
			var lanes uint32
			for _, f := range a.Functions {
				if f.Kind == sdk.KernelFunction && f.Name == "kern" && f.Start == 0x2200 {
					lanes = f.Lanes
				}
			}
			problems := strings.Join(a.Problems, "; ")
			if lanes != c.lanes || (problems == "") != (c.problem == "") || !strings.Contains(problems, c.problem) {
				t.Errorf("%d lanes, want %d; problems %q, want %q", lanes, c.lanes, problems, c.problem)
			}
		})
	}
}

func TestSectionsThatCannotBeReadAreProblems(t *testing.T) {
	o := readObject(t, "testdata/amd_k.gfx1100.co")
	o.data = nil
	a := o.open(t)
	if len(a.Problems) == 0 || len(a.Functions) != 0 || a.DefaultRules == nil {
		t.Errorf("%d functions, %d rules, problems %q", len(a.Functions), len(a.DefaultRules), a.Problems)
	}
}

// FuzzOpenObject puts bytes in the place of one section of a code object.
func FuzzOpenObject(f *testing.F) {
	files := []string{"testdata/amd_k.gfx1100.co", "testdata/amd_h.gfx90a.cfi.co"}
	names := []string{".note", ".rodata", ".symtab", ".strtab", ".dynsym", ".dynstr", ".debug_frame"}
	var objects []*testObject
	for i, file := range files {
		o := readObject(f, file)
		objects = append(objects, o)
		for j, name := range names {
			f.Add(uint8(i), uint8(j), o.req.Flags, o.data[name])
		}
	}
	f.Add(uint8(0), uint8(6), uint32(0), debugFrame([]byte{0x90, 0x29, 0xe4, 0x10}))
	f.Fuzz(func(t *testing.T, file, section uint8, flags uint32, data []byte) {
		original, name := objects[int(file)%len(objects)], names[int(section)%len(names)]
		o := &testObject{req: original.req, data: map[string][]byte{}}
		for name, b := range original.data {
			o.data[name] = b
		}
		o.req.Sections = slices.Clone(o.req.Sections)
		o.req.Flags = flags
		o.data[name] = data
		o.section(name).Size = uint64(len(data))
		if first := o.open(t); !reflect.DeepEqual(first, o.open(t)) {
			t.Error("two answers")
		}
	})
}
