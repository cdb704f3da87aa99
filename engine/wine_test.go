// SPDX-License-Identifier: Apache-2.0

//go:build linux

package engine

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const mingwCXX = "x86_64-w64-mingw32-g++"

// ways are the ways in which testdata/windows/wine.cc waits, with functions that its stack has between others, the
// innermost first: those of the program, and those by which Wine changes from Windows to Unix and back.
var ways = []struct {
	name  string
	stack []string
}{
	{"call", []string{"NtDelayExecution", "__wine_syscall_dispatcher_prolog_end", "NtDelayExecution", "Sleep", "wait_here", "called", "main"}},
	{"windows", []string{
		"wait_here", "called", "procedure", "KiUserCallbackDispatcher", "KeUserModeCallback", "NtUserCreateWindowEx",
		"__wine_syscall_dispatcher_prolog_end", "NtUserCreateWindowEx", "make_window", "procedure", "KiUserCallbackDispatcher", "KeUserModeCallback",
		"__wine_syscall_dispatcher_prolog_end", "make_window", "procedure", "KiUserCallbackDispatcher", "KeUserModeCallback",
		"__wine_syscall_dispatcher_prolog_end", "make_window", "main",
	}},
	{"monitor", []string{"wait_here", "called", "monitor", "KiUserCallbackDispatcher", "KeUserModeCallback", "NtUserEnumDisplayMonitors", "__wine_syscall_dispatcher_prolog_end", "NtUserEnumDisplayMonitors", "main"}},
	{"thread", []string{"wait_here", "called", "thread"}},
	{"apc", []string{"wait_here", "called", "apc", "KiUserApcDispatcher", "NtDelayExecution", "SleepEx", "main"}},
	{"filter", []string{"wait_here", "called", "filter", "UnhandledExceptionFilter", "KiUserExceptionDispatcher", "wait_here", "called", "compare", "qsort", "main"}},
	{"vectored", []string{"wait_here", "called", "filter", "KiUserExceptionDispatcher", "wait_here", "called", "compare", "qsort", "main"}},
	{"unwind", []string{"wait_here", "called", "~Guard", "guarded", "main"}},
}

// TestProgramsOfWindowsUnderWine walks the stacks of living programs, of their minidumps, which another program of
// Windows writes, and of their cores: through system calls, callbacks and exceptions, up to the first function of the
// thread. The return addresses that the program's own functions printed are on the stack, in their order.
func TestProgramsOfWindowsUnderWine(t *testing.T) {
	oracle.Tools(t, mingwCXX, wine)
	source, err := filepath.Abs("testdata/windows")
	if err != nil {
		t.Fatal(err)
	}
	built := oracle.Build{Sources: []string{source}}
	for _, level := range []string{"-O0", "-O2"} {
		built.Commands = append(built.Commands, []string{mingwCXX, "-g", level, "-static", "-o", "wine" + level + ".exe", filepath.Join(source, "wine.cc"), "-ldbghelp"})
	}
	dir, shared := built.Make(t), t.TempDir()
	t.Cleanup(func() { // the server has the prefix open a while longer
		for _, option := range []string{"-k", "-w"} {
			cmd := exec.Command("/usr/lib/wine/wineserver64", option)
			cmd.Env = append(os.Environ(), "WINEPREFIX="+filepath.Join(shared, "prefix"))
			_ = cmd.Run()
		}
	})
	for _, level := range []string{"-O0", "-O2"} {
		for _, way := range ways {
			t.Run(way.name+level, func(t *testing.T) {
				p := &underWine{script: filepath.Join(source, "run.sh"), exe: filepath.Join(dir, "wine"+level+".exe"), dir: shared, stack: way.stack}
				p.start(t, way.name)
				t.Run("living", func(t *testing.T) {
					p.check(t, p.stack, false, func(e *Engine) (*Target, error) { return e.OpenProcess(p.cmd.Process.Pid) })
				})
				for _, kind := range dumpKinds {
					if kind.way != "" && kind.way != way.name {
						continue
					}
					t.Run(kind.name, func(t *testing.T) {
						file := p.dump(t, kind.digits)
						p.check(t, p.ofWindows(), !kind.isWhole, func(e *Engine) (*Target, error) { return e.Open(file) })
					})
				}
				t.Run("core", func(t *testing.T) {
					file := p.core(t)
					defer os.Remove(file)
					p.check(t, p.stack, false, func(e *Engine) (*Target, error) { return e.Open(file) })
				})
			})
		}
	}
}

// dumpKinds are types of minidumps. One that is whole has the memory of the code for Unix, so that nothing is a guess.
var dumpKinds = []struct {
	name, digits string
	isWhole      bool
	way          string // "": every one
}{
	{"MiniDumpNormal", "0", false, ""},
	{"MiniDumpWithIndirectlyReferencedMemory", "40", false, "filter"},
	{"MiniDumpWithThreadInfo and others", "1844", false, "windows"},
	{"MiniDumpWithFullMemory", "2", true, "windows"},
}

