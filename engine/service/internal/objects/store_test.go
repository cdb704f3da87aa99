// SPDX-License-Identifier: Apache-2.0

//go:build linux

package objects

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/object"
)

func put(t *testing.T, s *Store, id []byte, bytes int, kinds ...string) error {
	t.Helper()
	p, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	// The files of equal size are different ones.
	if name := fmt.Appendf(nil, "%x", id); bytes >= len(name) {
		if _, err := p.WriteAt(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	_, err = p.Keep("owner", id, kinds...)
	return err
}

func TestTheOldestGoesFirst(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := put(t, s, []byte{1, byte(i)}, 250, Executable); err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(time.Duration(i-10) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, "01", fmt.Sprintf("%02x", i), folderOf("owner")), used, used); err != nil {
			t.Fatal(err)
		}
	}
	if s.Find([]byte{1, 0}, Executable) == "" { // which uses it
		t.Error("what was put is not there")
	}
	if err := put(t, s, []byte{2, 2}, 300, Executable, DebugInfo); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false, true} {
		if got := s.Find([]byte{1, byte(i)}, Executable) != ""; got != want {
			t.Errorf("file %d is there: %v, expected %v", i, got, want)
		}
	}
	if err := put(t, s, []byte{3, 3}, 1001, Executable); err == nil {
		t.Error("a file that is larger than the store is kept")
	}
	again, err := Open(dir, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if n := again.Amount().Bytes; n != 800 {
		t.Errorf("%d bytes, expected 800: two names of one file take no room twice", n)
	}
	if again.Find([]byte{2, 2}, DebugInfo) == "" {
		t.Error("the store forgets when it is opened again")
	}
}

// TestAFileThatIsUsedStaysTheSame looks a file up: whoever has it open knows it by its times,
// and would read all of it again.
func TestAFileThatIsUsedStaysTheSame(t *testing.T) {
	s, err := Open(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := put(t, s, []byte{1, 2}, 10, Executable, DebugInfo); err != nil {
		t.Fatal(err)
	}
	stat := func() (u unix.Stat_t) {
		path, _ := latest(filepath.Join(s.Dir(), "01", "02", folderOf("owner")), Executable)
		if err := unix.Stat(path, &u); err != nil {
			t.Fatal(err)
		}
		u.Atim = unix.Timespec{} // who reads it changes that
		return u
	}
	before := stat()
	time.Sleep(20 * time.Millisecond) // longer than a kernel's clock stands still
	for _, kind := range []string{Executable, DebugInfo} {
		if s.Find([]byte{1, 2}, kind) == "" {
			t.Error("what was put is not there")
		}
	}
	if after := stat(); after != before {
		t.Errorf("a file that was found is %+v, and was %+v", after, before)
	}
}

func TestPartsThatWereLeft(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, 1000)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Create() // a process that is killed leaves it
	if err != nil {
		t.Fatal(err)
	}
	for _, isGone := range []bool{false, true} {
		if isGone {
			_ = p.File.Close() // as its end does
		}
		if _, err := Open(dir, 1000); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(p.Name()); !isGone && err != nil {
			t.Errorf("a part that is being written: %v", err)
		}
	}
	if _, err := os.Stat(p.Name()); err == nil {
		t.Error("a part of a process that is gone stays")
	}
}

func TestBuildIDsThatAreNone(t *testing.T) {
	s, err := Open(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range [][]byte{nil, {1}, make([]byte, MaxID+1)} {
		if err := put(t, s, id, 1, Executable); err == nil {
			t.Errorf("build ID %x is kept", id)
		}
		if s.Find(id, Executable) != "" {
			t.Errorf("build ID %x is found", id)
		}
	}
	if path, _ := s.Of("").Fetch(object.RemoteFile{Kind: object.RemoteSource, BuildID: []byte{1, 2}}); path != "" {
		t.Error(path)
	}
}

// TestManyPutAtOnce is for the race detector.
func TestManyPutAtOnce(t *testing.T) {
	s, err := Open(t.TempDir(), 5000)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 20 {
				if err := put(t, s, []byte{byte(k), 1}, 100+i, Executable); err != nil {
					t.Error(err)
				}
				if path, _ := s.Of("").Fetch(object.RemoteFile{Kind: object.RemoteExecutable, BuildID: []byte{byte(k), 1}}); path == "" {
					t.Error("what was put is not there")
				}
			}
		})
	}
	wg.Wait()
}
