// SPDX-License-Identifier: Apache-2.0

package gopclntab

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// openFile opens an object for the time of a test.
func openFile(t *testing.T, path string) *object.Object {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// moduleOf is where a program's runtime.moduledata is in its file.
func moduleOf(t *testing.T, table *Table, path string) (file []byte, module int) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := binary.LittleEndian.AppendUint64(nil, table.start(0))
	want = binary.LittleEndian.AppendUint64(want, table.start(table.nfunc))
	for at := 0; ; {
		i := bytes.Index(file[at:], want)
		if i < 0 {
			t.Fatal("no runtime.moduledata")
		}
		if at += i; at > 8*wordMinPC && binary.LittleEndian.Uint64(file[at+16:]) == table.textStart {
			return file, at - 8*wordMinPC
		}
		at++
	}
}

// Where go:func.* is in runtime.moduledata differs between versions of Go whose tables
// have one magic number. Words that lead nowhere, or to something else, are not taken,
// and no position of an inlined call is given to the function around it.
func TestTreesAreFoundWhereverTheyAre(t *testing.T) {
	path := build(t, "CGO_ENABLED=0", "-ldflags=-s")
	whole := open(t, path)
	file, module := moduleOf(t, whole, path)
	words := file[module : module+8*moduleWords]
	const gofunc = 40 // in Go 1.20 to 1.26
	if !bytes.Equal(fileFrom(openFile(t, path), binary.LittleEndian.Uint64(words[8*gofunc:])), whole.gofunc) {
		t.Skip("this Go has it elsewhere")
	}
	for _, c := range []struct {
		name   string
		change func(words []byte)
		known  bool
	}{
		{"Go 1.27", func(w []byte) { copy(w[8*(gofunc+3):], bytes.Clone(w[8*gofunc:8*(moduleWords-3)])) }, true},
		{"Go 1.27, with lengths before", func(w []byte) {
			copy(w[8*(gofunc+3):], bytes.Clone(w[8*gofunc:8*(moduleWords-3)]))
			clear(w[8*(gofunc-1) : 8*(gofunc+3)])
		}, true},
		{"two words less", func(w []byte) { copy(w[8*(gofunc-2):], bytes.Clone(w[8*gofunc:])) }, true},
		{"nowhere", func(w []byte) { clear(w[8*gofunc : 8*gofunc+8]) }, false},
		{"a call further", func(w []byte) { w[8*gofunc] += 16 }, false},
		{"a byte further", func(w []byte) { w[8*gofunc]++ }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := bytes.Clone(file)
			c.change(changed[module : module+8*moduleWords])
			name := filepath.Join(t.TempDir(), "changed")
			if err := os.WriteFile(name, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			table := open(t, name)
			if (table.gofunc != nil) != c.known {
				t.Fatalf("trees are found: %v, expected %v", table.gofunc != nil, c.known)
			}
			inlined := 0
			for a := table.start(1); a < table.start(table.nfunc); a += 101 {
				want, got := chain(t, whole, a), chain(t, table, a)
				if got == want {
					continue
				}
				frames, err := table.Frames(nil, a)
				wanted, _ := whole.Frames(nil, a)
				if c.known || err != nil || len(frames) != 1 || len(wanted) < 2 || frames[0].Line != 0 || frames[0].File != "" || frames[0].Function != wanted[len(wanted)-1].Function {
					t.Fatalf("%#x: %swant\n%s", a, got, want)
				}
				inlined++
			}
			if !c.known && inlined < 1000 {
				t.Errorf("%d addresses in inlined calls, expected 1000 or more", inlined)
			}
		})
	}
}

// Trees of Go 1.18 and 1.19 have calls of another form.
func TestTreesOfEachLayout(t *testing.T) {
	names := []byte("\x00main.main\x00main.f\x00")
	for magic, tree := range map[uint32][]byte{
		magic118: {0xff, 0xff, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 11, 0, 0, 0, 4, 0, 0, 0},
		magic120: {0, 0, 0, 0, 11, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0},
	} {
		table := &Table{order: binary.LittleEndian, magic: magic, names: names}
		f := function{start: 0x1000, end: 0x1010}
		c, ok := table.call(tree, 0, &f)
		if !ok || table.text(c.name) != "main.f" || c.parent != 4 {
			t.Errorf("magic %#x: %+v, %v", magic, c, ok)
		}
		for name, at := range map[string]int{"a name that begins within another": callLayouts[magic].name, "a call beyond the function": callLayouts[magic].parent, "padding": callLayouts[magic].zero} {
			bad := bytes.Clone(tree)
			bad[at] += 0x12
			if c, ok := table.call(bad, 0, &f); ok {
				t.Errorf("magic %#x, %s: %+v", magic, name, c)
			}
		}
		if _, ok := table.call(tree, 1, &f); ok {
			t.Errorf("magic %#x: a second call", magic)
		}
	}
}
