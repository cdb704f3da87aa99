// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// copyTo copies files of testdata into a folder, under other names where given.
func copyTo(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for from, to := range files {
		data, err := os.ReadFile(filepath.Join("testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSplitUnitsAreReadFromWhereTheyAre(t *testing.T) {
	tests := []struct {
		name    string
		files   map[string]string
		found   bool
		problem string
	}{
		{"file beside the object", map[string]string{"split5.dwo": "split5.dwo"}, true, ""},
		{"package beside the object", map[string]string{"split5.dwp": "split5.dwp"}, true, ""},
		{"both", map[string]string{"split5.dwo": "split5.dwo", "split5.dwp": "split5.dwp"}, true, ""},
		{"neither", nil, false, "/src/split5.dwo"},
		{"a file of another program", map[string]string{"small5": "split5.dwo"}, false, "no unit of ID"},
		{"no code object", map[string]string{"small.cc": "split5.dwo"}, false, "ELF"},
		{"a damaged package, a sound file", map[string]string{"split5.dwo": "split5.dwo", "small5": "split5.dwp"}, true, ".debug_cu_index"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			copyTo(t, dir, map[string]string{"split5": "split5"})
			copyTo(t, dir, test.files)
			r := openMapped(t, filepath.Join(dir, "split5"))
			functions, lines := 0, 0
			for _, a := range textAddresses(t, filepath.Join(dir, "split5"), 4000) {
				frames, err := r.Frames(nil, a)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range frames {
					if f.Function != "" {
						functions++
					}
					if f.Line != 0 {
						lines++
					}
				}
			}
			if (functions > 0) != test.found || lines == 0 {
				t.Errorf("%d frames have a function, %d a line; functions expected: %v", functions, lines, test.found)
			}
			p := strings.Join(r.Problems(), "\n")
			if !strings.Contains(p, test.problem) || test.problem == "" && p != "" {
				t.Errorf("problems %q, want %q", p, test.problem)
			}
		})
	}
}

// A path that the debug information has is one of the target's.
func TestNamedFilesAreOpenedUnderTheSysroot(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{"bin", "src"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	copyTo(t, filepath.Join(root, "bin"), map[string]string{"split5": "split5"})
	copyTo(t, other, map[string]string{"split5.dwo": "split5.dwo", "split5.dwp": "split5.dwp"})
	tests := []struct {
		name  string
		make  func() error // of files under the sysroot
		root  string
		found bool
	}{
		{"at the path that is named", func() error {
			return os.WriteFile(filepath.Join(root, "src/split5.dwo"), mustRead(t, "testdata/split5.dwo"), 0o600)
		}, root, true},
		{"without a sysroot", func() error { return nil }, "", false},
		{"by a link that leads out", func() error {
			return errors.Join(os.Remove(filepath.Join(root, "src/split5.dwo")), os.Symlink(filepath.Join(other, "split5.dwo"), filepath.Join(root, "src/split5.dwo")))
		}, root, false},
		{"by a link inside", func() error {
			return errors.Join(
				os.Remove(filepath.Join(root, "src/split5.dwo")), os.Symlink("/bin/real", filepath.Join(root, "src/split5.dwo")),
				os.WriteFile(filepath.Join(root, "bin/real"), mustRead(t, "testdata/split5.dwo"), 0o600))
		}, root, true},
		{"beside the object, by a link that leads out", func() error {
			return errors.Join(os.RemoveAll(filepath.Join(root, "src")), os.Symlink(filepath.Join(other, "split5.dwp"), filepath.Join(root, "bin/split5.dwp")))
		}, root, false},
	}
	for _, test := range tests {
		if err := test.make(); err != nil {
			t.Fatal(err)
		}
		options := Options{Finder: &object.Finder{Sysroot: test.root}}
		if got := functionsOf(t, filepath.Join(root, "bin/split5"), options) > 0; got != test.found {
			t.Errorf("%s: functions found: %v, want %v", test.name, got, test.found)
		}
	}
}

func TestAPackageMayBeElsewhere(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	copyTo(t, dir, map[string]string{"split5": "split5"})
	copyTo(t, other, map[string]string{"split5.dwp": "package", "small5": "wrong"})
	for name, found := range map[string]bool{"package": true, "wrong": false, "missing": false} {
		got := functionsOf(t, filepath.Join(dir, "split5"), Options{Package: filepath.Join(other, name)})
		if (got > 0) != found {
			t.Errorf("%s: %d frames have a function; expected: %v", name, got, found)
		}
	}
}

// functionsOf counts the frames of a file's code that have a function.
func functionsOf(t *testing.T, path string, options Options) (n int) {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	r, err := NewWith(o, options)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, a := range textAddresses(t, path, 400) {
		frames, err := r.Frames(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			if f.Function != "" {
				n++
			}
		}
	}
	return n
}

func TestASupplementaryFileMustBeTheOneThatIsNamed(t *testing.T) {
	var s *subject
	for i := range subjects {
		if subjects[i].name == "gcc dwz shared 4" {
			s = &subjects[i]
		}
	}
	_, built := s.build(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(built))); err != nil {
		t.Fatal(err)
	}
	path, common := filepath.Join(dir, filepath.Base(built)), filepath.Join(dir, "common")
	addresses := textAddresses(t, path, 400)
	for _, test := range []struct {
		name    string
		change  func() error
		problem string
	}{
		{"another", func() error { return os.WriteFile(common, mustRead(t, "testdata/small5"), 0o600) }, "expected"},
		{"none", func() error { return os.Remove(common) }, "no such file"},
	} {
		if err := test.change(); err != nil {
			t.Fatal(err)
		}
		r := openMapped(t, path)
		lines := 0
		for _, a := range addresses {
			frames, err := r.Frames(nil, a)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				lines += f.Line
			}
		}
		if lines == 0 {
			t.Errorf("%s: no line, although the object has them", test.name)
		}
		if p := strings.Join(r.Problems(), "\n"); !strings.Contains(p, ".gnu_debugaltlink") || !strings.Contains(p, test.problem) {
			t.Errorf("%s: problems %q, want one about .gnu_debugaltlink that says %q", test.name, p, test.problem)
		}
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tables of .debug_line, version 4, by hand.
func lineProgram(minInstruction, maxOps byte, program ...byte) []byte {
	header := []byte{minInstruction, maxOps, 1, 0xfd, 12, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0}
	header = append(header, "a.c\x00\x00\x00\x00\x00"...)
	body := append(words(2, 4), words(4, uint64(len(header)))...)
	body = append(append(body, header...), program...)
	return append(words(4, uint64(len(body))), body...)
}

func setAddress(a uint64) []byte { return append([]byte{0, 9, lneSetAddress}, words(8, a)...) }

func TestLineProgramsOfAllKinds(t *testing.T) {
	program := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	end := []byte{0, 1, lneEndSequence}
	tests := []struct {
		name string
		line []byte
		want map[uint64]string // "line:column discriminator" at an address
	}{
		{
			"operations of an instruction", // three to 16 bytes, as on Itanium
			lineProgram(16, 3, program(setAddress(0x1000), []byte{lnsCopy, lnsAdvancePC, 4, lnsAdvanceLine, 1, lnsCopy, lnsAdvancePC, 2}, end)...),
			map[uint64]string{0x1000: "1:0 0", 0x100f: "1:0 0", 0x1010: "2:0 0", 0x101f: "2:0 0", 0x1020: ""},
		},
		{
			"discriminators are of one row",
			lineProgram(1, 1, program(setAddress(0x1000), []byte{0, 2, lneSetDiscriminator, 7, lnsCopy, lnsAdvancePC, 4, lnsSetColumn, 9, lnsCopy, lnsAdvancePC, 4}, end)...),
			map[uint64]string{0x1000: "1:0 7", 0x1004: "1:9 0"},
		},
		{
			"rows out of order",
			lineProgram(1, 1, program(setAddress(0x1008), []byte{lnsCopy}, setAddress(0x1000), []byte{lnsAdvanceLine, 1, lnsCopy, lnsAdvancePC, 16}, end)...),
			map[uint64]string{0x1000: "2:0 0", 0x1007: "2:0 0", 0x1008: "1:0 0", 0x100f: "1:0 0"},
		},
		{
			"opcodes that are not known",
			lineProgram(1, 1, program(setAddress(0x1000), []byte{0, 3, 0x80, 1, 2, lnsCopy, lnsFixedAdvancePC, 4, 0}, end)...),
			map[uint64]string{0x1003: "1:0 0", 0x1004: ""},
		},
		{
			"the last row of an address",
			lineProgram(1, 1, program(setAddress(0x1000), []byte{lnsCopy, lnsAdvanceLine, 1, lnsCopy, lnsAdvanceLine, 1, lnsCopy, lnsConstAddPC}, end)...),
			map[uint64]string{0x1000: "3:0 0", 0x1013: "3:0 0", 0x1014: ""},
		},
		{
			"code that was thrown away", // at the highest address
			lineProgram(1, 1, program(setAddress(^uint64(0)), []byte{lnsCopy, lnsAdvancePC, 4}, end)...),
			map[uint64]string{2: "", ^uint64(0): ""},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &file{sections: sections{line: test.line}}
			table, err := f.lineTableAt(0, 8)
			if err != nil {
				t.Fatal(err)
			}
			for address, want := range test.want {
				row, ok := table.position(address, false)
				got := ""
				if ok {
					got = fmt.Sprintf("%d:%d %d", row.line, row.column, row.discriminator)
				}
				if got != want {
					t.Errorf("%#x: %q, want %q", address, got, want)
				}
			}
		})
	}
}

// A long sequence has several checkpoints; every address must lead to its row.
func TestRowsBetweenCheckpoints(t *testing.T) {
	program := setAddress(0x1000)
	for range 1000 {
		program = append(program, lnsAdvancePC, 2, lnsAdvanceLine, 1, lnsCopy)
	}
	f := &file{sections: sections{line: lineProgram(1, 1, append(program, lnsAdvancePC, 2, 0, 1, lneEndSequence)...)}}
	table, err := f.lineTableAt(0, 8)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(table.checkpoints); n < 10 {
		t.Errorf("%d checkpoints", n)
	}
	for i := range uint64(1000) {
		for _, a := range []uint64{0x1002 + 2*i, 0x1003 + 2*i} {
			if row, ok := table.position(a, false); !ok || uint64(row.line) != i+2 {
				t.Fatalf("%#x: %+v, found %v, want line %d", a, row, ok, i+2)
			}
		}
	}
}
