// SPDX-License-Identifier: Apache-2.0

//go:build linux

package buildids

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/object"
)

const crash = "../../../../examples/crash/server"

// crashID is the build ID of crash.
func crashID(t *testing.T) []byte {
	t.Helper()
	id, err := hex.DecodeString("01092ed6fbfc989c60cdda4dd2cc30a56e23db6d")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// copyTo copies crash to a path.
func copyTo(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(crash)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFilesThatComeLaterAreFoundWhenTheFoldersAreReadAgain has a file that comes, one that changes, and
// things that are no files of code.
func TestFilesThatComeLaterAreFoundWhenTheFoldersAreReadAgain(t *testing.T) {
	root := t.TempDir()
	copyTo(t, filepath.Join(root, "proc/server")) // is no file of a disk
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "server")
	copyTo(t, outside)
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "damaged"), append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 100)...), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		x := New("", root, filepath.Join(root, "none"))
		find := func(want string) {
			t.Helper()
			got, err := x.Find(t.Context(), crashID(t), object.RemoteExecutable)
			if got != want || err != nil {
				t.Errorf("%q %v, expected %q", got, err, want)
			}
			synctest.Wait()
		}
		find("")
		place := filepath.Join(root, "usr/bin/server")
		copyTo(t, place)
		find("")
		time.Sleep(Fresh + time.Second)
		find("") // which has them read again
		find(place)
		if path, err := x.Find(t.Context(), crashID(t), object.RemoteDebuginfo); path != place || err != nil {
			t.Errorf("%q, %v", path, err)
		}
		if err := os.WriteFile(place, []byte("another file, of more bytes than the header of a code object has"), 0o600); err != nil {
			t.Fatal(err)
		}
		find("")
		for _, id := range [][]byte{nil, {1, 2}} {
			if path, err := x.Find(t.Context(), id, object.RemoteExecutable); path != "" || err != nil {
				t.Errorf("%x: %q, %v", id, path, err)
			}
		}
	})
}

// TestManyLookThroughFoldersAtOnce is for the race detector, and has one who does not wait.
func TestManyLookThroughFoldersAtOnce(t *testing.T) {
	root := t.TempDir()
	copyTo(t, filepath.Join(root, "server"))
	x := New(root)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if path, err := x.Find(gone, crashID(t), object.RemoteExecutable); path == "" && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	x.fresh = 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if path, err := x.Find(t.Context(), crashID(t), object.RemoteExecutable); path == "" || err != nil {
					t.Errorf("%q, %v", path, err)
				}
				if path, err := x.Find(t.Context(), []byte{1, 2}, object.RemoteExecutable); path != "" || err != nil {
					t.Errorf("%q, %v", path, err)
				}
			}
		})
	}
	wg.Wait()
	if n := x.Omitted(); n != 0 {
		t.Errorf("%d files are left out", n)
	}
}
