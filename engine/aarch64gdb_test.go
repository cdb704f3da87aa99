// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// An emulated machine is one whose programs qemu runs.
type emulated struct{ machine, cpu, root string }

// qemuSnapshot runs a program under qemu until a signal stops it, has gdb write a snapshot
// of it, and returns that with the PCs of gdb's frames by thread. gdb is told more before
// the program runs, and once it has stopped.
func (m emulated) qemuSnapshot(t *testing.T, before, after []string, command ...string) (path string, pcs map[string][]string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "gdb")
	qemu := exec.Command("qemu-"+m.machine, append([]string{"-cpu", m.cpu, "-L", m.root, "-g", socket}, command...)...)
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { qemu.Process.Kill(); qemu.Wait() })
	for range 600 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	args := slices.Concat([]string{"-iex", "set sysroot " + m.root}, before,
		[]string{"-ex", "file " + command[0], "-ex", "target remote " + socket, "-ex", "continue"}, after)
	return gdbSnapshot(t, "gdb-multiarch", args...)
}

// TestStacksOfAArch64AreGDBs stops programs of AArch64 under qemu by a signal, and walks
// snapshots of them by the bundled plugin as gdb walks the process. The processor has no
// SVE and no pointer authentication: gdb 13 is told neither by qemu's stub, and stops at
// signal frames and signed addresses.
func TestStacksOfAArch64AreGDBs(t *testing.T) {
	t.Parallel()
	long(t)
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64", "gdb-multiarch")
	pass := []string{"-ex", "handle SIGUSR1 nostop noprint pass"}
	for _, c := range []struct {
		name, compiler, source string
		flags                  []string
		args                   []string
		gdb                    []string
		threads, frames        int  // frames of the thread that crashed, at least
		further                bool // than gdb
	}{
		{"C", "gcc", "aarch64crash.c", []string{"-O2", "-g"}, []string{"data"}, nil, 1, 7, false},
		{"static", "gcc", "aarch64crash.c", []string{"-O2", "-g", "-static"}, []string{"data"}, nil, 1, 7, false},
		{"null call", "gcc", "aarch64crash.c", []string{"-O1", "-g"}, []string{"call"}, nil, 1, 8, true},
		{"without call frame information", "gcc", "aarch64crash.c", []string{"-O2", "-static", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"}, []string{"data"}, nil, 1, 7, true},
		{"C++ with threads", "g++", "riscv64.cc", []string{"-O2", "-g", "-pthread"}, nil, nil, 4, 12, false},
		{"C++ with threads, static", "g++", "riscv64.cc", []string{"-O1", "-static", "-pthread"}, nil, nil, 4, 12, false},
		{"signal frame", "gcc", "aarch64signal.c", []string{"-O2", "-g"}, nil, pass, 1, 12, false},
		{"signal frame, static", "gcc", "aarch64signal.c", []string{"-O1", "-g", "-static"}, nil, pass, 1, 12, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exe := filepath.Join(t.TempDir(), "subject")
			oracle.Run(t, "aarch64-linux-gnu-"+c.compiler, append(c.flags, "-o", exe, subject.Source(t, c.source))...)
			path, want := emulated{"aarch64", "cortex-a72", aarch64Root}.qemuSnapshot(t, c.gdb, nil, append([]string{exe}, c.args...)...)
			got := enginetest.Report(t, path)
			if len(got.Threads) != c.threads || len(want) != c.threads || len(got.Target.Problems) > 0 {
				t.Errorf("%d threads, gdb has %d, expected %d; problems %q", len(got.Threads), len(want), c.threads, got.Target.Problems)
			}
			for i := range got.Threads {
				th := &got.Threads[i]
				pcs := []string{}
				for _, f := range th.Frames {
					// What a call through a null pointer left in the link register is a guess.
					if !f.Inlined && (!trace.FoundBy(f.FoundBy).IsGuess() || th.Frames[0].PC == "0x0") {
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
