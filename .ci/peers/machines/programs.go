// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/foreign"
)

// machine is one whose programs qemu runs.
type machine struct {
	name, root string
	cpu        string // one that gdb understands
	plugin     bool   // unwindd has none of its own
	hasCores   bool   // qemu writes them
}

var (
	aarch64 = &machine{name: "aarch64", root: "/usr/aarch64-linux-gnu", cpu: "cortex-a72", hasCores: true}
	riscv64 = &machine{name: "riscv64", root: "/usr/riscv64-linux-gnu", cpu: "rv64", plugin: true}
)

// build is how the programs of a language are made.
type build struct {
	machine  *machine
	language string
	name     string
	flags    []string
	signed   bool // return addresses, on a processor that signs
}

// program is a build with a variant of its end.
type program struct {
	*build
	variant string
}

func (p *program) name() string { return p.build.key() + " " + p.variant }

func (b *build) key() string { return b.machine.name + " " + b.language + " " + b.name }

// hasNoCFI says that the program's own code has no call frame information.
func (b *build) hasNoCFI() bool { return slices.Contains(b.flags, "-fno-unwind-tables") }

// withoutCFI leaves none in the program: what -g has of it is taken out, and shown to gdb alone.
const withoutCFI = "-g -fno-asynchronous-unwind-tables -fno-unwind-tables"

// flagsOf are the ways to make programs, by machine and language. Some of them are in the
// default set. Go's are flags of its linker, or of its compiler.
var flagsOf = []struct {
	machine  *machine
	language string
	name     string
	flags    string
	some     string
}{
	{aarch64, "C", "O2", "-O2 -g", "data sort threads altstack tail"},
	{aarch64, "C", "O0", "-O0 -g", "abort handler"},
	{aarch64, "C", "Os", "-Os -g", "trap alloca"},
	{aarch64, "C", "static", "-O2 -g -static", "null large"},
	{aarch64, "C", "signed", "-O2 -g -mbranch-protection=standard", "nulldeep threads altstack"},
	{aarch64, "C", "signed leaves, O0", "-O0 -g -mbranch-protection=pac-ret+leaf+b-key", "nulldeep saves"},
	{aarch64, "C", "signed, static", "-O1 -g -static -mbranch-protection=pac-ret+leaf", "nulljump"},
	{aarch64, "C", "no frame pointers", "-O2 -g -fomit-frame-pointer", "bad deep"},
	{aarch64, "C", "no CFI", "-O2 " + withoutCFI, "threads null handler odd"},
	{aarch64, "C", "no CFI, O0", "-O0 " + withoutCFI, "badjump"},
	{aarch64, "C", "no CFI, no frame pointers", "-O2 -fomit-frame-pointer " + withoutCFI, "alloca nulldeep"},
	{aarch64, "C", "no CFI, signed, static", "-Os -static -mbranch-protection=standard " + withoutCFI, "stackcall tail"},
	{aarch64, "C", "clang", "-O2 -g", "tail faultcall"},
	{aarch64, "C", "clang, no CFI", "-O1 -fomit-frame-pointer " + withoutCFI, "null saves"},
	{aarch64, "C", "musl", "-O2 -g", "null large"},
	{aarch64, "C", "musl, static, no CFI", "-O1 -static " + withoutCFI, "handler threads"},
	{aarch64, "C++", "O2", "-O2 -g", "throw threads"},
	{aarch64, "C++", "O0, static", "-O0 -g -static", "thunk"},
	{aarch64, "C++", "signed", "-O2 -g -mbranch-protection=standard", "noexcept"},
	{aarch64, "Rust", "O", "-O -g -C panic=abort -C force-unwind-tables=yes", "data"},
	{aarch64, "Rust", "debug", "-g -C panic=abort -C force-unwind-tables=yes", "panic"},
	{aarch64, "Rust", "frame pointers", "-O -C force-frame-pointers=yes -C force-unwind-tables=yes -C panic=abort", "sort"},
	{aarch64, "Go", "plain", "", "nil quit"},
	{aarch64, "Go", "no DWARF", "-w", "index"},
	{aarch64, "Go", "stripped", "-s", "null"},
	{aarch64, "Go", "not optimized", "-gcflags=all=-N -gcflags=all=-l", "sort"},
	{riscv64, "C", "O2", "-O2 -g", "threads null sort"},
	{riscv64, "C", "O0, static", "-O0 -g -static", "deep"},
	{riscv64, "C", "no CFI", "-O2 " + withoutCFI, "alloca handler threads"},
	{riscv64, "C", "no CFI, frame pointers", "-O1 -fno-omit-frame-pointer " + withoutCFI, "altstack"},
	{riscv64, "C++", "O2", "-O2 -g", "throw threads"},
}

