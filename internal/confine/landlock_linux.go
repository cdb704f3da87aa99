// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock rules.
const (
	readFile    = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readTree    = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	executeFile = readFile | unix.LANDLOCK_ACCESS_FS_EXECUTE
	useDevice   = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	// The rights of a listener on a Unix socket in its directory. The server of go-plugin
	// makes a regular file first, for its unique name, and removes it.
	ownSockets = readTree | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
)

// landlockFeatures has the restrictions of each version of the kernel's interface.
var landlockFeatures = []struct {
	abi             int
	fs, net, scoped uint64
	what            string
}{
	{abi: 1, what: "files", fs: unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
	{abi: 2, what: "links across directories", fs: unix.LANDLOCK_ACCESS_FS_REFER},
	{abi: 3, what: "truncation", fs: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{abi: 4, what: "TCP", net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
	{abi: 5, what: "device ioctls", fs: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	{abi: 6, what: "abstract Unix sockets and signals", scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
	{abi: 9, what: "connections to Unix sockets", fs: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
	{abi: 10, what: "UDP", net: unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
}

// pathRule opens one path, and all beneath it, to a plugin.
type pathRule struct {
	path   string
	rights uint64
}

// systemPaths has the paths that programs in general need: libraries and the files by
// which the dynamic loader finds them, and files of the kernel that runtimes read at
// their start. Paths that a system does not have are skipped.
var systemPaths = []pathRule{
	{"/lib", readTree}, {"/lib32", readTree}, {"/lib64", readTree}, {"/libx32", readTree},
	{"/usr/lib", readTree}, {"/usr/lib32", readTree}, {"/usr/lib64", readTree}, {"/usr/libx32", readTree},
	{"/usr/local/lib", readTree}, {"/usr/local/lib64", readTree},
	{"/etc/ld.so.cache", readFile}, {"/etc/ld.so.preload", readFile},
	{"/etc/ld-musl-x86_64.path", readFile}, {"/etc/ld-musl-aarch64.path", readFile},
	{"/etc/localtime", readFile}, {"/usr/share/zoneinfo", readTree},
	{"/dev/null", useDevice}, {"/dev/zero", readFile}, {"/dev/random", readFile}, {"/dev/urandom", readFile},
	{"/sys/kernel/mm/transparent_hugepage", readTree}, // Go's heap sizes itself by it
}

// landlockABI is the version of the kernel's interface; 0: there is none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// applyLandlock restricts this thread to the paths of a plugin, the system's and
// socketDir. missing lists what stays open; seccomp means that the filter is applied as
// well, which closes all that versions after the first restrict.
func applyLandlock(paths []pathRule, socketDir string, seccomp bool) (missing []string) {
	abi := landlockABI()
	var handled unix.LandlockRulesetAttr
	for _, f := range landlockFeatures {
		if f.abi <= abi {
			handled.Handled_access_fs |= f.fs
			handled.Handled_access_net |= f.net
			handled.Scoped |= f.scoped
		} else if f.abi == 1 || !seccomp {
			missing = append(missing, fmt.Sprintf("landlock: this kernel cannot restrict %s (it has version %d of the interface, expected %d or later)",
				f.what, abi, f.abi))
		}
	}
	if abi == 0 {
		return missing
	}
	if err := restrictPaths(&handled, paths, socketDir); err != nil {
		missing = append(missing, fmt.Sprintf("landlock: %v", err))
	}
	return missing
}

func restrictPaths(handled *unix.LandlockRulesetAttr, paths []pathRule, socketDir string) error {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(handled)), unsafe.Sizeof(*handled), 0)
	if errno != 0 {
		return fmt.Errorf("create a ruleset: %w", errno)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset)

	if socketDir != "" {
		paths = append(paths, pathRule{socketDir, ownSockets})
	}
	for _, list := range [][]pathRule{systemPaths, paths} {
		for _, r := range list {
			// A rule that cannot be added opens nothing. Where the plugin needs it, its
			// exec fails.
			_ = addPath(ruleset, r, handled.Handled_access_fs)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

// addPath adds one rule. Rights that only directories have are left out for a
// file: the kernel refuses them.
func addPath(ruleset int, r pathRule, handled uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	rights := r.rights & handled
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
