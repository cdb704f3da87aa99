// SPDX-License-Identifier: Apache-2.0

package debugmap_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/symbol/resolve"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// linked is an executable with a debug map, whose files a test may change.
type linked struct {
	dir  string
	list []program
}

// linkedAs is the program that is copied.
const linkedAs = "classes.cpp-0-arm64"

// copyOf copies a program and its files into a folder of the test. Its debug map has relative paths and the times of the
// files.
func copyOf(t *testing.T, list []program) *linked {
	t.Helper()
	l := &linked{t.TempDir(), list}
	l.copy(t, linkedAs, "app")
	l.copy(t, linkedAs+"-0.o", "made/first.o")
	l.copy(t, linkedAs+".a", "made/second.a")
	l.edit(t, func(path string) (string, uint64) {
		if strings.HasSuffix(path, ")") {
			return l.member(), l.memberTime(t)
		}
		return "made/first.o", l.time(t, "made/first.o")
	})
	return l
}

func (l *linked) member() string { return "made/second.a(" + linkedAs + "-1.o)" }

func (l *linked) path(name string) string { return filepath.Join(l.dir, name) }

// made is the path of a file of the programs.
func (l *linked) made(name string) string { return filepath.Join(filepath.Dir(l.list[0].path), name) }

func (l *linked) copy(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(l.made(from))
	if err != nil {
		t.Fatal(err)
	}
	l.write(t, to, b)
}

