// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/damage"
	"github.com/unwindd/unwindd/internal/oracle"
)

// Bounds on reading a damaged file.
const (
	damagedRuns   = 300
	damagedTime   = 10 * time.Second
	damagedMemory = 400 << 20
)

// panicked matches a panic that ended the command, or that it caught.
var panicked = regexp.MustCompile(`(?m)^panic: |^fatal error: |runtime error: |panicked: `)

// damagedMacOS are files of macOS and the commands that read them.
func damagedMacOS(t *testing.T) (files [][]byte, commands [][]string) {
	t.Helper()
	source, err := filepath.Abs("../../engine/testdata/macos")
	if err != nil {
		t.Fatal(err)
	}
	build := oracle.Build{Sources: []string{source}}
	for _, arch := range []string{"arm64", "x86_64"} {
		build.Commands = append(build.Commands,
			[]string{"clang-22", "-target", arch + "-apple-macos13", "-g", "-O1", "-c", filepath.Join(source, "chain.c"), "-o", arch + ".o"},
			[]string{"ld64.lld-22", "-arch", arch, "-platform_version", "macos", "13.0", "13.0", "-undefined", "dynamic_lookup", "-o", arch, arch + ".o"},
			[]string{"dsymutil-22", "--flat", "-o", arch + ".dwarf", arch})
	}
	build.Commands = append(build.Commands, []string{"llvm-lipo-22", "-create", "arm64", "x86_64", "-output", "universal"})
	dir := build.Make(t)
	objects := [][]string{
		{"symbols", "FILE"}, {"dump", "rows", "FILE"}, {"dump", "cfi", "FILE"}, {"dump", "notes", "FILE"},
		{"symbolize", "--obj", "FILE", "0x100000400", "0x100000490", "0x10", "0x40"},
	}
	for _, name := range []string{"arm64", "x86_64", "arm64.o", "x86_64.o", "arm64.dwarf", "x86_64.dwarf", "universal"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range objects {
			files, commands = append(files, b), append(commands, c)
		}
	}
	for _, name := range []string{"signed", "x86_64"} {
		core := unpacked(t, filepath.Join(source, name+".core.gz"))
		for range 4 {
			for _, c := range [][]string{{"stack", "FILE"}, {"stack", "--format", "json", "FILE"}} {
				files, commands = append(files, core), append(commands, c)
			}
		}
	}
	return files, commands
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// runWatched runs a command, and returns the most memory that it was seen to have, in bytes. What the kernel
// counts at its end is the memory of this process, where that is more.
func runWatched(t *testing.T, cmd *exec.Cmd) (most int64) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its status is looked at by the caller
		close(ended)
	}()
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		var kib int64
		if _, rest, ok := strings.Cut(string(text), "VmHWM:"); ok {
			_, _ = fmt.Sscan(rest, &kib)
		}
		most = max(most, kib<<10)
		select {
		case <-ended:
			return most
		case <-time.After(time.Millisecond):
		}
	}
}

// TestDamagedFilesOfMacOS reads damaged programs, dSYMs, object files, universal files and cores: each within
// 10 s of processors and 400 MB, without a panic.
func TestDamagedFilesOfMacOS(t *testing.T) {
	oracle.Tools(t, "clang-22", "ld64.lld-22", "dsymutil-22", "llvm-lipo-22")
	files, commands := damagedMacOS(t)
	dir := t.TempDir()
	var longest time.Duration
	var largest int64
	refused := 0
	for n := range damagedRuns {
		random := rand.New(rand.NewPCG(54, uint64(n))) //nolint:gosec // of a test
		i := n % len(files)
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := os.WriteFile(path, damage.With(random, files[i], files[random.IntN(len(files))]), 0o600); err != nil {
			t.Fatal(err)
		}
		var args []string
		for _, word := range append(commands[i][:len(commands[i]):len(commands[i])], "--in-process") {
			if word == "FILE" {
				word = path
			}
			args = append(args, word)
		}
		cmd := command(args...)
		var out bytes.Buffer
		cmd.Stderr = &out
		memory := runWatched(t, cmd)
		took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		longest, largest = max(longest, took), max(largest, memory)
		if cmd.ProcessState.ExitCode() != 0 {
			refused++
		}
		if took > damagedTime || memory > damagedMemory || panicked.Match(out.Bytes()) || cmd.ProcessState.ExitCode() < 0 || cmd.ProcessState.ExitCode() == 2 && bytes.Contains(out.Bytes(), []byte("goroutine ")) {
			t.Errorf("run %d, %v: %v, %d bytes of memory, %.2000s", n, args, took, memory, out.Bytes())
		}
		_ = os.Remove(path)
	}
	if refused == damagedRuns {
		t.Error("no file was read")
	}
	t.Logf("%d files, %d of them with an error; at most %v and %d MB", damagedRuns, refused, longest, largest>>20)
}
