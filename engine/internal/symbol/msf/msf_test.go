// SPDX-License-Identifier: Apache-2.0

package msf

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// container makes a container with pages of 512 bytes: streams lie in it in the order of their
// pages, each page of another stream than the one before as long as there are such.
func container(streams ...[]byte) []byte {
	const page = 512
	var body []byte
	next := uint32(3)
	numbers := make([][]uint32, len(streams))
	for more := true; more; {
		more = false
		for i, s := range streams {
			at := len(numbers[i]) * page
			if at >= len(s) {
				continue
			}
			more = true
			body = append(body, s[at:min(len(s), at+page)]...)
			body = append(body, make([]byte, (page-len(body)%page)%page)...)
			numbers[i] = append(numbers[i], next)
			next++
		}
	}
	directory := binary.LittleEndian.AppendUint32(nil, uint32(len(streams)))
	for _, s := range streams {
		directory = binary.LittleEndian.AppendUint32(directory, uint32(len(s)))
	}
	for _, list := range numbers {
		for _, n := range list {
			directory = binary.LittleEndian.AppendUint32(directory, n)
		}
	}
	size := uint32(len(directory))
	var pages []byte
	for at := 0; at < len(directory); at += page {
		pages = binary.LittleEndian.AppendUint32(pages, next)
		next++
	}
	directory = append(directory, make([]byte, (page-len(directory)%page)%page)...)
	out := []byte(magic)
	for _, v := range []uint32{page, 1, next + 1, size, 0, next} {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	out = append(out, make([]byte, 3*page-len(out))...)
	out = append(out, body...)
	out = append(out, directory...)
	out = append(out, pages...)
	return append(out, make([]byte, page-len(pages)%page)...)
}

func TestStreamsAreReadAcrossPages(t *testing.T) {
	a, b := make([]byte, 3000), bytes.Repeat([]byte("b"), 700)
	for i := range a {
		a[i] = byte(i / 7)
	}
	f, err := New("a.pdb", container(a, nil, b))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]byte{a, nil, b} {
		s := f.Stream(i)
		for _, part := range [][2]uint32{{0, s.Size()}, {s.Size() / 3, s.Size() / 2}} {
			got, err := s.Bytes(part[0], part[1])
			if err != nil || !bytes.Equal(got, want[part[0]:part[0]+part[1]]) {
				t.Errorf("stream %d, %v: %v, other bytes", i, part, err)
			}
		}
		if _, err := s.Bytes(s.Size(), 1); err == nil {
			t.Errorf("stream %d: a byte behind its end was read", i)
		}
	}
	if f.Stream(3) != nil || f.Stream(-1) != nil {
		t.Error("there are streams that are not there")
	}
}

func TestBadContainersAreErrors(t *testing.T) {
	good := container(make([]byte, 3000))
	put := func(offset int, v uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[offset:], v)
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"another file":      {[]byte("MZ"), "not a PDB file"},
		"portable":          {[]byte("BSJB\x01\x00\x01\x00"), "portable PDB"},
		"Visual C++ 6":      {[]byte(oldMagic + "\x00\x04"), "format 2.00"},
		"cut superblock":    {good[:40], "superblock ends"},
		"page size":         {put(32, 1000), "expected a power of two"},
		"directory's place": {put(52, 1<<30), "map of the directory"},
		"directory's size":  {put(44, 0xffffffff), "map of the directory"},
		"no directory":      {put(44, 0), "expected at least 4"},
	} {
		if _, err := New("a.pdb", c.data); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "a.pdb: ") {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

func FuzzStreams(f *testing.F) {
	f.Add(container([]byte("a"), make([]byte, 1200)))
	f.Fuzz(func(_ *testing.T, data []byte) {
		file, err := New("a.pdb", data)
		if err != nil {
			return
		}
		for i := range file.Streams() {
			s := file.Stream(i)
			_, _ = s.Bytes(s.Size()/2, s.Size()-s.Size()/2)
		}
	})
}
