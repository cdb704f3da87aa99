// SPDX-License-Identifier: Apache-2.0

package registered

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// memory is what a process has, by address.
type memory map[uint64][]byte

func (m memory) read(address uint64, buf []byte) (int, error) {
	for start, b := range m {
		if at := address - start; at < uint64(len(b)) {
			n := copy(buf, b[at:])
			if n < len(buf) {
				return n, target.ErrNoMemory
			}
			return n, nil
		}
	}
	return 0, target.ErrNoMemory
}

// listed writes a list whose entries are at addresses, each leading to the one of a number.
func listed(order binary.AppendByteOrder, size, sizeAt int, next []int, files []File) memory {
	word := func(b []byte, v uint64) []byte {
		if size == 4 {
			return order.AppendUint32(b, uint32(v))
		}
		return order.AppendUint64(b, v)
	}
	entry := func(n int) uint64 {
		if n < 0 {
			return 0
		}
		return 0x10000 + uint64(n)*0x100
	}
	m := memory{0x1000: word(word(order.AppendUint32(order.AppendUint32(nil, 1), 0), 0), entry(0))}
	for i, f := range files {
		b := word(word(word(nil, entry(next[i])), 0), f.Address)
		b = append(b, make([]byte, sizeAt-len(b))...)
		m[entry(i)] = order.AppendUint64(b, f.Size)
	}
	return m
}

func TestLists(t *testing.T) {
	two := []File{{0x4000, 0x10}, {0x5000, 0x20}}
	for _, c := range []struct {
		name         string
		order        binary.AppendByteOrder
		size, sizeAt int
		isPacked     bool
		next         []int
		files, want  []File
		err          string
	}{
		{"64 bits", binary.LittleEndian, 8, 24, false, []int{1, -1}, two, two, ""},
		{"64 bits, big endian", binary.BigEndian, 8, 24, false, []int{1, -1}, two, two, ""},
		{"32 bits", binary.LittleEndian, 4, 16, false, []int{1, -1}, two, two, ""},
		{"32-bit x86", binary.LittleEndian, 4, 12, true, []int{1, -1}, two, two, ""},
		{"a list that goes round", binary.LittleEndian, 8, 24, false, []int{1, 0}, two, two, "the list goes round at 0x10000 after 2 entries"},
		{"a list that leads nowhere", binary.LittleEndian, 8, 24, false, []int{1, 9}, two, two, "entry 3 at 0x10900: address is not in the target"},
		{"a file that is too large", binary.LittleEndian, 8, 24, false, []int{1, -1}, []File{{1, 1 << 40}, {2, 3}}, []File{{2, 3}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := listed(c.order, c.size, c.sizeAt, c.next, c.files)
			p := &Process{Read: m.read, Order: c.order.(binary.ByteOrder), AddressSize: c.size, IsPacked: c.isPacked}
			got, err := p.Files(0x1000)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if text := fmt.Sprint(err); (err == nil) != (c.err == "") || !strings.Contains(text, c.err) {
				t.Errorf("%v, want %q", err, c.err)
			}
		})
	}
	if _, err := (&Process{Read: memory{}.read, Order: binary.LittleEndian, AddressSize: 8}).Files(0x1000); err == nil {
		t.Error("no error without a descriptor")
	}
}

// Code of two files that lie about the same place is that of the first.
func TestSegmentsThatOverlap(t *testing.T) {
	taken := placesOf([]*target.Module{{Module: trace.Module{Segments: []trace.Segment{{Start: 0x1000, Size: 0x1000}}}}})
	for _, c := range []struct {
		start, size uint64
		want        bool
	}{{0x1800, 0x10, false}, {0x800, 0x1000, false}, {0x2000, 0x100, true}, {0x20ff, 1, false}, {0x2100, 1, true}, {0, 0x1000, true}, {0, ^uint64(0), false}} {
		m := &target.Module{Module: trace.Module{Segments: []trace.Segment{{Start: c.start, Size: c.size}}}}
		if got := taken.add(m); got != c.want {
			t.Errorf("%#x bytes at %#x are added: %v", c.size, c.start, got)
		}
	}
}

// FuzzRegistered reads lists and object files of memory that may hold anything.
func FuzzRegistered(f *testing.F) {
	m := listed(binary.LittleEndian, 8, 24, []int{1, -1}, []File{{0x1100, 0x40}, {0x1200, 0x20}})
	whole := make([]byte, 0x300)
	copy(whole, m[0x1000])
	binary.LittleEndian.PutUint64(whole[16:], 0x1080)
	copy(whole[0x80:], m[0x10000])
	f.Add(whole, false, false)
	f.Add(whole, true, true)
	f.Fuzz(func(t *testing.T, data []byte, isSmall, isBig bool) {
		p := &Process{Read: memory{0x1000: bytes.Clone(data)}.read, Order: binary.LittleEndian, AddressSize: 8}
		if isSmall {
			p.AddressSize = 4
		}
		if isBig {
			p.Order = binary.BigEndian
		}
		files, err := p.Files(0x1000)
		if len(files) > len(data) {
			t.Errorf("%d files in %d bytes, %v", len(files), len(data), err)
		}
		for _, file := range files {
			if file.Size > 1<<20 {
				continue
			}
			m, err := p.Module(file, "x86_64")
			if err == nil && len(m.Segments) == 0 {
				t.Errorf("%+v: no segments", m)
			}
		}
	})
}
