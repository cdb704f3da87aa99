// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
)

// FuzzCacheEntry reads an entry of the cache: a valid description or none.
func FuzzCacheEntry(f *testing.F) {
	body, err := json.Marshal(testDescription(good))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"Name":"x","AddressBits":64}`))
	f.Add([]byte(`{"Registers":[{"First":4294967295,"Count":4294967295,"Names":["r%d"]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		// The digest is no secret: what it covers may be anything.
		d := decodeEntry(architectures, append([]byte(digest(body)+"\n"), body...))
		if d != nil {
			if err := d.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		decodeEntry(runtimes, body)
	})
}

// FuzzStderr reads what a plugin writes to standard error, in two pieces.
func FuzzStderr(f *testing.F) {
	f.Add([]byte("plain\n"), []byte("rest"))
	f.Add([]byte(`{"@level":"error","@message":"no","error":"x"}`+"\n"), []byte(`{"@message":1}`+"\n"))
	f.Add([]byte("\x1b[2J\x00\xff\n"), []byte("a\rb\r\n\n"))
	f.Add(bytes.Repeat([]byte("long "), 2000), bytes.Repeat([]byte("x\n"), 2000))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var out bytes.Buffer
		l := &stderrLog{logger: hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Trace, DisableTime: true})}
		for _, p := range [][]byte{one, two} {
			if n, err := l.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		words := l.lastWords()
		if len(words) > maxQuoted+3 || len(l.line) > maxStderrLine {
			t.Fatalf("%d bytes of last words, %d of a line", len(words), len(l.line))
		}
		for _, s := range append(strings.Split(out.String(), "\n"), words) {
			if !utf8.ValidString(s) || strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
				t.Fatalf("not printable: %q", s)
			}
		}
	})
}
