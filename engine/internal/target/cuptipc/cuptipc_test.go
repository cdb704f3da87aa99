// SPDX-License-Identifier: Apache-2.0

package cuptipc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

func samples(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/samples.dat")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// text are the samples of a file.
func text(f *stacktree.File) (lines []string) {
	for _, s := range f.Samples {
		frame := &f.Frames[f.Stacks[s.Stack].Frame]
		state := "?"
		if s.State > 0 {
			state = f.States[s.State-1].Name
		}
		lines = append(lines, fmt.Sprintf("%s %#x+%#x %s %d", frame.Symbols[0].Function, frame.ObjectID, frame.Address, state, s.Weight))
	}
	return lines
}

// TestRead reads what CUPTI's own library wrote: the values that samples.cc has.
func TestRead(t *testing.T) {
	data := samples(t)
	if !Accepts(data) {
		t.Error("the file is not accepted")
	}
	f, err := Read("f", data)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"grade 0x8a7eb871+0x90 selected 3", "grade 0x8a7eb871+0x90 long_scoreboard 40", "repair 0x8a7eb871+0x180 wait 20", "other 0x8a7eb872+0x10 selected 1",
		"grade 0x8a7eb871+0x90 selected 3", "grade 0x8a7eb871+0x90 long_scoreboard 40", // of the second buffer
	}
	if diff := cmp.Diff(want, text(f)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := f.Check(); err != nil || len(f.Problems) != 1 || f.Problems[0] != "f: CUPTI dropped 6 samples" || len(f.Frames) != 3 {
		t.Errorf("%v, problems %q, %d frames", err, f.Problems, len(f.Frames))
	}
}

// TestBadFiles: whatever is cut or lies is a problem that says where, and what is before it is read.
func TestBadFiles(t *testing.T) {
	data := samples(t)
	first := fileHeader + bufferHeader
	edited := func(offset int, value uint32) []byte {
		b := bytes.Clone(data)
		binary.LittleEndian.PutUint32(b[offset:], value)
		return b
	}
	for _, c := range []struct {
		what    string
		data    []byte
		samples int
		problem string
	}{
		{"more buffers", edited(4, 9), 6, "expected buffer 2 of 9"},
		{"a buffer's size", edited(fileHeader+24, 1<<31), 0, "a buffer of 2147483648 bytes, expected at most"},
		{"the root", edited(first, 1<<30), 2, "buffer 0 at 0x28: offset 0x40000000 of"},
		{"the identifier", edited(first+4, 0), 2, `buffer 0 at 0x28: expected "CUPS"`},
		{"the table of members", edited(first+int(binary.LittleEndian.Uint32(data[first:])), 0x7fffffff), 2, "a table of members at -"},
		{"the end", data[:len(data)-40], 4, "a buffer of"},
	} {
		f, err := Read("f", c.data)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.Problems, "\n"); len(f.Samples) != c.samples || !strings.Contains(got, c.problem) {
			t.Errorf("%s: %d samples, expected %d; %q, expected %q", c.what, len(f.Samples), c.samples, got, c.problem)
		}
	}
	for what, data := range map[string][]byte{"nothing": nil, "a cut header": data[:7], "another version": edited(0, 2)} {
		if _, err := Read("f", data); err == nil || !strings.Contains(err.Error(), "f: expected version 1") {
			t.Errorf("%s: %v", what, err)
		}
		if Accepts(data) {
			t.Errorf("%s is accepted", what)
		}
	}
}

// FuzzRead reads whatever a file may have.
func FuzzRead(f *testing.F) {
	f.Add(samples(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = Accepts(data)
		file, err := Read("f", data)
		if err != nil {
			return
		}
		if err := file.Check(); err != nil {
			t.Fatal(err)
		}
		if len(file.Samples) > len(data) {
			t.Fatalf("%d samples of %d bytes", len(file.Samples), len(data))
		}
	})
}
