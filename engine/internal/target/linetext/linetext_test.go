// SPDX-License-Identifier: Apache-2.0

package linetext

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
)

func TestEachLineSeesWhatHasSomethingInIt(t *testing.T) {
	f := New("f", []byte("a\n\n \t\r\n b\r\n"+strings.Repeat("x", MaxLine+1)+"\nc\n12"))
	var got []string
	err := f.EachLine(func(l *Line) error {
		got = append(got, fmt.Sprintf("%d %.4q %v", l.Number, l.Text, l.Err))
		return nil
	})
	want := []string{`1 "a" <nil>`, `4 " b" <nil>`, fmt.Sprintf(`5 "xxxx" %v`, errTooLong), `6 "c" <nil>`, fmt.Sprintf(`7 "12" %v`, ErrCut)}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	stop := errors.New("enough")
	if err := f.EachLine(func(*Line) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, expected %v", err, stop)
	}
}

func TestAFileThatIsCutWhileItsLinesAreSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(strings.Repeat("a line of the file\n", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, errEmpty, func(f *File) (*File, error) { return f, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.EachLine(func(l *Line) error {
		if l.Number == 1 {
			return os.Truncate(path, 100)
		}
		return nil
	})
	if !errors.Is(err, object.ErrFileShrank) || !strings.HasPrefix(err.Error(), path+":") {
		t.Errorf("%v", err)
	}
}

var errEmpty = errors.New("of another form")

func TestFilesThatAreNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	open := func(text string, open func(*File) (*File, error)) (*File, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Open(path, errEmpty, open)
	}
	refused := errors.New("refused")
	if f, err := open("", nil); f != nil || !errors.Is(err, errEmpty) || err.Error() != path+": of another form: the file is empty" {
		t.Errorf("%v, %v", f, err)
	}
	if f, err := open("x", func(f *File) (*File, error) { return f, refused }); f != nil || !errors.Is(err, refused) {
		t.Errorf("%v, %v", f, err)
	}
	if f, err := Open(t.TempDir(), errEmpty, func(f *File) (*File, error) { return f, nil }); f != nil || !errors.Is(err, object.ErrNotRegular) {
		t.Errorf("a folder: %v, %v", f, err)
	}
}

func TestProblemsAndWhatIsKeptHaveBounds(t *testing.T) {
	f := New("f", nil)
	for i := range maxProblems + 7 {
		f.Problem(i, "bad")
	}
	list := f.Problems()
	if len(list) != maxProblems+1 || list[0] != "f:0: bad" || list[maxProblems] != "f: 7 more problems" {
		t.Errorf("%d problems, %q to %q", len(list), list[0], list[len(list)-1])
	}
	f.MaxKept = 10
	if !f.Keep(7) || f.Keep(4) || !f.Keep(3) || f.Keep(1) {
		t.Error("not 10 bytes are kept")
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "007": 7, "18446744073709551615": 1<<64 - 1} {
		if n, ok := Decimal([]byte(text)); n != want || !ok {
			t.Errorf("Decimal(%q) = %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "a", "18446744073709551616", "99999999999999999999"} {
		if n, ok := Decimal([]byte(text)); ok {
			t.Errorf("Decimal(%q) = %d", text, n)
		}
	}
	for text, want := range map[string]uint64{"0": 0, "0aF": 0xaf, "ffffffffffffffff": 1<<64 - 1, "00000000000000000001": 1} {
		if n, ok := Hex([]byte(text)); n != want || !ok {
			t.Errorf("Hex(%q) = %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "g", "0x1", "-1", "@", "`", "10000000000000000"} {
		if n, ok := Hex([]byte(text)); ok {
			t.Errorf("Hex(%q) = %d", text, n)
		}
	}
}
