package report

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

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

type named string

type stringer struct{ text string }

func (s stringer) String() string { return s.text }

func TestPrinterEscapesArguments(t *testing.T) {
	const bad = "a\nb\x1b[31m"
	var b bytes.Buffer
	p := NewPrinter(&b)
	red := newPaint(true).warn(bad)
	for _, c := range []struct {
		arg  any
		want string
	}{
		{bad, `<a\nb\x1b[31m>`},
		{named(bad), `<a\nb\x1b[31m>`},
		{string([]byte(bad)), `<a\nb\x1b[31m>`},
		{errors.New(bad), `<a\nb\x1b[31m>`},
		{stringer{bad}, `<a\nb\x1b[31m>`},
		{[]string{bad, "c"}, `<[a\nb\x1b[31m c]>`},
		{struct{ s string }{bad}, `<{a\nb\x1b[31m}>`},
		{"\xff\u202e\u2028\u009b\x7f\t\r", `<\xff\u202e\u2028\u009b\x7f\t\r>`},
		{`C:\src é µ 日本`, `<C:\src é µ 日本>`},
		{red, "<\x1b[31m" + `a\nb\x1b[31m` + "\x1b[0m>"},
		{7, "<7>"},
	} {
		b.Reset()
		p.Printf("<%v>", c.arg)
		if err := p.Flush(); err != nil || b.String() != c.want {
			t.Errorf("%#v: %q, %v, expected %q", c.arg, b.String(), err, c.want)
		}
	}
	b.Reset()
	p.Printf("%-4s|%6.2s|%q|%5d|\n", "é\n", "\x1b\x1b\x1b", "\x1b\"", 12)
	if err := p.Flush(); err != nil || b.String() != `é\n  |    \x1b\x1b|"\x1b\""|   12|`+"\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	args := []any{bad}
	p.Printf("%s", args...)
	if args[0] != bad {
		t.Error("the caller's arguments were changed")
	}
}

func TestPrinterKeepsTheError(t *testing.T) {
	for _, p := range []*Printer{NewPrinter(&failing{}), NewLinePrinter(&failing{})} {
		p.Printf("%s", strings.Repeat("x", 1<<17))
		if p.check() == nil || p.Flush() == nil {
			t.Error("no error")
		}
	}
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
		for _, style := range []SymbolStyle{StyleLLVM, StyleLLVMGNU, StyleAddr2line} {
			for bits := range 1 << 5 {
				o := SymbolOptions{
					Style: style, Demangle: bits&1 != 0, Pretty: bits&2 != 0, Addresses: bits&4 != 0, Verbose: bits&8 != 0,
					Context: int64(bits & 16), Paths: PathStyle(bits % 3), Functions: FunctionNames(bits / 3 % 3),
				}
				text := string(NewSymbolWriter(nil, o).Append(nil, &a))
				if r := unprintable(text); r != 0 || strings.Contains(text, "\ny") && o.Context == 0 {
					t.Errorf("kind %d, %+v: %q in %q", kind, o, r, text)
				}
			}
		}
	}
}
