// SPDX-License-Identifier: Apache-2.0

package dwarf

import "testing"

// packageIndexOf makes an index by DWARF 5, 7.3.5.3: the slot of an ID is its low
// bits; where that is taken, the step is the low bits of its upper half, made odd.
func packageIndexOf(version uint64, slots uint64, ids ...uint64) []byte {
	table, rows := make([]uint64, slots), make([]uint64, slots)
	mask := slots - 1
	var offsets, sizes []uint64
	for i, id := range ids {
		slot := id & mask
		for rows[slot] != 0 {
			slot = (slot + (id>>32&mask | 1)) & mask
		}
		table[slot], rows[slot] = id, uint64(i+1)
		offsets = append(offsets, uint64(0x100*i), uint64(0x10*i))
		sizes = append(sizes, 0x100, 0x10)
	}
	b := words(4, version, 2, uint64(len(ids)), slots)
	b = append(append(b, words(8, table...)...), words(4, rows...)...)
	b = append(b, words(4, 1, 3)...) // DW_SECT_INFO, DW_SECT_ABBREV
	return append(append(b, words(4, offsets...)...), words(4, sizes...)...)
}

func TestPackageIndexFindsIDsThatCollide(t *testing.T) {
	ids := []uint64{0x3_0000_0001, 0x5_0000_0001, 0x7_0000_0001, 0x2_0000_0009, 0x11}
	for _, version := range []uint64{2, 5} {
		x, err := readPackageIndex(".debug_cu_index", packageIndexOf(version, 8, ids...), false)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			c, err := x.find(id)
			if err != nil || c == nil {
				t.Fatalf("version %d, ID %#x: %v, error %v", version, id, c, err)
			}
			if c.off[sectInfo] != uint64(0x100*i) || c.size[sectInfo] != 0x100 || c.off[sectAbbrev] != uint64(0x10*i) || c.size[sectAbbrev] != 0x10 {
				t.Errorf("version %d, ID %#x: %+v, want that of row %d", version, id, c, i+1)
			}
		}
		for _, id := range []uint64{0, 0x9_0000_0001, ^uint64(0)} {
			if c, err := x.find(id); c != nil || err != nil {
				t.Errorf("version %d, ID %#x: %+v, error %v, want none", version, id, c, err)
			}
		}
	}
}

// A table without an empty slot, none of which is the one looked for, is no loop.
func TestPackageIndexWithoutEmptySlots(t *testing.T) {
	x, err := readPackageIndex(".debug_cu_index", packageIndexOf(5, 4, 0, 1, 2, 3), false)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := x.find(0x7_0000_0005); c != nil || err != nil {
		t.Errorf("%+v, error %v, want none", c, err)
	}
}

func TestPackageIndexThatDoesNotFitIsAnError(t *testing.T) {
	sound := packageIndexOf(5, 4, 1, 2)
	for n := 1; n < len(sound); n++ {
		if x, err := readPackageIndex(".debug_cu_index", sound[:n], false); err == nil {
			t.Fatalf("%d of %d bytes: %+v, want an error", n, len(sound), x)
		}
	}
	for name, b := range map[string][]byte{
		"version":         packageIndexOf(3, 4, 1),
		"slots":           append(words(4, 5, 2, 1, 3), make([]byte, 100)...),
		"more than slots": append(words(4, 5, 2, 9, 8), make([]byte, 1000)...),
	} {
		if x, err := readPackageIndex(".debug_cu_index", b, false); err == nil {
			t.Errorf("%s: %+v, want an error", name, x)
		}
	}
	row := packageIndexOf(5, 4, 1)
	row[16+4*8+4*1] = 9 // the row of slot 1
	x, err := readPackageIndex(".debug_cu_index", row, false)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := x.find(1); err == nil {
		t.Errorf("%+v, want an error about the row", c)
	}
}

// An index of the file leads to the unit; a wrong one does no harm.
func TestGDBIndexIsUsedWhereItProvesRight(t *testing.T) {
	r := openReader(t, "testdata/small4")
	size := uint64(len(r.main.info))
	ranges := r.main.readGDBIndex(gdbIndex(size))
	if len(ranges) != 1 || ranges[0].unit != r.main.unitAt(0).offset || ranges[0].span != (span{0x4000b0, 0x400154}) {
		t.Errorf("ranges %+v, want those of the unit", ranges)
	}
	for name, data := range map[string][]byte{
		"of another state of the file": gdbIndex(size - 1),
		"cut":                          gdbIndex(size)[:30],
		"version 3":                    append(words(4, 3), gdbIndex(size)[4:]...),
	} {
		if got := r.main.readGDBIndex(data); got != nil {
			t.Errorf("%s: %+v, want none", name, got)
		}
	}
}
