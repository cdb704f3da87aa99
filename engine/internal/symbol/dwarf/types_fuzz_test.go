// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"testing"

	"github.com/unwindd/unwindd/internal/dw"
)

// askTypes reads whatever types and variables there are.
func askTypes(r *Reader) {
	_ = r.protect(func() error {
		known, err := r.defined.get(r.findDefinitions)
		if err != nil {
			return err
		}
		left := 500
		for _, of := range []map[uint64][]entryKey{known.types, known.variables} {
			for _, list := range of {
				for _, k := range list {
					e, err := k.entry()
					if err != nil {
						continue
					}
					e.QualifiedName()
					_, _ = e.Placed()
					t, err := e.ValueType()
					if _, isType := kindOfTag[e.Tag()]; isType {
						t, err = e.AsType()
					}
					if err == nil {
						askType(t, &left, 0)
					}
				}
			}
		}
		return nil
	})
}

func askType(t *Type, left *int, depth int) {
	if *left--; *left < 0 || depth > 20 {
		return
	}
	_ = t.String()
	if plain, err := t.Plain(); err == nil {
		plain.Complete()
	}
	_, _ = t.Dimensions()
	_, _ = t.Bound(dw.AttrDataLocation)
	if t.Kind == KindEnumeration {
		_, _ = t.Enumerators()
	}
	if p, err := t.Parts(); err == nil {
		for i := range p.Members {
			m := &p.Members[i]
			if m.Type != nil {
				askType(m.Type, left, depth+1)
			}
			for k := range m.Variants {
				for j := range m.Variants[k].Members {
					if of := m.Variants[k].Members[j].Type; of != nil {
						askType(of, left, depth+1)
					}
				}
			}
		}
	}
	if e, err := t.Element(); err == nil && e != t {
		askType(e, left, depth+1)
	}
}

// FuzzTypes reads hostile types.
func FuzzTypes(f *testing.F) {
	for _, s := range smallSections(f) {
		f.Add(s.info, s.abbrev, s.str, false)
	}
	f.Fuzz(func(_ *testing.T, info, abbrev, str []byte, big bool) {
		if r := fuzzReader(sections{info: info, abbrev: abbrev, str: str, isBigEndian: big}); r != nil {
			askTypes(r)
		}
	})
}
