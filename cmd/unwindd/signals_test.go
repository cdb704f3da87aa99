// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/host"
	"github.com/unwindd/unwindd/internal/oracle"
)

// temporaryDir is a directory for temporary files whose path is short enough for
// the sockets of plugins.
func temporaryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "uw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// running is a command that has not ended.
type running struct {
	*exec.Cmd
	temp   string // its directory for temporary files
	stdin  io.WriteCloser
	stdout *os.File // that nobody reads
	stderr *bytes.Buffer
}

// run starts a command that will wait for something.
func startWaiting(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{Cmd: command(args...), temp: temporaryDir(t), stderr: &bytes.Buffer{}}
	r.Env = append(r.Env, "TMPDIR="+r.temp, "XDG_RUNTIME_DIR=")
	r.Cmd.Stderr = r.stderr
	var w *os.File
	var err error
	if r.stdout, w, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	r.Cmd.Stdout = w
	if r.stdin, err = r.StdinPipe(); err == nil {
		// A shell lets what it runs in the background ignore signals, which is
		// inherited, but for those that this process has a handler for.
		handled := make(chan os.Signal, 1)
		signal.Notify(handled, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
		err = r.Start()
		signal.Stop(handled)
	}
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Process.Kill()
		_ = r.Wait()
		r.stdout.Close()
	})
	return r
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come: %s", what)
		}
	}
}

// sleeps says that all threads of the command, and of what it has started, wait for
// something. One that has work to do is runnable, however long it is not executed.
func (r *running) sleeps() bool {
	for todo := []int{r.Process.Pid}; len(todo) > 0; todo = append(todo[1:], children(todo[0])...) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", todo[0]))
		for _, path := range threads {
			stat, _ := os.ReadFile(path)
			if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "S") {
				return false
			}
		}
	}
	return true
}

// ends sends a signal, and checks that the command ends at once and leaves no
// process and no temporary file.
func (r *running) ends(t *testing.T, s syscall.Signal) {
	t.Helper()
	plugins := children(r.Process.Pid)
	if err := r.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	given := time.AfterFunc(patience, func() { _ = r.Process.Kill() })
	_ = r.Wait()
	given.Stop()
	want := exitSignal + int(s)
	switch status := r.ProcessState.Sys().(syscall.WaitStatus); {
	case s == syscall.SIGQUIT:
		if status.ExitStatus() != 2 || !strings.Contains(r.stderr.String(), "goroutine ") {
			t.Errorf("status %d, expected 2 and its goroutines: %.200s", status.ExitStatus(), r.stderr)
		}
	case status.Signaled():
		if status.Signal() != s {
			t.Errorf("killed by %v, expected %v", status.Signal(), s)
		}
	case status.ExitStatus() != want:
		t.Errorf("status %d, expected %d: %s", status.ExitStatus(), want, r.stderr)
	}
	r.leavesNothing(t, plugins)
}

func (r *running) leavesNothing(t *testing.T, plugins []int) {
	t.Helper()
	for _, pid := range plugins {
		eventually(t, "the end of a plugin", func() bool { return hasEnded(pid) })
	}
	if left, _ := os.ReadDir(r.temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// hasEnded says that a process has, whether or not it was waited for.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// hasBegun says that a command has a file open in a folder, which has a name of its own or
// none.
func (r *running) hasBegun(dir string) bool {
	fds := filepath.Join("/proc", strconv.Itoa(r.Process.Pid), "fd")
	files, _ := os.ReadDir(fds)
	for _, f := range files {
		name, _ := os.Readlink(filepath.Join(fds, f.Name()))
		if strings.HasPrefix(name, dir+"/#") || strings.HasPrefix(name, dir+"/.unwindd-") {
			return true
		}
	}
	return false
}

// commandLines are all commands, each with a file of its own.
func commandLines() map[string][]string {
	server, core := filepath.Join(crashDir, "server"), filepath.Join(crashDir, "server.core")
	return map[string][]string{
		"stack":       {"stack", core},
		"snapshot":    {"snapshot", core},
		"profile":     {"profile", wordsRecording},
		"folded":      {"profile", "--format", "folded", "--event", "cpu-clock", wordsRecording},
		"symbolize":   {"symbolize", "--obj", server, "0x401100"},
		"eval":        {"eval", "--arch", "x86_64", "--expr", "lit1"},
		"dump expr":   {"dump", "expr", server},
		"dump hex":    {"dump", "expr", "--arch", "x86_64", "--hex", "31"},
		"dump cfi":    {"dump", "cfi", server},
		"dump rows":   {"dump", "rows", server},
		"dump notes":  {"dump", "notes", server},
		"dump visa":   {"dump", "visa", "../../plugins/visa/stream/testdata/skl-rec-O2-1.dbg"},
		"dump spirv":  {"dump", "spirv", "../../engine/internal/symbol/spirv/testdata/calls.spv"},
		"dump llvmir": {"dump", "llvmir", "../../engine/internal/symbol/llvmir/testdata/inlined.ll"},
		"plugin list": {"plugin", "list"},
		"plugin info": {"plugin", "info", "x86_64"},
	}
}

// TestSignalsEndEveryCommand ends commands that have done their work and wait for
// a reader of what they write.
func TestSignalsEndEveryCommand(t *testing.T) {
	for name, args := range commandLines() {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(name+"/"+s.String(), func(t *testing.T) {
				t.Parallel()
				fifo := filepath.Join(temporaryDir(t), "fifo")
				if err := oracle.Mkfifo(fifo); err != nil {
					t.Fatal(err)
				}
				r := startWaiting(t, append(args, "-o", fifo)...)
				eventually(t, "it waits", r.sleeps)
				r.ends(t, s)
			})
		}
	}
}

// TestSignalsWhileItWaits ends commands in the middle of their work.
func TestSignalsWhileItWaits(t *testing.T) {
	plugins := t.TempDir()
	oddPlugin(t, plugins, "hang")
	core := oddCore(t)
	for _, c := range []struct {
		name string
		args []string
		file bool // what it writes is a file, which it has begun
	}{
		{"a plugin that hangs", []string{"stack", core, "--plugin-dir", plugins}, false},
		{"a snapshot by it", []string{"snapshot", core, "--plugin-dir", plugins}, false},
		{"standard input", []string{"symbolize"}, true},
		{"standard input of a file", []string{"symbolize", "--obj", filepath.Join(crashDir, "server")}, true},
		{"pages", []string{"profile", wordsRecording, "--http", "localhost:0"}, false},
	} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			t.Run(c.name+"/"+s.String(), func(t *testing.T) {
				t.Parallel()
				args := c.args
				old := filepath.Join(t.TempDir(), "old")
				if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
					t.Fatal(err)
				}
				pages := strings.Contains(strings.Join(args, " "), "--http")
				if !pages {
					args = append(args[:len(args):len(args)], "-o", old)
				}
				r := startWaiting(t, args...)
				switch {
				case pages:
					if _, err := r.stdout.Read(make([]byte, 100)); err != nil {
						t.Fatal(err)
					}
				case c.file:
					eventually(t, "the output is begun", func() bool { return r.hasBegun(filepath.Dir(old)) })
				default:
					eventually(t, "the plugin runs", func() bool { return len(children(r.Process.Pid)) > 0 })
				}
				r.ends(t, s)
				if files, _ := os.ReadDir(filepath.Dir(old)); len(files) != 1 {
					t.Errorf("left behind: %v", files)
				}
				if b, _ := os.ReadFile(old); string(b) != "old" {
					t.Errorf("the old file is %q", b)
				}
			})
		}
	}
}

