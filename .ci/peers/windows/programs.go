// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// program is a program that is made.
type program struct {
	kind    string // what it is compiled from: see kinds
	target  string // the architecture, as compilers name it
	options string // of the compiler
	link    string // of the linker
	isQuick bool   // a quick run has it, too
}

// programs are the programs. The kinds c and classes have no library.
var programs = []program{
	{"c", "x86_64", "/Od", "", true},
	{"c", "x86_64", "/O1", "", false},
	{"c", "x86_64", "/O2", "", true},
	{"c", "x86_64", "/O2", "/opt:icf", true},
	{"c", "x86_64", "/O2", "/pdbpagesize:8192", true},
	{"c", "x86_64", "/O2", "/pdbpagesize:16384", false},
	{"c", "x86_64", "/O2 -flto", "", true},
	{"c", "i686", "/Od", "", true},
	{"c", "i686", "/O1", "", false},
	{"c", "i686", "/O2", "", true},
	{"c", "i686", "/O2 /Oy-", "", false},
	{"c", "i686", "/O2 -flto", "", false},
	{"c", "aarch64", "/Od", "", true},
	{"c", "aarch64", "/O2", "", true},
	{"c", "aarch64", "/O2", "/opt:icf", false},
	{"c", "aarch64", "/O2 -mbranch-protection=pac-ret", "", false},
	{"classes", "x86_64", "/Od", "", true},
	{"classes", "x86_64", "/O1", "", false},
	{"classes", "x86_64", "/O2", "/opt:icf", true},
	{"classes", "x86_64", "/O2 -flto", "", false},
	{"classes", "i686", "/Od", "", false},
	{"classes", "i686", "/O2", "", true},
	{"classes", "aarch64", "/Od", "", false},
	{"classes", "aarch64", "/O2", "", true},
	{"classes", "aarch64", "/O2 -flto", "/opt:icf", false},
	{"library", "x86_64", "-O0", "", false},
	{"library", "x86_64", "-O1", "", false},
	{"library", "x86_64", "-O2", "", true},
	{"library", "x86_64", "-O2 -flto", "", false},
	{"rust", "x86_64", "-Copt-level=0", "", false},
	{"rust", "x86_64", "-Copt-level=2", "", true},
	{"rust", "i686", "-Copt-level=2", "", false},
	{"rust", "aarch64", "-Copt-level=2", "", false},
}

// built is a program with its files.
type built struct {
	program
	name, image, pdb string
}

func (p *program) name() string {
	name := strings.Join([]string{p.kind, p.target, p.options, p.link}, " ")
	return strings.NewReplacer("/", "", " ", "-", ":", "", "--", "-", "=", "").Replace(strings.TrimSpace(name))
}

// make makes the programs, two at once.
func (r *rig) make() error {
	sources, err := filepath.Abs("windows/testdata")
	if err != nil {
		return err
	}
	hasRust := make(map[string]bool)
	list := make([]*built, 0, len(programs))
	for _, p := range programs {
		if r.isQuick && !p.isQuick {
			continue
		}
		if p.kind == "rust" {
			if _, known := hasRust[p.target]; !known {
				hasRust[p.target] = isRustThere(p.target)
			}
			if !hasRust[p.target] {
				fmt.Printf("%s: rustc has no library for it here\n", p.name())
				continue
			}
		}
		dir := filepath.Join(r.dir, p.name())
		list = append(list, &built{p, p.name(), filepath.Join(dir, "a.exe"), filepath.Join(dir, "a.pdb")})
	}
	errs := make([]error, len(list))
	room := make(chan struct{}, 2)
	var wg sync.WaitGroup
	for i, m := range list {
		wg.Go(func() {
			room <- struct{}{}
			errs[i] = m.make(sources)
			<-room
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", list[i].name, err)
		}
		r.programs = append(r.programs, *list[i])
	}
	fmt.Printf("%d programs\n", len(r.programs))
	return nil
}

// isRustThere reports whether rustc can compile for Windows on an architecture.
func isRustThere(target string) bool {
	out, err := exec.Command("rustc", "--target", target+"-pc-windows-msvc", "--print", "target-libdir").Output()
	if err != nil {
		return false
	}
	found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "libcore-*.rlib"))
	return len(found) > 0
}

// kinds are the ways to make a program.
var kinds = map[string]func(m *built, dir, sources string) error{
	"c":       func(m *built, dir, sources string) error { return m.bare(dir, sources, "shapes.c", "other.c") },
	"classes": func(m *built, dir, sources string) error { return m.bare(dir, sources, "classes.cc", "runtime.c") },
	"library": (*built).library,
	"rust":    (*built).rust,
}

func (m *built) make(sources string) error {
	dir := filepath.Dir(m.image)
	if _, err := os.Stat(m.image); err == nil {
		return nil // it was kept
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return kinds[m.kind](m, dir, sources)
}

// bare makes a program without a library, by the commands of Microsoft's tools.
func (m *built) bare(dir, sources string, names ...string) error {
	link := []string{"/debug", "/entry:start", "/nodefaultlib", "/subsystem:console", "/pdb:a.pdb", "/out:a.exe"}
	link = append(link, strings.Fields(m.link)...)
	for _, name := range names {
		args := []string{"--target=" + m.target + "-pc-windows-msvc", "/c", "/Z7", "-gcolumn-info", "/EHsc", "/GS-", "/std:c++20", "/clang:-Wno-everything", "/Fo" + name + ".obj"}
		options := m.options
		if name == "runtime.c" {
			options = "/O2"
		}
		args = append(args, strings.Fields(options)...)
		if err := cost.Run(dir, "clang-cl-22", append(args, "--", filepath.Join(sources, name))...); err != nil {
			return err
		}
		link = append(link, name+".obj")
	}
	return cost.Run(dir, "lld-link-22", link...)
}

// library makes a program with MinGW's libraries. Of a program with sections of DWARF LLVM's tools do
// not read the PDB file: they are stripped.
func (m *built) library(dir, sources string) error {
	args := append(strings.Fields(m.options), "--target="+m.target+"-w64-mingw32", "-g", "-gcodeview", "-gcolumn-info", "-fuse-ld=lld", "-static", "-Wl,-s", "-Wl,--pdb=a.pdb", "-o", "a.exe")
	return cost.Run(dir, "clang++-22", append(args, filepath.Join(sources, "library.cc"))...)
}

// rust makes a program with Rust's core library.
func (m *built) rust(dir, sources string) error {
	args := []string{"--target", m.target + "-pc-windows-msvc", "-g", "-Cpanic=abort", "-Clinker=lld-link-22", "-Clinker-flavor=lld-link", "-Awarnings"}
	for _, option := range []string{"/nodefaultlib", "/entry:start", "/subsystem:console", "/force:unresolved", "/pdb:a.pdb", "/debug"} {
		args = append(args, "-Clink-arg="+option)
	}
	args = append(args, strings.Fields(m.options)...)
	return cost.Run(dir, "rustc", append(args, "-o", "a.exe", filepath.Join(sources, "core.rs"))...)
}
