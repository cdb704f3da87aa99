// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/dw"
)

// namesByNumber is the inverse of numbers.
func namesByNumber(number uint64) (string, bool) {
	switch {
	case number == 0:
		return "$rax", true
	case number < 32:
		return fmt.Sprintf("x%d", number), true
	case number >= 40 && number < 40+uint64(len(namesOf)):
		return namesOf[number-40], true
	}
	return "", false
}

// sourceOf makes what Write takes of a file.
func sourceOf(f *File) *Source {
	return &Source{
		Module: f.Module(), Infos: f.Infos(), Register: namesByNumber,
		Functions: func(yield func(*SourceFunction) bool) error {
			f.Functions(func(fn Function, b *Body) bool {
				return yield(&SourceFunction{
					Name: fn.Name, Ranges: []Range{{fn.Start, fn.End}}, ParameterSize: fn.ParameterSize, Multiple: fn.Multiple,
					Lines: slices.Collect(b.Lines()), Inlines: slices.Collect(b.Inlines()),
				})
			})
			return nil
		},
		Publics: func(yield func(Symbol) bool) error { f.Publics(yield); return nil },
		Frames: func(yield func(*SourceFrame) bool) error {
			for i := range f.rules {
				in := Range{f.rules[i].start, f.rules[i].end}
				rows := func(yield func(*cfi.Row) bool) error {
					f.Rows(numbers, func(row *cfi.Row, err error) bool {
						return err != nil || row.Start < in.Start || row.Start >= in.End || yield(row)
					})
					return nil
				}
				if len(f.rules) < 300 && !yield(&SourceFrame{in, rows}) {
					break
				}
			}
			return nil
		},
	}
}

// TestWhatIsWrittenIsReadAgain writes what was read of a file, and asks the two for
// every name and every row.
func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	paths, _ := filepath.Glob("testdata/*.sym")
	for seed := range uint64(6) {
		paths = append(paths, randomFile(t, seed))
	}
	for _, path := range paths {
		f := open(t, path)
		var out bytes.Buffer
		written, err := Write(&out, sourceOf(f))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(path+" again", out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if first, _ := again.Problems(); len(first) > 0 {
			t.Error(first[0])
		}
		got := again.Counts()
		if got.Functions != written.Functions || got.Publics != written.Publics || got.Records != written.Records ||
			got.Files != written.Files || got.Origins != written.Origins || got.CFI != written.CFI || got.CFIRows != written.CFIRows {
			t.Errorf("%s: %+v, written %+v", path, got, written)
		}
		names := 0
		ask := func(address uint64) {
			names++
			want := nameless(textAt(t, f, address))
			if got := nameless(textAt(t, again, address)); got != want {
				t.Fatalf("%s: %#x:\n got %s\nwant %s", path, address, got, want)
			}
		}
		f.Functions(func(fn Function, b *Body) bool {
			for l := range b.Lines() {
				ask(l.Start)
				ask(l.End - 1)
			}
			for in := range b.Inlines() {
				ask(in.Ranges[0].Start)
			}
			ask(fn.Start)
			ask(fn.End)
			return true
		})
		if len(f.rules) < 300 {
			sameRows(t, f, again)
		}
		if again.Module() != f.Module() || !slices.Equal(again.Infos(), f.Infos()) {
			t.Error(again.Module(), again.Infos())
		}
		t.Logf("%s: %d addresses, %+v", filepath.Base(path), names, written)
	}
}

// nameless is text of frames where a name that is not known is omitted, as it is
// written.
func nameless(s string) string {
	parts := strings.Split(s, "|")
	for i, p := range parts {
		if strings.HasPrefix(p, "@") && len(parts) > 1 {
			parts[i] = omitted + p
		}
		if p != "" {
			parts[i] = strings.Replace(parts[i], "@:", "@"+omitted+":", 1)
		}
	}
	return strings.Join(parts, "|")
}

func sameRows(t *testing.T, f, again *File) {
	t.Helper()
	var other cfi.Row
	f.Rows(numbers, func(row *cfi.Row, err error) bool {
		found, failed := again.Row(&other, row.Start, numbers)
		if err != nil {
			return true
		}
		for _, r := range other.Rules {
			// A register that had a rule before says that it has its value again.
			if _, ok := row.Rule(r.Column); !ok && r.Rule.Kind == cfi.SameValue {
				row.Rules = setRule(row.Rules, r)
			}
		}
		if !found || failed != nil || fmt.Sprint(other.Rules) != fmt.Sprint(row.Rules) || fmt.Sprint(other.CFA) != fmt.Sprint(row.CFA) {
			t.Fatalf("%s: %#x: %v %v\n got %+v\nwant %+v", f.Path(), row.Start, found, failed, other, *row)
		}
		return true
	})
}

