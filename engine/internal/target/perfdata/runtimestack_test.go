// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// someStack returns a stack with a number of managed frames, and these.
func someStack(count int) (*RuntimeStack, []RuntimeFrame) {
	s := &RuntimeStack{Stop: 3, Entries: []RuntimeEntry{{PC: 0x7f0012345678, Found: 1, IsExact: true}, {PC: 0x400010, Found: 2}}}
	var frames []RuntimeFrame
	for i := range count {
		frames = append(frames, RuntimeFrame{"cpython", "interpreted", fmt.Sprintf("f%d", i%7), "/example/a.py", uint32(i), 4})
		s.Entries = append(s.Entries, RuntimeEntry{Frame: uint32(i), IsManaged: true})
	}
	s.Entries = append(s.Entries, RuntimeEntry{PC: 0x400020, Found: 2, IsBehind: true})
	return s, frames
}

// readStack reads raw data, with the frames of its entries.
func readStack(t *testing.T, table *RuntimeReader, raw []byte) (entries []RuntimeEntry, frames []RuntimeFrame, isCut bool) {
	t.Helper()
	_, stack := SplitRaw(raw)
	if !table.Read(stack) {
		t.Fatal("its tables are damaged")
	}
	var read RuntimeStack
	if !ReadRuntimeStack(&read, stack) || read.Stop != 3 {
		t.Fatalf("its entries are damaged, or it ends by %d", read.Stop)
	}
	for _, e := range read.Entries {
		if e.IsManaged {
			f, ok := table.Frame(e.Frame)
			if !ok {
				t.Fatalf("frame %d is missing", e.Frame)
			}
			frames = append(frames, f)
		}
	}
	return read.Entries, frames, read.IsCut
}

func TestRuntimeStacksAreReadAsTheyWereWritten(t *testing.T) {
	w, table := NewRuntimeWriter(), &RuntimeReader{}
	wait := (&Wait{State: 'S', Call: 35, HasCall: true, Memory: []byte{}}).Append(nil)
	for _, count := range []int{3, 9, 9} {
		s, frames := someStack(count)
		raw := append(w.Append(nil, wait, s, frames), 0, 0, 0, 0)
		got, isCutWait := SplitRaw(raw)
		if string(got) != string(wait) || isCutWait == nil {
			t.Fatalf("wait %x, expected %x", got, wait)
		}
		entries, found, isCut := readStack(t, table, raw)
		if isCut || !reflect.DeepEqual(found, frames) || len(entries) != len(s.Entries) {
			t.Fatalf("%+v, cut %v; expected %+v", found, isCut, frames)
		}
		for i, e := range entries {
			if !e.IsManaged && e != s.Entries[i] {
				t.Errorf("entry %d: %+v, expected %+v", i, e, s.Entries[i])
			}
		}
	}
	if n := len(table.frames); n != 9 {
		t.Errorf("%d frames in the recording, expected 9: each once", n)
	}
}

func TestRuntimeStacksFitIntoASample(t *testing.T) {
	w, table := NewRuntimeWriter(), &RuntimeReader{}
	s, frames := someStack(20000)
	for i := range frames {
		frames[i].Function = fmt.Sprintf("%s%d", strings.Repeat("long", 300), i)
	}
	previous := 0
	for range 3 {
		raw := w.Append(nil, nil, s, frames)
		if len(raw) > MaxRuntimeStack {
			t.Fatalf("%d bytes, expected at most %d", len(raw), MaxRuntimeStack)
		}
		_, found, isCut := readStack(t, table, raw)
		if !isCut || len(found) <= previous || !reflect.DeepEqual(found, table.frames[:len(found)]) {
			t.Fatalf("%d frames, cut %v; expected more than %d", len(found), isCut, previous)
		}
		previous = len(found)
	}
}

func TestAMissingRuntimeStackBreaksTheNamesBehindIt(t *testing.T) {
	w, table := NewRuntimeWriter(), &RuntimeReader{}
	for count := range 4 {
		s, frames := someStack(3 * count)
		raw := w.Append(nil, nil, s, frames)
		_, stack := SplitRaw(raw)
		if count == 2 {
			continue // it is lost
		}
		if ok := table.Read(stack); ok != (count < 2) {
			t.Errorf("stack %d: %v", count, ok)
		}
	}
	if f, ok := table.Frame(0); ok {
		t.Errorf("%+v, expected none: numbers are no longer those of the writer", f)
	}
}

func FuzzRuntimeStack(f *testing.F) {
	s, frames := someStack(5)
	f.Add(NewRuntimeWriter().Append(nil, []byte("wait"), s, frames))
	f.Add([]byte(runtimeMagic))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		_, stack := SplitRaw(raw)
		table := RuntimeReader{}
		table.Read(stack)
		var read RuntimeStack
		ReadRuntimeStack(&read, stack)
		if len(read.Entries) > len(raw) {
			panic("entries that are not there")
		}
		for i := range read.Entries {
			_, _ = table.Frame(read.Entries[i].Frame)
		}
	})
}
