// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/foreign"
)

//go:embed testdata
var sources embed.FS

// program is a program that is executed.
type program struct {
	name  string
	build []string // the command that makes it of its source, without -o
	argv  []string // its arguments; with the command where nothing is built
	env   []string
	// fromStart has the dynamic linker executed step by step as well.
	fromStart, isGo bool
	hasThreads      bool // which are stepped, too
	isSmall         bool // it is one of the small form, too
}

// withoutFeatures has libc take other variants of its functions.
func withoutFeatures(list string) []string {
	return []string{"GLIBC_TUNABLES=glibc.cpu.hwcaps=" + list}
}

var (
	noAVX = withoutFeatures("-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-AVX2_Usable,-AVX_Fast_Unaligned_Load,-FMA,-FMA4,-BMI2,-LZCNT,-MOVBE")
	noSSE = withoutFeatures("-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-FMA,-FMA4,-BMI2,-SSE4_2,-SSE4_1,-SSSE3,-ERMS,-FSRM,-Fast_Unaligned_Copy,-Fast_Unaligned_Load")
)

// own are the programs whose source is here.
var own = []program{
	{name: "C++ -O2", build: words("g++ -O2 calls.cc -Wl,-z,lazy"), fromStart: true, isSmall: true},
	{name: "C++ -O2, frame pointers", build: words("g++ -O2 -g -fno-omit-frame-pointer calls.cc -Wl,-z,now")},
	{name: "C++ -O0", build: words("g++ -O0 calls.cc")},
	{name: "C++ -O3, clang", build: words("clang++ -O3 calls.cc")},
	{name: "C++ -Os, static", build: words("g++ -Os -static calls.cc")},
	{name: "longjmp, signals, stacks", build: words("gcc -O2 -D_GNU_SOURCE jumps.c -Wl,-z,lazy"), isSmall: true},
	{name: "the same, -O0, clang", build: words("clang -O0 -D_GNU_SOURCE jumps.c")},
	{name: "the same, without tables", build: words("gcc -O2 -D_GNU_SOURCE -fno-asynchronous-unwind-tables -fno-unwind-tables jumps.c"), isSmall: true},
	{name: "without tables, -O0", build: words("gcc -O0 -D_GNU_SOURCE -fno-asynchronous-unwind-tables -fno-unwind-tables jumps.c")},
	{name: "musl, static", build: words("musl-gcc -O2 -static -D_GNU_SOURCE -fno-builtin strings.c")},
	{name: "musl, static, mathematics", build: words("musl-gcc -O2 -static -fno-builtin -D_GNU_SOURCE mathematics.c")},
	{name: "threads", build: words("gcc -O2 -D_GNU_SOURCE -pthread threads.c"), hasThreads: true, isSmall: true},
	{name: "threads, -O0, clang, static", build: words("clang -O0 -D_GNU_SOURCE -pthread -static threads.c"), hasThreads: true},
	{name: "C++20 coroutines", build: words("g++ -std=c++20 -O2 coroutines.cc"), isSmall: true},
	{name: "C++20 coroutines, -O0", build: words("g++ -std=c++20 -O0 coroutines.cc")},
	{name: "strings", build: words("gcc -O1 -fno-builtin -D_GNU_SOURCE strings.c")},
	{name: "strings, AVX off", build: words("gcc -O1 -fno-builtin -D_GNU_SOURCE strings.c"), env: noAVX, isSmall: true},
	{name: "strings, SSE2 alone", build: words("gcc -O1 -fno-builtin -D_GNU_SOURCE strings.c"), env: noSSE},
	{name: "mathematics", build: words("gcc -O1 -fno-builtin -D_GNU_SOURCE mathematics.c -lm")},
	{name: "mathematics, AVX off", build: words("gcc -O1 -fno-builtin -D_GNU_SOURCE mathematics.c -lm"), env: noAVX},
	{name: "Rust -O", build: words("rustc -O -g main.rs"), env: []string{"RUST_BACKTRACE=0"}, isSmall: true},
	{name: "Rust", build: words("rustc main.rs"), env: []string{"RUST_BACKTRACE=0"}},
	{name: "Go", build: words("go build main.go"), isGo: true, isSmall: true},
	{name: "Go, without optimization", build: words("go build -gcflags=-N\x00-l main.go"), isGo: true},
}

