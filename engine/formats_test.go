// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// foreign is an architecture whose code objects are no ELF files. One begins with
// TOYS, and is code; one begins with TOYC, and holds code objects, of which each
// has its name and its size in bytes, of one byte each, before it.
type foreign struct {
	sdk.Base
	mu   sync.Mutex
	seen []foreignObject
}

// foreignObject is the part of an object that the plugin was given.
type foreignObject struct {
	Path       string
	Machine    uint16
	Sections   int
	File       string
	Companions map[string]string // by suffix: the file
}

const (
	foreignPC, foreignSP = 0, 1
	foreignEnd           = 0x100
)

func (*foreign) Describe(context.Context) (*sdk.Description, error) {
	return &sdk.Description{
		Name: "toy", Recognises: []sdk.Recogniser{{OSABI: -1, Magic: []byte("TOYS")}, {OSABI: -1, Magic: []byte("TOYC")}},
		AddressBits: 64, Registers: []sdk.RegisterRange{{Count: 2, Names: []string{"pc", "sp"}, Bits: 64}},
		PC: foreignPC, SP: foreignSP, FP: sdk.NoRegister, ReturnAddress: foreignPC, CallDistance: 1, MaxInstruction: 4, StackAlign: 8,
		Companions: []string{".side", ".other"},
	}, nil
}

func (a *foreign) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	file, err := e.ReadSection(ctx, req.Object, "")
	if err != nil {
		return nil, err
	}
	got := foreignObject{req.Path, req.Machine, len(req.Sections), string(file), map[string]string{}}
	for _, c := range req.Companions {
		side, err := e.ReadSection(ctx, c.Object, "")
		if err != nil {
			return nil, err
		}
		got.Companions[c.Suffix] = string(side)
	}
	for _, wrong := range []uint64{0, req.Object + 1, req.Object ^ 1<<40, 1 << 63} {
		if b, err := e.ReadSection(ctx, wrong, ""); err == nil {
			return nil, fmt.Errorf("handle %#x was read: %q", wrong, b)
		}
	}
	if _, err := e.ReadSection(ctx, req.Object, ".text"); err == nil {
		return nil, errors.New("what is no ELF file has a section")
	}
	a.mu.Lock()
	a.seen = append(a.seen, got)
	a.mu.Unlock()
	answer := &sdk.OpenObjectAnswer{}
	if strings.HasPrefix(string(file), "TOYC") {
		for at := 4; at+2 <= len(file); at += 2 + int(file[at+1]) {
			answer.Nested = append(answer.Nested, sdk.NestedObject{Name: string(file[at : at+1]), Offset: uint64(at + 2), Size: uint64(file[at+1])})
		}
		return answer, nil
	}
	answer.Tables = []sdk.RowTable{{Rows: []cfi.Row{{
		End: foreignEnd, CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: foreignSP, Offset: 16}, ReturnAddress: foreignPC,
		Rules: []cfi.RegisterRule{{Column: foreignPC, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}, {Column: foreignSP, Rule: cfi.Rule{Kind: cfi.ValOffset}}},
	}}}}
	return answer, nil
}

