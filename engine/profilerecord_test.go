package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
)

// profilePrograms are the programs that are recorded: C++, Rust, which is linked
// by lld here, and Go. Each takes the seconds that it uses a processor for.
var profilePrograms = []struct {
	name  string
	build []string // the output's path follows
	args  func(seconds float64) []string
}{
	{"deepcpp", []string{"g++", "-std=c++17", "-O2", "-g", "-pthread", "testdata/profile/deepcpp.cpp", "-o"},
		func(s float64) []string { return []string{seconds(s / 2), "2"} }},
	{"rustwork", []string{"rustc", "-O", "-g", "testdata/profile/rustwork.rs", "-o"},
		func(s float64) []string { return []string{seconds(s / 2)} }},
	{"gowork", []string{"go", "build", "-o"}, func(s float64) []string { return []string{seconds(s)} }},
	{"gowork without DWARF", []string{"go", "build", "-ldflags=-w", "-o"}, func(s float64) []string { return []string{seconds(s)} }},
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }

// made is what tests make once and share.
var made struct {
	sync.Mutex
	dir   string
	files map[string]string // by what they are
}

// TestMain lets the test binary be what the engine starts as the parent of plugins,
// and the plugin for AMDGPU.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		err := fmt.Errorf("no such command: %q", os.Args[2])
		switch os.Args[2] {
		case "exec":
			err = plugin.ExecMain(os.Args[3:])
		case "serve":
			err = plugin.ServeMain(os.Args[3], bundledAMDGPU)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	status := m.Run()
	if made.dir != "" {
		os.RemoveAll(made.dir)
	}
	os.Exit(status)
}

// makeOnce makes a file, whose path is given, unless it is there.
func makeOnce(tb testing.TB, name string, f func(path string)) string {
	tb.Helper()
	made.Lock()
	defer made.Unlock()
	if path := made.files[name]; path != "" {
		return path
	}
	if made.dir == "" {
		dir, err := os.MkdirTemp("", "engine-test-")
		if err != nil {
			tb.Fatal(err)
		}
		made.dir, made.files = dir, map[string]string{}
	}
	path := filepath.Join(made.dir, strings.ReplaceAll(name, "/", "-"))
	f(path)
	made.files[name] = path
	return path
}

// command runs a program and returns what it prints.
func command(tb testing.TB, args ...string) []byte {
	tb.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.Bytes()
}

// profileProgram builds one of profilePrograms and returns its path and its
// arguments for so many seconds.
func profileProgram(tb testing.TB, name string, seconds float64) []string {
	tb.Helper()
	for _, p := range profilePrograms {
		if p.name != name {
			continue
		}
		oracle.Tools(tb, p.build[0])
		path := makeOnce(tb, name, func(path string) {
			args := append(append([]string(nil), p.build...), path)
			if p.build[0] == "go" {
				args = append(args, "./testdata/profile/gowork")
			}
			command(tb, args...)
		})
		return append([]string{path}, p.args(seconds)...)
	}
	tb.Fatalf("there is no program %q", name)
	return nil
}

// profileSamples is how many samples recordings for comparisons have at least.
func profileSamples() int {
	if os.Getenv("UNWINDD_PROOF") == "1" {
		return 12_000
	}
	return 1_500
}

// profileRecording is a recording of one of profilePrograms, with raw stacks and
// at least so many samples.
func profileRecording(tb testing.TB, name string, samples int) string {
	tb.Helper()
	const frequency = 3000
	program := profileProgram(tb, name, 1.1*float64(samples)/frequency)
	return makeOnce(tb, fmt.Sprintf("%s-%d.data", name, samples), func(path string) {
		perfRecord(tb, path, []string{"-F", strconv.Itoa(frequency), "-e", "cpu-clock", "--call-graph", "dwarf,16384"}, program...)
	})
}

// perfRecord records a program. The kernel may refuse it: perf_event_open needs
// root, or perf_event_paranoid at 1 or below.
func perfRecord(tb testing.TB, path string, args []string, program ...string) {
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

// profiled is the profile of a recording, without symbols.
func profiled(tb testing.TB, path string) *Profile {
	tb.Helper()
	p, err := newX86Engine(tb, Options{NoSymbols: true}).Profile(context.Background(), path, ProfileOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
