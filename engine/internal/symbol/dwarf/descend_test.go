// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"strings"
	"testing"
)

// TestDescentsGoOverWhatIsInsideAnEntry has entries named by where they stand, of which
// two pass over the entries inside them.
func TestDescentsGoOverWhatIsInsideAnEntry(t *testing.T) {
	const atSibling, fRef4 = 0x01, 0x13
	space := func(n string, attrs []attr, children ...die) die {
		return die{tagNamespace, append(attrs, name(n)), children}
	}
	told := func(to string) []attr { return []attr{{atSibling, fRef4, label(to)}} }
	all := []die{
		space("1", nil, space("11", nil, space("111", nil)), space("12", nil)),
		space("2", told("2 ends"), space("21", nil, space("211", nil))),
		space("3", marked("2 ends")), space("4", nil),
	}
	deep := space("deepest", nil)
	for range maxDepth {
		deep = space("deep", nil, deep)
	}
	for _, c := range []struct {
		name    string
		inside  []die
		from    string // "": the unit
		visit   func(d *descent, name string)
		want    string
		problem string
	}{
		{"all", all, "", nil, "unit 1 11 111 12 2 21 211 3 4", ""},
		{"of an entry", all, "1", nil, "1 11 111 12", ""},
		{"of one without children", all, "3", nil, "3", ""},
		{"passing over those inside 1 and 2", all, "", func(d *descent, n string) {
			if n == "1" || n == "2" {
				d.skip()
			}
		}, "unit 1 2 3 4", ""},
		{"passing over what has no children", all, "", func(d *descent, n string) {
			if n == "111" || n == "12" {
				d.skip()
			}
		}, "unit 1 11 111 12 2 21 211 3 4", ""},
		{"passing over those whose end is told", all, "", func(d *descent, _ string) { d.skipBySibling() }, "unit 1 11 111 12 2 3 4", ""},
		{"too deep", []die{deep}, "", nil, "unit" + strings.Repeat(" deep", maxDepth), "nested deeper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := handmade(t, sections{}, die{tagUnit, []attr{name("unit")}, c.inside}, unitDie())
			b, err := r.main.everyUnit()[0].open()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			from := b.first
			for d := b.descend(b.first); c.from != "" && d.next(); {
				if d.entry.Name() == c.from {
					from = d.entry.off
				}
			}
			d := b.descend(from)
			for d.next() {
				n := d.entry.Name()
				if isNumber := n[0] < 'a'; isNumber && c.from == "" && d.depth != len(n) {
					t.Errorf("%s has %d entries around it", n, d.depth)
				}
				got = append(got, n)
				if c.visit != nil {
					c.visit(&d, n)
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%.200s, expected %.200s", text, c.want)
			}
			if (d.err == nil) != (c.problem == "") || d.err != nil && !strings.Contains(d.err.Error(), c.problem) {
				t.Errorf("%v, expected %q", d.err, c.problem)
			}
		})
	}
}
