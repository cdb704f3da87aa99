// SPDX-License-Identifier: Apache-2.0

// Package machotest makes Mach-O programs for tests, with the compilers of LLVM.
package machotest

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// Program is an executable with its dSYM, which has the DWARF of all functions.
type Program struct {
	Name, Arch string
	Options    []string // of the compiler
	Path, DSYM string   // files
	// Async is the dSYM of the same code whose DWARF has rows of epilogues, and AsyncPath its executable, where the
	// code is at other addresses; "" of x86-64, where compilers write none.
	Async, AsyncPath string
}

// Tools that make programs.
const (
	clang    = "clang-22"
	clangXX  = "clang++-22"
	linker   = "ld64.lld-22"
	dsymutil = "dsymutil-22"
)

// options are the compiler's options of the programs that are made of each source.
var options = [][]string{
	{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-Os"}, {"-O0", "-fomit-frame-pointer"}, {"-O2", "-fomit-frame-pointer"}, {"-Oz", "-fomit-frame-pointer"},
}

// Programs makes the programs of a folder's frames.c and throws.cpp for arm64 and x86-64.
func Programs(t testing.TB, folder string) (list []Program) {
	t.Helper()
	oracle.Tools(t, clang, clangXX, linker, dsymutil)
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	b := oracle.Build{Sources: []string{filepath.Join(folder, "cfi.h"), filepath.Join(folder, "frames.c"), filepath.Join(folder, "throws.cpp")}}
	for i := range options {
		for _, arch := range []string{"arm64", "x86_64"} {
			for _, source := range [][2]string{{clang, "frames.c"}, {clangXX, "throws.cpp"}} {
				p := Program{Name: source[1] + strconv.Itoa(i), Arch: arch, Options: options[i]}
				p.Path, p.DSYM = build(&b, folder, source, arch, p.Name+"-"+arch, options[i])
				if arch == "arm64" {
					p.AsyncPath, p.Async = build(&b, folder, source, arch, p.Name+"-async", append(options[i][:len(options[i]):len(options[i])], "-fasynchronous-unwind-tables"))
				}
				list = append(list, p)
			}
		}
	}
	dir := b.Make(t)
	for i := range list {
		for _, path := range []*string{&list[i].Path, &list[i].DSYM, &list[i].AsyncPath, &list[i].Async} {
			if *path != "" {
				*path = filepath.Join(dir, *path)
			}
		}
	}
	return list
}

// build adds the commands that make a program and its dSYM.
func build(b *oracle.Build, folder string, source [2]string, arch, name string, options []string) (path, dSYM string) {
	compile := []string{source[0], "-target", arch + "-apple-macos13", "-gline-tables-only", "-w", "-include", filepath.Join(folder, "cfi.h")}
	b.Commands = append(b.Commands,
		append(append(compile, options...), "-c", "-o", name+".o", filepath.Join(folder, source[1])),
		[]string{linker, "-arch", arch, "-platform_version", "macos", "13.0", "13.0", "-undefined", "dynamic_lookup", "-o", name, name + ".o"},
		[]string{dsymutil, name, "-o", name + ".dSYM"})
	return name, filepath.Join(name+".dSYM", "Contents", "Resources", "DWARF", name)
}
