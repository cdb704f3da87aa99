// SPDX-License-Identifier: Apache-2.0

// Package recorded records programs, for tests: each once, for all tests of a process.
package recorded

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// Programs are the programs that are recorded: C++, Rust, which is linked
// by lld here, and Go. Each takes the seconds that it uses a processor for.
var Programs = []struct {
	Name  string
	build []string // the source is last
	args  func(seconds float64) []string
}{
	{"deepcpp", []string{"g++", "-std=c++17", "-O2", "-g", "-pthread", "-o", "program", "deepcpp.cpp"},
		func(s float64) []string { return []string{seconds(s / 2), "2"} }},
	{"rustwork", []string{"rustc", "-O", "-g", "-o", "program", "rustwork.rs"},
		func(s float64) []string { return []string{seconds(s / 2)} }},
	{"gowork", []string{"go", "build", "-o", "program", "gowork/main.go"}, func(s float64) []string { return []string{seconds(s)} }},
	{"gowork without DWARF", []string{"go", "build", "-ldflags=-w", "-o", "program", "gowork/main.go"}, func(s float64) []string { return []string{seconds(s)} }},
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }

// shared has the files that tests create once and share.
var shared struct {
	sync.Mutex
	dir   string
	files map[string]string // by name
}

// Once returns the path of a file, which f creates if it is not there.
func Once(tb testing.TB, name string, f func(path string)) string {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if path := shared.files[name]; path != "" {
		return path
	}
	if shared.dir == "" {
		dir, err := os.MkdirTemp("", "recorded-")
		if err != nil {
			tb.Fatal(err)
		}
		shared.dir, shared.files = dir, map[string]string{}
	}
	path := filepath.Join(shared.dir, strings.ReplaceAll(name, "/", "-"))
	f(path)
	shared.files[name] = path
	return path
}

// Clean removes the shared files.
func Clean() {
	shared.Lock()
	defer shared.Unlock()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
}

// folder returns the path of the programs: engine/testdata/profile.
func folder(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		sources := filepath.Join(dir, "engine", "testdata", "profile")
		if _, err := os.Stat(sources); err == nil {
			return sources
		}
	}
	tb.Fatal("no engine/testdata/profile above the working directory")
	return ""
}

// Program builds one of Programs and returns its path and its
// arguments for so many seconds.
func Program(tb testing.TB, name string, seconds float64) []string {
	tb.Helper()
	for _, p := range Programs {
		if p.Name != name {
			continue
		}
		last := len(p.build) - 1
		source := filepath.Join(folder(tb), p.build[last])
		dir := oracle.Build{Sources: []string{source}, Commands: [][]string{append(p.build[:last:last], source)}}.Make(tb)
		return append([]string{filepath.Join(dir, "program")}, p.args(seconds)...)
	}
	tb.Fatalf("there is no program %q", name)
	return nil
}

// Samples returns how many samples recordings for comparisons have at least.
func Samples() int {
	if proof.IsRequested() {
		return 12_000
	}
	return 1_500
}

// BenchmarkSamples returns how many samples recordings for benchmarks have at
// least: as many as for tests where a benchmark runs only once (-benchtime 1x).
func BenchmarkSamples() int {
	if f := flag.Lookup("test.benchtime"); f != nil && f.Value.String() == "1x" {
		return Samples()
	}
	return 12_000
}

// Recording returns a recording of one of Programs, with raw stacks and at
// least so many samples.
func Recording(tb testing.TB, name string, samples int) string {
	tb.Helper()
	const frequency = 3000
	program := Program(tb, name, 1.1*float64(samples)/frequency)
	return Once(tb, fmt.Sprintf("%s-%d.data", name, samples), func(path string) {
		Perf(tb, path, []string{"-F", strconv.Itoa(frequency), "-e", "cpu-clock", "--call-graph", "dwarf,16384"}, program...)
	})
}

// Perf records a program. The kernel may refuse it: perf_event_open needs
// root, or perf_event_paranoid at 1 or below.
func Perf(tb testing.TB, path string, args []string, program ...string) {
	tb.Helper()
	oracle.Tools(tb, "perf")
	all := append([]string{"record", "-q", "-o", path}, args...)
	all = append(append(all, "--"), program...)
	cmd := exec.Command("perf", all...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		oracle.Missing(tb, "perf %s: %v\n%s\nperf cannot record here (it needs root, or kernel.perf_event_paranoid <= 1)", strings.Join(all, " "), err, &stderr)
	}
}
