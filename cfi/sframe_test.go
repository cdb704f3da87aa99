// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An sframeSpec is an .sframe to write. Its zero value has version 2, AMD64,
// little endian, a return address at CFA-8.
type sframeSpec struct {
	version, flags, abi byte
	fp, ra              int8
	auxiliary           []byte
	order               order
	address             uint64
	fdes                []sfdeSpec
	total               int    // FREs that the header claims besides those there are
	trailing            []byte // behind the FREs
}

type sfdeSpec struct {
	start  uint64
	size   uint32
	info   byte // FRE type, FDE type, key
	kind   byte // of the FDE, in version 3
	block  byte
	fres   []byte
	n      uint32
	offset uint32 // added to that of the FREs
}

func (s sframeSpec) section() Section {
	if s.version == 0 {
		s.version = 2
	}
	if s.abi == 0 {
		s.abi = 3
	}
	if s.abi == 3 && s.ra == 0 {
		s.ra = -8
	}
	if s.order == nil {
		s.order = binary.LittleEndian
		if s.abi == 1 || s.abi == 4 {
			s.order = binary.BigEndian
		}
	}
	if s.address == 0 {
		s.address = 0x2000
	}
	size := map[byte]int{1: 17, 2: 20, 3: 16}[s.version]
	var fres []byte
	total := s.total
	o := s.order
	words := func(b []byte, list ...uint32) []byte {
		for _, v := range list {
			b = o.AppendUint32(b, v)
		}
		return b
	}
	for i, f := range s.fdes {
		if s.version == 3 {
			f.fres = append(append(o.AppendUint16(nil, uint16(f.n)), f.info, f.kind, f.block), f.fres...)
			s.fdes[i].fres = f.fres
		}
		fres = append(fres, f.fres...)
		total += int(f.n)
	}
	b := o.AppendUint16(nil, 0xdee2)
	b = append(b, s.version, s.flags, s.abi, byte(s.fp), byte(s.ra), byte(len(s.auxiliary)))
	b = words(b, uint32(len(s.fdes)), uint32(total), uint32(len(fres)), 0, uint32(len(s.fdes)*size))
	b = append(b, s.auxiliary...)
	pos := uint32(0)
	for _, f := range s.fdes {
		base := s.address
		if s.flags&4 != 0 {
			base += uint64(len(b))
		}
		switch s.version {
		case 1:
			b = append(words(b, uint32(f.start-base), f.size, pos+f.offset, f.n), f.info)
		case 2:
			b = append(words(b, uint32(f.start-base), f.size, pos+f.offset, f.n), f.info, f.block, 0, 0)
		default:
			b = words(o.AppendUint64(b, f.start-base), f.size, pos+f.offset)
		}
		pos += uint32(len(f.fres))
	}
	return Section{Name: ".sframe", Data: append(append(b, fres...), s.trailing...), Address: s.address, Order: o, AddressSize: 8}
}

