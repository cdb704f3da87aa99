// SPDX-License-Identifier: Apache-2.0

package perfdata

import "testing"

// TestMappingsThatTakeThePlaceOfCode maps a file's code, and other things over it.
func TestMappingsThatTakeThePlaceOfCode(t *testing.T) {
	text := Mapping{Start: 0x10000, End: 0x20000, Offset: 0x1000, Path: "/bin/node", Executable: true, Prot: 5}
	type over struct {
		start, end uint64
		path       string
	}
	for name, test := range map[string]struct {
		maps   []over
		offset uint64 // of what the last one replaced; 0: nothing
	}{
		"all of it":            {[]over{{0x10000, 0x20000, "//anon"}}, 0x1000},
		"a part":               {[]over{{0x12000, 0x14000, "//anon"}}, 0x3000},
		"a part of a part":     {[]over{{0x12000, 0x14000, "//anon"}, {0x13000, 0x14000, "/anon_hugepage (deleted)"}}, 0x4000},
		"rights, one by one":   {[]over{{0x10000, 0x20000, "//anon"}, {0x10000, 0x18000, "//anon"}, {0x18000, 0x20000, "//anon"}}, 0x9000},
		"more than it":         {[]over{{0x10000, 0x21000, "//anon"}}, 0},
		"another file":         {[]over{{0x10000, 0x20000, "/bin/other"}}, 0},
		"in place of a file":   {[]over{{0x10000, 0x20000, "/data"}, {0x10000, 0x20000, "//anon"}}, 0},
		"where nothing was":    {[]over{{0x30000, 0x40000, "//anon"}}, 0},
		"what the kernel adds": {[]over{{0x10000, 0x20000, "[vdso]"}}, 0},
	} {
		s, m := newState(&File{}), &mappings{}
		own := text
		s.add(m, &own)
		var last *Mapping
		for _, o := range test.maps {
			last = &Mapping{Start: o.start, End: o.end, Path: o.path, Executable: o.path != "/data"}
			s.add(m, last)
		}
		switch r := last.Replaced; {
		case r == nil && test.offset == 0:
		case r == nil || r.Offset != test.offset || r.Start != last.Start || r.End != last.End || r.Path != text.Path:
			t.Errorf("%s: it replaced %+v, expected offset %#x", name, r, test.offset)
		}
	}
}

func TestMappingsWithoutAFile(t *testing.T) {
	for path, want := range map[string]bool{
		"": true, "//anon": true, "[heap]": true, "[vdso]": false, "anon_inode:[perf_event]": true, "/memfd:jit (deleted)": true, "/dev/zero (deleted)": true,
		"/SYSV00000000 (deleted)": true, "/anon_hugepage (deleted)": true, "/bin/anon_hugepage": false, "/lib/libc.so.6": false,
	} {
		if m := (Mapping{Path: path}); m.HasNoFile() != want {
			t.Errorf("%q has no file: %v", path, !want)
		}
	}
}
