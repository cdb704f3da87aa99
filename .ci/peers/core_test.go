// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const tinyProgram = `
#include <stdlib.h>
static void c(int n) { if (n == 0) abort(); }
static void b(int n) { c(n - 1); }
int main(int argc, char **argv) { b(argc); return 0; }
`

// tinyCore is the core of a C program of a few lines, which aborts in libc.
func tinyCore(b *testing.B) (core, program string) {
	b.Helper()
	dir := b.TempDir()
	source := filepath.Join(dir, "tiny.c")
	if err := os.WriteFile(source, []byte(tinyProgram), 0o600); err != nil {
		b.Fatal(err)
	}
	program = filepath.Join(dir, "tiny")
	if out, err := exec.Command("gcc", "-g", "-o", program, source).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command("sh", "-c", "ulimit -c unlimited; exec ./tiny")
	cmd.Dir = dir
	_ = cmd.Run() // it is killed by SIGABRT
	list, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(list) != 1 {
		b.Skip("no core: /proc/sys/kernel/core_pattern is to be \"core\"")
	}
	return list[0], program
}

// BenchmarkTinyCore prints the stack of a tiny core as a whole process: what it takes of
// the processors, with its children, and the largest memory of one of them. libc's
// debug information, where it is installed, is compressed.
func BenchmarkTinyCore(b *testing.B) {
	core, program := tinyCore(b)
	unwindd := filepath.Join(b.TempDir(), "unwindd")
	if out, err := exec.Command("sh", "-c", "cd ../.. && go build -trimpath -o "+unwindd+" ./cmd/unwindd").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, tool := range []struct {
		name string
		argv []string
	}{
		{"unwindd", []string{unwindd, "stack", core}},
		{"in-process", []string{unwindd, "stack", "--in-process", core}},
		{"gdb", []string{"gdb", "-batch", "-nx", "-ex", "bt", "-core", core, program}},
		{"eu-stack", []string{"eu-stack", "--core", core, "-e", program}},
	} {
		b.Run(tool.name, func(b *testing.B) {
			if _, err := exec.LookPath(tool.argv[0]); err != nil {
				b.Skip(err)
			}
			var cpu, least time.Duration
			var memory int64
			for b.Loop() {
				cmd := exec.Command(tool.argv[0], tool.argv[1:]...)
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "abort") {
					b.Fatalf("%s: %v\n%s", cmd, err, out)
				}
				took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				if cpu += took; least == 0 || took < least {
					least = took
				}
				memory = max(memory, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
			}
			b.ReportMetric(float64(cpu.Microseconds())/1e3/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(least.Microseconds())/1e3, "least-cpu-ms")
			b.ReportMetric(float64(memory)/1024, "MiB")
		})
	}
}
