// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package confinetest tells tests how the kernel can confine processes, and simulates
// kernels that lack some of it.
package confinetest

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/oracle"
)

// Main executes the test binary again, with the arguments behind "without WHAT" that it was
// started with, on a system that lacks "landlock" or "seccomp". TestMain calls it first.
func Main() {
	if len(os.Args) > 2 && os.Args[1] == "without" {
		without(os.Args[2], os.Args[3:])
	}
}

// LandlockABI is the version of the kernel's interface; 0: there is none.
func LandlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Need skips a test where the kernel cannot confine processes; in CI it must.
func Need(t *testing.T) {
	t.Helper()
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if LandlockABI() == 0 || errno != 0 {
		oracle.Missing(t, "this kernel has no Landlock or no seccomp")
	}
}

// without executes this binary again on a system that lacks Landlock or seccomp.
func without(what string, args []string) {
	filter := []bpf.Instruction{bpf.LoadAbsolute{Size: 4} /* the number */}
	var denied []uint32
	switch what {
	case "landlock":
		denied = []uint32{unix.SYS_LANDLOCK_CREATE_RULESET}
	case "seccomp":
		denied = []uint32{unix.SYS_SECCOMP}
	}
	for _, nr := range denied {
		filter = append(filter, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)})
	}
	raw, err := bpf.Assemble(append(filter, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
	if err != nil {
		panic(err)
	}
	sock := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		sock[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	program := unix.SockFprog{Len: uint16(len(sock)), Filter: &sock[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		panic(errno)
	}
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	panic(syscall.Exec(path, append([]string{path}, args...), os.Environ()))
}
