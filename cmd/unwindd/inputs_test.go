// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
)

// packedBy is a file as a tool packs it.
func packedBy(t *testing.T, tool, path string) []byte {
	t.Helper()
	return []byte(oracle.Run(t, tool, "-c", path))
}

// apportReport is a report with a core, as apport writes one: a line of base64 for the
// header of gzip, with the name in it, and one for each megabyte.
func apportReport(t *testing.T, core string) []byte {
	packed := packedBy(t, "gzip", core)
	var b bytes.Buffer
	b.WriteString("ProblemType: Crash\nDate: Mon Nov 23 18:00:00 2026\nExecutablePath: /srv/example/server\nProcMaps:\n 00400000-00401000 r-xp /srv/example/server\nSignal: 11\nCoreDump: base64\n")
	header := 10 + bytes.IndexByte(packed[10:], 0) + 1
	for _, part := range [][]byte{packed[:header], packed[header:]} {
		fmt.Fprintf(&b, " %s\n", base64.StdEncoding.EncodeToString(part))
	}
	return b.Bytes()
}

// inputsOf is a folder with the core of the server in every form, beside its executable.
func inputsOf(t *testing.T) (dir string, cores []string) {
	dir = t.TempDir()
	core := filepath.Join(crashDir, "server.core")
	whole, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.ReadFile(filepath.Join(crashDir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"core.gz": packedBy(t, "gzip", core), "core.lz4": packedBy(t, "lz4", core), "core.plain": whole, "core.xz": packedBy(t, "xz", core),
		"core.zst": packedBy(t, "zstd", core), "server.crash": apportReport(t, core), "server": exe, "README": []byte("not a target\n"), ".core.part": whole[:100],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != "server" && name != "README" && name[0] != '.' {
			cores = append(cores, filepath.Join(dir, name))
		}
	}
	return dir, cores
}

// withStdin runs unwindd with something on its standard input.
func withStdin(t *testing.T, in io.Reader, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// stacksOnly is a report in text without its first line, which names the target.
func stacksOnly(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

func TestStackOfEveryFormOfACore(t *testing.T) {
	dir, cores := inputsOf(t)
	want, _, _ := unwindd(t, "stack", filepath.Join(crashDir, "server.core"))
	mustSay(t, want, "msort_with_tmp")
	for _, core := range cores {
		stdout, stderr, status := unwindd(t, "stack", core)
		if status != exitDone || stdout != "elf-core "+core+want[strings.Index(want, ": signal"):] {
			t.Errorf("%s: status %d: %s\n%s", core, status, stderr, stdout)
		}
		data, err := os.ReadFile(core)
		if err != nil {
			t.Fatal(err)
		}
		// A bytes.Reader comes by a pipe. "-" has no folder with the executable.
		stdout, stderr, status = withStdin(t, bytes.NewReader(data), "stack", "-", filepath.Join(dir, "server"))
		if status != exitDone || stdout != "elf-core -"+want[strings.Index(want, ": signal"):] {
			t.Errorf("%s from a pipe: status %d: %s\n%s", core, status, stderr, stdout)
		}
		f, err := os.Open(core)
		if err != nil {
			t.Fatal(err)
		}
		stdout, _, _ = withStdin(t, f, "stack", "--exe", filepath.Join(dir, "server"), "-")
		f.Close()
		if stacksOnly(stdout) != stacksOnly(want) {
			t.Errorf("%s as standard input:\n%s", core, stdout)
		}
	}
}

// TestExecutableAndCore: in either order, as gdb takes them.
func TestExecutableAndCore(t *testing.T) {
	dir := t.TempDir()
	core, exe := filepath.Join(dir, "core"), filepath.Join(crashDir, "server")
	if err := os.WriteFile(core, packedBy(t, "zstd", filepath.Join(crashDir, "server.core")), 0o600); err != nil {
		t.Fatal(err)
	}
	without, _, _ := unwindd(t, "stack", core)
	if strings.Contains(without, "serve+0x11") {
		t.Fatal("the executable is found without being named")
	}
	want, _, _ := unwindd(t, "stack", "--exe", exe, core)
	mustSay(t, want, "serve+0x11")
	for _, args := range [][]string{{exe, core}, {core, exe}} {
		if got, stderr, status := unwindd(t, append([]string{"stack"}, args...)...); got != want || status != exitDone {
			t.Errorf("%v: status %d: %s\n%s", args, status, stderr, got)
		}
	}
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{exe, exe, core}, exitUsage, "are executables: expected one"},
		{[]string{"--exe", exe, exe, core}, exitUsage, "are executables: expected one"},
		{[]string{exe}, exitInput, "is an executable: give the core, then the executable: unwindd stack CORE "},
		{[]string{"-", "-"}, exitUsage, "standard input is one target"},
		{[]string{core, core, "--gpu-core", core}, exitUsage, "expected one target"},
		{[]string{core, "--max-unpacked", "0"}, exitUsage, "expected bytes"},
		{[]string{core, "--max-unpacked", "1X"}, exitUsage, "expected bytes"},
		{[]string{core, "-o", core}, exitUsage, "would be written over"},
	} {
		if _, stderr, status := unwindd(t, append([]string{"stack"}, tt.args...)...); status != tt.status || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: status %d, expected %d: %s", tt.args, status, tt.status, stderr)
		}
	}
}

