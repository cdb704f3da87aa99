// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// i386Options are the ways in which the programs are compiled.
var i386Options = [][]string{
	{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"}, {"-O2", "-fno-omit-frame-pointer"}, {"-O2", "-no-pie", "-fno-pic"}, {"-O2", "-mstackrealign"},
	{"-O2", "-maccumulate-outgoing-args"}, {"-O0", "-fno-asynchronous-unwind-tables"}, {"-O2", "-mpreferred-stack-boundary=2"},
}

// i386Backtrace has gdb run a program until it fails, print the PCs of all threads, and write a core.
const i386Backtrace = `
import gdb
for t in gdb.selected_inferior().threads():
    t.switch()
    f, pcs = gdb.newest_frame(), []
    while f is not None:
        if f.type() != gdb.INLINE_FRAME:
            pcs.append('%x' % f.pc())
        f = f.older()
    print('THREAD', t.ptid[1], ' '.join(pcs))
`

// Every frame that gdb finds in programs of 32-bit x86, by call frame information and by what it knows
// of prologues, is there.
func TestStacksOfI386AreThoseOfGDB(t *testing.T) {
	oracle.Tools(t, "gcc", "gdb")
	dir := t.TempDir()
	script := filepath.Join(dir, "bt.py")
	if err := os.WriteFile(script, []byte(i386Backtrace), 0o600); err != nil {
		t.Fatal(err)
	}
	count := 0
	for n, options := range i386Options {
		program := filepath.Join(dir, "p"+strconv.Itoa(n))
		args := append([]string{"-m32", "-g", "-w", "-o", program, filepath.Join("testdata", "i386", "crash.c"), "-pthread"}, options...)
		args = append(args, strings.Fields(os.Getenv("UNWINDD_I386_GCC"))...)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			oracle.Missing(t, "gcc makes no 32-bit programs (gcc-multilib): %s", out)
		}
		for how := range 8 {
			t.Run(fmt.Sprintf("%s %d", strings.Join(options, " "), how), func(t *testing.T) {
				core := program + "." + strconv.Itoa(how)
				out := oracle.Run(t, "gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "set backtrace past-main on", "-ex", "handle SIGUSR1 nostop noprint pass",
					"-ex", "run", "-ex", "source "+script, "-ex", "gcore "+core, "-ex", "kill", "--args", program, strconv.Itoa(how))
				count += compareI386(t, core, out)
			})
		}
	}
	if count < 500 {
		t.Errorf("%d frames were compared, expected more", count)
	}
}

// compareI386 holds the stacks of a core against the PCs that gdb printed, and returns how many it printed.
func compareI386(t *testing.T, core, printed string) (count int) {
	t.Helper()
	report := enginetest.Report(t, core)
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "THREAD" {
			continue
		}
		var ours []string
		for _, th := range report.Threads {
			if th.ID != fields[1] {
				continue
			}
			for _, f := range th.Frames {
				if !f.Inlined {
					ours = append(ours, strings.TrimPrefix(f.PC, "0x"))
				}
			}
		}
		want := fields[2:]
		count += len(want)
		if len(ours) < len(want) || strings.Join(ours[:len(want)], " ") != strings.Join(want, " ") {
			t.Errorf("thread %s: %v\nexpected %v", fields[1], ours, want)
		}
	}
	if count == 0 {
		t.Errorf("gdb printed no stack:\n%s", printed)
	}
	return count
}
