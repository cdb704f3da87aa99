// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"errors"
	"os"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMemoryBeyondItsLimitEndsAProcess(t *testing.T) {
	a := testArchOf(t, good, Options{})
	a.transport.(*supervisor).launch.memory = 256 << 20
	_, err := obey(t, a, "hoard")
	var f *Failure
	const how = `used \d+ MiB of memory, expected at most 256 MiB, and was killed`
	if !errors.As(err, &f) || !regexp.MustCompile("^its process "+how+", and when asked once more again$").MatchString(f.Reason) {
		t.Errorf("got %v", err)
	}
	if p := a.Problems(); len(p) != 2 || !regexp.MustCompile(how+" during Disassemble; restarted$").MatchString(p[0]) {
		t.Errorf("problems: %q", p)
	}
	if got, err := obey(t, a, "echo x"); err != nil || got != "x" {
		t.Errorf("after it: %q, %v", got, err)
	}
}

// TestResidentMemory holds what is counted against what was just mapped, of both
// kinds.
func TestResidentMemory(t *testing.T) {
	const size = 32 << 20
	before := ResidentMemory(os.Getpid())
	for _, flags := range []int{unix.MAP_PRIVATE, unix.MAP_SHARED} {
		b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|flags)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Munmap(b) }()
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1
		}
	}
	after := ResidentMemory(os.Getpid())
	if grown := int64(after) - int64(before); before == 0 || grown < size*19/10 || grown > size*21/10 {
		t.Errorf("%d bytes more than before, expected about %d", grown, 2*size)
	}
	if n := ResidentMemory(1 << 22); n != 0 {
		t.Errorf("a process that cannot be has %d bytes", n)
	}
}