// variantsOf has the variants of the end of programs by language.
var variantsOf = map[string]string{
	"C": "data abort trap null nullmain nulldeep nulljump bad odd badjump datacall stackcall tail alloca large saves" +
		" overflow deep sort handler altstack fault faultcall threads",
	"C++":  "throw thunk noexcept rethrow null lambda threads",
	"Rust": "data panic dyn sort threads",
	"Go":   "nil index null quit spin sort fatal overflow",
}

// programs returns all programs, or the default set.
func programs(withPackages bool) (list []*program) {
	for _, f := range flagsOf {
		b := &build{machine: f.machine, language: f.language, name: f.name, flags: strings.Fields(f.flags), signed: strings.Contains(f.flags, "-mbranch-protection=")}
		if needs := b.language == "Rust" || b.isMusl(); needs && !withPackages {
			continue
		}
		ways := variantsOf[b.language]
		if !*all && *only == "" {
			ways = f.some
		}
		for _, way := range strings.Fields(ways) {
			list = append(list, &program{b, way})
		}
	}
	return list
}

func (b *build) isMusl() bool { return strings.HasPrefix(b.name, "musl") }

// goBuildID is one for all: an executable without DWARF has that of another.
const goBuildID = "0x756e77696e6464206d616368696e6573"

// command builds the program, as the file program of a folder.
func (w *work) command(b *build, dir string) (env, command []string) {
	data, _ := filepath.Abs(filepath.Join("machines", "testdata"))
	exe := filepath.Join(dir, "program")
	prefix := b.machine.name + "-linux-gnu-"
	switch {
	case b.language == "C" && strings.HasPrefix(b.name, "clang"):
		command = []string{"clang-22", "--target=" + b.machine.name + "-linux-gnu", "-fuse-ld=lld-22", "-Wl,--build-id", "-w"}
	case b.isMusl():
		command = muslCommand(w.packages, prefix, slices.Contains(b.flags, "-static"))
		return nil, slices.Concat(command[:1], b.flags, []string{"-DDEEP=60", "-o", exe, filepath.Join(data, "chain.c")}, command[1:])
	case b.language == "C":
		command = []string{prefix + "gcc", "-pthread", "-Wl,--build-id"}
	case b.language == "C++":
		return nil, slices.Concat([]string{prefix + "g++", "-std=c++17", "-pthread"}, b.flags, []string{"-o", exe, filepath.Join(data, "chain.cc")})
	case b.language == "Rust":
		env, command = w.packages.Rustc()
		return env, slices.Concat(command, []string{"--crate-name", "program"}, b.flags, []string{"-o", exe, filepath.Join(data, "chain.rs")})
	case b.language == "Go":
		env = []string{"GOARCH=arm64", "CGO_ENABLED=0"}
		compile, link := []string{"go", "build"}, "-ldflags=-buildid= -B="+goBuildID
		for _, flag := range b.flags {
			if strings.HasPrefix(flag, "-gcflags") {
				compile = append(compile, flag)
			} else {
				link += " " + flag
			}
		}
		return env, append(compile, link, "-o", exe, filepath.Join(data, "chaingo", "main.go"))
	}
	return nil, slices.Concat(command, b.flags, []string{"-DDEEP=60", "-o", exe, filepath.Join(data, "chain.c")})
}

// muslCommand is gcc with musl for its library. The arguments behind the first come last.
func muslCommand(p *foreign.Packages, prefix string, isStatic bool) []string {
	lib := filepath.Join(p.Arm64, "usr/lib/aarch64-linux-musl")
	command := []string{prefix + "gcc", "-nostdinc", "-isystem", filepath.Join(p.Arm64, "usr/include/aarch64-linux-musl"),
		"-nostdlib", "-no-pie", "-Wl,--build-id", "-mno-outline-atomics", filepath.Join(lib, "crt1.o")}
	if isStatic {
		return append(command, filepath.Join(lib, "libc.a"), "-lgcc", "-lgcc_eh", filepath.Join(lib, "libc.a"))
	}
	return append(command, "-Wl,-dynamic-linker,/lib/ld-musl-aarch64.so.1", filepath.Join(p.Arm64, "lib/ld-musl-aarch64.so.1"), "-lgcc")
}

// rootOf is the folder that has the libraries of a program.
func (w *work) rootOf(b *build) string {
	if b.isMusl() {
		return w.packages.Arm64
	}
	return b.machine.root
}
