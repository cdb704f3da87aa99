// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enterVariable has the entry of a process that this program is to become unwindd in.
const enterVariable = "FAULTS_ENTER"

// notEntered is the exit status of a process that could not enter its fault.
const notEntered = 97

// entry is the restrictions that a process enters before it executes unwindd.
type entry struct {
	Limits   map[int]uint64 // rlimits by their numbers
	Hidden   []string       // folders that are empty
	NoTmp    bool           // there is no /tmp
	Root     []string       // only these folders are in the file system; none: all are
	ReadOnly bool           // nothing can be written, but in folders that are mounted
	Writable []string       // folders that can be written nevertheless
	Closed   []int          // descriptors
	User     int            // 0: the same
	Group    string         // a folder of control groups
	Denied   []uintptr      // system calls
	Errno    syscall.Errno  // that they fail with
	// Container has a process of its own PIDs, network and users, and no
	// capabilities; NoUserNamespaces is one that can make no user namespaces.
	Container, NoUserNamespaces bool
}

func (e *entry) text() string {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // it has numbers and strings
	}
	return string(text)
}

// namespaces are those that the process starts in.
func (e *entry) namespaces() uintptr {
	flags := uintptr(0)
	if len(e.Hidden)+len(e.Root) > 0 || e.ReadOnly {
		flags |= syscall.CLONE_NEWNS
	}
	if e.Container {
		flags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC
	}
	return flags
}

// enter makes this process the command of its arguments. It returns only with an error.
func enter(text string) error {
	runtime.LockOSThread() // settings of a thread pass to the file that it executes
	var e entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return err
	}
	if err := os.Unsetenv(enterVariable); err != nil {
		return err
	}
	environment := os.Environ()
	for _, step := range []func() error{e.join, e.contain, e.mount, e.limit, e.become, e.deny} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, fd := range e.Closed {
		_ = unix.Close(fd) // it may not be open
	}
	return fmt.Errorf("execute %s: %w", os.Args[1], syscall.Exec(os.Args[1], os.Args[1:], environment))
}

// join goes into the control group.
func (e *entry) join() error {
	if e.Group == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(e.Group, "cgroup.procs"), []byte("0"), 0)
}

// contain makes a container of what the namespaces are.
func (e *entry) contain() error {
	if !e.Container {
		return nil
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	if e.NoUserNamespaces {
		return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	}
	return nil
}

func (e *entry) mount() error {
	for _, path := range e.Hidden {
		if err := unix.Mount("none", path, "tmpfs", unix.MS_RDONLY, "size=4k"); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	if len(e.Root) > 0 {
		if err := newRoot(e.Root); err != nil {
			return err
		}
	}
	for _, path := range e.Writable {
		if err := unix.Mount("none", path, "tmpfs", 0, "size=64m,mode=777"); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	if !e.ReadOnly {
		return nil
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, attr); err != nil {
		return fmt.Errorf("a root that cannot be written: %w", err)
	}
	attr = &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	for _, path := range e.Writable {
		if err := unix.MountSetattr(-1, path, 0, attr); err != nil {
			return fmt.Errorf("%s, which can be written: %w", path, err)
		}
	}
	return nil
}

// newRoot makes a root that has some folders of the old one.
func newRoot(paths []string) error {
	const root = "/mnt"
	if err := unix.Mount("none", root, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("another root: %w", err)
	}
	for _, path := range paths {
		to := root + path
		if link, err := os.Readlink(path); err == nil {
			if err := os.Symlink(link, to); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(path, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s in another root: %w", path, err)
		}
	}
	if err := unix.Chroot(root); err != nil {
		return err
	}
	return unix.Chdir("/")
}

func (e *entry) limit() error {
	for resource, value := range e.Limits {
		// That of package syscall: the other is undone before a program is executed.
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("rlimit %d: %w", resource, err)
		}
	}
	return nil
}

// become makes this thread that of another user. The others of the process stay, so that
// they do not count as the user's.
func (e *entry) become() error {
	if e.User == 0 {
		return nil
	}
	id := uintptr(e.User)
	for _, call := range []uintptr{unix.SYS_SETGROUPS, unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		arguments := [3]uintptr{id, id, id}
		if call == unix.SYS_SETGROUPS {
			arguments = [3]uintptr{}
		}
		if _, _, errno := unix.RawSyscall(call, arguments[0], arguments[1], arguments[2]); errno != 0 {
			return fmt.Errorf("become user %d: %w", e.User, errno)
		}
	}
	return nil
}

// deny has system calls fail, as in an older kernel, or beneath a filter that does not know
// them.
func (e *entry) deny() error {
	if len(e.Denied) == 0 {
		return nil
	}
	statement := func(code int, k uint32) unix.SockFilter { return unix.SockFilter{Code: uint16(code), K: k} } //nolint:gosec // codes are small
	filter := []unix.SockFilter{statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0)}
	for _, call := range e.Denied {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(call)}, //nolint:gosec // numbers are small
			statement(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(e.Errno))) //nolint:gosec // likewise
	}
	filter = append(filter, statement(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // some dozens
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("a filter of system calls: %w", errno)
	}
	return nil
}

// withoutTemporary are the folders of a root without /tmp.
func withoutTemporary(dir string) []string {
	list := []string{dir}
	for _, path := range []string{"/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/usr"} {
		if _, err := os.Lstat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}
