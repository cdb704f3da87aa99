// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// TestPartsOfMappedFiles loads libraries from the middle of a file, whose ELF headers the
// kernel does not dump.
func TestPartsOfMappedFiles(t *testing.T) {
	const at, more, offset, second = 0x7f0000, 0x800000, 0x3000, 0x8000
	for _, b := range []*builder{little64(), big32()} {
		lib := func(id string) *library { return newLibrary(b.numbers, b.machine, id) }
		one, two := lib("id-one"), lib("id-two")
		bundle := make([]byte, 0x10000)
		copy(bundle[offset:], one.file())
		copy(bundle[second:], two.file())
		load := func(w *world, l *library, bias, start uint64, d dump) {
			from := len(w.ranges)
			w.load("/data/bundle", l, bias, d)
			for i := range w.ranges[from:] {
				w.ranges[from+i].offset += start
			}
		}
		code := func(bias uint64) string { return fmt.Sprintf("0x1000+0x800 at %#x", bias+0x1000) }
		for name, test := range map[string]struct {
			d    dump
			file []byte
			want []moduleView
			text bool
		}{
			"by the file": {dump{data: true}, bundle, []moduleView{
				{Path: "/data/bundle+0x3000", BuildID: "id-one", Object: "file", Code: code(at), Problem: true},
				{Path: "/data/bundle+0x8000", BuildID: "id-two", Object: "file", Code: code(more), Problem: true}}, true},
			"by headers in memory": {kernelDump, bundle, []moduleView{
				{Path: "/data/bundle+0x3000", BuildID: "id-one", Object: "file", Code: code(at)},
				{Path: "/data/bundle+0x8000", BuildID: "id-two", Object: "file", Code: code(more)}}, true},
			"without the file": {kernelDump, nil, []moduleView{
				{Path: "/data/bundle+0x3000", BuildID: "id-one", Code: code(at), Problem: true},
				{Path: "/data/bundle+0x8000", BuildID: "id-two", Code: code(more), Problem: true}}, false},
		} {
			t.Run(name, func(t *testing.T) {
				own := *b
				w := newWorld(t, &own)
				load(w, one, at, offset, test.d)
				load(w, two, more, second, test.d)
				if test.file != nil {
					writeFile(t, w.root, "/data/bundle", test.file)
				}
				c := w.open()
				checkModules(t, c, test.want)
				for _, m := range c.Modules() {
					if m.Confirmed() != (m.Object != nil && test.d.head) {
						t.Errorf("%s: confirmed %v", m.Path, m.Confirmed())
					}
				}
				if test.text {
					checkMemory(t, c, at+0x1000, one.text[:16])
					checkMemory(t, c, more+0x1000, two.text[:16])
				}
			})
		}
	}
}

// TestCodeThatWasMoved has memory without a file in the place of a library's code.
func TestCodeThatWasMoved(t *testing.T) {
	const at = 0x7f0000
	b := little64()
	lib := newLibrary(b.numbers, b.machine, "the-id")
	for name, test := range map[string]struct {
		text    string // "": the core does not have it
		as      string // what the kernel calls the memory
		code    string
		problem string
	}{
		"the same bytes":      {string(lib.text), "", "0x1000+0x800 at 0x7f1000", ""},
		"in large pages":      {string(lib.text), "/anon_hugepage (deleted)", "0x1000+0x800 at 0x7f1000", ""},
		"other bytes":         {strings.Repeat("\xcc", textSize), "", "", "0x800 bytes of other code took the place of its own at 0x7f1000"},
		"not in the core":     {"", "", "0x1000+0x800 at 0x7f1000", "that it is the same code is a guess"},
		"but for breakpoints": {"\xcc" + string(lib.text[1:]), "", "0x1000+0x800 at 0x7f1000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			own := *b
			w := newWorld(t, &own)
			w.load("/lib/a.so", lib, at, dump{head: true, data: true, text: test.text != ""})
			w.write("/lib/a.so", lib)
			w.ranges = append(w.ranges[:1], w.ranges[2:]...)
			if test.as != "" {
				w.ranges = append(w.ranges, fileRange{start: at + 0x1000, end: at + 0x2000, path: test.as})
			}
			for i := range w.parts {
				if p := &w.parts[i]; p.address == at+0x1000 && test.text != "" {
					p.data = append([]byte(test.text), make([]byte, 0x1000-len(test.text))...)
				}
			}
			c := w.open(Options{Finder: object.Finder{}})
			checkModules(t, c, []moduleView{{Path: "/lib/a.so", BuildID: "the-id", Object: "file", Code: test.code, Problem: test.problem != ""}})
			if m := c.Modules()[0]; !strings.Contains(m.Problem, test.problem) {
				t.Errorf("%q, expected %q", m.Problem, test.problem)
			}
		})
	}
}
