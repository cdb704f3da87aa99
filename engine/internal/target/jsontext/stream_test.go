// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A text that comes in pieces is read as one that is there: values, offsets of errors,
// and what was read before stays as it was.
func TestStreamsAreReadAsTexts(t *testing.T) {
	type element struct{ name, number string }
	var text strings.Builder
	text.WriteString("[ ")
	for i := range 20000 {
		if i > 0 {
			text.WriteString(" ,\n")
		}
		fmt.Fprintf(&text, `{"name" : "n%d\u00e9%s", "skipped":[true, false,null,{}],"number":-%d.5e3 }`, i, strings.Repeat("x", i%300), i)
	}
	for _, end := range []string{" ] ", " ] x", ""} {
		read := func(r *Reader) (list []element, names [][]byte, err error) {
			err = r.Array(func(int) error {
				var e element
				err := r.Object(func(name []byte) error {
					switch string(name) {
					case "name":
						s, err := r.Text()
						names = append(names, s)
						e.name = string(s)
						return err
					case "number":
						n, err := r.Number()
						e.number = string(n)
						return err
					}
					return r.Skip()
				})
				list = append(list, e)
				return err
			})
			if err == nil {
				err = r.End()
			}
			return list, names, err
		}
		whole := text.String() + end
		want, _, wantErr := read(&Reader{Data: []byte(whole)})
		for _, from := range []io.Reader{strings.NewReader(whole), iotest.OneByteReader(strings.NewReader(whole)), iotest.DataErrReader(strings.NewReader(whole))} {
			r := NewStream(from, 1<<10)
			got, names, err := read(r)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || r.Err() != nil {
				t.Fatalf("%v and %v, expected %v", err, r.Err(), wantErr)
			}
			for i := range want {
				if got[i] != want[i] || string(names[i]) != want[i].name {
					t.Fatalf("element %d: %v, and later %q; expected %v", i, got[i], names[i], want[i])
				}
			}
			if cap(r.Data) > 4*chunkBytes {
				t.Errorf("%d bytes are in memory", cap(r.Data))
			}
		}
	}
}

func TestLongValuesOfStreamsAreBounded(t *testing.T) {
	for _, text := range []string{`"` + strings.Repeat("x", 1<<20), strings.Repeat("1", 1<<20), `["` + strings.Repeat(`x","`, 1<<20)} {
		r := NewStream(strings.NewReader(text), 1<<18)
		if _, err := r.Raw(); err == nil || r.Err() == nil || !strings.Contains(r.Err().Error(), "more than 262144 bytes") {
			t.Errorf("%.10s: %v and %v, expected that it is too long", text, err, r.Err())
		}
	}
}

func TestErrorsOfStreamsAreKept(t *testing.T) {
	broken := errors.New("broken")
	r := NewStream(io.MultiReader(strings.NewReader(`["a`), iotest.ErrReader(broken)), 1<<10)
	if err := r.Skip(); err == nil || !errors.Is(r.Err(), broken) {
		t.Errorf("%v and %v, expected %v", err, r.Err(), broken)
	}
	r = NewStream(iotest.TimeoutReader(nothing{}), 1<<10)
	if err := r.Skip(); err == nil || r.Err() == nil {
		t.Errorf("%v and %v, expected an error of a stream that gives nothing", err, r.Err())
	}
}

// nothing gives neither bytes nor an error.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }
