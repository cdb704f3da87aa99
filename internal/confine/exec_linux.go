// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// run applies the sandbox and executes the plugin. Capabilities, no_new_privs,
// Landlock and seccomp belong to a thread, and so does the signal for the
// parent's death: all of it, the exec included, happens on one.
func (e *execution) run(report func(missing []string)) error {
	runtime.LockOSThread()
	if err := e.dieWithParent(); err != nil {
		return err
	}
	var missing []string
	note(&missing, "descriptors", closeOnExec())
	if e.reportFD > 0 {
		unix.CloseOnExec(e.reportFD) // its end means that the exec succeeded
	}
	for _, l := range resourceLimits {
		note(&missing, "rlimit "+l.name, l.apply())
	}
	if l, ok := threadLimit(); ok {
		note(&missing, "rlimit "+l.name, l.apply())
	}

	file, script, err := e.open()
	if err != nil {
		return err
	}
	defer file.Close()
	paths := pluginPaths(e.path, file)
	if e.dataDir != "" {
		paths = append(paths, pathRule{e.dataDir, readTree})
	}

	note(&missing, "capabilities", dropCapabilities())
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	filter, lacking := usableFilter(pluginCalls(uint32(os.Getpid())))
	if filter == nil {
		missing = append(missing, lacking)
	}
	missing = append(missing, applyLandlock(paths, e.socketDir, filter != nil)...)
	if len(missing) > 0 {
		report(missing)
	}
	env := os.Environ()
	if filter != nil {
		if err := applySeccomp(filter, 0); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	if e.sha256 == "" || script {
		err = syscall.Exec(e.path, e.args, env)
	} else {
		// The file that was hashed is executed, even if the path changed.
		err = execFile(file, e.args, env)
	}
	return fmt.Errorf("execute %s: %w", e.path, err)
}

// note adds a part of the sandbox that this system lacks to missing, where err is not nil.
func note(missing *[]string, part string, err error) {
	if err != nil {
		*missing = append(*missing, fmt.Sprintf("%s: %v", part, err))
	}
}

// dieWithParent asks for SIGKILL when the parent thread dies. A parent that died before
// the request is noticed because the parent process is another one.
func (e *execution) dieWithParent() error {
	if e.parent == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("parent death signal: %w", err)
	}
	if p := os.Getppid(); p != e.parent {
		return fmt.Errorf("parent is process %d, expected %d: it died before its plugin started", p, e.parent)
	}
	return nil
}

// open opens the executable and checks its kind and its hash. Scripts have to be executed
// by path: their interpreter opens them again.
func (e *execution) open() (file *os.File, script bool, err error) {
	file, err = os.OpenFile(e.path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", e.path)
	case e.sha256 != "":
		h := sha256.New()
		if _, err = io.Copy(h, file); err != nil {
			err = fmt.Errorf("hash %s: %w", e.path, err)
		} else if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, e.sha256) {
			err = fmt.Errorf("%s has SHA-256 %s, expected %s", e.path, got, e.sha256)
		}
	}
	if err != nil {
		file.Close()
		return nil, false, err
	}
	var magic [2]byte
	n, _ := file.ReadAt(magic[:], 0)
	return file, n == 2 && magic == [2]byte{'#', '!'}, nil
}

// lastDescriptor is the largest descriptor.
const lastDescriptor = ^uint(0) >> 33

// closeOnExec marks all descriptors except the standard three, so that nothing that
// unwindd inherited from its own parent reaches a plugin.
func closeOnExec() error {
	err := unix.CloseRange(3, lastDescriptor, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	return eachDescriptor(func(fd int) { unix.CloseOnExec(fd) })
}

// eachDescriptor calls f with every descriptor of this thread except the standard three.
func eachDescriptor(f func(fd int)) error {
	entries, err := os.ReadDir("/proc/thread-self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			f(fd)
		}
	}
	return nil
}

// execFile is fexecve.
func execFile(f *os.File, args, env []string) error {
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return err
	}
	envv, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	var empty [1]byte
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, f.Fd(), uintptr(unsafe.Pointer(&empty[0])),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}
