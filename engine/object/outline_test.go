// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// outlined is a file of which only the outline is there, and brings the rest when it is needed.
func outlined(t *testing.T, path string, bring func(o *Object, data []byte, list []Extent, isRest bool) error) (o, whole *Object) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err = New(path, b); err != nil {
		t.Fatal(err)
	}
	part := make([]byte, len(b))
	there := whole.Outline()
	if len(there) == 0 {
		t.Skip("the file is too small for an outline")
	}
	for _, e := range there {
		copy(part[e.Offset:], b[e.Offset:][:e.Size])
	}
	if o, err = New(path, part); err != nil {
		t.Fatal(err)
	}
	o.SetRest(there, func(list []Extent, isRest bool) error {
		for _, e := range list {
			copy(part[e.Offset:], b[e.Offset:][:e.Size])
		}
		return bring(o, part, list, isRest)
	})
	return o, whole
}

// TestTheRestOfAFileComesWhenItIsNeeded reads headers, identity and exports of this executable by its outline, its
// symbols with one more part, and all else with the whole file.
func TestTheRestOfAFileComesWhenItIsNeeded(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parts, rests := 0, 0
	o, whole := outlined(t, self, func(_ *Object, _ []byte, _ []Extent, isRest bool) error {
		if isRest {
			rests++
		} else {
			parts++
		}
		return nil
	})
	if !bytes.Equal(o.BuildID(), whole.BuildID()) || o.HasDebugInfo() != whole.HasDebugInfo() || o.SharedName() != whole.SharedName() || len(o.Segments()) != len(whole.Segments()) {
		t.Error("the outline says another thing than the file")
	}
	if parts+rests > 0 {
		t.Errorf("the outline needs %d parts, %d times the rest", parts, rests)
	}
	if s := o.Section(".symtab"); s != nil {
		want, _ := whole.Section(".symtab").Data()
		if got, err := s.Data(); err != nil || !bytes.Equal(got, want) || parts != 1 || rests != 0 {
			t.Errorf("symbols: %v, %d parts, %d times the rest", err, parts, rests)
		}
	}
	want := make([]byte, 64)
	got := make([]byte, 64)
	if _, err := whole.ReadAddress(want, whole.Entry()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAddress(got, o.Entry()); err != nil || !bytes.Equal(got, want) || rests != 1 {
		t.Errorf("code: %v, %x, expected %x; the rest came %d times", err, got, want, rests)
	}
	if !bytes.Equal(o.Data(), whole.Data()) || rests != 1 {
		t.Errorf("the rest came %d times, and the file is not whole", rests)
	}
}

// TestAFileWhoseRestDoesNotCome has the error where bytes of it are needed.
func TestAFileWhoseRestDoesNotCome(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	o, _ := outlined(t, self, func(*Object, []byte, []Extent, bool) error { return gone })
	if _, err := o.Section(".text").Data(); !errors.Is(err, gone) {
		t.Errorf("a section: %v", err)
	}
	if n, err := o.ReadAddress(make([]byte, 8), o.Entry()); n != 0 || err == nil {
		t.Errorf("memory: %d, %v", n, err)
	}
}
