// SPDX-License-Identifier: Apache-2.0

package object

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestOpenAndBuildIDTouchFewPages opens a sparse file of 1 GiB and looks at
// which of its pages came into memory.
func TestOpenAndBuildIDTouchFewPages(t *testing.T) {
	path, size := bigFile(t)
	o := mustOpen(t, path)
	if string(o.BuildID()) != "big file" || o.Section(".text") == nil || len(o.Data()) != size {
		t.Fatalf("build ID %q, %d bytes", o.BuildID(), len(o.Data()))
	}
	pages := make([]byte, (size+4095)/4096)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, o.mapping.start(), uintptr(size), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	n := 0
	for _, p := range pages {
		n += int(p & 1)
	}
	// The kernel reads ahead around each page that is touched.
	if n == 0 || n > 4096 {
		t.Errorf("%d of %d pages are in memory", n, len(pages))
	}
}
