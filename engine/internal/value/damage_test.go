// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// damagedProgram is a program with variables of many types.
func damagedProgram(t testing.TB, name string, command ...string) []byte {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{append(command, "-no-pie", source, "-o", "program")}}.Make(t)
	b, err := os.ReadFile(filepath.Join(dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readAll reads every global of a file, and prints it.
func readAll(ctx context.Context, file []byte) (longest time.Duration) {
	o, err := object.New("damaged", file)
	if err != nil {
		return 0
	}
	defer o.Close()
	d, err := dwarf.New(o)
	if err != nil {
		return 0
	}
	m := &image{object: o}
	for _, name := range []string{
		"list", "matrix", "nested", "bits", "flexible", "last", "text", "wide_text", "both", "color", "huge", "z", "four", "point", "packed",
		"total", "member", "reference", "outer::k", "outer::shorts", "outer::h", "names", "numbers", "table", "tree", "all",
	} {
		list, _ := d.Globals(name)
		for _, e := range list {
			begin := time.Now()
			_ = object.Guard(func() error {
				for _, limits := range []trace.ValueLimits{{}, {Raw: true, Depth: MaxDepth, Elements: MaxElements}} {
					v := m.read(ctx, e, limits)
					Line(&v.Value, e.Unit().Language())
				}
				return nil
			})
			longest = max(longest, time.Since(begin))
		}
	}
	return longest
}

// damage changes bytes of the debug information of a file: each patch is where, in
// 1/65536 of a section, and what.
func damage(file []byte, patches []byte) []byte {
	file = append([]byte(nil), file...)
	o, err := object.New("whole", append([]byte(nil), file...))
	if err != nil {
		return file
	}
	defer o.Close()
	for _, name := range []string{".debug_info", ".debug_abbrev", ".data"} {
		s := o.Section(name)
		if s == nil || s.Size == 0 {
			continue
		}
		for i := 0; i+4 <= len(patches); i += 4 {
			if int(patches[i])%3 != map[string]int{".debug_info": 0, ".debug_abbrev": 1, ".data": 2}[name] {
				continue
			}
			offset := (uint64(patches[i+1])<<8 | uint64(patches[i+2])) * s.Size >> 16
			file[s.Offset+offset] = patches[i+3]
		}
	}
	return file
}

// FuzzDamaged reads variables of programs whose debug information lies: nothing panics,
// and no variable takes long.
func FuzzDamaged(f *testing.F) {
	c := damagedProgram(f, "globals.c", "gcc", "-g")
	cpp := damagedProgram(f, "globals.cpp", "g++", "-g", "-std=c++20")
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		patches := make([]byte, 4*(1+r.IntN(6)))
		for i := range patches {
			patches[i] = byte(r.Uint32())
		}
		f.Add(patches, r.IntN(2) == 0)
	}
	f.Fuzz(func(t *testing.T, patches []byte, isC bool) {
		file := cpp
		if isC {
			file = c
		}
		if longest := readAll(t.Context(), damage(file, patches)); longest > 10*time.Second {
			t.Errorf("a variable took %v", longest)
		}
	})
}

// A class that is its own base class is read as deep as values may lie in one another,
// and no deeper.
func TestTypesThatContainThemselves(t *testing.T) {
	file := damagedProgram(t, "globals.cpp", "g++", "-g", "-std=c++20")
	o, err := object.New("whole", file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dwarf.New(o)
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) dwarf.Entry {
		list, err := d.TypesNamed(name)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d types: %v", name, len(list), err)
		}
		return list[0]
	}
	class, base := named("sum"), named("plain_base")
	typ, err := class.AsType()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := typ.Parts()
	if err != nil {
		t.Fatal(err)
	}
	unit := class.Unit().Offset()
	offset := o.Section(".debug_info").Offset + parts.Members[0].Offset()
	reference := func(e dwarf.Entry) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(e.Offset()-unit)) }
	damaged := append([]byte(nil), file...)
	from := bytes.Index(damaged[offset:offset+16], reference(base))
	if from < 0 {
		t.Fatal("the base class has no reference of 4 bytes")
	}
	copy(damaged[offset+uint64(from):], reference(class))
	again, err := object.New("damaged", damaged)
	if err != nil {
		t.Fatal(err)
	}
	d, err = dwarf.New(again)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.Globals("total")
	if err != nil || len(list) != 1 {
		t.Fatalf("%d variables: %v", len(list), err)
	}
	m := &image{object: again}
	v := m.read(t.Context(), list[0], trace.ValueLimits{Raw: true, Depth: MaxDepth})
	depth := 0
	for inner := &v.Value; len(inner.Children) > 0; inner = &inner.Children[0] {
		depth++
	}
	if depth > MaxNesting || v.Status != trace.ValuePartial && v.Status != trace.ValueFailed {
		t.Errorf("%d within one another, status %s", depth, v.Status)
	}
	if line := Line(&v.Value, list[0].Unit().Language()); !strings.Contains(line, "within one another") {
		t.Errorf("%.200s", line)
	}
}
