// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// readSlowly reads a text of which a byte is in memory at a time, but for what is
// needed at once.
func readSlowly(text string) error {
	r := NewStream(iotest.OneByteReader(strings.NewReader(text)), 1<<30)
	raw, err := r.Raw()
	if err == nil {
		err = r.End()
	}
	if r.Err() != nil {
		return r.Err()
	}
	if err == nil {
		again := raw.Reader()
		if err := again.Skip(); err != nil {
			return err
		}
		if string(raw.Data) != strings.Trim(text, " \t\r\n") || again.End() != nil {
			return fmt.Errorf("%q was read as %q", text, raw.Data)
		}
	}
	return err
}

// FuzzJSON holds the reader of JSON against the standard library's.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[true,false,null,-1.5e+3,"\u00e9\ud83d\ude00\\",{}]}`, `[1,2`, `"\ud800"`, "\"\xff\"", `01`, `-`, `1e`, `1.`, `{"a" :1 , "b":2}`,
		`{,}`, `[,]`, `[1,]`, `nul`, `truex`, ` `, "\"\x01\"", `"\`, `"a`, `{"a"}`, `{1:2}`, `1 2`, "\u00a0", `-0`, `1E-5`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := Reader{Data: []byte(text)}
		err := r.Skip()
		if err == nil {
			err = r.End()
		}
		if got := readSlowly(text); fmt.Sprint(got) != fmt.Sprint(err) {
			t.Fatalf("%q: %v, byte by byte: %v", text, err, got)
		}
		if err != nil && strings.Contains(err.Error(), "nest deeper") {
			return
		}
		if want := json.Valid([]byte(text)); want != (err == nil) {
			t.Fatalf("%q: %v, the standard library: %v", text, err, want)
		}
		r = Reader{Data: []byte(text)}
		if r.Next() != '"' || err != nil {
			return
		}
		got, err := r.Text()
		var want string
		if jsonErr := json.Unmarshal([]byte(text), &want); jsonErr != nil || err != nil || string(got) != want || !utf8.Valid(got) {
			t.Fatalf("%q: %q, %v; the standard library: %q, %v", text, got, err, want, jsonErr)
		}
	})
}
