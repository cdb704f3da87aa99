// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

const aarch64Root = "/usr/aarch64-linux-gnu"

// TestCoresOfAArch64ByQemu has a program of AArch64 crash under qemu, which writes a core
// of it, and walks that by the bundled plugin, in its own process: the calls that the
// source says, with the address signed and not, with call frame information and without.
func TestCoresOfAArch64ByQemu(t *testing.T) {
	long(t)
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "sh")
	for name, c := range map[string]struct {
		flags []string
		what  string // how the program ends
		want  []string
	}{
		"plain":             {[]string{"-O1", "-g"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"signed":            {[]string{"-O1", "-g", "-mbranch-protection=standard"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"static":            {[]string{"-O2", "-g", "-static", "-fno-optimize-sibling-calls"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"without frames":    {[]string{"-O1", "-g", "-fomit-frame-pointer"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"without CFI":       {[]string{"-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"null call":         {[]string{"-O1", "-g"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
		"null call, PAC":    {[]string{"-O1", "-g", "-mbranch-protection=pac-ret+leaf"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
		"large frame":       {[]string{"-O1", "-g", "-DROOM=70000"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"null call, no CFI": {[]string{"-O1", "-fno-asynchronous-unwind-tables"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			exe := filepath.Join(dir, "subject")
			oracle.Run(t, "aarch64-linux-gnu-gcc", append(c.flags, "-o", exe, filepath.Join("testdata", "subjects", "aarch64crash.c"))...)
			got := stackJSON(t, aarch64Core(t, dir, c.what), "--sysroot", aarch64Root, "--exe", exe)
			names := []string{}
			for _, f := range got.Threads[0].Frames {
				if names = append(names, f.Function); f.Function == "main" {
					break
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("%q, expected %q", names, c.want)
			}
			if last := got.Threads[0].Frames[len(got.Threads[0].Frames)-1]; last.Function != "_start" {
				t.Errorf("it ends in %s, expected _start: %+v", last.Function, got.Threads[0].Stopped)
			}
		})
	}
}

// aarch64Core is the core that qemu writes when ./subject of a folder crashes.
func aarch64Core(t *testing.T, dir string, args string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", "ulimit -c unlimited && exec qemu-aarch64 -cpu max -L "+aarch64Root+" ./subject "+args)
	cmd.Dir = dir
	_ = cmd.Run() // it crashes
	cores, _ := filepath.Glob(filepath.Join(dir, "qemu_*.core"))
	if len(cores) != 1 {
		list, _ := os.ReadDir(dir)
		t.Fatalf("%d cores of qemu in %v", len(cores), list)
	}
	return cores[0]
}

// TestLazyBindingOfAArch64 crashes while the dynamic linker looks for a function: the
// procedure linkage table pushed two words that the linker's call frame information does
// not count.
func TestLazyBindingOfAArch64(t *testing.T) {
	long(t)
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "sh")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	library, exe := filepath.Join(dir, "libchosen.so"), filepath.Join(dir, "subject")
	oracle.Run(t, "aarch64-linux-gnu-gcc", "-O1", "-g", "-fPIC", "-shared", "-o", library, write("chosen.c", `
static int chosen(void) { return 1; }
static int (*choose(void))(void) { *(volatile int *)8 = 1; return chosen; }
int choice(void) __attribute__((ifunc("choose")));
`))
	oracle.Run(t, "aarch64-linux-gnu-gcc", "-O1", "-g", "-Wl,-z,lazy,-rpath,"+dir, "-o", exe, write("subject.c", `
int choice(void);
__attribute__((noinline, noclone)) int step(int left) { volatile char room[64]; room[left] = 1; return (left ? step(left - 1) : choice()) + room[left]; }
int main(void) { return step(2); }
`), library)
	got := stackJSON(t, aarch64Core(t, dir, ""), "--sysroot", aarch64Root, "--exe", exe)
	names := []string{}
	for _, f := range got.Threads[0].Frames {
		if f.Function != "" {
			names = append(names, f.Function)
		}
	}
	if want := []string{"choose", "step", "step", "step", "main", "__libc_start_main", "_start"}; !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
}