func (l *linked) write(t *testing.T, to string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(l.path(to)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path(to), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (l *linked) time(t *testing.T, name string) uint64 {
	t.Helper()
	info, err := os.Stat(l.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return uint64(info.ModTime().Unix())
}

// memberTime is the time of the object file in the archive, by the archive.
func (l *linked) memberTime(t *testing.T) uint64 {
	t.Helper()
	a, err := (&object.Finder{}).OpenArchiveBeside(l.path("made/second.a"), "arm64")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	o, at, err := a.Open(linkedAs + "-1.o")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if time.Since(at) > 1000*time.Hour {
		t.Fatalf("the archive has the time %v", at)
	}
	return uint64(at.Unix())
}

// edit changes the names and times of object files in the debug map. A name may not become longer.
func (l *linked) edit(t *testing.T, f func(path string) (string, uint64)) {
	t.Helper()
	b, err := os.ReadFile(l.path("app"))
	if err != nil {
		t.Fatal(err)
	}
	editMap(t, b, f)
	l.write(t, "app", b)
}

// editMap is edit of the bytes of a program.
func editMap(t testing.TB, b []byte, f func(path string) (string, uint64)) {
	t.Helper()
	le := binary.LittleEndian
	at := 32
	for range le.Uint32(b[16:]) {
		if le.Uint32(b[at:]) == 2 { // LC_SYMTAB
			break
		}
		at += int(le.Uint32(b[at+4:]))
	}
	symbols, count, names := le.Uint32(b[at+8:]), le.Uint32(b[at+12:]), le.Uint32(b[at+16:])
	for ; count > 0; count, symbols = count-1, symbols+16 {
		if b[symbols+4] != macho.StabObject {
			continue
		}
		name := b[names+le.Uint32(b[symbols:]):]
		name = name[:slices.Index(name, 0)]
		path, modified := f(string(name))
		if len(path) > len(name) {
			t.Fatalf("%s is longer than %s", path, name)
		}
		copy(name, path)
		clear(name[len(path):])
		le.PutUint64(b[symbols+8:], modified)
	}
}

// lines returns which of the functions of both object files have a line, and the problems.
func (l *linked) lines(t *testing.T) (first, second int, problems string) {
	t.Helper()
	o, err := object.Open(l.path("app"))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	r := resolve.New(o, nil)
	defer r.Close()
	d := r.DWARF()
	err = o.MachO().Symbols(func(s *macho.Symbol) {
		frames, err := d.Frames(nil, s.Value)
		switch {
		case err != nil:
			t.Error(err)
		case !s.IsDefined() || len(frames) == 0 || frames[0].Line == 0:
		case strings.HasSuffix(frames[0].File, "classes.cpp"):
			first++
		case strings.HasSuffix(frames[0].File, "other.cpp"):
			second++
		}
	})
	if err != nil {
		t.Error(err)
	}
	return first, second, strings.Join(r.Problems(), "\n")
}

// TestObjectFilesThatChanged has no lines of an object file that is not the one that was linked, and says why.
func TestObjectFilesThatChanged(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, "llvm-lipo-22")
	list := programs(t)
	later := func(t *testing.T, l *linked, name string) {
		at := time.Now().Add(time.Minute)
		if err := os.Chtimes(l.path(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	renamed := func(first, second string) func(path string) (string, uint64) {
		return func(path string) (string, uint64) {
			if strings.HasSuffix(path, ")") {
				return second, 0
			}
			return first, 0
		}
	}
	lipo := func(t *testing.T, l *linked, to string, from ...string) {
		arguments := []string{"-create", "-output", l.path(to)}
		for _, name := range from {
			arguments = append(arguments, l.made(name))
		}
		oracle.With{Dir: l.dir}.Run(t, "llvm-lipo-22", arguments...)
	}
	for _, test := range []struct {
		name            string
		change          func(t *testing.T, l *linked)
		isFirst, isLast bool // there are lines
		problem         string
	}{
		{"as linked", func(*testing.T, *linked) {}, true, true, ""},
		{"an object of another time", func(t *testing.T, l *linked) { later(t, l, "made/first.o") }, false, true, "made/first.o: it was written to after the program was linked"},
		{"an archive of another time", func(t *testing.T, l *linked) { later(t, l, "made/second.a") }, true, true, ""},
		{"an object that is gone", func(t *testing.T, l *linked) { _ = os.Remove(l.path("made/first.o")) }, false, true, "made/first.o: no such file or directory"},
		{"an archive that is gone", func(t *testing.T, l *linked) { _ = os.Remove(l.path("made/second.a")) }, true, false, "made/second.a: no such file or directory"},
		{"a member of another time", func(t *testing.T, l *linked) {
			l.edit(t, func(path string) (string, uint64) {
				if path == l.member() {
					return path, l.memberTime(t) + 1
				}
				return path, 0
			})
		}, true, false, "second.a(" + linkedAs + "-1.o): it was written to after the program was linked"},
		{"a member that is gone", func(t *testing.T, l *linked) { l.edit(t, renamed("made/first.o", "made/second.a(x.o)")) }, true, false, "made/second.a(x.o): no such member"},
		{"no archive", func(t *testing.T, l *linked) { l.edit(t, renamed("made/first.o", "made/first.o(x.o)")) }, true, false, "made/first.o: it is no archive"},
		{"a name beside the program", func(t *testing.T, l *linked) {
			l.edit(t, renamed("first.o", "made/second.a("+linkedAs+"-1.o)"))
			_ = os.Rename(l.path("made/first.o"), l.path("first.o"))
		}, true, true, ""},
		{"a path that leads out", func(t *testing.T, l *linked) { l.edit(t, renamed("../first.o", l.member())) }, false, true, "first.o: no such file or directory"},
		{"the program itself", func(t *testing.T, l *linked) { l.edit(t, renamed("app", l.member())) }, false, true, "app: it is no object file"},
		{"another machine", func(t *testing.T, l *linked) {
			l.copy(t, "classes.cpp-0-x86_64-0.o", "made/first.o")
			l.edit(t, renamed("made/first.o", l.member()))
		}, false, true, "made/first.o: it is for another machine"},
		{"a universal object", func(t *testing.T, l *linked) {
			lipo(t, l, "made/first.o", "classes.cpp-0-x86_64-0.o", linkedAs+"-0.o")
			l.edit(t, renamed("made/first.o", l.member()))
		}, true, true, ""},
		{"a universal archive", func(t *testing.T, l *linked) {
			lipo(t, l, "made/second.a", "classes.cpp-0-x86_64.a", linkedAs+".a")
		}, true, true, ""},
		{"a universal archive without the machine", func(t *testing.T, l *linked) {
			lipo(t, l, "made/second.a", "classes.cpp-0-x86_64.a")
		}, true, false, "made/second.a: a universal file: there is none for arm64"},
		{"an object without debug information", func(t *testing.T, l *linked) {
			oracle.With{Dir: l.dir}.Run(t, "llvm-strip-22", "-S", l.path("made/first.o"))
			l.edit(t, renamed("made/first.o", l.member()))
		}, false, true, "made/first.o: no debug information"},
		{"an object that is cut", func(t *testing.T, l *linked) {
			_ = os.Truncate(l.path("made/first.o"), 600)
			l.edit(t, renamed("made/first.o", l.member()))
		}, false, true, "made/first.o"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := copyOf(t, list)
			test.change(t, l)
			first, second, problems := l.lines(t)
			if (first > 5) != test.isFirst || (second > 2) != test.isLast || problems != "" != (test.problem != "") || !strings.Contains(problems, test.problem) {
				t.Errorf("%d and %d functions with lines, problems %q, expected %v, %v, %q", first, second, problems, test.isFirst, test.isLast, test.problem)
			}
		})
	}
}

// TestObjectFilesOfOtherCodeAreNotUsed has an object file of other code where no time is known: functions of another
// size have no lines.
func TestObjectFilesOfOtherCodeAreNotUsed(t *testing.T) {
	oracle.All(t)
	l := copyOf(t, programs(t))
	l.copy(t, "classes.cpp-1-arm64-0.o", "made/first.o")
	l.edit(t, func(path string) (string, uint64) { return path, 0 })
	first, second, problems := l.lines(t)
	if first > 3 || second < 3 || !strings.Contains(problems, "the object file has none of that name and size") {
		t.Errorf("%d and %d functions with lines, problems %q", first, second, problems)
	}
}
