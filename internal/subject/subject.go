// SPDX-License-Identifier: Apache-2.0

// Package subject builds programs and takes cores of them, for tests.
package subject

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// folder is the path of the sources in the checkout.
const folder = "internal/subject/testdata/"

// program describes how a subject is compiled.
type program struct {
	source  string // a file of the folder, or a folder there with all sources of the program
	command string // with SOURCE and OUT for the paths, "go build" with the file main.go of a folder
	needs   string // another tool than the command's; "": none
}

// withoutCFI are flags of a program that has no call frame information.
const withoutCFI = "-fno-asynchronous-unwind-tables -fno-unwind-tables -fno-pie -no-pie"

var programs = map[string]program{
	"mtcore":      {source: "mtcore.cpp", command: "g++ -std=c++17 -O2 -g -pthread SOURCE -o OUT"},
	"frames":      {source: "frames.cpp", command: "g++ -std=c++17 -O2 -g -fomit-frame-pointer -pthread SOURCE -o OUT"},
	"sframe":      {source: "frames.cpp", command: "g++ -std=c++17 -O2 -g -fomit-frame-pointer -pthread -Wa,--gsframe SOURCE -o OUT"},
	"gosubject":   {source: "gosubject", command: "go build -o OUT SOURCE"},
	"gostripped":  {source: "gosubject", command: "go build -ldflags=-s -o OUT SOURCE"},
	"cgosubject":  {source: "cgosubject", command: "go build -o OUT SOURCE", needs: "gcc"},
	"cgostripped": {source: "cgosubject", command: "go build -ldflags=-s -o OUT SOURCE", needs: "gcc"},
	"rustsubject": {source: "rustsubject.rs", command: "rustc -C opt-level=2 -g -C panic=abort SOURCE -o OUT"},
	"plugged":     {source: "plugged.c", command: "gcc -O2 -g SOURCE -ldl -o OUT"},
	"plug":        {source: "plug.c", command: "gcc -O2 -g -shared -fPIC SOURCE -o OUT"},
	"nested":      {source: "nested.c", command: "gcc -O2 -g SOURCE -o OUT"},
	"smash":       {source: "smash.c", command: "gcc -O1 -g -fno-omit-frame-pointer SOURCE -o OUT"},
	"smashbare":   {source: "smash.c", command: "gcc -O1 -g -fomit-frame-pointer SOURCE -o OUT"},
	"records":     {source: "records.c", command: "gcc -O2 -g SOURCE -o OUT"},
	"recursions":  {source: "recursions.c", command: "gcc -g -O0 SOURCE -o OUT"},
	"context":     {source: "context.c", command: "gcc -O2 -g SOURCE -o OUT"},
	"musl":        {source: "starts.c", command: "musl-gcc -O2 -g SOURCE -o OUT"},
	"muslstatic":  {source: "starts.c", command: "musl-gcc -O2 -g -static SOURCE -o OUT"},
	"static":      {source: "starts.c", command: "gcc -O2 -g -static -pthread SOURCE -o OUT"},
	"noid":        {source: "nocfi.c", command: "gcc -O2 -g -Wl,--build-id=none SOURCE -o OUT"},
	"reenters":    {source: "reenters.c", command: "gcc -O1 -g SOURCE -ldl -o OUT"},
	"reentered":   {source: "reentered.c", command: "gcc -O1 -g -shared -fPIC SOURCE -o OUT"},
	"cold":        {source: "cold.c", command: "gcc -O2 " + withoutCFI + " SOURCE -o OUT"},
	"coldstrip":   {source: "cold.c", command: "gcc -O2 " + withoutCFI + " SOURCE -s -o OUT"},
	"arrays":      {source: "arrays.f90", command: "gfortran -g SOURCE -o OUT"},
	"nocfi": {
		source:  "nocfi.c",
		command: "gcc -O2 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-exceptions SOURCE -o OUT",
	},
}

// Source returns the path of a source file or folder by its name.
func Source(t testing.TB, name string) string {
	t.Helper()
	return oracle.Checkout(t, folder+name)
}

// Build compiles a subject once and returns its executable, which tests share.
func Build(t testing.TB, name string) string {
	t.Helper()
	p, ok := programs[name]
	if !ok {
		t.Fatalf("no subject %q", name)
	}
	if p.needs != "" {
		oracle.Tools(t, p.needs)
	}
	source := Source(t, p.source)
	file := source
	if strings.HasPrefix(p.command, "go ") {
		file = filepath.Join(source, "main.go")
	}
	command := strings.Split(p.command, " ")
	for i, word := range command {
		command[i] = strings.NewReplacer("SOURCE", file, "OUT", name).Replace(word)
	}
	return filepath.Join(oracle.Build{Sources: []string{source}, Commands: [][]string{command}}.Make(t), name)
}

// BuildGoroutines compiles goroutines or cgoroutines, programs with goroutines in many
// states, with a version of Go ("local": the test's own) and more flags.
func BuildGoroutines(t testing.TB, name, toolchain string, flags ...string) string {
	t.Helper()
	oracle.Tools(t, "go", "gcc")
	env := []string{"GOTOOLCHAIN=" + toolchain}
	find := exec.Command("go", "version")
	find.Env = append(os.Environ(), env...)
	if out, err := find.CombinedOutput(); err != nil {
		oracle.Missing(t, "%s cannot be had: %v\n%s", toolchain, err, out)
	}
	source := Source(t, name)
	command := append([]string{"go", "build", "-o", name}, flags...)
	command = append(command, filepath.Join(source, "main.go"))
	dir := oracle.Build{Sources: []string{source}, Env: env, Commands: [][]string{command}}.Make(t)
	return filepath.Join(dir, name)
}

// Address returns the address of a function or variable of a program by its symbol
// table.
func Address(t testing.TB, path, name string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return 0
}