func TestIsExecutable(t *testing.T) {
	dir := t.TempDir()
	core, err := os.ReadFile(filepath.Join(crashDir, "server.core"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"core": string(core[:200]), "log": "text", "cut": string(core[:17]), "exe": string(core[:16]) + "\x02\x00",
		"library": "\x7fELF\x02\x02\x01" + strings.Repeat("\x00", 9) + "\x00\x03",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := oracle.Mkfifo(filepath.Join(dir, "fifo")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"exe": true, "library": true, "core": false, "log": false, "cut": false, "fifo": false, ".": false, "none": false,
	} {
		if isExecutable(filepath.Join(dir, name)) != want {
			t.Errorf("%s is an executable: %v", name, !want)
		}
	}
}

// TestAFolderOfCores: each target by name, in every format, and a document for each.
func TestAFolderOfCores(t *testing.T) {
	dir, cores := inputsOf(t)
	text, stderr, status := unwindd(t, "stack", dir)
	if status != exitDone || stderr != "" {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var one []string
	for _, core := range cores {
		stdout, _, _ := unwindd(t, "stack", core)
		one = append(one, stdout)
	}
	for i, stdout := range one {
		if !strings.Contains(text, stdout) {
			t.Errorf("%s is not in the text", cores[i])
		}
	}
	if blocks := strings.Split(text, "\n\nelf-core "); len(blocks) != len(cores) {
		t.Errorf("%d targets, expected %d", len(blocks), len(cores))
	}
	out := filepath.Join(t.TempDir(), "all.json")
	if _, stderr, status := unwindd(t, "stack", "--format", "json", "-o", out, dir); status != exitDone {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var r report.Report
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, r.Target.Path)
		if len(r.Threads) != 4 {
			t.Errorf("%s: %d threads", r.Target.Path, len(r.Threads))
		}
	}
	if strings.Join(paths, " ") != strings.Join([]string{
		dir + "/core.gz", dir + "/core.lz4", dir + "/core.plain", dir + "/core.xz", dir + "/core.zst", dir + "/server.crash",
	}, " ") {
		t.Errorf("paths %v", paths)
	}
	_, stderr, _ = unwindd(t, "stack", "-v", dir)
	mustSay(t, stderr, dir+"/README: not a target: left out", dir+"/server: not a target: left out")
	empty := t.TempDir()
	if _, stderr, status := unwindd(t, "stack", empty); status != exitInput || !strings.Contains(stderr, "no file is in the folder") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestSomeOfSeveralTargetsFail: the others are printed, and the exit status says it.
func TestSomeOfSeveralTargetsFail(t *testing.T) {
	core := filepath.Join(crashDir, "server.core")
	stdout, stderr, status := unwindd(t, "stack", core, "/nowhere/core", core)
	if status != exitInput || strings.Count(stdout, "\nthread 5266") != 2 {
		t.Errorf("status %d:\n%s", status, stdout)
	}
	mustSay(t, stderr, "/nowhere/core: no such file", "1 of 3 targets could not be printed")
	out := filepath.Join(t.TempDir(), "out")
	if _, _, status := unwindd(t, "stack", "-o", out, "/nowhere/a", "/nowhere/b"); status != exitInput {
		t.Errorf("status %d", status)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there is an output although no target was read")
	}
}

// TestCutAndBombedCores: what was unpacked is walked, and what is missing is said.
func TestCutAndBombedCores(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(crashDir, "server")
	packed := packedBy(t, "gzip", filepath.Join(crashDir, "server.core"))
	cut := filepath.Join(dir, "core.gz")
	if err := os.WriteFile(cut, packed[:len(packed)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := unwindd(t, "stack", exe, cut)
	if status != exitDone {
		t.Errorf("status %d: %s", status, stderr)
	}
	mustSay(t, stdout, "problem: "+cut+": read as far as ", "gzip: the stream is cut", "thread 5266", "content_length")
	whole := filepath.Join(dir, "whole.gz")
	if err := os.WriteFile(whole, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _, status = unwindd(t, "stack", "--max-unpacked", "100K", exe, whole)
	if status != exitDone {
		t.Errorf("status %d", status)
	}
	mustSay(t, stdout, "read as far as 102400 bytes", "--max-unpacked", "thread 5266")
	nothing := filepath.Join(dir, "nothing.gz")
	if err := os.WriteFile(nothing, packed[:12], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, status := unwindd(t, "stack", nothing); status != exitInput || !strings.Contains(stderr, "gzip: the stream is cut") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestAsAHandlerOfTheKernel: a program in core_pattern has no environment, no standard
// output, and a pipe.
func TestAsAHandlerOfTheKernel(t *testing.T) {
	out := filepath.Join(t.TempDir(), "stacks")
	core, err := os.ReadFile(filepath.Join(crashDir, "server.core"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(oracle.Tool(t, "sh"), "-c", `exec env -i "$0" stack - --exe "$1" -o "$2" >&- 2>&-`, self, mustAbs(t, filepath.Join(crashDir, "server")), out)
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(core)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	mustSay(t, string(got), "elf-core -: signal 11", "qsort_r", "3 threads: 5267-5269")
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSignalsWhileItUnpacks leave no temporary file.
func TestSignalsWhileItUnpacks(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		r := startWaiting(t, "stack", "-")
		if _, err := r.stdin.Write(bytes.Repeat([]byte("\x7fELF of some length"), 50_000)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it waits", r.sleeps)
		r.ends(t, s)
	}
}

// TestSnapshotOfAPackedCore: the other command that reads targets.
func TestSnapshotOfAPackedCore(t *testing.T) {
	dir, _ := inputsOf(t)
	want, _, _ := unwindd(t, "stack", filepath.Join(crashDir, "server.core"))
	for _, from := range []string{"core.zst", "server.crash"} {
		out := filepath.Join(dir, from+".snapshot")
		if _, stderr, status := unwindd(t, "snapshot", filepath.Join(dir, from), "-o", out); status != exitDone {
			t.Fatal(stderr)
		}
		if got, _, _ := unwindd(t, "stack", out); stacksOnly(got) != stacksOnly(want) {
			t.Errorf("%s:\n%s", from, got)
		}
	}
}

// TestFailOnCrash: the status of its own, of what crashed and did not, and of what is not there.
func TestFailOnCrash(t *testing.T) {
	none, others, dir := t.TempDir(), t.TempDir(), t.TempDir()
	core, exe := filepath.Join(crashDir, "server.core"), filepath.Join(crashDir, "server")
	err := errors.Join(os.WriteFile(filepath.Join(others, "README"), []byte("no core\n"), 0o600), os.Symlink(mustAbs(t, core), filepath.Join(dir, "a")))
	if err != nil {
		t.Fatal(err)
	}
	idle := startWaiting(t, "stack", "-") // a living process
	defer idle.ends(t, syscall.SIGTERM)
	missing := filepath.Join(none, "cores")
	for _, c := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{core}, exitCrashed, "--fail-on-crash: a thread crashed in 1 of 1 targets"},
		{[]string{core, "--thread", "5267"}, exitCrashed, "a thread crashed"}, // not the one that is printed
		{[]string{dir}, exitCrashed, "a thread crashed in 1 of 1 targets"},
		{[]string{none}, exitDone, ""},
		{[]string{others}, exitDone, ""},
		{[]string{missing}, exitDone, missing + ": it is not there, so nothing in it crashed"},
		{[]string{missing, core}, exitCrashed, "a thread crashed in 1 of 1 targets"},
		{[]string{exe, none}, exitDone, ""},
		{[]string{filepath.Join(others, "README"), core}, exitCrashed, "1 of 2 targets could not be printed"},
		{[]string{filepath.Join(others, "README")}, exitInput, "not a core, minidump or snapshot"},
		{[]string{strconv.Itoa(idle.Process.Pid)}, exitDone, ""},
		{[]string{"99999999"}, exitInput, "no such process"}, // a number is no folder
	} {
		_, stderr, status := unwindd(t, append([]string{"stack", "--fail-on-crash"}, c.args...)...)
		if status != c.want || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: status %d, expected %d and %q:\n%s", c.args, status, c.want, c.says, stderr)
		}
	}
	if _, _, status := unwindd(t, "stack", none); status != exitInput {
		t.Errorf("an empty folder without the flag: status %d", status)
	}
}