func newSFrame(t testing.TB, s Section) *SFrame {
	t.Helper()
	table, err := NewSFrame(s)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// sframeRows are all rows of a section, by FDE, with errors in their place.
func sframeRows(table *SFrame) []string {
	var out []string
	for f, err := range table.FDEs() {
		if err == nil {
			err = f.Rows(func(r *Row) bool {
				out = append(out, text(r))
				return true
			})
		}
		if err != nil {
			out = append(out, err.Error())
		}
	}
	return out
}

const (
	lostAMD64   = " 12:u 13:u 14:u 15:u"
	lostAArch64 = " 19:u 20:u 21:u 22:u 23:u 24:u 25:u 26:u 27:u 28:u"
	lostVectors = " 72:u 73:u 74:u 75:u 76:u 77:u 78:u 79:u"
	lostS390X   = " 24:u 25:u 26:u 27:u 28:u 29:u 30:u 31:u"
)

func TestSFrameRowsOfEveryABI(t *testing.T) {
	for _, c := range []struct {
		name string
		spec sframeSpec
		want []string
	}{
		{"AMD64 tracks CFA and frame pointer, and says nothing of other registers", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 0x40, n: 3, fres: []byte{0, 3, 8, 1, 5, 16, 0xf0, 4, 4, 16, 0xf0}},
		}}, []string{
			"1000-1001 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"1001-1004 7+16 3:u 6:c-16 7:v+0" + lostAMD64 + " 16:c-8",
			"1004-1040 6+16 3:u 6:c-16 7:v+0" + lostAMD64 + " 16:c-8",
		}},
		{"start addresses of 2 and 4 bytes, offsets of 2 and 4 bytes", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 0x1000, info: 1, n: 2, fres: []byte{0, 0, 0x23, 0x10, 0x04, 0x34, 0x02, 0x25, 0, 1, 0xf0, 0xff}},
			{start: 0x2000, size: 0x100000, info: 2, n: 2, fres: []byte{0, 0, 0, 0, 0x43, 0, 0, 1, 0, 0, 0, 1, 0, 3, 8}},
		}}, []string{
			"1000-1234 7+1040 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"1234-2000 7+256 3:u 6:c-16 7:v+0" + lostAMD64 + " 16:c-8",
			"2000-12000 7+65536 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"12000-102000 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
		}},
		{"start addresses relative to their field, an auxiliary header", sframeSpec{flags: 5, auxiliary: []byte{1, 2, 3}, fdes: []sfdeSpec{
			{start: 0x1000, size: 1, n: 1, fres: []byte{0, 3, 8}},
			{start: 0x10000, size: 1, n: 1, fres: []byte{0, 3, 16}},
		}}, []string{
			"1000-1001 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"10000-10001 7+16 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
		}},
		{"a fixed offset of the frame pointer", sframeSpec{fp: -16, fdes: []sfdeSpec{
			{start: 0x1000, size: 4, n: 1, fres: []byte{0, 2, 16}},
		}}, []string{"1000-1004 6+16 3:u 6:c-16 7:v+0" + lostAMD64 + " 16:c-8"}},
		{"blocks that repeat from where they begin, the last one cut", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1014, size: 0x2c, info: 0x10, block: 16, n: 2, fres: []byte{0, 3, 8, 11, 3, 16}},
		}}, []string{
			"1014-101f 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"101f-1024 7+16 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"1024-102f 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"102f-1034 7+16 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"1034-103f 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"103f-1040 7+16 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
		}},
		{"blocks that repeat, the last one cut in its first row", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 0x15, info: 0x10, block: 16, n: 2, fres: []byte{0, 3, 8, 11, 3, 16}},
		}}, []string{
			"1000-100b 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"100b-1010 7+16 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"1010-1015 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
		}},
		{"no row behind the end of a block", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 0x20, info: 0x10, block: 16, n: 3, fres: []byte{0, 3, 8, 20, 3, 16, 24, 3, 16}},
		}}, []string{
			"1000-1010 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			"1010-1020 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
		}},
		{"version 1 does not say how long a repeated block is", sframeSpec{version: 1, fdes: []sfdeSpec{
			{start: 0x1000, size: 4, n: 1, fres: []byte{0, 3, 8}},
			{start: 0x1010, size: 0x20, info: 0x10, n: 1, fres: []byte{0, 3, 8}},
		}}, []string{
			"1000-1004 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
			".sframe+0x2d: malformed SFrame section: version 1 does not say how long a repeated block is",
		}},
		{"the last FRE at an address holds, none behind the end, none before the first", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 8, n: 4, fres: []byte{2, 3, 8, 2, 3, 16, 8, 3, 24, 9, 3, 24}},
		}}, []string{"1002-1008 7+16 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8"}},
		{"an FRE without offsets has no caller", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 8, n: 2, fres: []byte{0, 3, 8, 4, 0}},
		}}, []string{"1000-1004 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8", "1004-1008 none 16:u"}},
		{"AArch64, with signed return addresses", sframeSpec{abi: 2, fdes: []sfdeSpec{
			{start: 0x1000, size: 0x40, info: 0x20, n: 3, fres: []byte{0, 3, 0, 4, 0x83, 0, 8, 0x86, 32, 0xe8, 0xe0}},
		}}, []string{
			"1000-1004 31+0" + lostAArch64 + " 29:s 30:s 31:v+0" + lostVectors,
			"1004-1008 31+0" + lostAArch64 + " 29:s 30:s 31:v+0" + lostVectors + " window",
			"1008-1040 29+32" + lostAArch64 + " 29:c-32 30:c-24 31:v+0" + lostVectors + " window",
		}},
		{"AArch64, big endian", sframeSpec{abi: 1, fdes: []sfdeSpec{
			{start: 0x1000, size: 0x400, info: 1, n: 1, fres: []byte{0, 0, 0x27, 0x01, 0x00, 0xff, 0x08, 0xff, 0x00}},
		}}, []string{"1000-1400 31+256" + lostAArch64 + " 29:c-256 30:c-248 31:v+0" + lostVectors}},
		{"s390x: the CFA is scaled, registers are odd", sframeSpec{abi: 4, fdes: []sfdeSpec{
			{start: 0x1000, size: 0x40, n: 5, fres: []byte{0, 3, 0, 6, 5, 0, 0xd0, 8, 7, 20, 0xd0, 0xb8, 10, 7, 0, 33, 35, 12, 6, 0, 0, 0xb8}},
		}}, []string{
			"1000-1006 15+160 6:u 7:u 8:u 9:u 10:u 11:s 12:u 13:u 14:s 15:v-160" + lostS390X,
			"1006-1008 15+160 6:u 7:u 8:u 9:u 10:u 11:s 12:u 13:u 14:c-48 15:v-160" + lostS390X,
			"1008-100a 15+320 6:u 7:u 8:u 9:u 10:u 11:c-72 12:u 13:u 14:c-48 15:v-160" + lostS390X,
			"100a-100c 15+160 6:u 7:u 8:u 9:u 10:u 11:r17 12:u 13:u 14:r16 15:v-160" + lostS390X,
			"100c-1040 11+160 6:u 7:u 8:u 9:u 10:u 11:c-72 12:u 13:u 14:s 15:v-160" + lostS390X,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := newSFrame(t, c.spec.section())
			if diff := cmp.Diff(c.want, sframeRows(table)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			checkSFrame(t, table)
		})
	}
}