// debians are programs that Debian ships.
var debians = []program{
	{name: "ls", argv: words("/bin/ls -la --color /usr/lib"), fromStart: true, isSmall: true},
	{name: "sort", argv: words("/usr/bin/sort -k2 /etc/passwd")},
	{name: "grep", argv: words("/bin/grep -E ^(a|b.*c)+: /etc/passwd /etc/services")},
	{name: "sed", argv: words("/bin/sed -E s/([a-z]+)/<\\1>/g /etc/passwd")},
	{name: "awk", argv: []string{"/usr/bin/awk", "-F:", "{n[$7]++; s=s sprintf(\"%5.2f%s\", $3/7, $1)} END{for(k in n) print k, n[k], length(s), sqrt(n[k])}", "/etc/passwd"}},
	{name: "tar", argv: words("/bin/tar -cf - /etc/passwd /etc/group /etc/ssl")},
	{name: "bash", argv: []string{"/bin/bash", "-c", "f(){ local i; for i in {1..9}; do a[$i]=$((i*i)); done; echo ${a[@]/1/x} | cat; }; trap 'echo u' USR1; kill -USR1 $$; f; f; case $1 in a*) :;; *) eval 'echo ${#a[@]}';; esac"}, isSmall: true},
	{name: "perl", argv: []string{"/usr/bin/perl", "-e", "my %h; sub f { my $n = shift; return $n < 2 ? 1 : f($n-1) + f($n-2) } for (split /\\W+/, 'the quick brown fox jumps over the lazy dog') { $h{$_} .= reverse; } print join(',', map { sprintf '%s=%s', $_, $h{$_} } sort keys %h), f(9), \"\\n\"; eval { die { a => 1 } }; print ref $@; printf '%.3e', 2**0.5;"}, isSmall: true},
	{name: "objdump", argv: words("/usr/bin/objdump -d /bin/true")},
	{name: "gcc's cc1", argv: words("cc1 -quiet -O2 testdata/small.c -o /dev/null")},
	{name: "python3", argv: []string{"/usr/bin/python3", "-S", "-c", "import re,json\ntry:\n 1/0\nexcept Exception as e: print(repr(e))\nprint(json.dumps({str(i):[i,i**2,re.sub('1','x',str(i))] for i in range(9)}), sorted('hello'))"}, isSmall: true},
	{name: "gdb", argv: words("/usr/bin/gdb -nx -batch -ex print\x001+2*3 -ex info\x00line\x00main /bin/true")},
}

// words divides a command at blanks; a NUL stands for one within a word.
func words(text string) []string {
	list := strings.Fields(text)
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "\x00", " ")
	}
	return list
}

// unpackSources writes the sources into a folder.
func unpackSources(dir string) error {
	return os.CopyFS(dir, sources)
}

// makeAll makes programs, two at once. Who needs one that cannot be made is told then.
func makeAll(list []program, dir string) {
	var group errgroup.Group
	group.SetLimit(2)
	for i := range list {
		p := list[i]
		group.Go(func() error { return p.make(dir) })
	}
	_ = group.Wait()
}

// rustOfAArch64 stands for the compiler that is not installed but unpacked.
const rustOfAArch64 = "aarch64-rustc"

var foreignPackages = sync.OnceValues(foreign.Fetch)

// make makes a program, once.
func (p *program) make(dir string) error {
	if len(p.build) == 0 {
		if p.argv[0] == "cc1" { // it is on no path
			out, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
			if err != nil {
				return err
			}
			p.argv[0] = strings.TrimSpace(string(out))
		}
		_, err := exec.LookPath(p.argv[0])
		return err
	}
	exe := filepath.Join(dir, strings.NewReplacer(" ", "_", ",", "", "/", "").Replace(strings.Join(p.build, " ")))
	p.argv = append([]string{exe}, p.argv...)
	if _, err := os.Stat(exe); err == nil {
		return nil
	}
	command, at := p.build, 1
	if i := slices.Index(command, "build"); i > 0 {
		at = i + 1 // of go
	}
	if p.build[0] == rustOfAArch64 {
		packages, err := foreignPackages()
		if err != nil {
			return err
		}
		env, compiler := packages.Rustc()
		command = slices.Concat([]string{"env"}, env, compiler, p.build[1:])
		at = len(command) - len(p.build[1:])
	}
	command = slices.Insert(slices.Clone(command), at, "-o", exe)
	if err := cost.Run(filepath.Join(dir, "testdata"), command[0], command[1:]...); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
