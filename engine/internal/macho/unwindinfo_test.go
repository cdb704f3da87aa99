// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
)

// put changes a number of 32 bits.
func put(b []byte, offset int, v uint32) []byte {
	b = append([]byte(nil), b...)
	binary.LittleEndian.PutUint32(b[offset:], v)
	return b
}

// Unwind information that leads outside, or back, is an error that names the section and the offset.
func TestUnwindInfoThatIsWrong(t *testing.T) {
	regular := madeInfo(regularPage, 0x1000, 0x04000003, 0x1010, 0x02001000, 0x1020)
	compressed := madeInfo(compressedPage, 0x1000, 0x04000003, 0x1010, 0x02001000, 0x1020)
	const index, page = 28, 52
	for name, c := range map[string]struct {
		info []byte
		want string
	}{
		"nothing":                   {regular[:20], "offset 0x0: 20 bytes, expected a header of 28"},
		"another version":           {put(regular, 0, 7), "version 7, expected 1"},
		"common encodings outside":  {put(regular, 8, 1<<30), "the common encodings: 1073741824 entries at offset 0x1c"},
		"an index outside":          {put(regular, 20, 1<<20), "the index: 2 entries at offset 0x100000"},
		"an index that is too long": {put(regular, 24, 1<<30), "the index: 1073741824 entries at"},
		"pages that go back":        {put(regular, index+12, 0xfff), "page 1 begins at 0xfff, before"},
		"a page outside":            {put(regular, index+4, 1<<30), "page 0 is behind the end of the section"},
		"a page at the end":         {put(regular, index+4, uint32(len(regular)-4)), "page 0 is behind the end of the section"},
		"a page of another kind":    {put(regular, page, 9), "page 0 is of kind 9"},
		"entries outside":           {put(regular, page+4, 0xffff_0008), "page 0: 65535 entries at 0x3c"},
		"encodings outside":         {put(compressed, page+8, 0xffff_0014), "page 0: 65535 encodings"},
		"code before the page's":    {put(regular, page+8, 0x10), "code from 0x10 to 0x1010, expected to lie in the page's"},
		"code behind the page's":    {put(compressed, page+16, 0x0100_ffff), "expected to lie in the page's"},
		"an encoding that is not":   {put(compressed, page+12, 0x2000_0000), "encoding 32, expected one of 0 that pages share and 2 of the page"},
		"code behind all addresses": {put(regular, page+16, 0xffff_ffff), "expected to lie in the page's"},
	} {
		f := fileOfUnwindInfo(MachineARM64, make([]byte, 64), c.info)
		u, err := f.UnwindInfo()
		if err == nil {
			for _, e := range u.Entries() {
				if e != nil {
					err = e
					break
				}
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "__TEXT,__unwind_info, offset ") {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
		useUnwindInfo(t, f)
	}
}

// Encodings that no compiler writes have no row.
func TestEncodingsThatAreWrong(t *testing.T) {
	for encoding, want := range map[uint32]string{
		0x01000007: "saves register 7 in a frame", // no register has the number
		0x01010006: "saves register 6 in a frame", // the frame pointer twice
		0x01000001: "twice, or above the frame",   // at the frame pointer
		0x01020009: "twice, or above the frame",   // one register at two places
		0x02001c00: "a frame of 0 bytes with 7 registers",
		0x02010400: "a frame of 8 bytes with 1 registers",
		0x020a07ff: "permutation 1023 of 1 registers is none",
		0x03400000: "the size of the frame", // behind the code
		0x03000000: "a frame of",            // zero bytes of code are no size
		0x0f000000: "has no row",
		0x00000000: "has no row",
		0x04000010: "has no row",
	} {
		f := fileOfUnwindInfo(MachineX86_64, make([]byte, 8), madeInfo(regularPage, 0x1000, encoding, 0x1008))
		f.mapped[0].FileSize = 0x1008
		u, err := f.UnwindInfo()
		if err != nil {
			t.Fatal(err)
		}
		e, ok, err := u.At(0x100001004)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		var row cfi.Row
		if err := u.Row(&e, &row); err == nil || !strings.Contains(err.Error(), want) || len(row.Rules) > 0 {
			t.Errorf("encoding %#x: %v, row %+v, expected %q", encoding, err, row, want)
		}
	}
}

// The registers of a frame without a frame pointer are numbered by their order: all orders of all counts
// are different, and each has every register once.
func TestPermutationsAreAllOrders(t *testing.T) {
	orders := []int{1, 6, 30, 120, 360, 720, 720}
	for count, most := range orders {
		seen := map[[6]uint8]bool{}
		for number := range uint32(1024) {
			registers, ok := permutation(number, count)
			if !ok {
				continue
			}
			used := 0
			for _, r := range registers[:count] {
				used |= 1 << r
			}
			n := 0
			for i := 1; i <= 6; i++ {
				n += used >> i & 1
			}
			if n != count || used&^0x7e != 0 {
				t.Errorf("%d of %d: %v", number, count, registers)
			}
			seen[registers] = true
		}
		if len(seen) != most {
			t.Errorf("%d registers: %d orders, expected %d", count, len(seen), most)
		}
	}
}
