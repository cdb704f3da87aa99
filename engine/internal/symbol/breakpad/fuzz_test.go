// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/cfi"
)

// FuzzSymbols reads any bytes as a file, asks for everything that is in it, and
// writes it again: what was written must read without a problem.
func FuzzSymbols(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.sym")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(randomText(3)[:4000]))
	f.Add([]byte("STACK CFI INIT 10 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^ $rbx: .cfa 3 / x1 @ ^\nSTACK CFI 12 $rbx: .undef x99: 768\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read("fuzz.sym", data)
		if err != nil {
			return
		}
		asked := 0
		s.Functions(func(fn Function, b *Body) bool {
			for range b.Lines() {
				asked++
			}
			for in := range b.Inlines() {
				_ = textAt(t, s, in.Ranges[0].Start)
			}
			if text := textAt(t, s, fn.Start); text == "" {
				t.Errorf("nothing at the start of %+v", fn)
			}
			asked++
			return asked < 1000
		})
		s.Publics(func(p Symbol) bool { _ = textAt(t, s, p.Address); return true })
		s.Rows(numbers, func(row *cfi.Row, err error) bool {
			if row.Start >= row.End {
				t.Errorf("row %#x to %#x", row.Start, row.End)
			}
			if err == nil && row.CFA.Kind != cfi.NoCFA && row.CFA.Kind == cfi.CFAExpression {
				machine{bits: 64}.run(row)
			}
			asked++
			return asked < 2000
		})
		for i := range s.functions {
			if i > 0 && s.functions[i-1].end > s.functions[i].start {
				t.Error("functions overlap")
			}
		}
		if asked > 1000 {
			return
		}
		var out bytes.Buffer
		if _, err := Write(&out, sourceOf(s)); err != nil {
			t.Fatal(err)
		}
		again, err := Read("again.sym", out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if first, _ := again.Problems(); len(first) > 0 {
			t.Errorf("%v\n%s", first, out.Bytes())
		}
	})
}

// run evaluates all of a row, for what it may do wrong.
func (m machine) run(row *cfi.Row) {
	if location, err := row.CFA.Location(context.Background(), nil, m); err == nil {
		for _, r := range row.Rules {
			_, _ = m.rule(r.Rule, r.Column, location)
		}
	}
}
