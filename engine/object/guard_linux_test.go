// SPDX-License-Identifier: Apache-2.0

package object

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/oracle"
)

func TestGuardLetsOtherPanicsGo(t *testing.T) {
	// A page that is mapped without the right to read, and is no file of ours.
	other, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(other)
	var none *int
	tests := []struct {
		name string
		run  func()
		says string
	}{
		{"a value", func() { panic("its own") }, "its own"},
		{"nil pointer", func() { *none = 1 }, "nil pointer"},
		{"index", func() { sink = []byte{}[len(sinkString)] }, "out of range"},
		{"memory of others", func() { sink = *(*byte)(unsafe.Pointer(&other[0])) }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sinkString = "12"
			defer func() {
				r := recover()
				if r == nil {
					t.Fatal("no panic")
				}
				text := ""
				switch r := r.(type) {
				case error:
					text = r.Error()
				case string:
					text = r
				}
				if !strings.Contains(text, test.says) {
					t.Errorf("panic %q, expected %q", text, test.says)
				}
				if debug.SetPanicOnFault(false) {
					t.Error("panics on faults are still on")
				}
			}()
			Guard(func() error { test.run(); return nil })
		})
	}
}

func TestOnlyRegularFilesAreMapped(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := oracle.Mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	write(t, empty, nil)
	tests := []struct {
		path string
		is   error
		says string
	}{
		{fifo, ErrNotRegular, "fifo: not a regular file (a FIFO)"},
		{dir, ErrNotRegular, "a directory"},
		{"/dev/zero", ErrNotRegular, "a device"},
		{empty, ErrEmpty, "empty: file is empty"},
		{filepath.Join(dir, "none"), os.ErrNotExist, "none"},
		{"with\x00NUL", unix.EINVAL, "invalid argument"},
	}
	for _, test := range tests {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := Map(test.path)
			wantError(t, err, test.is, test.says)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: blocked", test.path)
		}
	}
}
