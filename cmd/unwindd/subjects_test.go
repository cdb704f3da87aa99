// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
)

// subject is a program to take cores of.
type subject struct {
	build []string // the output's path follows
}

var subjects = map[string]subject{
	"mtcore":      {build: []string{"g++", "-std=c++17", "-O2", "-g", "-pthread", "mtcore.cpp", "-o"}},
	"frames":      {build: []string{"g++", "-std=c++17", "-O2", "-g", "-fomit-frame-pointer", "-pthread", "frames.cpp", "-o"}},
	"sframe":      {build: []string{"g++", "-std=c++17", "-O2", "-g", "-fomit-frame-pointer", "-pthread", "-Wa,--gsframe", "frames.cpp", "-o"}},
	"gosubject":   {build: []string{"go", "build", "-o"}},
	"gostripped":  {build: []string{"go", "build", "-ldflags=-s -w", "-o"}},
	"cgosubject":  {build: []string{"go", "build", "-o"}},
	"cgostripped": {build: []string{"go", "build", "-ldflags=-s -w", "-o"}},
	"rustsubject": {build: []string{"rustc", "-C", "opt-level=2", "-g", "-C", "panic=abort", "rustsubject.rs", "-o"}},
	"plugged":     {build: []string{"gcc", "-O2", "-g", "plugged.c", "-ldl", "-o"}},
	"plug":        {build: []string{"gcc", "-O2", "-g", "-shared", "-fPIC", "plug.c", "-o"}},
	"nested":      {build: []string{"gcc", "-O2", "-g", "nested.c", "-o"}},
	"smash":       {build: []string{"gcc", "-O1", "-g", "-fno-omit-frame-pointer", "smash.c", "-o"}},
	"smashbare":   {build: []string{"gcc", "-O1", "-g", "-fomit-frame-pointer", "smash.c", "-o"}},
	"records":     {build: []string{"gcc", "-O2", "-g", "records.c", "-o"}},
	"context":     {build: []string{"gcc", "-O2", "-g", "context.c", "-o"}},
	"musl":        {build: []string{"musl-gcc", "-O2", "-g", "starts.c", "-o"}},
	"muslstatic":  {build: []string{"musl-gcc", "-O2", "-g", "-static", "starts.c", "-o"}},
	"static":      {build: []string{"gcc", "-O2", "-g", "-static", "-pthread", "starts.c", "-o"}},
	"noid":        {build: []string{"gcc", "-O2", "-g", "-Wl,--build-id=none", "nocfi.c", "-o"}},
	"reenters":    {build: []string{"gcc", "-O1", "-g", "reenters.c", "-ldl", "-o"}},
	"reentered":   {build: []string{"gcc", "-O1", "-g", "-shared", "-fPIC", "reentered.c", "-o"}},
	"cold":        {build: append(slices.Clone(cold), "-o")},
	"coldstrip":   {build: append(slices.Clone(cold), "-s", "-o")},
	"nocfi": {
		build: []string{"gcc", "-O2", "-g", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-exceptions", "nocfi.c", "-o"},
	},
}

// cold compiles the subject of that name without call frame information.
var cold = []string{"gcc", "-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-pie", "-no-pie", "cold.c"}

// build compiles a subject once and returns its executable, which tests share.
func build(t *testing.T, name string) string {
	t.Helper()
	sources, err := filepath.Abs(filepath.Join("testdata", "subjects"))
	if err != nil {
		t.Fatal(err)
	}
	command := append(append([]string(nil), subjects[name].build...), name)
	for i, arg := range command {
		if slices.Contains([]string{".c", ".cpp", ".rs"}, filepath.Ext(arg)) {
			command[i] = filepath.Join(sources, arg)
		}
	}
	switch name {
	case "gosubject", "gostripped":
		command = append(command, filepath.Join(sources, "gosubject", "main.go"))
	case "cgosubject", "cgostripped":
		oracle.Tools(t, "gcc")
		command = append(command, filepath.Join(sources, "cgosubject", "main.go"))
	}
	return filepath.Join(oracle.Build{Sources: []string{sources}, Commands: [][]string{command}}.Make(t), name)
}

// limited is a subject with stacks of a megabyte, which keeps cores small, and
// with cores allowed.
func limited(exe string, args []string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", `ulimit -c unlimited -s 1024; exec "$0" "$@"`, exe)
	cmd.Args = append(cmd.Args, args...)
	return cmd
}

// crashCore runs a subject until it dies and returns the core that the kernel
// wrote.
func crashCore(t *testing.T, exe string, args ...string) string {
	t.Helper()
	core, _ := crash(t, exe, args...)
	return core
}

// crash is crashCore, with what the subject said.
func crash(t *testing.T, exe string, args ...string) (core, said string) {
	t.Helper()
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.ContainsAny(string(pattern), "|/%") {
		if len(pattern) > 0 {
			oracle.Missing(t, "kernel.core_pattern is %q, expected a plain name", pattern)
		}
		t.Skipf("kernel.core_pattern is %q, expected a plain name", pattern)
	}
	dir := t.TempDir()
	cmd := limited(exe, args)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOTRACEBACK=crash")
	var exit *exec.ExitError
	out, err := cmd.CombinedOutput()
	if !errors.As(err, &exit) {
		t.Fatalf("%s %v did not die: %v\n%s", exe, args, err, out)
	}
	cores, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(cores) != 1 {
		t.Fatalf("%s %v left %d cores, expected 1", exe, args, len(cores))
	}
	return cores[0], string(out)
}

// liveCore starts a subject, waits until it is ready, and takes its core with
// gdb's gcore.
func liveCore(t *testing.T, exe string, args ...string) string {
	t.Helper()
	oracle.Tools(t, "gcore")
	cmd := limited(exe, args)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("%s said %q, %v", exe, line, err)
	}
	time.Sleep(100 * time.Millisecond)
	core := filepath.Join(t.TempDir(), "core")
	pid := fmt.Sprint(cmd.Process.Pid)
	oracle.Run(t, "gcore", "-o", core, pid)
	return core + "." + pid
}

// unwindd runs the command as a process of its own and returns what it wrote.
func unwindd(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status = cmd.ProcessState.ExitCode()
	if (status == exitDone || status == exitUnwalked) && isStackJSON(args) {
		validateStack(t, args, written(t, args, &out))
	}
	return out.String(), errs.String(), status
}

// stackJSON runs `unwindd stack --format json`.
func stackJSON(t *testing.T, args ...string) *report.Report {
	t.Helper()
	return stackJSONWith(t, exitDone, args...)
}

// stackJSONWith expects an exit status.
func stackJSONWith(t *testing.T, want int, args ...string) *report.Report {
	t.Helper()
	stdout, stderr, status := unwindd(t, append([]string{"stack", "--format", "json"}, args...)...)
	if status != want {
		t.Fatalf("unwindd stack %v: status %d, expected %d\n%s", args, status, want, stderr)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("unwindd stack %v: %v\n%s", args, err, stdout)
	}
	return &r
}
