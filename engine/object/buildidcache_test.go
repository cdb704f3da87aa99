// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPerfsCacheHasFilesByBuildID finds code, a debug file and names of a kernel in caches as perf
// makes them now, and made them once.
func TestPerfsCacheHasFilesByBuildID(t *testing.T) {
	id := []byte{0xaa, 0xbb, 0xcc, 0xdd}
	right, wrong := withBuildID(id, "right"), withBuildID([]byte{1, 2, 3, 4}, "wrong")
	debug := testFile{sections: []testSection{
		{name: ".text", typ: elf.SHT_NOBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, size: 10},
		{name: ".debug_info", typ: elf.SHT_PROGBITS, data: []byte{1}},
		{name: ".note", typ: elf.SHT_NOTE, data: note(binary.LittleEndian, 4, "GNU", noteBuildID, id)},
	}}.bytes()
	const rest = "/aabbccdd"
	for name, test := range map[string]struct {
		files map[string][]byte // "root/...", "cache/..."
		links string            // what .build-id/aa/bbccdd of the cache leads to
		want  string
	}{
		"the file was removed":               {map[string][]byte{"cache/bin/a" + rest + "/elf": right}, "bin/a" + rest, "cache/.build-id/aa/bbccdd/elf"},
		"it was built anew":                  {map[string][]byte{"root/bin/a": wrong, "cache/bin/a" + rest + "/elf": right}, "bin/a" + rest, "cache/.build-id/aa/bbccdd/elf"},
		"it is still there":                  {map[string][]byte{"root/bin/a": right, "cache/bin/a" + rest + "/elf": right}, "bin/a" + rest, "root/bin/a"},
		"the cache has another":              {map[string][]byte{"cache/bin/a" + rest + "/elf": wrong}, "bin/a" + rest, ""},
		"the vDSO":                           {map[string][]byte{"cache/[vdso]" + rest + "/vdso": right}, "[vdso]" + rest, "cache/.build-id/aa/bbccdd/vdso"},
		"a cache of before Linux 4.8":        {map[string][]byte{"cache/bin/a" + rest: right}, "bin/a" + rest, "cache/.build-id/aa/bbccdd"},
		"a debug file alone":                 {map[string][]byte{"cache/bin/a" + rest + "/debug": debug}, "bin/a" + rest, "cache/.build-id/aa/bbccdd/debug"},
		"a cache whose link leads nowhere":   {map[string][]byte{"cache/x": right}, "bin/a" + rest, ""},
		"a cache whose link leads to itself": {map[string][]byte{"cache/x": right}, ".build-id/aa/bbccdd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, b := range test.files {
				write(t, filepath.Join(dir, file), b)
			}
			link(t, "../../"+test.links, filepath.Join(dir, "cache/.build-id/aa/bbccdd"))
			f := &Finder{Sysroot: filepath.Join(dir, "root"), BuildIDDirs: []string{filepath.Join(dir, "none"), filepath.Join(dir, "cache")}}
			found := f.Find("/bin/a", id, false)
			if found.Object != nil {
				defer found.Object.Close()
			}
			if rel, _ := strings.CutPrefix(found.Path, dir+"/"); rel != test.want || found.Checked != (test.want != "") {
				t.Errorf("found %q, checked %v, expected %q: %s", rel, found.Checked, test.want, found.Problem)
			}
		})
	}
	t.Run("debug file", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "bin/a"), right)
		write(t, filepath.Join(dir, "cache/bin/a"+rest+"/debug"), debug)
		link(t, "../../bin/a"+rest, filepath.Join(dir, "cache/.build-id/aa/bbccdd"))
		o, err := Open(filepath.Join(dir, "bin/a"))
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		f := &Finder{BuildIDDirs: []string{filepath.Join(dir, "cache")}}
		found := f.FindDebug(o)
		if found.Object == nil || !strings.HasSuffix(found.Path, "/bbccdd/debug") {
			t.Fatalf("found %q: %s", found.Path, found.Problem)
		}
		found.Object.Close()
	})
}

func TestPerfsCacheHasNamesOfKernels(t *testing.T) {
	id := []byte{0xaa, 0xbb, 0xcc, 0xdd}
	dir := t.TempDir()
	var want []string
	for i, name := range []string{"[kernel.kallsyms]/aabbccdd/kallsyms", "[kernel.kcore]/aabbccdd/2026112919455612/kallsyms", "[kernel.kcore]/aabbccdd/2026112919455613/kallsyms"} {
		write(t, filepath.Join(dir, name), fmt.Appendf(nil, "%d", i))
		want = append(want, filepath.Join(dir, name))
	}
	write(t, filepath.Join(dir, "[kernel.kcore]/aabbccdd/2026112919455613/kcore"), []byte("x"))
	write(t, filepath.Join(dir, "old/[kernel.kallsyms]/aabbccdd"), []byte("x"))
	f := &Finder{BuildIDDirs: []string{dir, filepath.Join(dir, "old")}}
	want = append(want, filepath.Join(dir, "old/[kernel.kallsyms]/aabbccdd"))
	if got := slices.Collect(f.CachedKallsyms(id)); !slices.Equal(got, want) {
		t.Errorf("got %q, expected %q", got, want)
	}
	link(t, "../../[kernel.kallsyms]/aabbccdd", filepath.Join(dir, ".build-id/aa/bbccdd"))
	for file := range f.CachedKallsyms(id) {
		if file != filepath.Join(dir, ".build-id/aa/bbccdd/kallsyms") {
			t.Errorf("the first is %s", file)
		}
		break
	}
	if got := slices.Collect(f.CachedKallsyms(nil)); got != nil {
		t.Errorf("got %q for no build ID", got)
	}
}
