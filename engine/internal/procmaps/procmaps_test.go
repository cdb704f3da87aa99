// SPDX-License-Identifier: Apache-2.0

package procmaps

import (
	"slices"
	"strings"
	"testing"
)

func TestLinesOfMaps(t *testing.T) {
	const text = "7f00-8000 r-xp 00001000 08:01 42   /a b/lib\\012.so (deleted)\n8000-9000 rw-p 00000000 00:00 0 \n"
	got, err := readLines(strings.NewReader(text))
	want := []line{{0x7f00, 0x8000, 0x1000, true, "/a b/lib\n.so (deleted)"}, {0x8000, 0x9000, 0, false, ""}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, expected %+v", got, err, want)
	}
}

// FuzzMaps has texts of /proc/PID/maps from nowhere.
func FuzzMaps(f *testing.F) {
	f.Add("7f00-8000 r-xp 00001000 08:01 42   /a b/lib.so\n")
	f.Add("0-ffffffffffffffff r-xp ffffffffffffffff 0:0 0 [vdso]\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := readLines(strings.NewReader(text))
		if err != nil {
			return
		}
		n := 0
		for _, g := range groupLines(lines) {
			n += len(g)
		}
		if n > len(lines) {
			t.Errorf("%d mappings in groups, of %d", n, len(lines))
		}
	})
}
