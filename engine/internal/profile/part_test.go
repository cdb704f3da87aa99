// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/unwindd/unwindd/engine/trace"
)

// exampleRecording is the recording of the documentation.
var exampleRecording = filepath.Join("..", "..", "..", "examples", "profile", "perf.data")

// partsOf walks a recording in parts.
func partsOf(tb testing.TB, k *Maker, path string, count int) (parts [][]byte) {
	tb.Helper()
	for index := range count {
		var b bytes.Buffer
		if err := k.MakePart(tb.Context(), path, trace.ProfilePart{Index: index, Count: count}, trace.ProfileOptions{Jobs: 1}, &b); err != nil {
			tb.Fatal(err)
		}
		parts = append(parts, b.Bytes())
	}
	return parts
}

func readers(parts [][]byte) (list []io.Reader) {
	for _, p := range parts {
		list = append(list, bytes.NewReader(p))
	}
	return list
}

// FuzzPart joins any bytes, compressed after the first ones of a part, as the one part of a
// recording.
func FuzzPart(f *testing.F) {
	k := newX86Maker(f)
	for _, part := range partsOf(f, k, exampleRecording, 1) {
		d, err := zstd.NewReader(bytes.NewReader(part[len(partMagic):]))
		if err != nil {
			f.Fatal(err)
		}
		plain, err := io.ReadAll(d)
		if err != nil {
			f.Fatal(err)
		}
		d.Close()
		f.Add(plain)
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(partWindow))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		part := zip.EncodeAll(plain, bytes.Clone(partMagic[:]))
		p, err := k.Make(t.Context(), exampleRecording, trace.ProfileOptions{Jobs: 1, Parts: []io.Reader{bytes.NewReader(part)}})
		if err != nil {
			if !errors.Is(err, trace.ErrPart) {
				t.Errorf("%v, expected an error that wraps ErrPart", err)
			}
			return
		}
		for i := range p.Samples {
			p.StackFrames(nil, p.Samples[i].Stack)
		}
	})
}

// Whatever is changed in a part, cut off or added is an error, never another profile.
func TestDamagedPartsAreRefused(t *testing.T) {
	k := newX86Maker(t)
	parts := partsOf(t, k, exampleRecording, 2)
	whole, err := k.Make(t.Context(), exampleRecording, trace.ProfileOptions{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	// zstd's header has bits that mean nothing: then the profile is the same.
	join := func(parts ...[]byte) error {
		p, err := k.Make(t.Context(), exampleRecording, trace.ProfileOptions{Jobs: 1, Parts: readers(parts)})
		if err == nil && (!slices.Equal(p.Samples, whole.Samples) || !slices.Equal(p.Stacks, whole.Stacks) || !slices.Equal(p.Stops, whole.Stops)) {
			t.Error("another profile")
		}
		return err
	}
	if err := join(parts...); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's
	refused := func(what string, parts ...[]byte) {
		t.Helper()
		if err := join(parts...); !errors.Is(err, trace.ErrPart) {
			t.Errorf("%s: %v, expected an error that wraps ErrPart", what, err)
		}
	}
	for range 200 {
		bad := bytes.Clone(parts[1])
		bad[random.IntN(len(bad))] ^= byte(1 << random.IntN(8))
		if err := join(parts[0], bad); err != nil && !errors.Is(err, trace.ErrPart) {
			t.Errorf("a bit is changed: %v, expected an error that wraps ErrPart", err)
		}
		refused("it is cut", parts[0], parts[1][:random.IntN(len(parts[1]))])
	}
	refused("something follows", parts[0], append(bytes.Clone(parts[1]), 0))
	refused("one is missing", parts[0])
	refused("in another order", parts[1], parts[0])
	refused("one twice", parts[0], parts[0])
	refused("one of another division", parts[0], partsOf(t, k, exampleRecording, 3)[1])
}

// All parts have as many samples, and every sample is of one.
func TestPartsAreEqual(t *testing.T) {
	for _, processes := range [][]processSamples{nil, {{1, 1}}, {{1, 100}}, {{5, 3}, {-1, 90}, {7, 8}}, {{1, 1 << 40}}} {
		for _, parts := range []int{1, 2, 3, 7, MaxParts} {
			d := newDivision(parts, processes)
			var sum uint64
			for i := range parts {
				size := d.size(i)
				if least := d.total / uint64(parts); size != least && size != least+1 {
					t.Errorf("%v, part %d of %d: %d samples, expected %d or one more", processes, i, parts, size, least)
				}
				sum += size
			}
			if sum != d.total {
				t.Errorf("%v in %d parts: %d samples, expected %d", processes, parts, sum, d.total)
			}
			if d.total > 1000 {
				continue
			}
			met := make([]uint64, parts)
			for _, p := range processes {
				for range p.samples {
					met[d.part(p.pid)]++
				}
			}
			for i := range met {
				if met[i] != d.size(i) {
					t.Errorf("%v, part %d of %d: %d samples, expected %d", processes, i, parts, met[i], d.size(i))
				}
			}
			if d.part(99) != -1 {
				t.Error("a process that nobody counted is of a part")
			}
		}
	}
}
