// SPDX-License-Identifier: Apache-2.0

// Command php compares the frames of PHP that unwindd finds with PHP's own traces: programs write the
// trace of an exception that they make, and sleep; their stacks are taken while they live, of their
// core and of its snapshot. Functions, files and lines must be equal. The executables are Debian's
// and npm's, of five versions.
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

//go:embed programs
var programs embed.FS

func main() {
	only := flag.String("only", "", "compare the programs and builds alone whose names have `TEXT`")
	samples := flag.Int("samples", 0, "take `N` stacks of a program while it executes, in place of the programs that sleep")
	verbose := flag.Bool("v", false, "print what differs")
	flag.Parse()
	cost.Exit("php", run(*only, *samples, *verbose))
}

// frame is a frame of PHP.
type frame struct{ Function, File, Line string }

func (f frame) String() string { return fmt.Sprintf("%s %s:%s", f.Function, f.File, f.Line) }

// count is how many programs agree.
type count struct {
	programs, equal, differ, missing, frames int
}

// comparison compares programs.
type comparison struct {
	unwindd, dir string
	verbose      bool
	counts       map[string]*count // by build and kind of target
	order        []string
}

func run(only string, samples int, verbose bool) error {
	dir, err := os.MkdirTemp("", "php-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd, err := cost.Unwindd("PHP_UNWINDD", dir)
	if err != nil {
		return err
	}
	list, err := builds()
	if err != nil {
		return err
	}
	files, err := fs.Glob(programs, "programs/*")
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		text, err := programs.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), text, 0o644); err != nil {
			return err
		}
		if strings.HasSuffix(f, ".php") {
			names = append(names, filepath.Base(f))
		}
	}
	c := &comparison{unwindd: unwindd, dir: dir, verbose: verbose, counts: map[string]*count{}}
	for i := range list {
		b := &list[i]
		for _, mode := range modes(b) {
			if samples > 0 {
				if !strings.Contains(b.name+" "+b.version+" "+mode.name+" ", only) {
					continue
				}
				if err := c.sample(b, mode, samples); err != nil {
					return fmt.Errorf("%s: %w", b.name, err)
				}
				continue
			}
			for _, name := range names {
				if !strings.Contains(b.name+" "+b.version+" "+mode.name+" "+name, only) || needs(filepath.Join(dir, name)) > b.version {
					continue
				}
				if err := c.program(b, mode, name); err != nil {
					return fmt.Errorf("%s %s: %w", b.name, name, err)
				}
			}
		}
	}
	return c.print()
}

// mode is how PHP executes a program.
type mode struct {
	name  string
	flags []string
}

// modes returns the modes that a build has.
func modes(b *build) []mode {
	list := []mode{{name: ""}}
	if b.opcache == "" && b.version < "8.5" {
		return list
	}
	var load []string
	if b.opcache != "" {
		load = []string{"-d", "zend_extension=" + b.opcache}
	}
	load = append(load, "-d", "opcache.enable_cli=1")
	list = append(list, mode{"opcache", load})
	if b.version >= "8.0" {
		for _, kind := range []string{"function", "tracing"} {
			jit := append(slices.Clone(load), "-d", "opcache.jit_buffer_size=16M", "-d", "opcache.jit="+kind, "-d", "opcache.jit_hot_func=2", "-d", "opcache.jit_hot_loop=2")
			list = append(list, mode{"JIT " + kind, jit})
		}
	}
	return list
}

// needs returns the version that a program needs, of its line "// needs 8.1".
func needs(path string) string {
	text, _ := os.ReadFile(path)
	_, rest, has := strings.Cut(string(text), "// needs ")
	if !has {
		return ""
	}
	version, _, _ := strings.Cut(rest, "\n")
	return version
}

