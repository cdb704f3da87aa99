// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// A program crashes when it is run. It is the file of its name that the commands make.
type program struct {
	name     string
	commands [][]string // SRC is the folder testdata/crashes
	isSealed bool       // no library can be loaded before its own: it has none
	isMade   bool       // it executes code that no file has
	isDeep   bool       // it has more stack than the writers keep, or none where its stack pointer is, or two
}

// compile is a command of a compiler.
func compile(args ...string) []string { return args }

// programs crash in different ways, compiled in different ways.
var programs = []program{
	{name: "null", commands: [][]string{compile("gcc", "-O0", "-g", "SRC/null.c", "-o", "null")}},
	{name: "inlines", commands: [][]string{compile("g++", "-O2", "-g", "SRC/inlines.cpp", "-o", "inlines")}},
	{name: "inlines-clang", commands: [][]string{compile("clang++-22", "-O3", "-g", "-fuse-ld=lld", "SRC/inlines.cpp", "-o", "inlines-clang")}},
	{name: "rust", commands: [][]string{compile("rustc", "-O", "-g", "-C", "panic=abort", "SRC/rust.rs", "-o", "rust")}},
	{name: "threads", commands: [][]string{compile("g++", "-O1", "-g", "-pthread", "SRC/threads.cpp", "-o", "threads")}},
	{name: "handler", isDeep: true, commands: [][]string{compile("gcc", "-O1", "-g", "SRC/handler.c", "-o", "handler")}},
	{name: "terminate", commands: [][]string{compile("g++", "-O2", "-g", "SRC/terminate.cpp", "-o", "terminate")}},
	{name: "assert", commands: [][]string{compile("gcc", "-O2", "-g", "SRC/assert.c", "-o", "assert")}},
	{name: "recursion", isDeep: true, commands: [][]string{compile("gcc", "-O1", "-g", "SRC/recursion.c", "-o", "recursion")}},
	{name: "deep", isDeep: true, commands: [][]string{compile("gcc", "-O1", "-g", "SRC/deep.c", "-o", "deep")}},
	{name: "tables", commands: [][]string{
		compile("gcc", "-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-c", "SRC/tables.c", "-o", "tables.o"),
		compile("gcc", "-O2", "-g", "SRC/tablesmain.c", "tables.o", "-o", "tables"),
	}},
	{name: "plt", commands: [][]string{compile("gcc", "-O1", "-g", "-Wl,-z,lazy", "SRC/plt.c", "-o", "plt")}},
	{name: "plt-sec", commands: [][]string{compile("gcc", "-O1", "-g", "-fcf-protection", "-Wl,-z,lazy,-z,ibtplt", "SRC/plt.c", "-o", "plt-sec")}},
	{name: "jump", commands: [][]string{compile("gcc", "-O2", "-g", "SRC/jump.c", "-o", "jump")}},
	{name: "stripped", commands: [][]string{
		compile("g++", "-O2", "-g", "SRC/inlines.cpp", "-o", "stripped"),
		compile("objcopy", "--only-keep-debug", "stripped", "stripped.debug"),
		compile("objcopy", "--strip-all", "--add-gnu-debuglink=stripped.debug", "stripped"),
	}},
	{name: "static-pie", isSealed: true, commands: [][]string{compile("gcc", "-static-pie", "-O2", "-g", "SRC/sort.c", "-o", "static-pie")}},
	{name: "non-pie", commands: [][]string{compile("gcc", "-no-pie", "-O2", "-g", "SRC/divide.c", "-o", "non-pie")}},
	{name: "sort", commands: [][]string{compile("gcc", "-O0", "-g", "SRC/sort.c", "-o", "sort")}},
	{name: "destructor", commands: [][]string{compile("g++", "-O2", "-g", "SRC/destructor.cpp", "-o", "destructor")}},
	{name: "threadexit", commands: [][]string{compile("g++", "-O2", "-g", "-pthread", "SRC/threadexit.cpp", "-o", "threadexit")}},
	{name: "divide", commands: [][]string{compile("gcc", "-O2", "-g", "SRC/divide.c", "-o", "divide")}},
	{name: "constructor", commands: [][]string{
		compile("gcc", "-O2", "-g", "-shared", "-fPIC", "SRC/constructor.c", "-o", "libconstructor.so"),
		compile("gcc", "-O2", "-g", "SRC/constructormain.c", "-o", "constructor"),
	}},
	{name: "generated", isMade: true, commands: [][]string{compile("gcc", "-O1", "-g", "SRC/generated.c", "-o", "generated")}},
	{name: "smash", commands: [][]string{compile("gcc", "-O1", "-g", "-fno-stack-protector", "-Wno-stringop-overflow", "SRC/smash.c", "-o", "smash")}},
	{name: "bus", commands: [][]string{compile("gcc", "-O2", "-g", "SRC/bus.c", "-o", "bus")}},
	{name: "gone", commands: [][]string{
		compile("gcc", "-O1", "-g", "-shared", "-fPIC", "SRC/gonelib.c", "-o", "libgone.so"),
		compile("gcc", "-O1", "-g", "SRC/gone.c", "-o", "gone"),
	}},
	{name: "cancel", commands: [][]string{compile("gcc", "-O1", "-g", "-pthread", "SRC/cancel.c", "-o", "cancel")}},
}

// build compiles a program and returns its path.
func (p *program) build(t testing.TB) string {
	t.Helper()
	src, err := filepath.Abs("testdata/crashes")
	if err != nil {
		t.Fatal(err)
	}
	b := oracle.Build{}
	for _, command := range p.commands {
		var c []string
		for _, arg := range command {
			if dir, file := filepath.Split(arg); dir == "SRC/" {
				arg = filepath.Join(src, file)
				b.Sources = append(b.Sources, arg)
			}
			c = append(c, arg)
		}
		b.Commands = append(b.Commands, c)
	}
	return filepath.Join(b.Make(t), p.name)
}
