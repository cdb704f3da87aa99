// SPDX-License-Identifier: Apache-2.0

package cabinet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"

	"github.com/unwindd/unwindd/internal/oracle"
)

// made makes a cabinet of files that are compressed together, in blocks as pack makes them.
func made(compression uint16, pack func(block []byte) []byte, names []string, contents ...[]byte) []byte {
	le := binary.LittleEndian
	var files, blocks []byte
	all := bytes.Join(contents, nil)
	offset := 0
	for i, name := range names {
		files = le.AppendUint32(files, uint32(len(contents[i])))
		files = le.AppendUint32(files, uint32(offset))
		files = append(files, make([]byte, 8)...)
		files = append(append(files, name...), 0)
		offset += len(contents[i])
	}
	count := 0
	for at := 0; at < len(all); at += blockSize {
		block := all[at:min(len(all), at+blockSize)]
		packed := pack(block)
		sizes := le.AppendUint16(le.AppendUint16(nil, uint16(len(packed))), uint16(len(block)))
		blocks = le.AppendUint32(blocks, checksum(sizes, checksum(packed, 0)))
		blocks = append(append(blocks, sizes...), packed...)
		count++
	}
	h := make([]byte, headerSize+folderSize)
	copy(h, Magic)
	le.PutUint32(h[16:], uint32(len(h)))
	h[24], h[25] = 3, 1
	le.PutUint16(h[26:], 1)
	le.PutUint16(h[28:], uint16(len(names)))
	le.PutUint32(h[headerSize:], uint32(len(h)+len(files)))
	le.PutUint16(h[headerSize+4:], uint16(count))
	le.PutUint16(h[headerSize+6:], compression)
	b := append(append(h, files...), blocks...)
	le.PutUint32(b[8:], uint32(len(b)))
	return b
}

func zipPacker() func(block []byte) []byte {
	var before []byte
	return func(block []byte) []byte {
		out := bytes.NewBufferString(zipSignature)
		w, _ := flate.NewWriterDict(out, 6, before)
		_, _ = w.Write(block)
		_ = w.Close()
		before = bytes.Clone(block)
		return out.Bytes()
	}
}

// text is bytes that repeat others, near and far, with calls between them.
func text(n int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 0, n+300)
	for len(b) < n {
		if len(b) > 0 && random.IntN(3) > 0 {
			far := 1 + random.IntN(min(len(b), 1<<(2+random.IntN(16))))
			for range 2 + random.IntN(100) {
				b = append(b, b[len(b)-far])
			}
		} else {
			b = append(b, 0xe8, byte(random.IntN(256)), byte(random.IntN(4)), 0, 0, byte(random.IntN(256)))
		}
	}
	return b[:n]
}

func TestFilesAreUnpacked(t *testing.T) {
	a, b := text(70_000, 1), text(100_001, 2)
	stored := func(block []byte) []byte { return block }
	for name, data := range map[string][]byte{
		"stored": made(0, stored, []string{"a.pdb", "B.pdb"}, a, b),
		"MSZIP":  made(1, zipPacker(), []string{"a.pdb", "B.pdb"}, a, b),
		"LZX":    made(3|17<<8, (&lzxMaker{window: 17, calls: 200_000}).block, []string{"a.pdb", "B.pdb"}, a, b),
	} {
		for file, want := range map[string][]byte{"a.pdb": a, "b.PDB": b} {
			var got bytes.Buffer
			if err := Unpack(&got, data, file, 1<<20); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s, %s: %v, %d bytes, expected %d others", name, file, err, got.Len(), len(want))
			}
		}
		if err := Unpack(&bytes.Buffer{}, data, "a.pdb", 69_999); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, expected %v", name, err, ErrTooLarge)
		}
		if err := Unpack(&bytes.Buffer{}, data, "c.pdb", 1<<20); err == nil || !strings.Contains(err.Error(), `"a.pdb" "B.pdb"`) {
			t.Errorf("%s: %v, expected the names", name, err)
		}
		for i := 0; i < len(data); i += 997 {
			bad := bytes.Clone(data)
			bad[i] ^= 0x55
			if err := Unpack(&bytes.Buffer{}, bad[:len(bad)-i%5], "a.pdb", 1<<20); err == nil && i > headerSize+80 && i < 5_000 {
				t.Errorf("%s: a byte that was changed at %d is not noticed", name, i)
			}
		}
	}
}

// TestCabinetsOfOthers unpacks a cabinet that another tool made.
func TestCabinetsOfOthers(t *testing.T) {
	oracle.Tools(t, "gcab")
	dir := t.TempDir()
	want := text(300_000, 3)
	if err := os.WriteFile(filepath.Join(dir, "a.pdb"), want, 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir}.Run(t, "gcab", "-c", "-z", "a.pd_", "a.pdb")
	data, err := os.ReadFile(filepath.Join(dir, "a.pd_"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := Unpack(&got, data, "a.pdb", 1<<20); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%v, %d bytes", err, got.Len())
	}
}

func FuzzCabinets(f *testing.F) {
	small := text(3000, 4)
	f.Add(made(1, zipPacker(), []string{"a"}, small))
	f.Add(made(3|15<<8, (&lzxMaker{window: 15}).block, []string{"a"}, small))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got bytes.Buffer
		if err := Unpack(&got, data, "a", 1<<16); err == nil && got.Len() > 1<<16 {
			t.Errorf("%d bytes, expected at most %d", got.Len(), 1<<16)
		}
	})
}