func TestSFrameReturnAddressColumns(t *testing.T) {
	for abi, want := range map[byte]struct {
		machine uint16
		column  uint64
	}{1: {183, 30}, 2: {183, 30}, 3: {62, 16}, 4: {22, 14}} {
		table := newSFrame(t, sframeSpec{abi: abi, fdes: []sfdeSpec{{start: 0x1000, size: 4, n: 1, fres: []byte{0, 3, 8}}}}.section())
		f, err := table.FDE(0x1003)
		if err != nil {
			t.Fatal(err)
		}
		var row Row
		if err := f.RowAt(0x1003, &row); err != nil || row.ReturnAddress != want.column || table.Machine() != want.machine {
			t.Errorf("ABI %d: return address in column %d, machine %d, %v; want %+v", abi, row.ReturnAddress, table.Machine(), err, want)
		}
	}
}

func TestSFrameKeys(t *testing.T) {
	table := newSFrame(t, sframeSpec{abi: 2, fdes: []sfdeSpec{{start: 0x1000, size: 4}, {start: 0x1004, size: 4, info: 0x20}}}.section())
	for pc, want := range map[uint64]bool{0x1000: false, 0x1004: true} {
		if f, err := table.FDE(pc); err != nil || f.BKey != want {
			t.Errorf("FDE of %#x: %+v, %v; want BKey %v", pc, f, err, want)
		}
	}
}