// underWine is a program that waits.
type underWine struct {
	script, exe string
	dir         string // has the prefix, which all share
	stack       []string
	cmd         *exec.Cmd
	id          string   // of its process, for Windows
	called      []uint64 // return addresses, the innermost first
}

// start starts the program and waits until it waits.
func (p *underWine) start(t *testing.T, way string) {
	t.Helper()
	p.cmd = exec.Command("sh", p.script, "-", p.exe, way)
	p.cmd.Dir = p.dir
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	end := time.AfterFunc(8*time.Minute, func() { _ = p.cmd.Process.Kill() })
	t.Cleanup(func() {
		end.Stop()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, digits, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if what == "ready" {
			p.id = digits
			time.Sleep(200 * time.Millisecond) // until it is in the system call
			return
		}
		address, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		p.called = slices.Insert(p.called, 0, address)
	}
	t.Fatalf("the program has ended: %v", p.cmd.Wait())
}

// dump lets another program of Windows write a minidump.
func (p *underWine) dump(t *testing.T, kind string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.dmp")
	cmd := exec.Command("sh", p.script, "dump.txt", p.exe, "dump", p.id, "Z:"+file, kind)
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// ofWindows are the functions of the stack that a minidump can have: none of Unix, and none of system calls, of which
// only a guess tells where they were called.
func (p *underWine) ofWindows() (list []string) {
	for _, name := range p.stack {
		if name != "KeUserModeCallback" && !strings.HasPrefix(name, "__wine") && !strings.HasPrefix(name, "Nt") {
			list = append(list, name)
		}
	}
	return list
}

// core lets the kernel write a core. Wine has handlers for the signals of crashes.
func (p *underWine) core(t *testing.T) string {
	t.Helper()
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.TrimSpace(string(pattern)) != "core" {
		oracle.Missing(t, "core_pattern is %q (%v), expected \"core\"", pattern, err)
	}
	if err := exec.Command("prlimit", "--core=unlimited", "--pid", strconv.Itoa(p.cmd.Process.Pid)).Run(); err != nil {
		oracle.Missing(t, "prlimit: %v", err)
	}
	_ = p.cmd.Process.Signal(syscall.SIGXCPU)
	_ = p.cmd.Wait()
	found, _ := filepath.Glob(filepath.Join(p.dir, "core*"))
	if len(found) != 1 {
		oracle.Missing(t, "the process left %d cores: %v", len(found), p.cmd.ProcessState)
	}
	return found[0]
}

// check wants the known functions and the printed return addresses on the stack of the thread that waits in a call
// of the program.
func (p *underWine) check(t *testing.T, want []string, mayGuess bool, open func(*Engine) (*Target, error)) {
	t.Helper()
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, Drives: filepath.Join(p.dir, "prefix/dosdevices")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	target, err := open(e)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	var found *trace.Stack
	for _, th := range target.Threads() {
		s := target.Walk(context.Background(), th)
		if slices.Contains(shortNames(s), "wait_here") {
			found = s
		}
		for _, f := range s.Frames {
			if !mayGuess && (f.FoundBy.IsGuess() || f.RestsOnGuess) {
				t.Errorf("%#x was found by %s", f.PC, f.FoundBy)
			}
		}
	}
	if found == nil {
		t.Fatalf("no thread waits in the program: %d threads", len(target.Threads()))
	}
	names := shortNames(found)
	want = append(slices.Clone(want), "BaseThreadInitThunk", "RtlUserThreadStart")
	if missing := missingFrom(names, want); missing != "" {
		t.Errorf("%s is not on the stack in its place: %q, expected %q among others", missing, names, want)
	}
	if missing := missingFrom(pcsOf(found), p.called); missing != 0 {
		t.Errorf("%#x is not on the stack in its place: %#x, printed %#x", missing, pcsOf(found), p.called)
	}
	if found.Stopped.Reason != trace.StopOutermost {
		t.Errorf("stopped: %v", found.Stopped)
	}
	for _, m := range target.Modules() {
		if m.Problem != "" && (strings.HasSuffix(m.Path, ".dll") || strings.HasSuffix(m.Path, ".exe")) && slices.ContainsFunc(found.Frames, func(f trace.Frame) bool { return f.Module == m }) {
			t.Errorf("%s: %s", m.Path, m.Problem)
		}
	}
}

// missingFrom returns the first of some values that does not come after the others in a list; zero where all do.
func missingFrom[T comparable](list, values []T) (missing T) {
	for _, v := range values {
		i := slices.Index(list, v)
		if i < 0 {
			return v
		}
		list = list[i+1:]
	}
	return missing
}

// shortNames are the functions of a stack without their arguments and classes.
func shortNames(s *trace.Stack) (list []string) {
	for i := range s.Frames {
		for _, symbol := range s.Frames[i].Symbols {
			name, _, _ := strings.Cut(symbol.Function, "(")
			list = append(list, name[strings.LastIndexByte(name, ':')+1:])
		}
	}
	return list
}
