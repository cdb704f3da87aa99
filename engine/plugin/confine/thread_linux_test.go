// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A kernel without close_range has descriptors closed one by one, up to the last.
func TestDescriptorsUpToTheLast(t *testing.T) {
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
		last := lastOpen()
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil && (fd > last || int(w.Fd()) > last) {
			t.Errorf("descriptors %d and %d are above %d", fd, w.Fd(), last)
		}
		closeEach(last)
		for fd := range last + 1 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && fd != 2 {
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
