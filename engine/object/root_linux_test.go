// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestPathsStayBeneathTheSysroot resolves paths by openat2 and by the walk that
// stands in for it, which must agree.
func TestPathsStayBeneathTheSysroot(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	write(t, filepath.Join(dir, "secret"), []byte("outside"))
	write(t, filepath.Join(root, "usr/lib/libc.so"), []byte("libc"))
	write(t, filepath.Join(root, "secret"), []byte("inside"))
	write(t, filepath.Join(root, "etc/hosts"), []byte("of the target"))
	link(t, "usr/lib", filepath.Join(root, "lib"))
	link(t, "/usr/lib/libc.so", filepath.Join(root, "opt/absolute"))
	link(t, "../usr/lib/libc.so", filepath.Join(root, "opt/relative"))
	link(t, "../../../../../../../secret", filepath.Join(root, "opt/up"))
	link(t, filepath.Join(dir, "secret"), filepath.Join(root, "opt/host"))
	link(t, "/", filepath.Join(root, "opt/top"))
	link(t, "loop", filepath.Join(root, "opt/loop"))
	link(t, "more/x", filepath.Join(root, "opt/more"))
	link(t, "/proc/self/root/etc/hosts", filepath.Join(root, "opt/magic"))
	link(t, "/lib/libc.so/", filepath.Join(root, "opt/slash"))
	if err := oracle.Mkfifo(filepath.Join(root, "fifo")); err != nil {
		t.Fatal(err)
	}
	// A chain as long as the kernel follows, and one longer.
	for i := range maxLinks + 1 {
		link(t, fmt.Sprintf("chain%d", i), filepath.Join(root, fmt.Sprintf("opt/chain%d", i+1)))
	}
	write(t, filepath.Join(root, "opt/chain0"), []byte("end of the chain"))

	tests := []struct {
		path string
		want string
		is   error
	}{
		{"/usr/lib/libc.so", "libc", nil},
		{"usr/lib/libc.so", "libc", nil},
		{"/lib/libc.so", "libc", nil},
		{"//lib/.//libc.so", "libc", nil},
		{"/opt/absolute", "libc", nil},
		{"/opt/relative", "libc", nil},
		{"/../../../secret", "inside", nil},
		{"/usr/../../secret", "inside", nil},
		{"/opt/up", "inside", nil},
		{"/opt/host", "", unix.ENOENT},
		{"/opt/top/opt/top/secret", "inside", nil},
		{"/opt/top/../secret", "inside", nil},
		{"/opt/magic", "", unix.ENOENT},
		{"/opt/loop", "", unix.ELOOP},
		{"/opt/more", "", unix.ELOOP},
		{fmt.Sprintf("/opt/chain%d", maxLinks), "end of the chain", nil},
		{fmt.Sprintf("/opt/chain%d", maxLinks+1), "", unix.ELOOP},
		{"/none", "", unix.ENOENT},
		{"/secret/below", "", unix.ENOTDIR},
		{"/lib/libc.so/", "", unix.ENOTDIR},
		{"/opt/slash", "", unix.ENOTDIR},
	}
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	ways := []struct {
		name string
		open func(int, string, int) (int, error)
	}{{"openat2", openat2In}, {"walk", walkIn}}
	for _, way := range ways {
		for _, test := range tests {
			t.Run(way.name+" "+test.path, func(t *testing.T) {
				file, err := way.open(fd, test.path, openFlags)
				if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
					t.Skip("the kernel has no openat2")
				}
				if test.is != nil {
					if !errors.Is(err, test.is) {
						t.Errorf("error %v, expected %v", err, test.is)
					}
					if err == nil {
						unix.Close(file)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				f := os.NewFile(uintptr(file), test.path)
				defer f.Close()
				b := make([]byte, 100)
				n, _ := f.Read(b)
				if string(b[:n]) != test.want {
					t.Errorf("read %q, expected %q", b[:n], test.want)
				}
			})
		}
	}

	for path, is := range map[string]error{"/fifo": ErrNotRegular, "/usr": ErrNotRegular, "/": ErrNotRegular, "/opt/host": os.ErrNotExist} {
		_, err := mapUnder(root, path)
		wantError(t, err, is, filepath.Join(root, path))
	}
	_, err = mapUnder(filepath.Join(dir, "none"), "/x")
	wantError(t, err, os.ErrNotExist, "none")
}
