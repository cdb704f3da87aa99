package jsontext

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

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