func TestSFrameHeadersThatAreRefused(t *testing.T) {
	one := sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, n: 1, fres: []byte{0, 3, 8}}}}
	set := func(pos int, b ...byte) func(*Section) {
		return func(s *Section) { copy(s.Data[pos:], b) }
	}
	for _, c := range []struct {
		name   string
		change func(*Section)
		want   error
		text   string
	}{
		{"nothing", func(s *Section) { s.Data = nil }, ErrTruncated, ".sframe+0x0: data ends early: expected the SFrame header"},
		{"a header that is cut", func(s *Section) { s.Data = s.Data[:27] }, ErrTruncated, ".sframe+0x18: data ends early: expected the SFrame header"},
		{"no byte order", func(s *Section) { s.Order = nil }, ErrSection, ".sframe+0x0: unusable section description: byte order <nil>, expected little or big endian"},
		{"the other byte order", func(s *Section) { s.Order = binary.BigEndian }, ErrSFrame, ".sframe+0x0: malformed SFrame section: magic number 0xe2de, expected 0xdee2"},
		{"version 4", set(2, 4), ErrSFrameVersion, ".sframe+0x2: SFrame version is not supported: 4, expected 1 to 3"},
		{"version 0", set(2, 0), ErrSFrameVersion, ".sframe+0x2: SFrame version is not supported: 0, expected 1 to 3"},
		{"a flag that is not defined", set(3, 9), ErrSFrame, ".sframe+0x3: malformed SFrame section: flags 0x8, which version 2 does not define"},
		{"a flag of version 2 in version 1", set(2, 1, 4), ErrSFrame, ".sframe+0x3: malformed SFrame section: flags 0x4, which version 1 does not define"},
		{"an ABI that is not known", set(4, 5), ErrSFrameABI, ".sframe+0x4: unusable SFrame ABI: identifier 5, expected 1 to 4"},
		{"an ABI of the other byte order", set(4, 1), ErrSFrameABI, ".sframe+0x4: unusable SFrame ABI: AArch64, big endian, in a section with byte order LittleEndian"},
		{"addresses of 4 bytes", func(s *Section) { s.AddressSize = 4 }, ErrAddressSize, ".sframe+0x4: bad address size: 4 bytes, AMD64 has 8"},
		{"AMD64 without a place for the return address", set(6, 0), ErrSFrameABI, ".sframe+0x6: unusable SFrame ABI: AMD64 with a fixed offset of 0 for the return address"},
		{"AArch64 with a fixed return address", set(4, 2), ErrSFrameABI, ".sframe+0x6: unusable SFrame ABI: AArch64, little endian with a fixed offset of -8 for the return address"},
		{"FDEs that reach into FREs", set(8, 2), ErrSFrame, ".sframe+0x8: malformed SFrame section: 2 FDEs of 20 bytes at 0x1c, but FREs begin at 0x30"},
		{"as many FDEs as a number can say", set(8, 255, 255, 255, 255), ErrSFrame, ".sframe+0x8: malformed SFrame section: 4294967295 FDEs of 20 bytes at 0x1c, but FREs begin at 0x30"},
		{"FREs that are cut", func(s *Section) { s.Data = s.Data[:len(s.Data)-1] }, ErrTruncated, ".sframe+0x10: data ends early: 0x3 bytes of FREs at 0x30, the section has 0x32"},
		{"FREs behind the end", set(24, 255, 255, 255, 255), ErrTruncated, ".sframe+0x10: data ends early: 0x3 bytes of FREs at 0x10000001b, the section has 0x33"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := one.section()
			c.change(&s)
			if _, err := NewSFrame(s); !errors.Is(err, c.want) || err.Error() != c.text {
				t.Errorf("got  %v\nwant %s", err, c.text)
			}
		})
	}
}

func TestSFrameEntriesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		spec sframeSpec
		want string
	}{
		{"code beyond the address space", sframeSpec{address: ^uint64(0) - 0xff, fdes: []sfdeSpec{{start: ^uint64(0), size: 2}}},
			".sframe+0x1c: arithmetic overflow: 0x2 bytes of code at 0xffffffffffffffff"},
		{"code before address 0", sframeSpec{address: 0x100, fdes: []sfdeSpec{{start: ^uint64(0) - 0xf, size: 2}}},
			".sframe+0x1c: arithmetic overflow: 0x2 bytes of code at 0xfffffffffffffff0"},
		{"an FRE type that is not known", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, info: 3}}},
			".sframe+0x2c: malformed SFrame section: info word 0x3 of an FDE"},
		{"bits that are not used", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, info: 0x80}}},
			".sframe+0x2c: malformed SFrame section: info word 0x80 of an FDE"},
		{"a key on AMD64", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, info: 0x20}}},
			".sframe+0x2c: malformed SFrame section: info word 0x20 of an FDE"},
		{"blocks of no size", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, info: 0x10}}},
			".sframe+0x2d: malformed SFrame section: repeated blocks of no size"},
		{"FREs behind the end", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, offset: 4, n: 1, fres: []byte{0, 3, 8}}}},
			".sframe+0x24: data ends early: 1 FREs at 0x4 of 0x3"},
		{"FREs that reach behind the end", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, offset: 2, n: 1, fres: []byte{0, 3, 8}}}},
			".sframe+0x24: data ends early: 1 FREs at 0x2 of 0x3"},
		{"an FRE that reaches behind the FREs", sframeSpec{trailing: []byte{1, 2, 3, 4}, fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 0x43, 8}}}},
			".sframe+0x32: data ends early: expected an FRE"},
		{"more FREs than there are bytes", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 2, fres: []byte{0, 3, 8}}}},
			".sframe+0x24: data ends early: 2 FREs at 0x0 of 0x3"},
		{"more FREs than the header says", sframeSpec{total: -1, fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 3, 8}}}},
			".sframe+0x1c: malformed SFrame section: 1 FREs, 0 are left of those in the header"},
		{"an FRE that is cut", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 0x43, 8, 0, 0}}}},
			".sframe+0x32: data ends early: expected an FRE"},
		{"an FRE whose offsets have a size that is not known", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 0x63, 8}}}},
			".sframe+0x30: malformed SFrame section: info word 0x63 of an FRE"},
		{"an FRE with too many offsets for any ABI", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 9, 8, 8, 8, 8}}}},
			".sframe+0x30: malformed SFrame section: info word 0x9 of an FRE"},
		{"an FRE with too many offsets for AMD64", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 7, 8, 8, 8}}}},
			".sframe+0x30: malformed SFrame section: offsets [8 8 8]: not the CFA's, return address's and frame pointer's on AMD64"},
		{"a signed return address on AMD64", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 0x83, 8}}}},
			".sframe+0x30: malformed SFrame section: info word 0x83: a signed return address on AMD64"},
		{"AArch64 with a return address alone", sframeSpec{abi: 2, fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 5, 8, 0xf8}}}},
			".sframe+0x30: malformed SFrame section: offsets [8 -8]: not the CFA's, return address's and frame pointer's on AArch64, little endian"},
		{"s390x with a register below 0", sframeSpec{abi: 4, fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 5, 8, 0xff}}}},
			".sframe+0x30: malformed SFrame section: offsets [8 -1]: not the CFA's, return address's and frame pointer's on s390x"},
		{"s390x with a frame pointer at the CFA", sframeSpec{abi: 4, fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 7, 8, 0xf8, 0}}}},
			".sframe+0x30: malformed SFrame section: offsets [8 -8 0]: not the CFA's, return address's and frame pointer's on s390x"},
		{"FREs that go back", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 8, n: 2, fres: []byte{4, 3, 8, 2, 3, 8}}}},
			".sframe+0x33: location goes backwards: 0x2 after 0x4"},
		{"an FRE without offsets in version 1", sframeSpec{version: 1, fdes: []sfdeSpec{{start: 0x1000, size: 8, n: 1, fres: []byte{0, 0}}}},
			".sframe+0x2d: malformed SFrame section: info word 0x0: an FRE without offsets"},
		{"an FRE without offsets that says something", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 8, n: 1, fres: []byte{0, 1}}}},
			".sframe+0x30: malformed SFrame section: info word 0x1: an FRE without offsets"},
		{"more blocks than are listed", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 1<<32 - 1, info: 0x10, block: 1, n: 1, fres: []byte{0, 3, 8}}}},
			".sframe+0x1c: limit exceeded: 4294967295 blocks of 1 rows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := newSFrame(t, c.spec.section())
			if diff := cmp.Diff([]string{c.want}, sframeRows(table)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkSFrame(t, table)
		})
	}
}

