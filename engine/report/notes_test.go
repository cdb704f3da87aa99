// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
)

// noteBytes is a note, padded as one of an alignment of 4 or 8.
func noteBytes(owner string, kind uint32, data []byte, align int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(owner)+1))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	b = append(append(binary.LittleEndian.AppendUint32(b, kind), owner...), 0)
	b = append(b, make([]byte, -len(b)&(align-1))...)
	b = append(b, data...)
	return append(b, make([]byte, -len(b)&(align-1))...)
}

// withNotes is a little-endian ELF64 file whose only program header is of notes.
func withNotes(t testing.TB, kind elf.Type, machine elf.Machine, align uint64, notes ...[]byte) *object.Object {
	t.Helper()
	b := append([]byte(elf.ELFMAG), byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1, 0, 3, 0, 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(machine))
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint64(b, 64)
	b = append(b, make([]byte, 12)...)
	for _, v := range []uint16{64, 56, 1, 64, 0, 0} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	all := bytes.Join(notes, nil)
	b = binary.LittleEndian.AppendUint32(b, uint32(elf.PT_NOTE))
	b = binary.LittleEndian.AppendUint32(b, 4)
	for _, v := range []uint64{120, 0, 0, uint64(len(all)), uint64(len(all)), align} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	o, err := object.New("f", append(b, all...))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// textOf is the text of a file's notes, and its problems.
func textOf(t testing.TB, n *Notes) (text string, problems []string) {
	t.Helper()
	n.File = "f"
	n.Problem = func(err error) { problems = append(problems, err.Error()) }
	var b strings.Builder
	if err := n.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String(), problems
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func TestNotesThatAreDecoded(t *testing.T) {
	probe := append(words(0x1234, 0, 0, 0, 0, 0), "libc\x00setjmp\x008@%rdi\x00"...)
	for _, c := range []struct {
		name    string
		kind    elf.Type
		machine elf.Machine
		align   uint64
		note    []byte
		want    string
	}{
		{"build ID", elf.ET_DYN, 62, 4, noteBytes("GNU", 3, []byte{0xab, 1}, 4), "GNU NT_GNU_BUILD_ID 2 bytes\nab01"},
		{"ABI tag", elf.ET_DYN, 62, 4, noteBytes("GNU", 1, words(0, 3, 2, 0), 4), "GNU NT_GNU_ABI_TAG 16 bytes\nLinux 3.2.0"},
		{"ABI tag of another system", elf.ET_DYN, 62, 4, noteBytes("GNU", 1, words(9, 3, 2, 0), 4), "GNU NT_GNU_ABI_TAG 16 bytes\nsystem 9 3.2.0"},
		{"gold", elf.ET_DYN, 62, 4, noteBytes("GNU", 4, []byte("gold 1.16\x00"), 4), "GNU NT_GNU_GOLD_VERSION 10 bytes\ngold 1.16"},
		{"Go", elf.ET_EXEC, 62, 4, noteBytes("Go", 4, []byte("a/b"), 4), "Go NT_GO_BUILDID 3 bytes\na/b"},
		{"text that is for a terminal", elf.ET_EXEC, 62, 4, noteBytes("Go", 4, []byte("\x1b[2J"), 4), `Go NT_GO_BUILDID 4 bytes` + "\n" + `"\x1b[2J"`},
		{"owner that is for a terminal", elf.ET_EXEC, 62, 4, noteBytes("\x1b[2J", 4, nil, 4), `"\x1b[2J" type 0x4 0 bytes`},
		{"probe", elf.ET_DYN, 62, 4, noteBytes("stapsdt", 3, probe, 4), "stapsdt NT_STAPSDT 43 bytes\nprobe libc:setjmp at 0x1234, arguments 8@%rdi"},
		{"x86 features", elf.ET_DYN, 62, 8, noteBytes("GNU", 5, words(0xc0000002, 4, 3, 0, 0xc0008002, 4, 0x102, 0), 8),
			"GNU NT_GNU_PROPERTY_TYPE_0 32 bytes\nGNU_PROPERTY_X86_FEATURE_1_AND: IBT, SHSTK\nGNU_PROPERTY_X86_ISA_1_NEEDED: x86-64-v2, 0x100"},
		{"AArch64 features", elf.ET_DYN, 183, 8, noteBytes("GNU", 5, words(0xc0000000, 4, 7, 0), 8),
			"GNU NT_GNU_PROPERTY_TYPE_0 16 bytes\nGNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI, PAC, GCS"},
		{"a property of another machine", elf.ET_DYN, 243, 8, noteBytes("GNU", 5, words(0xc0000000, 4, 1, 0, 1, 8, 5, 0, 2, 0, 9, 1, 0xaa), 8),
			"GNU NT_GNU_PROPERTY_TYPE_0 52 bytes\ntype 0xc0000000: 0x1\nGNU_PROPERTY_STACK_SIZE: 0x5\nGNU_PROPERTY_NO_COPY_ON_PROTECTED: \ntype 0x9: aa"},
		{"of a core", elf.ET_CORE, 62, 4, noteBytes("CORE", 1, make([]byte, 336), 4), "CORE NT_PRSTATUS 336 bytes"},
		{"the same of no core", elf.ET_DYN, 62, 4, noteBytes("CORE", 1, nil, 4), "CORE type 0x1 0 bytes"},
		{"of a core of AMDGPU", elf.ET_CORE, 62, 4, noteBytes("AMDGPU", 33, nil, 4), "AMDGPU NT_AMDGPU_KFD_CORE_STATE 0 bytes"},
		{"of nobody", elf.ET_CORE, 62, 4, noteBytes("LINUX", 0x999, nil, 4), "LINUX type 0x999 0 bytes"},
	} {
		text, problems := textOf(t, &Notes{Object: withNotes(t, c.kind, c.machine, c.align, c.note)})
		var got []string
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n")[1:] {
			line = strings.TrimPrefix(strings.TrimLeft(line, " "), "0x00000078")
			if strings.Contains(line, "  ") {
				line = strings.Join(strings.Fields(line), " ")
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(strings.Split(c.want, "\n"), got); diff != "" || problems != nil || !strings.HasPrefix(text, "segments\n") {
			t.Errorf("%s: %q\n%s", c.name, problems, diff)
		}
	}
}

func TestNotesThatAreCutAreProblems(t *testing.T) {
	for _, c := range []struct {
		note []byte
		want string
	}{
		{noteBytes("GNU", 1, words(0), 4), `f: note at offset 0x78, owner "GNU", type 0x1: 4 bytes, expected 16`},
		{noteBytes("GNU", 5, words(1), 4), "property at 0x0: 4 bytes, expected a type and a size"},
		{noteBytes("GNU", 5, words(1, 100, 0), 4), "property at 0x0, type 0x1: 100 bytes, expected at most 4"},
		{noteBytes("stapsdt", 3, words(1), 4), "4 bytes, expected three addresses of 8"},
		{noteBytes("stapsdt", 3, append(make([]byte, 24), 'x'), 4), "expected the names of a provider and a probe"},
		{noteBytes("mine", 1, nil, 4), `owner "mine", type 0x1: no idea`},
		{noteBytes("GNU", 3, make([]byte, 20), 4)[:30], "note of owner"},
	} {
		n := &Notes{Decode: func(string, uint32, []byte) (any, error) { return nil, errors.New("no idea") }}
		n.Object = withNotes(t, elf.ET_DYN, 62, 4, c.note)
		_, problems := textOf(t, n)
		if len(problems) != 1 || !strings.Contains(problems[0], c.want) {
			t.Errorf("%q, want %q", problems, c.want)
		}
		var b strings.Builder
		var doc struct{ Problems []string }
		if err := errors.Join(n.WriteJSON(&b), json.Unmarshal([]byte(b.String()), &doc)); err != nil || len(doc.Problems) != 1 || doc.Problems[0] != problems[0] {
			t.Errorf("%v %q, want %q", err, doc.Problems, problems)
		}
	}
}

// members is a Tree of names and values.
type members []any

func (m members) Members() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := 0; i < len(m) && yield(m[i].(string), m[i+1]); i += 2 {
		}
	}
}

func TestContentsOfNotesAsTrees(t *testing.T) {
	tree := members{
		"kernels", []any{
			members{"name", "k", "args", []any{members{"size", int64(8)}, members{"size", int64(4), "kind", ""}}},
			members{}, []any{}, []any{int64(1), nil},
		},
		"none", []any{}, "empty", members{}, "yes", true, "key \x1b", "a\nb", "bytes", []byte{1, 0xff},
	}
	n := &Notes{
		Object: withNotes(t, elf.ET_DYN, 224, 4, noteBytes("mine", 7, nil, 4)),
		Decode: func(owner string, kind uint32, _ []byte) (any, error) {
			if owner != "mine" || kind != 7 {
				t.Errorf("%q, %d", owner, kind)
			}
			return tree, nil
		},
		Arch: "amdgpu", Processor: "gfx90a",
	}
	text, problems := textOf(t, n)
	want := `amdgpu gfx90a, ABI version 3

segments
  0x00000078  mine      type 0x7                         0 bytes
    kernels:
      - name: k
        args:
          - size: 8
          - size: 4
            kind: ""
      - none
      - none
      - - 1
        - nil
    none: none
    empty: none
    yes: true
    "key \x1b": "a\nb"
    bytes: 01ff
`
	if diff := cmp.Diff(want, text); diff != "" || problems != nil {
		t.Errorf("%q\n%s", problems, diff)
	}
}

func TestNestedCodeObjectsOfEveryForm(t *testing.T) {
	n := Notes{File: "lib.a", Format: "archive", Problem: func(error) {}, Nested: func(yield func(object.Nested, error) bool) {
		_ = yield(object.Nested{Format: "archive", Name: "device.o", Member: "device.o", Offset: 0x44, Data: []byte("ELF")}, nil) &&
			yield(object.Nested{Index: 1, Format: "offload binary", Name: "hip-amdgcn-amd-amdhsa--gfx90a", Image: "bitcode", Member: "rdc.o", Bundle: 0x108,
				Section: ".llvm.offloading", Offset: 0x200, File: "/lib/rdc.o", Data: []byte("BC")}, nil) &&
			yield(object.Nested{Index: 2, Format: "section", Name: "spirv", Image: "spirv", Bundle: 0x10, Offset: 0x10, Section: "SPIRV Object"}, nil)
	}}
	var text, js strings.Builder
	if err := errors.Join(n.WriteText(&text), n.WriteJSON(&js)); err != nil {
		t.Fatal(err)
	}
	want := "device.o\n  #0     0x00000044         3 bytes  device.o\n\nrdc.o, .llvm.offloading, offload binary at 0x108\n" +
		"  #1     0x00000200         2 bytes  hip-amdgcn-amd-amdhsa--gfx90a (bitcode)\n\nSPIRV Object, section at 0x10\n  #2     0x00000010         0 bytes  spirv (spirv)\n"
	if text.String() != want {
		t.Errorf("%s\nexpected\n%s", text.String(), want)
	}
	for _, want := range []string{
		`"type": "archive"`, `"member": "device.o"`, `"processor": "gfx90a"`, `"image": "bitcode"`, `"file": "/lib/rdc.o"`, `"bundle": "0x108"`,
	} {
		if !strings.Contains(js.String(), want) {
			t.Errorf("no %s in %s", want, js.String())
		}
	}
}

func TestNestedCodeObjectsAreListed(t *testing.T) {
	n := &Notes{Nested: func(yield func(object.Nested, error) bool) {
		_ = yield(object.Nested{Format: "offload bundle", Name: "host-x86_64-unknown-linux-gnu-", Offset: 0x40}, nil) &&
			yield(object.Nested{}, errors.New("one is broken")) &&
			yield(object.Nested{Format: "offload bundle", Index: 1, Name: "hip-\x1b", Bundle: 0x100, Packing: "zstd", Section: ".hip_fatbin", Data: []byte("abc")}, nil)
	}}
	text, problems := textOf(t, n)
	want := `offload bundle at 0x0
  #0     0x00000040         0 bytes  host-x86_64-unknown-linux-gnu-

.hip_fatbin, offload bundle at 0x100, packed by zstd
  #1     0x00000000         3 bytes  "hip-\x1b"
`
	if diff := cmp.Diff(want, text); diff != "" || fmt.Sprint(problems) != "[one is broken]" {
		t.Errorf("%q\n%s", problems, diff)
	}
}

func TestEntryIDs(t *testing.T) {
	for id, want := range map[string][3]string{
		"host-x86_64-unknown-linux-gnu-":              {"host", "x86_64-unknown-linux-gnu", ""},
		"host-x86_64-unknown-linux":                   {"host", "x86_64-unknown-linux", ""},
		"hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+":    {"hipv4", "amdgcn-amd-amdhsa", "gfx90a:sramecc+"},
		"hip-amdgcn-amd-amdhsa-gfx906":                {"hip", "amdgcn-amd-amdhsa", "gfx906"},
		"hipv4-amdgcn-amd-amdhsa--gfx9-4-generic":     {"hipv4", "amdgcn-amd-amdhsa", "gfx9-4-generic"},
		"hip-amdgcn-amd-amdhsa-gfx9-4-generic:xnack-": {"hip", "amdgcn-amd-amdhsa", "gfx9-4-generic:xnack-"},
		"hip-amdgcn-amd-amdhsa-unknown-gfx900":        {"hip", "amdgcn-amd-amdhsa-unknown", "gfx900"},
		"hip-spirv64-amd-amdhsa--amdgcnspirv":         {"hip", "spirv64-amd-amdhsa", "amdgcnspirv"},
		"openmp-nvptx64-nvidia-cuda-sm_80":            {"openmp", "nvptx64-nvidia-cuda", "sm_80"},
		"":                                            {"", "", ""}, "x": {"", "x", ""}, "-": {"", "", ""},
	} {
		kind, triple, processor := splitEntryID(id)
		if got := [3]string{kind, triple, processor}; got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}
