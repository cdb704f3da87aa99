// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// pack packs by the standard library; level -1 is its default, 0 stores, -2 has codes
// and no matches.
func pack(tb testing.TB, data []byte, level int) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, level)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// unpack unpacks a stream of some size in steps, in a buffer that has no room beyond
// each where it grows.
func unpack(packed []byte, size, step int, grows bool) ([]byte, error) {
	r, err := New(packed)
	if err != nil {
		return nil, err
	}
	out := make([]byte, size)
	n := 0
	for n < size {
		want := min(n+step, size)
		room := out
		if grows {
			room = out[:want]
		}
		before := n
		if n, err = r.Extend(room, n, want); err != nil {
			return out[:n], err
		}
		if n == before {
			return out[:n], io.ErrUnexpectedEOF
		}
	}
	return out, r.Finish(out)
}

func samples() map[string][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	skewed := make([]byte, 200_000)
	for i := range skewed { // codes of all lengths
		skewed[i] = byte(min(random.ExpFloat64()*9, 255))
	}
	var runs []byte
	for len(runs) < 300_000 { // matches at every small distance
		part := runs[len(runs)-min(len(runs), 1+random.IntN(300)):]
		runs = append(runs, byte(random.Uint32()))
		for range random.IntN(20) {
			runs = append(runs, part[:min(len(part), 1+random.IntN(260))]...)
		}
	}
	return map[string][]byte{
		"empty": {}, "one byte": {7}, "zeros": make([]byte, 1<<20), "noise": noise, "skewed": skewed, "runs": runs,
		"text": bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog; "), 5000),
	}
}

func TestUnpacksWhatTheStandardLibraryPacks(t *testing.T) {
	for name, data := range samples() {
		for level := -2; level <= 9; level++ {
			packed := pack(t, data, level)
			for _, step := range []int{1 + len(data), 70_000, 4097} {
				for _, grows := range []bool{false, true} {
					got, err := unpack(packed, len(data), step, grows)
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("%s, level %d, steps of %d, grows %t: %d bytes, error %v", name, level, step, grows, len(got), err)
					}
				}
			}
		}
	}
}

func TestStreamsOfAnotherSizeAreRefused(t *testing.T) {
	for name, data := range samples() {
		packed := pack(t, data, -1)
		if len(data) > 0 {
			if _, err := unpack(packed, len(data)-1, len(data), false); !errors.Is(err, ErrMore) {
				t.Errorf("%s: a size that is 1 too small gives the error %v", name, err)
			}
		}
		if _, err := unpack(packed, len(data)+1, len(data)+1, false); err == nil {
			t.Errorf("%s: a size that is 1 too large gives no error", name)
		}
		if _, err := unpack(packed[:len(packed)-1], len(data), len(data), false); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: a checksum that is cut gives the error %v", name, err)
		}
		wrong := bytes.Clone(packed)
		wrong[len(wrong)-1] ^= 1
		if _, err := unpack(wrong, len(data), 1<<30, false); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: a wrong checksum gives the error %v", name, err)
		}
	}
}

// Damage gives what the standard library makes of it, byte for byte, and an error
// where that has one.
func TestDamageIsRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for name, data := range samples() {
		for _, level := range []int{-2, 0, 6} {
			packed := pack(t, data, level)
			for range 60 {
				damaged := bytes.Clone(packed)
				for range 1 + random.IntN(3) {
					damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
				}
				compare(t, name, damaged, len(data))
				compare(t, name, damaged[:random.IntN(len(damaged))], len(data))
			}
		}
	}
}

// compare unpacks by the standard library, too.
func compare(t *testing.T, name string, packed []byte, size int) {
	t.Helper()
	got, err := unpack(packed, size, 10_000, false)
	want := make([]byte, size)
	n := 0
	r, theirs := zlib.NewReader(bytes.NewReader(packed))
	if theirs == nil {
		n, theirs = io.ReadFull(r, want)
		if theirs == nil {
			if more, e := io.ReadFull(r, make([]byte, 1)); more > 0 || e != io.EOF {
				theirs = errors.Join(e, errors.New("more"))
			}
		}
	}
	if (err == nil) != (theirs == nil) {
		t.Errorf("%s: error %v, and the standard library's is %v", name, err, theirs)
	}
	if common := min(len(got), n); !bytes.Equal(got[:common], want[:common]) {
		t.Errorf("%s: other bytes than the standard library's among the first %d", name, common)
	}
}

// TestDebugSections unpacks the sections of all separate debug files that are
// installed, as zlib itself packed them.
func TestDebugSections(t *testing.T) {
	files, _ := filepath.Glob("/usr/lib/debug/.build-id/*/*.debug")
	if len(files) == 0 {
		oracle.Missing(t, "no separate debug files in /usr/lib/debug/.build-id")
	}
	if len(files) > 2 && !proof.IsRequested() {
		files = files[:2]
	}
	count := 0
	for _, name := range files {
		f, err := elf.Open(name)
		if err != nil {
			continue
		}
		for _, s := range f.Sections {
			if s.Flags&elf.SHF_COMPRESSED == 0 || s.FileSize > 4<<20 {
				continue
			}
			want, err := s.Data()
			if err != nil {
				continue
			}
			raw := make([]byte, s.FileSize)
			file, _ := os.Open(name)
			_, err = file.ReadAt(raw, int64(s.Offset))
			_ = file.Close()
			if err != nil || raw[0] != 1 { // zlib
				continue
			}
			got, err := unpack(raw[24:], len(want), 100_000, false)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %s: error %v", name, s.Name, err)
			}
			count++
		}
		_ = f.Close()
	}
	t.Logf("%d sections of %d files", count, len(files))
}

func FuzzUnpack(f *testing.F) {
	for _, data := range samples() {
		data = data[:min(len(data), 2000)]
		for _, level := range []int{-2, 0, 1, 9} {
			f.Add(pack(f, data, level), len(data))
		}
	}
	f.Fuzz(func(t *testing.T, packed []byte, size int) {
		if size < 0 || size > 1<<16 {
			return
		}
		compare(t, "fuzzed", packed, size)
	})
}

func BenchmarkUnpack(b *testing.B) {
	data := samples()["skewed"]
	packed := pack(b, data, 6)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := unpack(packed, len(data), len(data), false); err != nil {
			b.Fatal(err)
		}
	}
}