func TestSFrameFindsFDEsInEveryOrder(t *testing.T) {
	fde := func(start uint64, size uint32) sfdeSpec { return sfdeSpec{start: start, size: size} }
	for _, c := range []struct {
		name     string
		flags    byte
		fdes     []sfdeSpec
		want     map[uint64]uint64 // PC: start of its FDE
		inPlace  bool
		problems int
	}{
		{"sorted", 1, []sfdeSpec{fde(0x1000, 16), fde(0x1010, 16), fde(0x1030, 1)},
			map[uint64]uint64{0xfff: 0, 0x1000: 0x1000, 0x100f: 0x1000, 0x1010: 0x1010, 0x1020: 0, 0x1030: 0x1030, 0x1031: 0}, true, 0},
		{"sorted, and the header does not say so", 0, []sfdeSpec{fde(0x1000, 16), fde(0x1010, 16)},
			map[uint64]uint64{0x1000: 0x1000, 0x1010: 0x1010}, true, 0},
		{"not sorted", 0, []sfdeSpec{fde(0x1030, 1), fde(0x1000, 16), fde(0x1010, 16)},
			map[uint64]uint64{0xfff: 0, 0x1000: 0x1000, 0x100f: 0x1000, 0x1010: 0x1010, 0x1020: 0, 0x1030: 0x1030, 0x1031: 0}, false, 0},
		{"not sorted, and the header says sorted", 1, []sfdeSpec{fde(0x1030, 1), fde(0x1000, 16), fde(0x1010, 16)},
			map[uint64]uint64{0x1000: 0x1000, 0x1010: 0x1010, 0x1030: 0x1030}, false, 1},
		{"one within another", 1, []sfdeSpec{fde(0x1000, 64), fde(0x1010, 16)},
			map[uint64]uint64{0x1000: 0x1000, 0x1010: 0x1010, 0x1020: 0x1000, 0x103f: 0x1000, 0x1040: 0}, false, 0},
		{"code of no size", 1, []sfdeSpec{fde(0x1000, 16), fde(0x1000, 0)},
			map[uint64]uint64{0x1000: 0x1000, 0x100f: 0x1000}, false, 0},
		{"code of no size between others", 1, []sfdeSpec{fde(0x1000, 16), fde(0x1010, 0), fde(0x1010, 16), fde(0x1020, 0)},
			map[uint64]uint64{0x100f: 0x1000, 0x1010: 0x1010, 0x101f: 0x1010, 0x1020: 0}, true, 0},
		{"one that cannot be read", 1, []sfdeSpec{fde(0x1000, 16), {start: 0x1010, size: 16, info: 0xff}, fde(0x1020, 16)},
			map[uint64]uint64{0x1000: 0x1000, 0x1010: 0, 0x1020: 0x1020}, false, 1},
		{"none", 1, nil, map[uint64]uint64{0: 0}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := newSFrame(t, sframeSpec{flags: c.flags, fdes: c.fdes}.section())
			for pc, want := range c.want {
				f, err := table.FDE(pc)
				switch {
				case want == 0 && !errors.Is(err, ErrNoFDE):
					t.Errorf("FDE of %#x: %+v, %v; want none", pc, f, err)
				case want != 0 && (err != nil || f.Start != want || f.End == f.Start):
					t.Errorf("FDE of %#x: %+v, %v; want that at %#x", pc, f, err, want)
				}
			}
			if table.inPlace != c.inPlace || len(table.Problems()) != c.problems {
				t.Errorf("searched in place: %v, problems %q; want %v, %d", table.inPlace, table.Problems(), c.inPlace, c.problems)
			}
		})
	}
}