// TestWrittenText is a file letter by letter.
func TestWrittenText(t *testing.T) {
	const rsp, rbx, rbp, back = 42, 40, 41, 30
	at := func(n int64) cfi.Rule { return cfi.Rule{Kind: cfi.Offset, Offset: n} }
	row := func(start, end uint64, offset int64, rules ...cfi.RegisterRule) *cfi.Row {
		return &cfi.Row{Start: start, End: end, ReturnAddress: back, Rules: rules, CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: rsp, Offset: offset}}
	}
	hard := row(0x30, 0x38, 8)
	hard.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: []byte{dw.OpBreg0 + 7, 8, dw.OpAnd}}
	rows := []*cfi.Row{
		row(0x10, 0x12, 8, cfi.RegisterRule{Column: back, Rule: at(-8)}),
		row(0x12, 0x20, 16, cfi.RegisterRule{Column: back, Rule: at(-8)}, cfi.RegisterRule{Column: rbx, Rule: at(-16)}),
		row(0x20, 0x30, 8, cfi.RegisterRule{Column: back, Rule: at(-8)}),
		hard,
		row(0x38, 0x40, 8, cfi.RegisterRule{Column: back, Rule: cfi.Rule{Kind: cfi.Undefined}},
			cfi.RegisterRule{Column: rbx, Rule: cfi.Rule{Kind: cfi.Register, Register: rbp}},
			cfi.RegisterRule{Column: rbp, Rule: cfi.Rule{Kind: cfi.Expression, Expr: []byte{0x23, 16, dw.OpDeref, dw.OpLit0 + 3, dw.OpMul}}},
			cfi.RegisterRule{Column: rsp, Rule: cfi.Rule{Kind: cfi.ValExpression, Expr: []byte{0xff}}}),
	}
	s := &Source{
		Module: Module{"Linux", "x86_64", "0123", "a program"}, Infos: []string{"CODE_ID ABC"}, Register: namesByNumber,
		Functions: func(yield func(*SourceFunction) bool) error {
			yield(&SourceFunction{
				Name: "f(int,\nFUNC 0 1 0 evil)", Ranges: []Range{{0x10, 0x20}, {0x50, 0x58}, {0x60, 0x60}}, ParameterSize: 8,
				Lines:   []Line{{0x10, 0x14, "b.c", 4}, {0x14, 0x54, "a.c", 9}},
				Inlines: []Inline{{0, "g", "a.c", 5, []Range{{0x12, 0x16}, {0x50, 0x52}}}, {1, "h", "", 6, []Range{{0x12, 0x13}}}},
			})
			return nil
		},
		Publics: func(yield func(Symbol) bool) error {
			yield(Symbol{"_start", 0x70, 0, true})
			return nil
		},
		Frames: func(yield func(*SourceFrame) bool) error {
			yield(&SourceFrame{Range{0x10, 0x40}, func(yield func(*cfi.Row) bool) error {
				for _, r := range rows {
					yield(r)
				}
				return nil
			}})
			return nil
		},
	}
	const want = `MODULE Linux x86_64 0123 a program
INFO CODE_ID ABC
FILE 0 a.c
FILE 1 b.c
INLINE_ORIGIN 0 g
INLINE_ORIGIN 1 h
FUNC 10 10 8 f(int, FUNC 0 1 0 evil)
INLINE 0 5 0 0 12 4
INLINE 1 6 -1 1 12 1
10 4 4 1
14 c 9 0
FUNC 50 8 8 f(int, FUNC 0 1 0 evil)
INLINE 0 5 0 0 50 2
50 4 9 0
PUBLIC m 70 0 _start
STACK CFI INIT 10 20 .cfa: $rsp 8 + .ra: .cfa -8 + ^
STACK CFI 12 .cfa: $rsp 16 + $rbx: .cfa -16 + ^
STACK CFI 20 .cfa: $rsp 8 + $rbx: $rbx
STACK CFI INIT 38 8 .cfa: $rsp 8 + $rbx: $rbp $rbp: .cfa 16 + ^ 3 * ^ $rsp: .undef .ra: 0
`
	var out bytes.Buffer
	written, err := Write(&out, s)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if written.Unwritten != 1 || written.Lost != 1 || written.CFI != 2 || written.CFIRows != 4 {
		t.Errorf("%+v", written)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errAny }

func TestErrorsOfSourcesAndWritersEndWriting(t *testing.T) {
	broken := func(func(*SourceFunction) bool) error { return errAny }
	if _, err := Write(&bytes.Buffer{}, &Source{Functions: broken}); !errors.Is(err, errAny) {
		t.Error(err)
	}
	if _, err := Write(failing{}, &Source{}); !errors.Is(err, errAny) {
		t.Error(err)
	}
	rows := func(func(*cfi.Row) bool) error { return errAny }
	frames := func(yield func(*SourceFrame) bool) error { yield(&SourceFrame{Range{1, 2}, rows}); return nil }
	if _, err := Write(&bytes.Buffer{}, &Source{Frames: frames}); !errors.Is(err, errAny) {
		t.Error(err)
	}
}

// TestARuleThatEndsBeginsANewRecord: what a register is then is the reader's default,
// which for a stack pointer is not its own value.
func TestARuleThatEndsBeginsANewRecord(t *testing.T) {
	row := cfi.Row{ReturnAddress: 30, CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 41, Offset: 8}}
	rows := func(yield func(*cfi.Row) bool) error {
		row.Start, row.End, row.Rules = 0x10, 0x14, []cfi.RegisterRule{{Column: 42, Rule: cfi.Rule{Kind: cfi.ValOffset, Offset: 16}}}
		yield(&row)
		row.Start, row.End, row.Rules = 0x14, 0x20, nil
		yield(&row)
		return nil
	}
	frames := func(yield func(*SourceFrame) bool) error { yield(&SourceFrame{Range{0x10, 0x20}, rows}); return nil }
	var out bytes.Buffer
	if _, err := Write(&out, &Source{Frames: frames, Register: namesByNumber}); err != nil {
		t.Fatal(err)
	}
	const want = "STACK CFI INIT 10 4 .cfa: $rbp 8 + $rsp: .cfa 16 + .ra: x30\nSTACK CFI INIT 14 c .cfa: $rbp 8 + .ra: x30\n"
	if _, got, _ := strings.Cut(out.String(), "\n"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
