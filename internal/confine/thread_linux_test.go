// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread that closes its descriptors leaves those of other threads open, and the runtime's: it
// can stop and start the world, which polls, on such a thread.
func TestDescriptorsOfAThreadAreClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	failed := make(chan error)
	runtime.LockOSThread() // the process's first thread, which others look at, may be this one's
	defer runtime.UnlockOSThread()
	var closes func()
	closes = func() {
		runtime.LockOSThread() // and the thread ends with its descriptors
		if unix.Gettid() == os.Getpid() {
			go closes()
			time.Sleep(time.Second) // until it runs elsewhere
			runtime.UnlockOSThread()
			return
		}
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			failed <- err
			return
		}
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		thread := Thread{open: foreignDescriptors()}
		if !slices.Contains(thread.open, fd) || !slices.Contains(thread.open, int(w.Fd())) {
			t.Errorf("descriptors %d and %d are not among %d", fd, w.Fd(), thread.open)
		}
		thread.CloseDescriptors()
		for range 3 {
			runtime.GC()
		}
		for _, fd := range thread.open {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Errorf("descriptor %d is open", fd)
			}
		}
		failed <- err
	}
	go closes()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("x"); err != nil {
		t.Errorf("descriptors of other threads are closed, too: %v", err)
	}
}