// program compares one program.
func (c *comparison) program(b *build, m mode, name string) error {
	trace := filepath.Join(c.dir, "trace")
	_ = os.Remove(trace)
	_ = os.Remove(filepath.Join(c.dir, "core"))
	args := slices.Concat(b.command, m.flags, []string{"-d", "zend.exception_ignore_args=1", "-d", "display_errors=stderr", name})
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -c unlimited; exec "$@"`, "sh"}, args...)...)
	cmd.Dir, cmd.Env = c.dir, append([]string{"TRACE=" + trace, "TZ=UTC"}, b.env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	title := strings.TrimSpace(b.version + " " + b.name + " " + m.name)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	want, err := waitFor(trace, ended)
	if err != nil {
		fmt.Printf("%s, %s: %v: %s\n", title, name, err, said.Bytes())
		_ = cmd.Process.Kill()
		c.of(title+"\tnot reached").programs++
		return nil
	}
	time.Sleep(30 * time.Millisecond) // until it sleeps
	c.compare(title, "living", name, want, strconv.Itoa(cmd.Process.Pid))
	_ = cmd.Process.Signal(syscall.SIGABRT)
	<-ended
	cores, _ := filepath.Glob(filepath.Join(c.dir, "core*"))
	if len(cores) != 1 {
		return fmt.Errorf("%d cores, expected one: kernel.core_pattern has to be core", len(cores))
	}
	c.compare(title, "core", name, want, cores[0])
	snapshot := filepath.Join(c.dir, "taken.snapshot")
	if out, err := exec.Command(c.unwindd, "snapshot", cores[0], "-o", snapshot).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	c.compare(title, "snapshot", name, want, snapshot)
	return os.Remove(snapshot)
}

// waitFor waits for a program's trace.
func waitFor(trace string, ended <-chan error) ([]frame, error) {
	for range 2000 {
		if text, err := os.ReadFile(trace); err == nil {
			var list []frame
			for line := range strings.Lines(string(text)) {
				fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				if len(fields) != 3 {
					return nil, fmt.Errorf("its trace has %q", line)
				}
				if before, rest, is := strings.Cut(fields[0], "\x00"); is { // an anonymous class has its file in its name
					_, method, _ := strings.Cut(rest, "->")
					fields[0] = before + "->" + method
				}
				list = append(list, frame{fields[0], fields[1], fields[2]})
			}
			return list, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("it ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("it did not get there")
}

func (c *comparison) of(key string) *count {
	if c.counts[key] == nil {
		c.counts[key] = &count{}
		c.order = append(c.order, key)
	}
	return c.counts[key]
}

// compare compares the frames of a target with those that PHP wrote.
func (c *comparison) compare(title, kind, name string, want []frame, target string) {
	n := c.of(title + "\t" + kind)
	n.programs++
	got, problems, err := c.frames(target)
	if err == nil && len(got) > 0 && got[0].Function == "sleep" {
		got = got[1:]
	}
	n.frames += len(want)
	switch {
	case err != nil || len(got) == 0:
		n.missing++
	case slices.Equal(got, want) && len(problems) == 0:
		n.equal++
		return
	default:
		n.differ++
	}
	if c.verbose {
		fmt.Printf("%s, %s, %s: %v %s\n", title, kind, name, err, strings.Join(problems, "; "))
		for i := range max(len(got), len(want)) {
			var g, w frame
			if i < len(got) {
				g = got[i]
			}
			if i < len(want) {
				w = want[i]
			}
			if g != w {
				fmt.Printf("  %d: unwindd: %v   PHP: %v\n", i, g, w)
				break
			}
		}
	}
}

// frames returns the frames of PHP of a target, and what unwindd says was wrong.
func (c *comparison) frames(target string) (list []frame, problems []string, err error) {
	out, err := exec.Command(c.unwindd, "stack", target, "--format", "json", "--max-frames", "65536").Output()
	if err != nil {
		return nil, nil, err
	}
	var report struct {
		Target  struct{ Problems []string }
		Threads []struct {
			Frames []struct {
				Managed        *struct{ Runtime string }
				Function, File string
				Line           int
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, nil, err
	}
	for _, t := range report.Threads {
		for _, f := range t.Frames {
			if f.Managed != nil && f.Managed.Runtime == "php" {
				list = append(list, frame{f.Function, f.File, strconv.Itoa(f.Line)})
			}
		}
	}
	return list, report.Target.Problems, nil
}

// print writes the counts. Programs that differ are an error.
func (c *comparison) print() error {
	bad := 0
	fmt.Println("| PHP | target | programs | equal | differ | missing | frames |\n|---|---|---|---|---|---|---|")
	for _, key := range c.order {
		n := c.counts[key]
		build, kind, _ := strings.Cut(key, "\t")
		fmt.Printf("| %s | %s | %d | %d | %d | %d | %d |\n", build, kind, n.programs, n.equal, n.differ, n.missing, n.frames)
		bad += n.programs - n.equal
	}
	if bad > 0 {
		return fmt.Errorf("%d are not equal", bad)
	}
	return nil
}
