// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/trace"
)

// moduleName returns the name of a module without its folder and versions. It stands for the
// module's functions without a name: offsets change with every build.
func moduleName(file string) string {
	if _, rest, isURI := strings.Cut(file, "://"); isURI { // from a device's runtime
		file, _, _ = strings.Cut(rest, "#")
	}
	file = strings.TrimSuffix(strings.Map(funcname.Printable, file), " (deleted)")
	file = path.Base(strings.ReplaceAll(file, `\`, "/"))
	if lower := strings.ToLower(file); strings.HasSuffix(lower, ".dll") || strings.HasSuffix(lower, ".exe") {
		return lower
	}
	library, _, isShared := strings.Cut(file, ".so")
	if !isShared || library == "" {
		return file
	}
	if name, version, ok := cutLast(library, '-'); ok && strings.Trim(version, "0123456789.") == "" {
		library = name // libc-2.31.so
	}
	return library + ".so"
}

func cutLast(s string, c byte) (before, after string, ok bool) {
	index := strings.LastIndexByte(s, c)
	if index <= 0 || index == len(s)-1 {
		return s, "", false
	}
	return s[:index], s[index+1:], true
}

// systemModules are the modules whose functions without a name are left out: their named
// functions show what they do.
var systemModules = []string{
	"libc.so", "libpthread.so", "ld-linux", "ld.so", "ld-musl", "libc.musl", "linux-vdso", "linux-gate", "[vdso]", "libstdc++.so", "libc++", "libgcc_s",
	"ntdll.dll", "kernel32.dll", "kernelbase.dll", "ucrtbase.dll", "msvcrt.dll", "vcruntime", "libsystem_", "dyld",
}

func isSystem(module string) bool {
	for _, m := range systemModules {
		if strings.HasPrefix(module, m) {
			return true
		}
	}
	return false
}

// IsWithMacOS reports whether a file is a library of macOS or iOS itself.
func IsWithMacOS(file string) bool {
	for _, root := range macRoots {
		if _, rest, ok := strings.Cut(file, root); ok && (root != "" || rest == file) {
			file = rest
			break
		}
	}
	return strings.HasPrefix(file, "/System/") || strings.HasPrefix(file, "/usr/lib/") && (strings.HasSuffix(file, ".dylib") || path.Base(file) == "dyld")
}

// macRoots are the folders with the system's files where these are not at the root: of a simulator, and of the parts
// of the system that are replaced on their own.
var macRoots = []string{"/RuntimeRoot", "/preboot/Cryptexes/OS"}

// bridges are modules by which a language calls functions of C that no extension was written for.
var bridges = []string{"libffi", "_ctypes.", "_cffi_backend.", "fiddle.so", "ffi_c.so"}

// isBridge reports whether a module is a bridge of a language's.
func isBridge(m *trace.Module) bool {
	name := moduleName(m.Path)
	return slices.ContainsFunc(bridges, func(b string) bool { return strings.HasPrefix(name, b) })
}
