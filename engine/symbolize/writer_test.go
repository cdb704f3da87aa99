// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/trace"
)

func TestNamesOfFunctionsAsLinkersHaveThem(t *testing.T) {
	for _, c := range []struct {
		frame       trace.Symbol
		want, short string
	}{
		{trace.Symbol{Function: "ns::f(int)", LinkageName: "_ZN2ns1fEi", Name: "f"}, "_ZN2ns1fEi", "f"},
		{trace.Symbol{Function: "f", Name: "f"}, "f", "f"},
		// Without a linkage name what is around the function is left out.
		{trace.Symbol{Function: "ns::f", Name: "f"}, "f", "f"},
		// A linkage name that is not mangled is Function itself.
		{trace.Symbol{Function: "label", Name: "f"}, "label", "f"},
		{trace.Symbol{Function: "__clang_ocl_kern_imp_f", Name: "f"}, "__clang_ocl_kern_imp_f", "f"},
		{trace.Symbol{Function: "f"}, "f", "f"},
	} {
		for want, functions := range map[*string]FunctionNames{&c.want: LinkageNames, &c.short: ShortNames} {
			var b strings.Builder
			w := NewWriter(&b, WriterOptions{Functions: functions})
			w.Write(&Answer{HasAddress: true, Frames: []trace.Symbol{c.frame}})
			if got, _, _ := strings.Cut(b.String(), "\n"); got != *want {
				t.Errorf("%+v: %q, want %q", c.frame, got, *want)
			}
		}
	}
}

// unprintable is what a text has that a terminal would obey; 0: nothing.
func unprintable(text string) rune {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if !utf8.ValidString(line) {
			return utf8.RuneError
		}
		for _, r := range line {
			if !unicode.IsPrint(r) {
				return r
			}
		}
	}
	return 0
}

// fill puts a text into every string of a value.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f, text)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range v.Len() {
				fill(v.Index(i), text)
			}
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint64:
		v.SetUint(3)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// TestAnswersAreEscaped: no string of an answer makes a line of its own, in any
// style.
func TestAnswersAreEscaped(t *testing.T) {
	var a Answer
	fill(reflect.ValueOf(&a).Elem(), "x\ny\x1b[31m\x9b\r\x7f\u202e\u2028")
	for _, kind := range []AnswerKind{AnswerCode, AnswerNamed, AnswerData, AnswerFrame} {
		a.Kind = kind
		for _, style := range []Style{StyleLLVM, StyleLLVMGNU, StyleAddr2line} {
			for bits := range 1 << 5 {
				o := WriterOptions{
					Style: style, Demangle: bits&1 != 0, Pretty: bits&2 != 0, Addresses: bits&4 != 0, Verbose: bits&8 != 0,
					Context: int64(bits & 16), Paths: PathStyle(bits % 3), Functions: FunctionNames(bits / 3 % 3),
				}
				text := string(NewWriter(nil, o).Append(nil, &a))
				if r := unprintable(text); r != 0 || strings.Contains(text, "\ny") && o.Context == 0 {
					t.Errorf("kind %d, %+v: %q in %q", kind, o, r, text)
				}
			}
		}
	}
}
