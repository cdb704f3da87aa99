// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bufio"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of the search for a plugin's libraries.
const (
	maxLibraries    = 512
	maxInterpreters = 4
	maxConfigFiles  = 256
)

// pluginPaths lists the paths that a plugin's own executable needs: itself and its loader
// (or its interpreter) executable, its shared libraries readable, and the directories
// that the system's administrator gave to the dynamic loader. The libraries are the files
// that its DT_NEEDED entries lead to, not whole directories: a plugin chooses its
// RUNPATH, and must not get access to the user's files by it. For the same reason only
// ELF files count.
func pluginPaths(path string, file io.ReaderAt) []pathRule {
	rules := []pathRule{{path, executeFile}}
	dirs := loaderDirectories("/etc/ld.so.conf")
	for _, d := range dirs {
		rules = append(rules, pathRule{d, readTree})
	}
	for range maxInterpreters {
		interpreter, script := interpreterOf(file)
		if interpreter == "" {
			break
		}
		f, err := openRegular(interpreter)
		if err != nil {
			break
		}
		defer f.Close()
		rules = append(rules, pathRule{interpreter, executeFile})
		if !script {
			break
		}
		path, file = interpreter, f
	}
	for _, lib := range libraries(path, file, dirs) {
		rules = append(rules, pathRule{lib, readFile})
	}
	return rules
}

// interpreterOf is the program that the kernel executes for a file: the dynamic
// loader of an ELF file, the interpreter of a script; "" for neither.
func interpreterOf(file io.ReaderAt) (path string, script bool) {
	var head [256]byte
	n, _ := file.ReadAt(head[:], 0)
	if line, ok := bytes.CutPrefix(head[:n], []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		if words := strings.Fields(string(line)); len(words) > 0 {
			return words[0], true
		}
		return "", false
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return "", false
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > unix.PathMax {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err == nil {
			return string(bytes.TrimRight(b, "\x00")), false
		}
	}
	return "", false
}

// libraries finds the shared libraries of an ELF file, and theirs, where the dynamic
// loader would: DT_RPATH, DT_RUNPATH with $ORIGIN, the directories of its configuration.
// Libraries in the directories of systemPaths need not be found exactly: these are open
// as a whole.
func libraries(path string, file io.ReaderAt, dirs []string) []string {
	type object struct {
		path string
		file io.ReaderAt
	}
	var found []string
	seen := map[string]bool{}
	queue := []object{{path, file}}
	for len(queue) > 0 && len(found) < maxLibraries {
		o := queue[0]
		queue = queue[1:]
		f, err := elf.NewFile(o.file)
		if err != nil {
			continue
		}
		needed, err := f.DynString(elf.DT_NEEDED)
		if err != nil {
			continue
		}
		search := slices.Concat(runPath(f, o.path), dirs, []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib"})
		for _, name := range needed {
			candidates := []string{name}
			if !strings.Contains(name, "/") {
				candidates = candidates[:0]
				for _, d := range search {
					candidates = append(candidates, filepath.Join(d, name))
				}
			}
			for _, c := range candidates {
				if seen[c] {
					break
				}
				lib, err := openRegular(c)
				if err != nil {
					continue
				}
				if !isELF(lib) {
					lib.Close()
					continue
				}
				defer lib.Close()
				seen[c] = true
				found = append(found, c)
				queue = append(queue, object{c, lib})
				break
			}
			if len(found) >= maxLibraries {
				break
			}
		}
	}
	return found
}

// runPath is DT_RUNPATH and DT_RPATH with $ORIGIN replaced.
func runPath(f *elf.File, path string) []string {
	var dirs []string
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path
	}
	origin := filepath.Dir(resolved)
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		lists, err := f.DynString(tag)
		if err != nil {
			continue
		}
		for _, list := range lists {
			for _, d := range strings.Split(list, ":") {
				d = strings.NewReplacer("${ORIGIN}", origin, "$ORIGIN", origin).Replace(d)
				if filepath.IsAbs(d) {
					dirs = append(dirs, d)
				}
			}
		}
	}
	return dirs
}

// loaderDirectories returns the directories in /etc/ld.so.conf and the files that it
// includes.
func loaderDirectories(config string) []string {
	var dirs []string
	files := []string{config}
	for i := 0; i < len(files) && i < maxConfigFiles; i++ {
		f, err := openRegular(files[i])
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(io.LimitReader(f, 1<<20))
		for lines.Scan() {
			line, _, _ := strings.Cut(lines.Text(), "#")
			line = strings.TrimSpace(line)
			if pattern, ok := strings.CutPrefix(line, "include "); ok {
				pattern = strings.TrimSpace(pattern)
				if !filepath.IsAbs(pattern) {
					pattern = filepath.Join(filepath.Dir(files[i]), pattern)
				}
				included, err := filepath.Glob(pattern)
				if err == nil {
					files = append(files, included...)
				}
			} else if filepath.IsAbs(line) {
				dirs = append(dirs, filepath.Clean(line))
			}
		}
		f.Close()
	}
	return dirs
}

// openRegular opens a regular file, and returns an error at once for any other.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: os.ErrInvalid}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func isELF(f io.ReaderAt) bool {
	var magic [4]byte
	n, _ := f.ReadAt(magic[:], 0)
	return n == 4 && string(magic[:]) == elf.ELFMAG
}
