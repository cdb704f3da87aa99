// SPDX-License-Identifier: Apache-2.0

package service

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// input writes an input of a caller, and returns what the file has then.
func input(t *testing.T, s *Server, caller, text string) (u *upload, has string) {
	t.Helper()
	u, err := s.newInput(s.budget.of(caller), caller, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	f, err := u.whole()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return u, string(b)
}

func TestFilesOfInputsAreUsedAgainByTheSameCaller(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "spool"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &Server{Options: Options{State: dir}, budget: newBudget(1 << 40), spares: &spares{most: 2}}
	done := &answer{done: make(chan struct{})}
	close(done.done)

	first, has := input(t, s, "one", "a long input")
	if has != "a long input" {
		t.Errorf("the first input is %q", has)
	}
	file := first.File
	first.closeAfter(done)
	if err := first.Close(); err != nil {
		t.Errorf("Close after closeAfter: %v", err)
	}
	if n := s.budget.inUse(); n != 0 {
		t.Errorf("%d bytes are in use after closeAfter, expected 0", n)
	}
	other, has := input(t, s, "another", "x")
	if other.File == file || has != "x" {
		t.Errorf("another caller has the file of the first one, or %q", has)
	}
	again, has := input(t, s, "one", "short")
	if again.File != file || has != "short" {
		t.Errorf("the caller's next input is %q, in another file: %v, expected \"short\" in the same", has, again.File != file)
	}
	under := &answer{done: make(chan struct{})}
	again.closeAfter(under)
	if _, err := file.Stat(); err == nil {
		t.Error("a file that is still read is kept, expected that it is closed")
	}
	other.closeAfter(done)
	large, _ := input(t, s, "one", string(make([]byte, maxSpare+1)))
	large.closeAfter(done)
	if f, _ := s.spares.take("one"); f != nil {
		t.Error("a large file is kept, expected that it is closed")
	}
	kept := func() int {
		s.spares.mu.Lock()
		defer s.spares.mu.Unlock()
		return len(s.spares.files)
	}
	if n := kept(); n != 1 {
		t.Errorf("%d files are kept, expected the other caller's", n)
	}
	for late := time.Now().Add(10 * time.Second); kept() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("a file is kept for more than ten seconds")
		}
	}
	s.spares.close()
	if s.spares.keep(file, "one", 1); kept() > 0 {
		t.Error("a file is kept after close")
	}
}
