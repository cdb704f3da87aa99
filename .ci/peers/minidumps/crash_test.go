// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// A crash is what two runs of a program left. LLDB stopped the first at the signal, had
// it written as two minidumps, and let it end in a core, of which core2md made a third.
// In the second Breakpad's handler wrote one before the kernel wrote the core.
type crash struct {
	program string // the executable
	runs    []run
}

// A run is the core of a crash, and minidumps of the same one.
type run struct {
	core  string
	dumps []string
}

// lldbKeepsProc is a command of LLDB's: it copies what core2md reads of a process beside
// its core.
const lldbKeepsProc = `script import os; [open('proc/'+n,'wb').write(open('/proc/%d/%s'%(lldb.process.GetProcessID(),n),'rb').read()) for n in ('maps','auxv','cmdline','environ','status')]`

// take runs a program until it has crashed.
func (p *program) take(t testing.TB) *crash {
	t.Helper()
	c := &crash{program: p.build(t)}
	c.runs = append(c.runs, underLLDB(t, runFolder(t, p.name, "lldb"), c.program))
	if !p.isSealed {
		c.runs = append(c.runs, withHandler(t, runFolder(t, p.name, "handler"), c.program))
	}
	return c
}

// runFolder is an empty folder for a run: beneath the one that MINIDUMPS_CRASHES names,
// which is kept, else a temporary one.
func runFolder(t testing.TB, program, name string) string {
	t.Helper()
	kept := os.Getenv("MINIDUMPS_CRASHES")
	if kept == "" {
		return t.TempDir()
	}
	dir := filepath.Join(kept, program, name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// underLLDB is the first run.
func underLLDB(t testing.TB, dir, program string) run {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "proc"), 0o700); err != nil {
		t.Fatal(err)
	}
	argv := []string{oracle.Tool(t, "lldb-22"), "-x", "-b", "-o", "settings set target.disable-aslr false",
		"-o", "process launch -s", "-o", "process handle -s false -n false SIGUSR1", "-o", "continue"}
	for _, command := range []string{
		"process save-core --plugin-name=minidump --style=stack lldb-stack.dmp",
		"process save-core --plugin-name=minidump --style=full lldb-full.dmp",
		lldbKeepsProc, "process handle -s false SIGSEGV", "continue", // a handler may return to the instruction
	} {
		argv = append(argv, "-k", command)
	}
	core, said := leaveCore(t, dir, nil, append(argv, program)...)
	r := run{core: core, dumps: []string{filepath.Join(dir, "core2md.dmp")}}
	oracle.With{Dir: dir}.Run(t, filepath.Join(breakpadTools(t), "core2md"), core, "proc", "core2md.dmp")
	for _, style := range []string{"stack", "full"} {
		path := filepath.Join(dir, "lldb-"+style+".dmp")
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		r.dumps = append(r.dumps, path)
	}
	return r
}

// withHandler is the second run.
func withHandler(t testing.TB, dir, program string, args ...string) run {
	t.Helper()
	env := []string{"MINIDUMPS=" + dir, "LD_PRELOAD=" + filepath.Join(breakpadTools(t), "libwriter.so")}
	core, said := leaveCore(t, dir, env, append([]string{program}, args...)...)
	dumps, _ := filepath.Glob(filepath.Join(dir, "*.dmp"))
	if len(dumps) != 1 {
		t.Fatalf("the handler left %d dumps\n%s", len(dumps), said)
	}
	to := filepath.Join(dir, "handler.dmp")
	if err := os.Rename(dumps[0], to); err != nil {
		t.Fatal(err)
	}
	return run{core, []string{to}}
}

// leaveCore runs a command in a folder. What it starts, or it itself, crashes and leaves
// a core there.
func leaveCore(t testing.TB, dir string, env []string, argv ...string) (core, said string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `ulimit -c unlimited; exec env $VARIABLES "$@"`, "sh")
	cmd.Args = append(cmd.Args, argv...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "VARIABLES="+strings.Join(env, " "))
	out, err := cmd.CombinedOutput() // the program ends by a signal
	found, _ := filepath.Glob(filepath.Join(dir, "core*"))
	said = fmt.Sprintf("%v\n%s", err, out)
	if len(found) != 1 {
		oracle.Missing(t, "%d files core* (is /proc/sys/kernel/core_pattern `core`?): %s", len(found), said)
	}
	return found[0], said
}
