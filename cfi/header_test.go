// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// hdrSpec is an .eh_frame_hdr to write.
type hdrSpec struct {
	pointer, count, table byte
	frame                 uint64      // where .eh_frame is; 0: where it is
	n                     uint64      // 0: as many as entries
	entries               [][2]uint64 // start, address of the FDE
}

const hdrAddress = 0x1800

func writeHeader(b *builder, h hdrSpec) Section {
	w := &builder{Section: b.Section}
	w.Address, w.DataBase = hdrAddress, hdrAddress
	if h.frame == 0 {
		h.frame = b.Address
	}
	if h.n == 0 {
		h.n = uint64(len(h.entries))
	}
	out := []byte{1, h.pointer, h.count, h.table}
	if h.pointer != ehpe.Omit {
		out = append(out, w.pointer(h.pointer, h.frame, len(out), b.AddressSize, 0)...)
	}
	if h.count != ehpe.Omit {
		out = append(out, w.number(h.count, h.n, b.AddressSize)...)
	}
	for _, e := range h.entries {
		for _, v := range e {
			out = append(out, w.pointer(h.table, v, len(out), b.AddressSize, 0)...)
		}
	}
	return Section{Name: ".eh_frame_hdr", Data: out, Address: hdrAddress}
}

// usual is what linkers write.
func usual(entries [][2]uint64) hdrSpec {
	return hdrSpec{pointer: 0x1b, count: 0x03, table: 0x3b, entries: entries}
}

// frames writes n FDEs of 16 bytes, from 0x10000 on, the last one first.
func frames(n int) (*builder, [][2]uint64) {
	b := ehFrame()
	c := cieSpec{augmentation: "zR", data: []byte{0x1b}, encoding: 0x1b, instructions: x86Initial}
	cie := b.cie(c)
	entries := make([][2]uint64, n)
	for i := range n {
		i = n - 1 - i
		start := 0x10000 + 16*uint64(i)
		entries[i] = [2]uint64{start, b.Address + b.fde(cie, c, fdeSpec{start: start, size: 15})}
	}
	return b, entries
}

func TestHeaderFindsEveryFDE(t *testing.T) {
	for _, encoding := range []byte{0x3b, 0x33, 0x3c, 0x34, 0x1b, 0x1c, 0x03, 0x04, 0x00, 0x0c, 0x30, 0x10, 0x2b} {
		for _, n := range []int{1, 2, 15, 16, 17, 1000} {
			t.Run(fmt.Sprintf("%#02x, %d", encoding, n), func(t *testing.T) {
				b, entries := frames(n)
				h := usual(entries)
				h.table = encoding
				table := b.table(t)
				if err := table.UseHeader(writeHeader(b, h)); err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					f, err := table.FDE(e[0] + 14)
					if err != nil || f.Start != e[0] {
						t.Fatalf("%#x: %+v, %v", e[0], f, err)
					}
				}
				if table.indexes != nil {
					t.Error("the index was built")
				}
				for _, pc := range []uint64{0, 0xffff, 0x1000f, 0x10000 + 16*uint64(n) - 1, 1 << 40} {
					if _, err := table.FDE(pc); !errors.Is(err, ErrNoFDE) {
						t.Errorf("%#x: %v, want %v", pc, err, ErrNoFDE)
					}
				}
				if p := table.Problems(); len(p) != 0 {
					t.Errorf("problems %v", p)
				}
			})
		}
	}
}