// withoutNames is a folder of a file system that can have files without a name.
func withoutNames(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := host.Nameless(dir, "", 0o600)
	if err != nil {
		oracle.Missing(t, "a file system with O_TMPFILE: %v", err)
	}
	f.Close()
	return dir
}

// TestKilledCommandsLeaveNoFile: SIGKILL leaves nothing of an output that was begun, and
// what is there stays.
func TestKilledCommandsLeaveNoFile(t *testing.T) {
	for _, before := range [][]string{nil, {"out"}} {
		dir := withoutNames(t)
		out := filepath.Join(dir, "out")
		for range before {
			if err := os.WriteFile(out, []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r := startWaiting(t, "symbolize", "--obj", filepath.Join(crashDir, "server"), "-o", out)
		eventually(t, "the output is begun", func() bool { return r.hasBegun(dir) })
		_ = r.Process.Kill()
		_ = r.Wait()
		onlyFiles(t, dir, before...)
		if b, _ := os.ReadFile(out); len(before) > 0 && string(b) != "old" {
			t.Errorf("the old file is %q", b)
		}
	}
}

// TestKilledSnapshotsAreWholeOrAbsent kills commands in the moments in which they write.
func TestKilledSnapshotsAreWholeOrAbsent(t *testing.T) {
	dir := withoutNames(t)
	out := filepath.Join(dir, "out")
	args := []string{"snapshot", filepath.Join(crashDir, "server.core"), "-o", out}
	if _, stderr, status := unwindd(t, args...); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	whole := readAll(t, out)
	caught := 0
	const runs = 10
	for i := range runs {
		_ = os.Remove(out)
		r := startWaiting(t, args...)
		for !hasEnded(r.Process.Pid) {
			if r.hasBegun(dir) {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				caught++
				break
			}
		}
		_ = r.Process.Kill()
		_ = r.Wait()
		b, err := os.ReadFile(out)
		if err != nil {
			onlyFiles(t, dir)
			continue
		}
		onlyFiles(t, dir, "out")
		if !bytes.Equal(b, whole) {
			t.Errorf("%d bytes, expected the %d of a run that was not killed", len(b), len(whole))
		}
	}
	t.Logf("%d of %d were killed when they had begun to write", caught, runs)
}

// TestNohup: a signal that the command was started to ignore does not end it.
func TestNohup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap "" HUP; exec "$0" symbolize --obj "$1"`, self, filepath.Join(crashDir, "server"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	ask := func() {
		if _, err := io.WriteString(stdin, "0x401100\n"); err != nil {
			t.Fatal(err)
		}
		if n, err := out.Read(make([]byte, 1000)); n == 0 {
			t.Fatal(err)
		}
	}
	ask()
	_ = cmd.Process.Signal(syscall.SIGHUP)
	ask()
	stdin.Close()
	_, _ = io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestBrokenPipe: a command whose reader has gone ends as others do, and leaves
// nothing.
func TestBrokenPipe(t *testing.T) {
	plugins := t.TempDir()
	oddPlugin(t, plugins, "good")
	r := startWaiting(t, "stack", oddCore(t), "--plugin-dir", plugins)
	r.stdout.Close()
	eventually(t, "the plugin runs", func() bool { return len(children(r.Process.Pid)) > 0 })
	pids := children(r.Process.Pid)
	_ = r.Wait()
	if status := r.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGPIPE {
		t.Errorf("%v, expected SIGPIPE: %s", r.ProcessState, r.stderr)
	}
	r.leavesNothing(t, pids)
}
