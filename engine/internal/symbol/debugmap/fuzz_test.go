// SPDX-License-Identifier: Apache-2.0

package debugmap

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
)

// macos is a folder with a universal program of macOS and the object files that it was linked of.
const macos = "../../../symbolize/testdata/macos"

// useAll asks object files for all that they have of a program.
func useAll(d *dwarf.Reader, m *debugMap) {
	const most = 64
	for i := range m.parts[:min(len(m.parts), most)] {
		p := &m.parts[i]
		for _, address := range []uint64{p.start, p.start + (p.end-p.start)/2, p.end - 1} {
			_, _ = d.Frames(nil, address)
			_, _ = d.Locals(nil, address)
			_, _ = d.CallSite(address)
			_, _, _ = d.Variable(address, "")
			_, _ = d.Equals(address)
			_ = object.Guard(func() error { return useScopes(d, address) })
		}
	}
	rows := 1 << 12
	_ = d.EachLine(func(*symbol.LineRow) bool { rows--; return rows > 0 })
	_, _ = d.Globals("global")
	_, _ = d.TypesNamed("int")
	_ = d.Problems()
}

// useFunctions asks object files for their functions, which no other user may do meanwhile.
func useFunctions(d *dwarf.Reader) {
	if code, err := d.CodeMap(); err == nil {
		left := 64
		_ = code.EachFunction(func(*symbol.FunctionCode) bool { left--; return left > 0 })
	}
}

func useScopes(d *dwarf.Reader, address uint64) error {
	scopes, err := d.Scopes(address)
	for _, s := range scopes {
		_, _, _ = s.EntryPC()
		for v, err := range s.Variables() {
			if err != nil {
				break
			}
			_, _ = v.StaticAddress()
			_, _ = v.ValueType()
			if l, ok, err := v.Location(dw.AttrLocation); ok && err == nil {
				_, _ = l.At(address)
			}
		}
	}
	return err
}

// FuzzDebugMap reads programs with the debug information of object files, one of which is in an archive.
func FuzzDebugMap(f *testing.F) {
	for _, machine := range []string{"arm64", "x86_64"} {
		program, err := object.OpenMachine(filepath.Join(macos, "app"), machine, nil)
		if err != nil {
			f.Fatal(err)
		}
		var files [2][]byte
		for i, name := range []string{"main-" + machine + ".o", "libcalls-" + machine + ".a"} {
			if files[i], err = os.ReadFile(filepath.Join(macos, name)); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(append([]byte(nil), program.Data()...), files[0], files[1])
		if err := program.Close(); err != nil {
			f.Fatal(err)
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, program, first, second []byte) {
		o, err := object.New("app", program)
		if err != nil || !o.IsMachO() {
			return
		}
		defer o.Close()
		for _, machine := range []string{"arm64", "x86_64"} {
			for name, b := range map[string][]byte{"main-" + machine + ".o": first, "libcalls-" + machine + ".a": second} {
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		finder := &object.Finder{Sysroot: dir, DebugDirs: []string{dir}}
		m := newMap(o, finder, func(error) {})
		if m == nil {
			return
		}
		d := dwarf.NewOfParts(o, dwarf.Options{Finder: finder}, m)
		defer d.Close()
		useAll(d, m)
		useFunctions(d)
	})
}