func TestHeaderIsRefused(t *testing.T) {
	b, entries := frames(100)
	changed := func(change func(h *hdrSpec)) Section {
		h := usual(append([][2]uint64(nil), entries...))
		change(&h)
		return writeHeader(b, h)
	}
	short := changed(func(*hdrSpec) {})
	short.Data = short.Data[:len(short.Data)-1]
	version := changed(func(*hdrSpec) {})
	version.Data[0] = 2
	tests := []struct {
		name   string
		header Section
		err    error
	}{
		{"empty", Section{Name: ".eh_frame_hdr"}, ErrTruncated},
		{"cut in the pointer", Section{Name: ".eh_frame_hdr", Data: []byte{1, 0x1b, 3, 0x3b, 0}}, ErrTruncated},
		{"cut in the table", short, ErrTruncated},
		{"version", version, ErrVersion},
		{"no pointer", changed(func(h *hdrSpec) { h.pointer = ehpe.Omit }), ErrHeader},
		{"pointer of no format", changed(func(h *hdrSpec) { h.pointer = 0x0f }), ErrPointerEncoding},
		{"indirect pointer", changed(func(h *hdrSpec) { h.pointer = 0x9b }), ErrHeaderMismatch},
		{"pointer elsewhere", changed(func(h *hdrSpec) { h.frame = 0x2008 }), ErrHeaderMismatch},
		{"no count", changed(func(h *hdrSpec) { h.count = ehpe.Omit }), ErrNoSearchTable},
		{"no table", changed(func(h *hdrSpec) { h.table = ehpe.Omit; h.entries = nil; h.n = 100 }), ErrNoSearchTable},
		{"count 0", changed(func(h *hdrSpec) { h.entries = nil }), ErrNoSearchTable},
		{"count past the section", changed(func(h *hdrSpec) { h.n = 101 }), ErrTruncated},
		{"count that overflows", changed(func(h *hdrSpec) { h.count = 0x04; h.n = 1 << 61 }), ErrTruncated},
		{"table of variable size", changed(func(h *hdrSpec) { h.table = 0x01 }), ErrPointerEncoding},
		{"indirect table", changed(func(h *hdrSpec) { h.table = 0xbb }), ErrPointerEncoding},
		{"table relative to functions", changed(func(h *hdrSpec) { h.table = 0x4b }), ErrPointerEncoding},
		{"first start differs", changed(func(h *hdrSpec) { h.entries[0][0]-- }), ErrHeaderMismatch},
		{"last start differs", changed(func(h *hdrSpec) { h.entries[99][0]++ }), ErrHeaderMismatch},
		{"first FDE differs", changed(func(h *hdrSpec) { h.entries[0][1] = h.entries[1][1] }), ErrHeaderMismatch},
		{"entry leads to the CIE", changed(func(h *hdrSpec) { h.entries[0][1] = b.Address }), ErrHeaderMismatch},
		{"entry leads out of the section", changed(func(h *hdrSpec) { h.entries[99][1] = 0x10000000 }), ErrHeaderMismatch},
		{"not in order", changed(func(h *hdrSpec) { h.entries[0], h.entries[99] = h.entries[99], h.entries[0] }), ErrHeaderMismatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table := b.table(t)
			err := table.UseHeader(tt.header)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			var e *Error
			if !errors.As(err, &e) || e.Section != ".eh_frame_hdr" {
				t.Errorf("%v does not say where", err)
			}
			for _, e := range entries {
				if f, err := table.FDE(e[0]); err != nil || f.Start != e[0] {
					t.Fatalf("%#x by the index: %+v, %v", e[0], f, err)
				}
			}
		})
	}
	t.Run(".debug_frame has none", func(t *testing.T) {
		if err := debugFrame().table(t).UseHeader(short); !errors.Is(err, ErrHeaderMismatch) {
			t.Error(err)
		}
	})
}

// What the sample of UseHeader does not see is found when it is used.
func TestHeaderThatLiesIsGivenUp(t *testing.T) {
	b, entries := frames(1000)
	lies := map[string]func(e [][2]uint64) [][2]uint64{
		"start":      func(e [][2]uint64) [][2]uint64 { e[5][0] += 2; return e },
		"FDE":        func(e [][2]uint64) [][2]uint64 { e[5][1] = e[7][1]; return e },
		"no FDE":     func(e [][2]uint64) [][2]uint64 { e[5][1] += 3; return e },
		"incomplete": func(e [][2]uint64) [][2]uint64 { return append(e[:5:5], e[6:]...) },
		"order":      func(e [][2]uint64) [][2]uint64 { e[5], e[7] = e[7], e[5]; return e },
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			table := b.table(t)
			if err := table.UseHeader(writeHeader(b, usual(lie(append([][2]uint64(nil), entries...))))); err != nil {
				t.Fatalf("the lie was seen at once: %v", err)
			}
			for _, e := range entries {
				if f, err := table.FDE(e[0] + 3); err != nil || f.Start != e[0] {
					t.Fatalf("%#x: %+v, %v", e[0], f, err)
				}
			}
			p := table.Problems()
			want := "entry 5 "
			if name == "incomplete" || name == "order" {
				want = "not in the search table"
			}
			if len(p) != 1 || !errors.Is(p[0], ErrHeaderMismatch) || !strings.Contains(p[0].Error(), want) {
				t.Errorf("problems %v, want one: %s", p, want)
			}
			if table.header.Load() != nil {
				t.Error("the header is still used")
			}
		})
	}
}

func TestHeaderAgreesWithTheIndexOnLibc(t *testing.T) {
	path := library("libc.so.6")(t)
	table, f := elfTable(t, path, ".eh_frame")
	byIndex, _ := elfTable(t, path, ".eh_frame")
	s := f.Section(".eh_frame_hdr")
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	if err := table.UseHeader(Section{Name: s.Name, Data: data, Address: s.Addr}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for fde, err := range byIndex.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		for _, pc := range []uint64{fde.Start - 1, fde.Start, fde.Start + (fde.End-fde.Start)/2, fde.End - 1, fde.End} {
			a, errA := table.FDE(pc)
			b, errB := byIndex.FDE(pc)
			if (errA == nil) != (errB == nil) || errA == nil && a.Offset != b.Offset {
				t.Fatalf("%#x: header %+v, %v; index %+v, %v", pc, a, errA, b, errB)
			}
			n++
		}
	}
	if table.header.Load() == nil || n < 10000 {
		t.Errorf("header given up, or only %d PCs: %v", n, table.Problems())
	}
}
