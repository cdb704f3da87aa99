// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/object"
)

// naive is around by another way.
func naive(all string, line, count int) (first int, lines []string) {
	lines = strings.Split(all, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if line < 1 || line > len(lines) {
		return 0, nil
	}
	first = line - count/2
	if first+count-1 > len(lines) {
		first = len(lines) - count + 1
	}
	if first < 1 {
		first = 1
	}
	lines = slices.Clone(lines[first-1 : min(first-1+count, len(lines))])
	for i := range lines {
		lines[i] = cut(strings.TrimSuffix(lines[i], "\r"))
	}
	return first, lines
}

func TestLinesAroundALine(t *testing.T) {
	for _, c := range []struct {
		text        string
		line, count int
		first       int
		lines       string
	}{
		{"a\nb\nc\nd\ne\n", 3, 3, 2, "b c d"},
		{"a\nb\nc\nd\ne\n", 3, 2, 2, "b c"},
		{"a\nb\nc\nd\ne\n", 3, 1, 3, "c"},
		{"a\nb\nc\nd\ne\n", 1, 3, 1, "a b c"},
		{"a\nb\nc\nd\ne\n", 5, 3, 3, "c d e"},
		{"a\nb\nc\nd\ne", 5, 3, 3, "c d e"},
		{"a\r\nb\r\n", 1, 9, 1, "a b"},
		{"a\n", 2, 3, 0, ""},
		{"a", 1 << 62, 3, 0, ""},
		{"", 1, 3, 0, ""},
	} {
		tt := newText(c.text)
		first, lines, err := tt.around(c.line, c.count)
		if first != c.first || strings.Join(lines, " ") != c.lines || (err != nil) != (c.first == 0) {
			t.Errorf("%q, %d of line %d: %d %q %v", c.text, c.count, c.line, first, lines, err)
		}
	}
	long := strings.Repeat("é", 600)
	if got := cut("x" + long); got != "x"+strings.Repeat("é", 499)+"... (202 more bytes)" {
		t.Error(got)
	}
	many := newText(strings.Repeat("x\n", 5000))
	for line := 1; line <= 5000; line += 7 {
		first, lines, err := many.around(line, 5)
		if err != nil || len(lines) != 5 || line < first || line > first+4 {
			t.Fatal(line, first, lines, err)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add("a\nb\r\n\nc", 2, 3)
	f.Add(strings.Repeat("\n", 3000), 2049, 2000)
	f.Fuzz(func(t *testing.T, all string, line, count int) {
		count = min(max(count, 1), MaxLines)
		tt := newText(all)
		first, lines, err := tt.around(line, count)
		if all == "" {
			return
		}
		wantFirst, want := naive(all, line, count)
		if (err != nil) != (wantFirst == 0) || first != wantFirst || !slices.Equal(lines, want) {
			t.Errorf("%q line %d count %d: %d %q %v, expected %d %q", all, line, count, first, lines, err, wantFirst, want)
		}
		for _, l := range lines {
			if len(l) > maxLine+40 {
				t.Errorf("a line of %d bytes", len(l))
			}
		}
	})
}

// A server has one source file, at a path of this machine.
type server struct {
	path  string
	asked int
}

func (s *server) Fetch(f object.RemoteFile) (string, []object.Attempt) {
	s.asked++
	if s.path == "" || f.Kind != object.RemoteSource {
		return "", []object.Attempt{{Path: "http://there/" + f.Source, Reason: "not there"}}
	}
	return s.path, nil
}

func TestWhereSourcesAreFound(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("root/src/a.c", "of the sysroot\n")
	there := put("cache/a.c", "of the server\n")
	big := put("root/src/big.c", "")
	if err := os.Truncate(big, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "root/src/link.c")); err != nil {
		t.Fatal(err)
	}
	sum := func(text string) string { s := md5.Sum([]byte(text)); return string(s[:]) }
	id, old, soon := []byte{1, 2, 3, 4}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for _, c := range []struct {
		name    string
		server  *server
		place   Place
		want    string // "": none
		says    string // the warning, or the error
		isAsked bool
	}{
		{"embedded", &server{}, Place{File: "x.c", Text: "in it\n", Modified: old}, "in it", "", false},
		{"the sysroot", &server{path: there}, Place{File: "/src/a.c", Modified: soon}, "of the sysroot", "", false},
		{"the sysroot, newer", &server{path: there}, Place{File: "/src/a.c", Modified: old, Object: "/bin/a"}, "of the sysroot", "/src/a.c is newer than /bin/a", false},
		{"the sysroot, newer and the right one", &server{}, Place{File: "/src/a.c", Modified: old, MD5: sum("of the sysroot\n")}, "of the sysroot", "", false},
		{"the server, since the sysroot has another", &server{path: there}, Place{File: "/src/a.c", BuildID: id, MD5: sum("of the server\n")}, "of the server", "", true},
		{"another everywhere", &server{path: there}, Place{File: "/src/a.c", BuildID: id, MD5: sum("else")}, "", "is not the file that was compiled: its MD5 is ", true},
		{"the server", &server{path: there}, Place{File: "/src/b.c", BuildID: id, Modified: old}, "of the server", "", true},
		{"nowhere", &server{}, Place{File: "/src/b.c", BuildID: id}, "", "no such file or directory; http://there//src/b.c: not there", true},
		{"no build ID", &server{path: there}, Place{File: "/src/b.c"}, "", "no such file or directory", false},
		{"no directory", &server{path: there}, Place{File: "src/a.c", BuildID: id}, "", "the directory that it is in is not known", false},
		{"a link that leads out", &server{}, Place{File: "/src/link.c"}, "", "no such file or directory", false},
		{"a directory", &server{}, Place{File: "/src"}, "", "not a regular file", false},
		{"too large", &server{}, Place{File: "/src/big.c"}, "", "expected at most 67108864 of a source file", false},
		{"no such line", &server{}, Place{File: "/src/a.c", Line: 7}, "", "line 7 is not among its 1 lines", false},
		{"no line", &server{}, Place{File: "/src/a.c", Line: -1}, "", "no line is known", false},
	} {
		s := New(&object.Finder{Sysroot: filepath.Join(dir, "root"), Remote: c.server})
		if c.place.Line == 0 {
			c.place.Line = 1
		}
		for range 2 { // it is found once
			l, err := s.Lines(c.place, 3)
			if got := strings.Join(l.Text, "\n"); got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("%s: %q %v", c.name, got, err)
			}
			says := l.Warning
			if err != nil {
				says = err.Error()
			}
			if !strings.Contains(says, c.says) || c.says == "" && says != "" {
				t.Errorf("%s: %q", c.name, says)
			}
		}
		if isAsked := c.server.asked == 1; isAsked != c.isAsked || c.server.asked > 1 {
			t.Errorf("%s: the server is asked %d times", c.name, c.server.asked)
		}
	}
}

// TestTextsOfOnePath: units may have each their own text of a path.
func TestTextsOfOnePath(t *testing.T) {
	s := New(&object.Finder{})
	for i := range 3 * maxKnown {
		text := fmt.Sprintf("text %d", i%5)
		if l, err := s.Lines(Place{File: "a.c", Line: 1, Text: text}, 1); err != nil || l.Text[0] != text {
			t.Fatal(l, err)
		}
	}
	if len(s.files) > maxKnown || len(s.lines) > maxKnown || s.bytes > maxKept {
		t.Errorf("%d files, %d lines, %d bytes are kept", len(s.files), len(s.lines), s.bytes)
	}
}

func BenchmarkLines(b *testing.B) {
	text := strings.Repeat("int x;\n", 1_000_000)
	for b.Loop() {
		t := newText(text)
		if _, _, err := t.around(500_000, 10); err != nil {
			b.Fatal(err)
		}
	}
}