func TestSFrameFREsAreNotSharedBeyondTheirNumber(t *testing.T) {
	fre := []byte{0, 3, 8}
	table := newSFrame(t, sframeSpec{total: -1, fdes: []sfdeSpec{{start: 0x1000, size: 1, n: 1, fres: fre}, {start: 0x1001, size: 1, n: 1, fres: fre}}}.section())
	want := []string{
		"1000-1001 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8",
		".sframe+0x30: malformed SFrame section: 1 FREs, 0 are left of those in the header",
	}
	if diff := cmp.Diff(want, sframeRows(table)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSFrameListingsOfRepeatedBlocksAreBounded(t *testing.T) {
	var fdes []sfdeSpec
	for i := range 3 {
		fdes = append(fdes, sfdeSpec{start: uint64(i) << 20, size: 1 << 19, info: 0x10, block: 1, n: 1, fres: []byte{0, 3, 8}})
	}
	table := newSFrame(t, sframeSpec{fdes: fdes}.section())
	var failed []bool
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		err = f.Rows(func(*Row) bool { return false })
		failed = append(failed, errors.Is(err, ErrLimit))
	}
	if diff := cmp.Diff([]bool{false, false, true}, failed); diff != "" {
		t.Errorf("limit exceeded (-want +got):\n%s", diff)
	}
	f, err := table.FDE(2 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rows(func(*Row) bool { return true }); err != nil {
		t.Errorf("the same rows outside of a listing: %v", err)
	}
}

func TestSFrameRowAtDoesNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("allocations cannot be counted")
	}
	table := newSFrame(t, sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 8, n: 2, fres: []byte{0, 3, 8, 4, 5, 16, 0xf0}}}}.section())
	f, err := table.FDE(0x1000)
	if err != nil {
		t.Fatal(err)
	}
	var row Row
	if n := testing.AllocsPerRun(100, func() {
		if err := f.RowAt(0x1006, &row); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestSFrameKeepsAtMostSixteenProblems(t *testing.T) {
	var fdes []sfdeSpec
	for i := range 20 {
		fdes = append(fdes, sfdeSpec{start: uint64(0x1000 + i), size: 1, info: 0xff})
	}
	table := newSFrame(t, sframeSpec{fdes: fdes}.section())
	_, err := table.FDE(0x1000)
	want := ".sframe+0x0: no FDE covers the address: 0x1000; the section has 20 problems, the first: .sframe+0x2c: malformed SFrame section: info word 0xff of an FDE"
	if err == nil || err.Error() != want || len(table.Problems()) != 16 {
		t.Errorf("%v, %d problems\nwant %s", err, len(table.Problems()), want)
	}
}

func TestSFrameRowAtAddressesWithoutRow(t *testing.T) {
	table := newSFrame(t, sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 8, n: 1, fres: []byte{2, 3, 8}}, {start: 0x1008, size: 8}}}.section())
	f, err := table.FDE(0x1000)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := table.FDE(0x1008)
	if err != nil {
		t.Fatal(err)
	}
	row := Row{Rules: []RegisterRule{{Column: 1}}}
	for _, c := range []struct {
		f  *SFrameFDE
		pc uint64
	}{{f, 0x1001}, {f, 0xfff}, {f, 0x1008}, {empty, 0x1008}, {new(SFrameFDE), 0}} {
		if err := c.f.RowAt(c.pc, &row); !errors.Is(err, ErrNoRow) || len(row.Rules) != 0 {
			t.Errorf("row at %#x: %v, %+v; want %v", c.pc, err, row, ErrNoRow)
		}
	}
}

// checkSFrame reads everything there is in a section and tests what must always
// hold.
func checkSFrame(t *testing.T, table *SFrame) {
	t.Helper()
	var row Row
	for f, err := range table.FDEs() {
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Section == "" || f != nil {
				t.Fatalf("%+v, %v: want an *Error with a section", f, err)
			}
			continue
		}
		if f.Start < f.End {
			for _, pc := range []uint64{f.Start, f.End - 1} {
				found, err := table.FDE(pc)
				if err != nil || pc < found.Start || pc >= found.End || found.Start < f.Start {
					t.Fatalf("FDE of %#x: %+v, %v; one is %+v", pc, found, err, f)
				}
			}
		}
		next, n := f.Start, 0
		err = f.Rows(func(r *Row) bool {
			if r.Start < next || r.End <= r.Start || r.End > f.End {
				t.Fatalf("row %#x to %#x, expected it from %#x, in %+v", r.Start, r.End, next, f)
			}
			for i := 1; i < len(r.Rules); i++ {
				if r.Rules[i-1].Column >= r.Rules[i].Column {
					t.Fatalf("columns not sorted: %s", text(r))
				}
			}
			next = r.End
			if n++; n < 8 {
				for _, pc := range []uint64{r.Start, r.End - 1} {
					if err := f.RowAt(pc, &row); err != nil || text(&row) != text(r) {
						t.Fatalf("RowAt %#x %s, %v; Rows %s", pc, text(&row), err, text(r))
					}
				}
			}
			return n < 1000
		})
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Section == "") {
			t.Fatalf("%v: want an *Error with a section", err)
		}
	}
	for _, pc := range []uint64{0, 0x1000, ^uint64(0)} {
		if f, err := table.FDE(pc); err == nil && (pc < f.Start || pc >= f.End) {
			t.Fatalf("FDE of %#x: %+v", pc, f)
		}
	}
}

