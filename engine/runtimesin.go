// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/managed"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// RuntimesIn returns the names of the language runtimes that may know frames of a program: they are
// recognised in its file, or in the libraries that it needs. A script is the program that executes it.
func (e *Engine) RuntimesIn(path string) []string {
	if len(e.runtimes()) == 0 {
		return nil
	}
	program := interpreterOf(path)
	return e.runtimesInFiles(append([]string{program}, librariesOf(program)...))
}

// runtimesInFiles returns the names of the runtimes in files, each once.
func (e *Engine) runtimesInFiles(files []string) (list []string) {
	for _, file := range files {
		list = append(list, e.runtimesInFile(file)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// runtimesInFile returns the names of the runtimes in one file.
func (e *Engine) runtimesInFile(path string) []string {
	o, err := object.Open(path)
	if err != nil {
		return nil
	}
	defer o.Close()
	p := e.shared.NewProcess(&walk.Sample{}, e.Finder(""))
	defer p.Close()
	m := p.AddModule(&target.Module{Module: trace.Module{Path: path, BuildID: o.BuildID()}, Object: o}, nil)
	return managed.Names(e.runtimes(), []*code.Module{m}, e.options.Goroutines)
}

// maxScript is how many bytes a script's first line has at most.
const maxScript = 256

// interpreterOf returns the program that executes a file: the one of its first line, or the file itself.
func interpreterOf(path string) string {
	for range 4 { // as many as the kernel follows
		f, err := os.Open(path)
		if err != nil {
			return path
		}
		head := make([]byte, maxScript)
		n, _ := f.Read(head)
		_ = f.Close()
		line, isScript := strings.CutPrefix(string(head[:n]), "#!")
		if !isScript {
			return path
		}
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		if len(words) > 1 && filepath.Base(words[0]) == "env" {
			words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
		}
		if len(words) == 0 {
			return path
		}
		if path = words[0]; !strings.Contains(path, "/") {
			path, _ = exec.LookPath(path)
		}
	}
	return path
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// librariesOf returns the files of the libraries that a program names, where the dynamic linker looks
// for them first.
func librariesOf(path string) (list []string) {
	if file, err := filepath.EvalSymlinks(path); err == nil {
		path = file
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.ImportedLibraries()
	origin := filepath.Dir(path)
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		texts, _ := f.DynString(tag)
		for _, text := range texts {
			for dir := range strings.SplitSeq(text, ":") {
				dirs = append(dirs, strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(dir))
			}
		}
	}
	dirs = append(dirs, filepath.Join(origin, "../lib"), "/usr/local/lib", "/lib", "/usr/lib", "/lib64", "/usr/lib64")
	for _, pattern := range []string{"/usr/lib/*-linux-*", "/lib/*-linux-*"} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	for _, name := range names {
		for _, dir := range dirs {
			if file := filepath.Join(dir, name); isFile(file) {
				list = append(list, file)
				break
			}
		}
	}
	return list
}
