// SPDX-License-Identifier: Apache-2.0

package valuecheck

import (
	"path/filepath"
	"strings"
)

// Subject is a program whose core is compared.
type Subject struct {
	Name       string
	Sources    []string   // absolute
	Commands   [][]string // that build the executable "program" in a folder
	Run        []string   // a command of the system that runs instead of the program
	Args       []string
	Wait       string // waited for before gcore: a line that begins so, or seconds; "" if it fails by itself
	Libraries  bool   // the functions of libraries count
	Globals    []string
	Go         bool   // it is written in Go: delve is the peer
	Pretty     bool   // its pretty-printed values are compared, too
	Containers string // the subject whose pretty-printed values it must equal, where no debugger has printers
}

// compilers are the compilers of C and C++; the last one is for gcc's own
// options.
var compilers = []struct{ name, c, cxx string }{
	{"gcc", "gcc", "g++"},
	{"clang-14", "clang-14", "clang++-14"},
	{"clang-22", "clang-22", "clang++-22"},
}

// format is a format of debug information.
type format struct {
	name  string
	flags string
	after [][]string // commands after the link
}

var (
	formats = []format{
		{name: "DWARF 5", flags: "-gdwarf-5"},
		{name: "DWARF 4", flags: "-gdwarf-4"},
	}
	otherFormats = []format{
		{name: "split", flags: "-gdwarf-5 -gsplit-dwarf"},
		{name: "split 4", flags: "-gdwarf-4 -gsplit-dwarf"},
		{name: "type units", flags: "-gdwarf-5 -fdebug-types-section"},
		{name: "type units 4", flags: "-gdwarf-4 -fdebug-types-section"},
		{name: "dwz", flags: "-gdwarf-4", after: [][]string{{"dwz", "program"}}},
		{name: "dwz of two", flags: "-gdwarf-4", after: [][]string{{"cp", "program", "other"}, {"dwz", "-m", "common.debug", "program", "other"}}},
		{name: "dwz 5", flags: "-gdwarf-5", after: [][]string{{"dwz", "program"}}},
		{name: "stripped", flags: "-gdwarf-5", after: [][]string{
			{"objcopy", "--only-keep-debug", "program", "program.debug"},
			{"objcopy", "--strip-debug", "--add-gnu-debuglink=program.debug", "program"}}},
	}
)

// program is a source that every compiler takes.
type program struct {
	source    string
	language  string
	libraries string // flags of the link
	args      []string
	wait      string
	globals   []string
	pretty    bool // of a program that waits without optimization alone: else gdb loops in uninitialized maps
	levels    []string
	every     bool // with every format; else with DWARF 5 alone
}

// Subjects returns all programs, whose sources are in the folder dir, and, for the
// larger ones, in workloads. The others are commands of the system.
func Subjects(dir, workloads string) []*Subject {
	levels := []string{"-O0", "-Og", "-O2"}
	var all []*Subject
	for _, p := range []program{
		{source: filepath.Join(dir, "types.c"), language: "c", levels: levels, every: true,
			globals: []string{"global_number", "global_text", "file_static", "global_points", "thread_number", "nowhere"}},
		{source: filepath.Join(dir, "classes.cpp"), language: "c++", levels: levels, every: true,
			globals: []string{"outer::inner::deep", "outer::inner::level", "global_int", "shapes::v1::Shape::count"}},
		{source: filepath.Join(dir, "containers.cpp"), language: "c++", levels: []string{"-O0", "-O2"}, pretty: true},
		{source: filepath.Join(workloads, "mtcore.cpp"), language: "c++", levels: levels, pretty: true, args: []string{"wait", "8"}, wait: "ready", libraries: "-pthread"},
		{source: filepath.Join(workloads, "deepcpp.cpp"), language: "c++", levels: levels, pretty: true, args: []string{"60", "2"}, wait: "1", libraries: "-pthread"},
	} {
		all = append(all, p.subjects()...)
	}
	all = append(all, libcxx(dir)...)
	all = append(all, rust(dir, workloads)...)
	all = append(all, golang(dir)...)
	return append(all, installed()...)
}

// golang returns programs in Go, optimized and not.
func golang(dir string) []*Subject {
	source := filepath.Join(dir, "govalues", "main.go")
	var all []*Subject
	for _, level := range []struct{ name, flags string }{{"-N -l", "-gcflags=all=-N -l"}, {"optimized", "-gcflags="}} {
		for _, version := range []struct{ name, env string }{{"DWARF 5", "GOEXPERIMENT=dwarf5"}, {"DWARF 4", "GOEXPERIMENT=nodwarf5"}} {
			all = append(all, &Subject{
				Name: "govalues " + level.name + " " + version.name, Sources: []string{source}, Wait: "ready", Go: true,
				Commands: [][]string{{"env", version.env, "go", "build", level.flags, "-o", "program", source}},
			})
		}
	}
	return all
}