func FuzzSFrame(f *testing.F) {
	for version, allowed := range map[byte]byte{1: 3, 2: 7, 3: 5} {
		for _, flags := range []byte{0, 1, 5} {
			s := sframeSpec{version: version, flags: flags & allowed, address: 0x2000, fdes: []sfdeSpec{
				{start: 0x1000, size: 0x40, n: 3, fres: []byte{0, 3, 8, 1, 5, 16, 0xf0, 4, 4, 16, 0xf0}},
				{start: 0x1040, size: 0x2c, info: 0x10, block: 16, n: 2, fres: []byte{0, 3, 8, 11, 3, 16}},
				{start: 0x3000, size: 0x1000, info: 1, n: 2, fres: []byte{0, 0, 0x23, 0x10, 0x04, 0x34, 0x02, 0x25, 0, 1, 0xf0, 0xff}},
				{start: 0x3100, size: 0x100000, info: 2, n: 2, fres: []byte{0, 0, 0, 0, 0x43, 0, 0, 1, 0, 0, 0, 1, 0, 0}},
			}}
			f.Add(s.section().Data, s.address, false)
		}
	}
	f.Add(sframeSpec{version: 3, fdes: []sfdeSpec{{start: 0x1000, size: 0x40, kind: 1, n: 2, fres: []byte{0, 12, 0x51, 8, 0x31, 4, 0x53, 0xf8, 4, 6, 0x33, 8, 0}}, {start: 0x1040, size: 8}}}.section().Data, uint64(0x2000), false)
	f.Add(sframeSpec{abi: 2, fdes: []sfdeSpec{{start: 0x1000, size: 0x40, info: 0x20, n: 2, fres: []byte{0, 0x83, 0, 8, 0x86, 32, 0xe8, 0xe0}}}}.section().Data, uint64(0x2000), false)
	f.Add(sframeSpec{abi: 1, fdes: []sfdeSpec{{start: 0x1000, size: 0x40, n: 1, fres: []byte{0, 7, 32, 0xe8, 0xe0}}}}.section().Data, uint64(0x2000), true)
	f.Add(sframeSpec{abi: 4, fdes: []sfdeSpec{{start: 0x1000, size: 0x40, n: 2, fres: []byte{0, 7, 20, 0xd0, 0xb8, 10, 7, 0, 33, 35}}}}.section().Data, uint64(0x2000), true)
	f.Fuzz(func(t *testing.T, data []byte, address uint64, big bool) {
		s := Section{Name: "fuzz", Data: data, Address: address, Order: binary.LittleEndian, AddressSize: 8}
		if big {
			s.Order = binary.BigEndian
		}
		table, err := NewSFrame(s)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Section == "" {
				t.Fatalf("%v is no *Error with a section", err)
			}
			return
		}
		checkSFrame(t, table)
	})
}

func ExampleSFrame() {
	section := sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 0x40, n: 1, fres: []byte{0, 5, 16, 0xf0}}}}.section()
	table, err := NewSFrame(section)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := table.FDE(0x1020)
	if err != nil {
		fmt.Println(err)
		return
	}
	var row Row
	if err := f.RowAt(0x1020, &row); err != nil {
		fmt.Println(err)
		return
	}
	rbp, _ := row.Rule(6)
	fmt.Printf("CFA at r%d%+d, rbp at CFA%+d\n", row.CFA.Register, row.CFA.Offset, rbp.Offset)
	// Output: CFA at r7+16, rbp at CFA-16
}
