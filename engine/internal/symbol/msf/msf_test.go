// SPDX-License-Identifier: Apache-2.0

package msf

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf/msftest"
)

func TestStreamsAreReadAcrossPages(t *testing.T) {
	a, b := make([]byte, 3000), bytes.Repeat([]byte("b"), 700)
	for i := range a {
		a[i] = byte(i / 7)
	}
	f, err := New("a.pdb", msftest.Container(a, nil, b))
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
	good := msftest.Container(make([]byte, 3000))
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
	f.Add(msftest.Container([]byte("a"), make([]byte, 1200)))
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
