// SPDX-License-Identifier: Apache-2.0

package dwarf

// typeSection is .debug_types (DWARF 4, 7.5.1).
type typeSection struct {
	data  []byte
	units []*unit
}

func (f *file) typeSection() (typeSection, error) {
	return f.types.get(func() (t typeSection, err error) {
		if t.data, err = f.read(".debug_types"); err != nil || f.indexes[1] != nil {
			return t, err
		}
		t.units, err = f.typeUnits(t.data)
		return t, err
	})
}

func (f *file) typesData() []byte {
	t, _ := f.typeSection()
	return t.data
}

// typeBySignature returns a type unit, and the offset of the entry of its type.
func (f *file) typeBySignature(signature uint64) (*unit, uint64, error) {
	u, err := f.typeUnit(signature)
	if err != nil {
		return nil, 0, err
	}
	if u == nil {
		return nil, 0, bad(".debug_info"+f.suffix, 0, "a type unit of signature %#x is expected", signature)
	}
	target := u.offset + u.typeOff
	if u.typeOff >= u.end-u.offset || target < u.first {
		return nil, 0, u.wrong(u.offset, "its type is at %#x, expected an offset in the unit", u.typeOff)
	}
	return u, target, nil
}

func (f *file) typeUnit(signature uint64) (*unit, error) {
	if f.reader != nil && f.reader.generated != nil {
		return f.reader.generatedUnit(generatedType, signature)
	}
	if f.indexes[1] != nil {
		return f.packaged(1, signature, nil)
	}
	table, err := f.bySignature.get(func() (map[uint64]*unit, error) {
		table := make(map[uint64]*unit)
		t, err := f.typeSection()
		if err != nil {
			return nil, err
		}
		for _, list := range [][]*unit{f.everyUnit(), t.units} {
			for _, u := range list {
				if u.isType() {
					table[u.signature] = u
				}
			}
		}
		return table, nil
	})
	return table[signature], err
}
