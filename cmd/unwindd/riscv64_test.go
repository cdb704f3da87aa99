// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/internal/oracle"
)

const riscv64Root = "/usr/riscv64-linux-gnu"

// TestStacksOfRISCVAreGDBs has programs of RISC-V crash under qemu, and walks them by the
// plugin of examples/arch-riscv64, in its own process, as gdb does.
func TestStacksOfRISCVAreGDBs(t *testing.T) {
	long(t)
	oracle.Tools(t, "riscv64-linux-gnu-gcc", "riscv64-linux-gnu-g++", "qemu-riscv64", "gdb-multiarch")
	plugins := installVendor(t, "arch-riscv64")
	for _, c := range []struct {
		name, compiler, source string
		flags                  []string
		threads, frames        int  // frames of the thread that crashed, at least
		further                bool // than gdb, which says that a frame did not save the PC
	}{
		{"static", "gcc", "riscv64.c", []string{"-O2", "-g", "-static"}, 1, 9, false},
		{"frame pointers", "gcc", "riscv64.c", []string{"-O1", "-g", "-static", "-fno-omit-frame-pointer"}, 1, 9, false},
		{"without call frame information", "gcc", "riscv64.c", []string{"-O2", "-static", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"}, 1, 9, true},
		{"C++ with threads", "g++", "riscv64.cc", []string{"-O2", "-g", "-pthread"}, 4, 12, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			exe, socket := filepath.Join(dir, "subject"), filepath.Join(dir, "gdb")
			oracle.Run(t, "riscv64-linux-gnu-"+c.compiler, append(c.flags, "-o", exe, filepath.Join("testdata", "subjects", c.source))...)
			qemu := exec.Command("qemu-riscv64", "-L", riscv64Root, "-g", socket, exe)
			if err := qemu.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { qemu.Process.Kill(); qemu.Wait() }()
			for range 600 {
				if _, err := os.Stat(socket); err == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			path, want := gdbSnapshot(t, "gdb-multiarch", "-iex", "set sysroot "+riscv64Root, "-ex", "file "+exe, "-ex", "target remote "+socket, "-ex", "continue")
			got := stackJSON(t, path, "--plugin-dir", plugins)
			if len(got.Threads) != c.threads || len(want) != c.threads || len(got.Target.Problems) > 0 {
				t.Errorf("%d threads, gdb has %d, expected %d; problems %q", len(got.Threads), len(want), c.threads, got.Target.Problems)
			}
			for i := range got.Threads {
				th := &got.Threads[i]
				pcs := []string{}
				for _, f := range th.Frames {
					if !f.Inlined && !code.FoundBy(f.FoundBy).IsGuess() {
						pcs = append(pcs, f.PC)
					}
				}
				isShort := i == 0 && len(pcs) < c.frames
				if last := len(want[th.ID]); c.further && last < len(pcs) {
					pcs = pcs[:last]
				}
				if diff := cmp.Diff(want[th.ID], pcs); diff != "" || isShort {
					t.Errorf("thread %s (-gdb +unwindd), stopped %s: %s\n%s", th.ID, th.Stopped.Reason, th.Stopped.Detail, diff)
				}
			}
		})
	}
}
