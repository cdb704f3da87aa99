// SPDX-License-Identifier: Apache-2.0

//go:build linux

package objects

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// putAs puts a file with a text, as an owner.
func putAs(t *testing.T, s *Store, owner, text string, kinds ...string) (wasThere bool) {
	t.Helper()
	p, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.WriteString(text); err != nil {
		t.Fatal(err)
	}
	wasThere, err = p.Keep(owner, []byte{1, 2}, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // the order is that of times
	return wasThere
}

// content is the content of a file that a caller gets; "": there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	if path == "" {
		return ""
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestEachHasHisOwnFile has owners put different files of one build ID.
func TestEachHasHisOwnFile(t *testing.T) {
	s, err := Open(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	want := func(step string, by map[string]string) {
		t.Helper()
		for caller, text := range by {
			if got := content(t, s.Of(caller).Find([]byte{1, 2}, Executable)); got != text {
				t.Errorf("%s: %q gets %q, expected %q", step, caller, got, text)
			}
		}
	}
	differs := func(caller string, want bool) {
		t.Helper()
		if got, err := s.Of(caller).Differs(); err != nil || got != want {
			t.Errorf("a file of %s differs: %t, %v, expected %t", caller, got, err, want)
		}
	}
	if putAs(t, s, "mallory", "forged", Executable, DebugInfo) {
		t.Error("it was there")
	}
	want("the first one's", map[string]string{"mallory": "forged", "alice": "forged", "": "forged"})
	if putAs(t, s, "alice", "right", Executable) {
		t.Error("it was there")
	}
	want("his own", map[string]string{"mallory": "forged", "alice": "right", "bob": "forged"})
	differs("alice", true)
	differs("mallory", false)
	for range 2 {
		if !putAs(t, s, "bob", "right", Executable) {
			t.Error("a file that another has put takes room twice")
		}
	}
	if n := s.Amount(); n.Files != 2 || n.Bytes != int64(len("forged")+len("right")) {
		t.Errorf("%+v", n)
	}
	want("bob's own", map[string]string{"bob": "right", "": "forged"})
	if ok, err := s.Of("carol").Remove([]byte{1, 2}); ok || err != nil {
		t.Errorf("who has put none removes it: %t, %v", ok, err)
	}
	if ok, err := s.Of("").Remove([]byte{1, 2}); ok || err != nil {
		t.Errorf("who is nobody removes it: %t, %v", ok, err)
	}
	putAs(t, s, "alice", "right again", Executable)
	want("replaced by its owner", map[string]string{"alice": "right again", "bob": "right", "": "forged"})
	if ok, err := s.Of("mallory").Remove([]byte{1, 2}); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	want("without the first one's", map[string]string{"mallory": "right", "alice": "right again", "carol": "right"})
	if ok, err := s.Remove([]byte{1, 2}); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	want("removed", map[string]string{"mallory": "", "alice": "", "": ""})
	if left, _ := filepath.Glob(filepath.Join(s.Dir(), "*")); len(left) != 0 || s.Amount().Bytes != 0 {
		t.Errorf("left %q, %+v", left, s.Amount())
	}
}

// TestAChangedFileIsDropped has files changed on disk, which a store of this process has read, and
// one that is new to the process.
func TestAChangedFileIsDropped(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, opened := range []bool{true, false} {
		putAs(t, s, "alice", "right", Executable)
		path := s.Of("alice").Find([]byte{1, 2}, Executable)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("wrong"), 0o600); err != nil { //nolint:gosec // of a test
			t.Fatal(err)
		}
		if !opened {
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			if s, err = Open(dir, 1000); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Of("alice").Find([]byte{1, 2}, Executable); got != "" {
			t.Errorf("%s is given, and has %q", got, content(t, got))
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("it stays")
		}
	}
}

// TestFilesOfOlderVersions has a file without an owner.
func TestFilesOfOlderVersions(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "01", "02", Executable)
	if err := os.MkdirAll(filepath.Dir(old), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	s, err := Open(dir, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, s.Find([]byte{1, 2}, Executable)); got != "old" {
		t.Errorf("%q", got)
	}
	putAs(t, s, "alice", "new", Executable)
	if got := content(t, s.Of("alice").Find([]byte{1, 2}, Executable)) + content(t, s.Find([]byte{1, 2}, Executable)); got != "newold" {
		t.Errorf("%q", got)
	}
	all, err := s.All()
	if err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, f := range all {
		if string(f.ID) != "\x01\x02" || f.Kind != Executable {
			t.Errorf("%+v", f)
		}
	}
	if ok, err := s.Remove([]byte{1, 2}); !ok || err != nil || s.Find([]byte{1, 2}, Executable) != "" {
		t.Errorf("%t, %v", ok, err)
	}
}
