// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func open(t *testing.T, dir string, bytes int64, count int) *Store {
	t.Helper()
	s, err := Open(dir, bytes, count)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keep keeps a report that is as old as its turn.
func keep(t *testing.T, s *Store, turn int, text string) string {
	t.Helper()
	id, _, err := s.Keep(Header{Name: "core", Type: "text/plain"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Duration(turn-100) * time.Minute)
	if err := os.Chtimes(filepath.Join(s.dir, id), at, at); err != nil {
		t.Fatal(err)
	}
	return id
}

func read(s *Store, id string) (string, error) {
	r, err := s.Open(id)
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return r.Name + " " + r.Type + " " + string(text), err
}

func TestReportsAreKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20, 10)
	id := keep(t, s, 0, "frames\nand more\n")
	for _, s := range []*Store{s, open(t, dir, 1<<20, 10)} {
		if text, err := read(s, id); err != nil || text != "core text/plain frames\nand more\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if err := s.Remove(id); err != nil {
		t.Error(err)
	}
	for _, id := range []string{id, "", "../" + id, strings.Repeat("A", 26), strings.Repeat("a", 26), strings.Repeat("A", 25) + "/"} {
		if text, err := read(s, id); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %q, %v", id, text, err)
		}
		if err := s.Remove(id); !errors.Is(err, ErrNone) {
			t.Errorf("%q is removed: %v", id, err)
		}
	}
}

// TestOldestGoFirst by number and by bytes.
func TestOldestGoFirst(t *testing.T) {
	for name, limits := range map[string][2]int64{"number": {1 << 20, 3}, "bytes": {3*1100 + 50, 100}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), limits[0], int(limits[1]))
			var ids []string
			for turn := range 5 {
				ids = append(ids, keep(t, s, turn, strings.Repeat("x", 1050)))
			}
			for turn, id := range ids {
				if _, err := read(s, id); (err == nil) != (turn >= 2) {
					t.Errorf("report %d: %v", turn, err)
				}
			}
			if _, err := Open(s.dir, 1<<20, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := read(s, ids[3]); !errors.Is(err, ErrNone) {
				t.Errorf("a smaller store has it: %v", err)
			}
			if _, err := read(s, ids[4]); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReportsAreWholeOrNotThere: nothing is left of one that ends early, or is too
// large, nor of a process that was killed.
func TestReportsAreWholeOrNotThere(t *testing.T) {
	s := open(t, t.TempDir(), 1000, 10)
	broken := errors.New("broken")
	if _, _, err := s.Keep(Header{}, io.MultiReader(strings.NewReader("some"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, _, err := s.Keep(Header{}, strings.NewReader(strings.Repeat("x", 1000))); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, _, err := s.Keep(Header{Name: strings.Repeat("x", maxHeader)}, strings.NewReader("")); err == nil {
		t.Error("a head of any length is kept")
	}
	left := filepath.Join(s.dir, partPrefix+"1")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * maxPartAge)
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}
	open(t, s.dir, 1000, 10)
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// FuzzOpen opens files that anything was written to.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"name":"core","type":"text/html"}` + "\n<html>"))
	f.Add([]byte(strings.Repeat("x", maxHeader+1)))
	id := strings.Repeat("A", 26)
	f.Fuzz(func(t *testing.T, file []byte) {
		s := open(t, t.TempDir(), 1<<20, 10)
		if err := os.WriteFile(filepath.Join(s.dir, id), file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = read(s, id)
	})
}