func (p program) subjects() []*Subject {
	var all []*Subject
	for _, compiler := range compilers {
		for _, level := range p.levels {
			for _, f := range formats {
				if p.every || f.name == "DWARF 5" {
					all = append(all, p.subject(compiler.name, p.driver(compiler.c, compiler.cxx), level, f))
				}
			}
		}
		if !p.every {
			continue
		}
		for _, f := range otherFormats {
			if f.name == "dwz 5" && compiler.name != "gcc" {
				continue // dwz 0.15 does not know .debug_addr
			}
			all = append(all, p.subject(compiler.name, p.driver(compiler.c, compiler.cxx), "-O2", f))
		}
	}
	return all
}

func (p program) driver(c, cxx string) string {
	if p.language == "c" {
		return c
	}
	return cxx
}

func (p program) subject(compiler, driver, level string, f format) *Subject {
	name := strings.TrimSuffix(filepath.Base(p.source), filepath.Ext(p.source))
	command := []string{driver, "-w", level, "-g"}
	if p.language == "c++" {
		command = append(command, "-std=c++17")
	}
	command = append(append(command, strings.Fields(f.flags+" "+p.libraries)...), p.source, "-o", "program")
	return &Subject{
		Name: strings.Join([]string{name, compiler, level, f.name}, " "), Sources: []string{p.source},
		Commands: append([][]string{command}, f.after...), Args: p.args, Wait: p.wait, Globals: p.globals, Pretty: p.pretty && (p.wait == "" || level == "-O0"),
	}
}

// libcxx returns the containers of LLVM's library, which must be
// pretty-printed like GNU's: no debugger here has printers for them.
func libcxx(dir string) []*Subject {
	source := filepath.Join(dir, "containers.cpp")
	var all []*Subject
	for _, level := range []string{"-O0", "-O2"} {
		all = append(all, &Subject{
			Name: "containers clang-14 libc++ " + level, Sources: []string{source}, Containers: "containers gcc " + level + " DWARF 5",
			Commands: [][]string{{"clang++-14", "-w", level, "-g", "-std=c++17", "-stdlib=libc++", source, "-o", "program"}},
		})
	}
	return all
}

// Libcxx22 returns the same with LLVM 22's library, if root is a folder that
// Debian's libc++-22-dev and libc++abi-22-dev were unpacked in: they cannot be
// installed beside the ones of LLVM 14.
func Libcxx22(dir, root string) []*Subject {
	if root == "" {
		return nil
	}
	lib := filepath.Join(root, "usr", "lib", "llvm-22")
	source := filepath.Join(dir, "containers.cpp")
	var all []*Subject
	for _, level := range []string{"-O0", "-O2"} {
		all = append(all, &Subject{
			Name: "containers clang-22 libc++ 22 " + level, Sources: []string{source}, Containers: "containers gcc " + level + " DWARF 5",
			Commands: [][]string{{"clang++-22", "-w", level, "-g", "-std=c++17", "-nostdinc++", "-isystem", filepath.Join(lib, "include", "c++", "v1"),
				"-nostdlib++", source, filepath.Join(lib, "lib", "libc++.a"), filepath.Join(lib, "lib", "libc++abi.a"), "-o", "program"}},
		})
	}
	return all
}

func rust(dir, workloads string) []*Subject {
	var all []*Subject
	for _, p := range []struct {
		source, wait string
		args         []string
		pretty       bool
	}{{filepath.Join(dir, "enums.rs"), "", nil, true}, {filepath.Join(workloads, "rustwork.rs"), "1", []string{"60"}, true}} {
		for _, level := range []string{"0", "1", "2"} {
			for _, version := range []string{"4", "5"} {
				all = append(all, &Subject{
					Name: strings.TrimSuffix(filepath.Base(p.source), ".rs") + " rustc -O" + level + " DWARF " + version, Sources: []string{p.source},
					Commands: [][]string{{"rustc", "-g", "-C", "opt-level=" + level, "-C", "dwarf-version=" + version, p.source, "-o", "program"}},
					Args:     p.args, Wait: p.wait, Pretty: p.pretty && (p.wait == "" || level == "0"),
				})
			}
		}
	}
	return all
}

// installed returns programs of Debian, whose debug information is in packages of its
// own.
func installed() []*Subject {
	return []*Subject{
		{Name: "python3", Run: []string{"/usr/bin/python3", "-c", pythonProgram}, Wait: "ready", Libraries: true},
		{Name: "perl", Run: []string{"/usr/bin/perl", "-e", perlProgram}, Wait: "ready", Libraries: true},
	}
}

const pythonProgram = `
import threading, time, re, sys
def g(n, m):
    if n: return sorted([n, n - 1], key=lambda k: g(n - 1, m) if k == n else k)
    if m is None: print("ready", flush=True)
    time.sleep(1000)
class C:
    def __init__(self, x): self.x = x
    def __repr__(self): return g(2, None) and ""
threading.Thread(target=g, args=(3, 1), daemon=True).start()
time.sleep(0.3)
str([C(1), {"a": C(2)}])
`

const perlProgram = `$| = 1; my %h = (a => [1, 2, {b => "c"}]); sub f { my ($n, @r) = @_; return $n ? (map { f($n - 1, $_, \%h) } sort { $a <=> $b } 1)[0] : do { print "ready\n"; sleep 1000 } } my $s = "x1y2"; $s =~ s/(\d)/f($1)/e; f(3)`
