// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/templates"
	"github.com/unwindd/unwindd/internal/oracle"
)

// The large dump is of a process whose threads go through so many libraries, each of
// which has about 10 MB of symbols.
const (
	largeLibraries = 100
	largeThreads   = 60
)

// buildID is what the library is linked with; each copy gets its own.
const buildID = "756e77696e64642d6d696e6964756d702d303030"

// A large is a dump and the symbols of all its modules.
type large struct{ dump, symbols string }

// makeLarge makes copies of a library of templates under identities of their own, a
// store with the symbols of each, and the dump of a process that has all of them.
func makeLarge(t testing.TB) large {
	t.Helper()
	library, text := largeLibrary(t)
	dir := runFolder(t, "large", "files")
	l := large{filepath.Join(dir, "handler.dmp"), filepath.Join(dir, "symbols")}
	code, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	header, body, _ := bytes.Cut(text, []byte("\n"))
	from, _ := hex.DecodeString(buildID)
	for n := range largeLibraries {
		id := sha256.Sum256(fmt.Append(nil, n))
		name := fmt.Sprintf("lib%d.so", n)
		writeFile(t, filepath.Join(dir, name), bytes.Replace(code, from, id[:20], 1))
		fields := strings.Fields(string(header))
		fields[3], fields[4] = debugID(id[:16]), name
		storeSymbols(t, l.symbols, fields, body)
	}
	program := filepath.Join(dir, "main")
	oracle.With{Dir: "testdata/large"}.Run(t, "g++", "-O2", "-g", "-pthread", "main.cpp", "-o", program)
	made := withHandler(t, runFolder(t, "large", "handler"), program, dir, strconv.Itoa(largeLibraries), strconv.Itoa(largeThreads))
	l.dump = made.dumps[0]
	for _, path := range []string{program, "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6"} {
		addSymbols(t, l.symbols, path)
	}
	return l
}

// largeLibrary is a library with the templates' code, without debug information, and
// what dump_syms writes of it. It is kept in the cache directory.
func largeLibrary(t testing.TB) (library string, symbols []byte) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	step, err := filepath.Abs("testdata/large/step.cpp")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "unwindd-peers", fmt.Sprintf("minidumps-%x", templates.Sum()))
	library, text := filepath.Join(dir, "lib.so"), filepath.Join(dir, "lib.sym")
	if symbols, err = os.ReadFile(text); err == nil {
		return library, symbols
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	objects, err := templates.Compile(dir, templates.Units, "-O2", "-g", "-fPIC")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "calls.cc"), templates.Calls(templates.Units))
	in := oracle.With{Dir: dir}
	in.Run(t, "g++", append(objects, "-std=c++17", "-O2", "-g", "-fPIC", "-shared", "-Wl,--build-id=0x"+buildID, step, "calls.cc", "-o", "whole.so")...)
	in.Run(t, "strip", "whole.so", "-o", library)
	symbols = []byte(in.Run(t, filepath.Join(breakpadTools(t), "dump_syms"), "-d", "whole.so"))
	for _, name := range append(objects, "whole.so") {
		os.Remove(filepath.Join(dir, name))
	}
	writeFile(t, text, symbols)
	return library, symbols
}

// debugID is what Breakpad's stores name a module by whose build ID begins with 16 bytes.
func debugID(id []byte) string {
	return strings.ToUpper(fmt.Sprintf("%x%x%x%x0", reversed(id[:4]), reversed(id[4:6]), reversed(id[6:8]), id[8:]))
}

func reversed(b []byte) []byte {
	r := make([]byte, len(b))
	for i, c := range b {
		r[len(b)-1-i] = c
	}
	return r
}

// addSymbols adds what dump_syms says of a file, and not of its separate debug file, to a
// store.
func addSymbols(t testing.TB, store, path string) {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	text := oracle.Run(t, filepath.Join(breakpadTools(t), "dump_syms"), "-d", real)
	header, body, _ := strings.Cut(text, "\n")
	fields := strings.Fields(header)
	if len(fields) != 5 || fields[0] != "MODULE" {
		t.Fatalf("dump_syms of %s begins with %q, expected a line MODULE", path, header)
	}
	storeSymbols(t, store, fields, []byte(body))
}

// storeSymbols writes a file where Breakpad's readers look for it; fields are those of
// its line MODULE.
func storeSymbols(t testing.TB, store string, fields []string, body []byte) {
	t.Helper()
	id, name := fields[3], fields[4]
	dir := filepath.Join(store, name, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, name+".sym"), slices.Concat([]byte(strings.Join(fields, " ")+"\n"), body))
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkLargeDump prints the stacks of the large dump as whole processes, without the
// files of the modules: all is in the symbols, about 1 GB of them.
func BenchmarkLargeDump(b *testing.B) {
	l := makeLarge(b)
	exe, err := unwindd()
	if err != nil {
		b.Fatal(err)
	}
	empty := b.TempDir()
	for _, tool := range []struct {
		name string
		argv []string
	}{
		{"unwindd", []string{exe, "stack", "--symbols", l.symbols, "--sysroot", empty, l.dump}},
		{"stackwalk", []string{filepath.Join(breakpadTools(b), "minidump_stackwalk"), l.dump, l.symbols}},
	} {
		b.Run(tool.name, func(b *testing.B) {
			var best *cost.Cost
			for b.Loop() {
				c, err := cost.Of(tool.argv)
				if err != nil {
					b.Fatal(err)
				}
				best = c.Best(best)
			}
			b.ReportMetric(best.Wall.Seconds(), "least-s")
			b.ReportMetric(best.CPU.Seconds(), "least-cpu-s")
			b.ReportMetric(float64(best.Own)/1024, "MiB")
			b.ReportMetric(float64(best.All)/1024, "MiB-with-files")
		})
	}
}
