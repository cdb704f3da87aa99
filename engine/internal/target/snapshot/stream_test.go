// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// blanks gives blanks without end.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A text of any size is read: this one is larger than what may be kept of it.
func TestDocumentsOfAnySizeAreRead(t *testing.T) {
	slow(t)
	path := filepath.Join(t.TempDir(), "large.snapshot")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create(documentName)
	if err == nil {
		_, err = io.Copy(w, io.MultiReader(strings.NewReader(`{"format_version":1,"threads":[{"id":"1"}`), io.LimitReader(blanks{}, 300<<20), strings.NewReader(`,{"id":"2"}]}`)))
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := Open(path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runtime.ReadMemStats(&after)
	if n := len(s.Threads()); n != 2 || s.Threads()[1].ID != "2" {
		t.Errorf("%d threads, expected 2", n)
	}
	if heap := int64(after.HeapSys) - int64(before.HeapSys); heap > 64<<20 {
		t.Errorf("the heap grew by %d bytes", heap)
	}
}

// What is wrong with the member is told before what is wrong with its text, and so is
// another version.
func TestWhatIsWrongWithADocumentAsAWholeIsToldFirst(t *testing.T) {
	const bad = `{"threads":[3],"format_version":1}`
	for _, isStored := range []bool{true, false} {
		data := archiveOf(t, file{documentName, []byte(bad), isStored})
		changed := bytes.Clone(data)
		directory(changed, documentName, func(h []byte) { h[16] ^= 1 }) // the checksum
		for _, tt := range []struct {
			data []byte
			want string
		}{
			{data, "threads[0]: found a number, expected an object"},
			{changed, "CRC-32 is"},
			{archiveOf(t, file{documentName, []byte(strings.Replace(bad, ":1", ":2", 1)), isStored}), "format_version is 2, expected 1"},
			{archiveOf(t, file{documentName, []byte(strings.Replace(bad, "format", "x", 1)), isStored}), "has no format_version"},
			{archiveOf(t, file{documentName, []byte(bad + "x"), isStored}), "found 'x', expected the end of the text"},
		} {
			s := &Snapshot{path: "test"}
			err := s.open(tt.data, options())
			s.Close()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, expected %q", err, tt.want)
			}
		}
	}
}

// Waves keep what they have in common once.
func TestThreadsShareWhatTheyHaveInCommon(t *testing.T) {
	var list []any
	for i := range 300 {
		list = append(list, obj{
			"id": fmt.Sprint("w", i), "arch": "gpu", "lanes": 64, "registers": obj{"pc": fmt.Sprintf("%#x", i), "exec": "0xff"},
			"wave":        obj{"kernel": "k", "group": []int{i, 0, 0}},
			"launched_by": obj{"thread": "1", "evidence": "recorded", "frames": []string{"0x10", fmt.Sprintf("%#x", 0x20+i/299)}},
		})
	}
	s := openDocument(t, obj{"format_version": 1, "threads": list})
	threads := s.Threads()
	for i, th := range threads {
		pc, ok := th.Registers.Uint64(s.archs.byName["gpu"].desc.PC, s.archs.byName["gpu"].desc.ByteOrder)
		if !ok || pc != uint64(i) || th.ID != fmt.Sprint("w", i) || th.Wave.Group[0] != uint32(i) || th.LaunchedBy.Frames[1] != uint64(0x20+i/299) {
			t.Fatalf("thread %d: PC %#x, %+v, wave %+v, launch %+v", i, pc, th, th.Wave, th.LaunchedBy)
		}
		if err := th.Registers.Validate(); err != nil {
			t.Error(err)
		}
		if &th.Registers.Numbers[0] != &threads[0].Registers.Numbers[0] || &th.Registers.Offsets[0] != &threads[0].Registers.Offsets[0] {
			t.Errorf("thread %d says by itself which registers it has", i)
		}
		if same := th.LaunchedBy == threads[0].LaunchedBy; same != (i < 299) {
			t.Errorf("thread %d: its launch is the first one's: %v", i, same)
		}
	}
}
