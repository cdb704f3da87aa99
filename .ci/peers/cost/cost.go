// SPDX-License-Identifier: Apache-2.0

// Package cost has what the programs share that run unwindd and its peers in turn and
// compare what they cost.
package cost

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Run runs a command in a folder. Its output is part of the error where it fails.
func Run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// Build builds the command, and what it starts plugins with, in a folder, as `make build` does,
// and returns its path. The programs run in the folder of this module. Tags are build tags.
func Build(dir string, tags ...string) (unwindd string, err error) {
	return BuildFrom("../..", dir, tags...)
}

// BuildFrom is Build for a checkout in another folder.
func BuildFrom(sources, dir string, tags ...string) (unwindd string, err error) {
	unwindd = filepath.Join(dir, "unwindd")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-tags", strings.Join(tags, ","), "-o", dir, "./cmd/...")
	cmd.Dir = sources
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return unwindd, nil
}

// Folder is the folder that somebody keeps, else one that remove removes.
func Folder(kept, pattern string) (dir string, remove func(), err error) {
	if kept != "" {
		dir, err = filepath.Abs(kept)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		return dir, func() {}, err
	}
	dir, err = os.MkdirTemp("", pattern)
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// Unwindd is the executable that a variable names, else one that is built in a folder.
func Unwindd(variable, dir string, tags ...string) (path string, err error) {
	if path = os.Getenv(variable); path != "" {
		return path, nil
	}
	return Build(dir, tags...)
}

// BuildID reads the build ID of an ELF file.
func BuildID(path string) ([]byte, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := f.Section(".note.gnu.build-id")
	if s == nil {
		return nil, fmt.Errorf("%s: it has no build ID", path)
	}
	note, err := s.Data()
	if err != nil || len(note) < 17 {
		return nil, fmt.Errorf("%s: the note of its build ID has %d bytes: %w", path, len(note), err)
	}
	return note[16:], nil
}

// Exit ends a program that failed.
func Exit(program string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, program+":", err)
		os.Exit(1)
	}
}

// Cost is the time and the memory of a run.
type Cost struct {
	Wall, CPU time.Duration // CPU: of the children that ended, too
	Own, All  int64         // KiB of memory: without and with the pages of mapped files
}

// Command is the command that is measured.
type Command struct {
	Argv  []string
	Stdin string        // the file that is its standard input; "": none
	Said  io.Writer     // its standard error; nil: nowhere
	Limit time.Duration // of the processors, behind which it is killed; 0: none
}

// Of runs a command. Memory is the largest that the kernel shows while it runs (RssAnon,
// and VmHWM in /proc/PID/status), added up over the command and its children. The error
// is an *exec.ExitError where the command failed; the measurements are there then, too.
func (c *Command) Of(out io.Writer) (*Cost, error) {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, c.Said
	if c.Stdin != "" {
		in, err := os.Open(c.Stdin)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		cmd.Stdin = in
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	took := &Cost{}
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		c.watch(cmd.Process, took, done)
	}()
	err := cmd.Wait()
	took.Wall = time.Since(began)
	close(done)
	<-watched
	took.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return took, err
}

// watch looks at memory and at the limit until the process is done.
func (c *Command) watch(p *os.Process, took *Cost, done <-chan struct{}) {
	for began := time.Now(); ; {
		select {
		case <-done:
			return
		case <-time.After(min(max(time.Since(began)/20, time.Millisecond), 10*time.Millisecond)):
		}
		own, all := memory(p.Pid)
		took.Own, took.All = max(took.Own, own), max(took.All, all)
		if c.Limit > 0 && processor(p.Pid) > c.Limit {
			_ = p.Kill() // it may have ended
		}
	}
}

// memory returns the memory of a process and its children, 0 where they have ended.
func memory(pid int) (own, all int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	own, all = kib(text, "RssAnon:"), kib(text, "VmHWM:")
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			var n int
			if _, err := fmt.Sscan(child, &n); err == nil {
				o, a := memory(n)
				own, all = own+o, all+a
			}
		}
	}
	return own, all
}

// tick is the unit of times in /proc/PID/stat (USER_HZ, proc_pid_stat(5)).
const tick = time.Second / 100

// processor is the time that a process took of the processors up to now.
func processor(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0 // it has ended
	}
	var user, system int64
	_, _ = fmt.Sscan(fields[11], &user)
	_, _ = fmt.Sscan(fields[12], &system)
	return time.Duration(user+system) * tick
}

// Of runs a command without its output, as Command.Of does.
func Of(argv []string) (*Cost, error) {
	took, err := (&Command{Argv: argv}).Of(nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return took, nil
}

// Best is the least time and the most memory of two runs, of which the other may be nil.
func (c *Cost) Best(other *Cost) *Cost {
	if other == nil {
		return c
	}
	return &Cost{min(c.Wall, other.Wall), min(c.CPU, other.CPU), max(c.Own, other.Own), max(c.All, other.All)}
}

// kib is a number of /proc/PID/status; 0 where it has none.
func kib(status []byte, name string) (n int64) {
	if _, rest, ok := strings.Cut(string(status), "\n"+name); ok {
		// Text that is not a number is 0.
		_, _ = fmt.Sscan(rest, &n)
	}
	return n
}