// foreignSnapshot writes a snapshot of one thread of a toy in a module at 0x1000,
// which its caller is outside of.
func foreignSnapshot(t *testing.T, module map[string]any, members map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "toy.snapshot")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	module["arch"] = "toy"
	module["segments"] = []any{map[string]any{"address": "0x0", "size": "0x100", "start": "0x1000"}}
	text, err := json.Marshal(map[string]any{
		"format_version": 1, "modules": []any{module},
		"threads": []any{map[string]any{"id": "1", "arch": "toy", "registers": map[string]any{"pc": "0x1010", "sp": "0x8000"}}},
		"memory":  []any{map[string]any{"file": "memory", "address": "0x8000"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	stack, _ := hex.DecodeString("00000000000000002010000000000000" + "00000000000000000000000000000000")
	all := map[string]string{"snapshot.json": string(text), "memory": string(stack)}
	for name, data := range members {
		all[name] = data
	}
	for name, data := range all {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func openForeign(t *testing.T, path string) (*foreign, *Target) {
	t.Helper()
	a := &foreign{}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{a}}, Sysroot: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	state, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return a, state
}

// walkForeign walks the only thread: two frames by the plugin's rows where it was
// given the code object, else one.
func walkForeign(t *testing.T, state *Target) *trace.Stack {
	t.Helper()
	return state.Walk(context.Background(), state.Threads()[0])
}

func TestCodeObjectsThatAreNoELFFilesAreThePlugins(t *testing.T) {
	for _, c := range []struct {
		name    string
		file    string
		members map[string]string
		want    []foreignObject // what the plugin is given, the module's last
		problem string          // of the module; the plugin's rows are not there
	}{
		{"alone", "objects/code", map[string]string{"objects/code": "TOYS1"}, []foreignObject{{File: "TOYS1"}}, ""},
		{"with a companion", "objects/a.b/code.main", map[string]string{
			"objects/a.b/code.main": "TOYS1", "objects/a.b/code.side": "TOYS2", "objects/code.other": "TOYS3", "objects/a.b/code.main.other": "TOYS4",
		}, []foreignObject{{File: "TOYS1", Companions: map[string]string{".side": "TOYS2"}}}, ""},
		{"with two companions", "code", map[string]string{"code": "TOYS1", "code.other": "TOYS2", "code.side": "TOYC"},
			[]foreignObject{{File: "TOYS1", Companions: map[string]string{".side": "TOYC", ".other": "TOYS2"}}}, ""},
		{"that is its own companion", "code.side", map[string]string{"code.side": "TOYS1"}, []foreignObject{{File: "TOYS1"}}, ""},
		{"inside a container", "box#b", map[string]string{"box": "TOYCa\x05TOYSab\x06TOYS22", "box.side": "TOYS"},
			[]foreignObject{{File: "TOYCa\x05TOYSab\x06TOYS22"}, {File: "TOYS22"}}, ""},
		{"inside a container, by index", "box#0", map[string]string{"box": "TOYCa\x05TOYSab\x06TOYS22"},
			[]foreignObject{{File: "TOYCa\x05TOYSab\x06TOYS22"}, {File: "TOYSa"}}, ""},
		{"a member with such a name", "box#b", map[string]string{"box": "TOYC", "box#b": "TOYS3"}, []foreignObject{{File: "TOYS3"}}, ""},
		{"a container without a name", "box", map[string]string{"box": "TOYCa\x05TOYSa"},
			[]foreignObject{{File: "TOYCa\x05TOYSa"}}, "holds 1 code objects, of which the module does not name one, as FILE#a"},
		{"no such name", "box#c", map[string]string{"box": "TOYCa\x05TOYSa"}, []foreignObject{{File: "TOYCa\x05TOYSa"}}, "no such code object in the file"},
		{"outside of the file", "box#a", map[string]string{"box": "TOYCa\x06TOYSa"}, []foreignObject{{File: "TOYCa\x06TOYSa"}}, "offset 0x6, size 0x6 is not in the 11 bytes"},
		{"of nobody", "code", map[string]string{"code": "TOYX"}, nil, "not an ELF file"},
		{"a companion of nobody", "code", map[string]string{"code": "TOYS1", "code.side": "TOYX"}, []foreignObject{{File: "TOYS1"}}, "code.side: not an ELF file"},
		{"a companion of another architecture", "code", map[string]string{"code": "TOYS1", "code.side": string(smallELF(t))}, []foreignObject{{File: "TOYS1"}}, "code.side: architecture toy does not recognise it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, state := openForeign(t, foreignSnapshot(t, map[string]any{"file": c.file}, c.members))
			stack := walkForeign(t, state)
			for i := range c.want {
				if c.want[i].Companions == nil {
					c.want[i].Companions = map[string]string{}
				}
			}
			for i := range a.seen {
				a.seen[i].Path = ""
			}
			if d := cmp.Diff(c.want, a.seen); d != "" {
				t.Error(d)
			}
			m := state.process.Modules()[0]
			problems := append(state.ModuleInfo(&m.Module).Problems, m.Problem)
			if c.problem == "" {
				problems = append(problems, "none: ")
			}
			if !strings.Contains(strings.Join(problems, "\n"), c.problem) {
				t.Errorf("problems %q, expected %q", problems, c.problem)
			}
			frames := 2
			if m.Object == nil {
				frames = 1
			}
			if len(c.want) > 0 && strings.HasPrefix(c.want[len(c.want)-1].File, "TOYC") {
				frames = 1
			}
			if len(stack.Frames) < frames || frames == 2 && stack.Frames[1].PC != 0x1020 {
				t.Errorf("%d frames, expected %d: %v", len(stack.Frames), frames, stack.Stopped)
			}
			if m.Object != nil && (m.Object.IsELF() || len(m.Object.Sections()) > 0 || m.Object.Machine() != 0) {
				t.Errorf("%+v", m.Object)
			}
		})
	}
}

// smallELF is an ELF file of x86-64 without anything in it.
func smallELF(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(assemble(t, ".text\nnop\n", "-c"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFilesBesideAModulesFileAreItsCompanions(t *testing.T) {
	path := foreignSnapshot(t, map[string]any{"path": "/lib/code.main"}, nil)
	dir := filepath.Dir(path)
	for name, data := range map[string]string{"code.main": "TOYS1", "code.side": "TOYS2", "code.other": "an open door"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, state := openForeign(t, path)
	walkForeign(t, state)
	want := []foreignObject{{Path: "/lib/code.main", File: "TOYS1", Companions: map[string]string{".side": "TOYS2"}}}
	if d := cmp.Diff(want, a.seen); d != "" {
		t.Error(d)
	}
	if p := strings.Join(state.ModuleInfo(state.Modules()[0]).Problems, "\n"); !strings.Contains(p, "code.other: not an ELF file") {
		t.Errorf("problems: %s", p)
	}
}

func TestASnapshotWithFilesHasTheirCompanions(t *testing.T) {
	path := foreignSnapshot(t, map[string]any{"file": "code"}, map[string]string{"code": "TOYS1", "code.side": "TOYS2", "code.other": "TOYC"})
	for range 2 { // of a snapshot, and of what was made of it
		_, state := openForeign(t, path)
		s, err := state.Snapshot(context.Background(), SnapshotOptions{Files: true})
		if err != nil || len(s.Problems) > 0 {
			t.Fatalf("%v, %q", err, s.Problems)
		}
		path = filepath.Join(t.TempDir(), "again")
		var b bytes.Buffer
		if err := errors.Join(s.Write(&b), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	a, state := openForeign(t, path)
	if stack := walkForeign(t, state); len(stack.Frames) != 2 {
		t.Errorf("%d frames: %v", len(stack.Frames), stack.Stopped)
	}
	want := []foreignObject{{File: "TOYS1", Companions: map[string]string{".side": "TOYS2", ".other": "TOYC"}}}
	if d := cmp.Diff(want, a.seen); d != "" {
		t.Error(d)
	}
}

// A file that several plugins recognise belongs to none of them.
func TestContainersThatTwoPluginsClaimAreAnError(t *testing.T) {
	m, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{&foreign{}, &otherForeign{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f := code.NewFormats(m)
	if !f.Recognises([]byte("TOYC")) || f.Recognises([]byte("TOY")) || f.Recognises(nil) {
		t.Error("what is recognised")
	}
	var several *plugin.ErrAmbiguous
	if _, err := f.Nested("file", []byte("TOYC")); !errors.As(err, &several) {
		t.Errorf("%v", err)
	}
}

type otherForeign struct{ foreign }

func (o *otherForeign) Describe(ctx context.Context) (*sdk.Description, error) {
	d, err := o.foreign.Describe(ctx)
	d.Name = "other"
	return d, err
}
