// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// comparison is one machine in one mode.
type comparison struct {
	machine
	mode
	unwindd   string
	classes   string // folder of the program
	dir       string // of the run
	isVerbose bool
}

// all compares a process that waits, and one that crashes. It returns how much differs.
func (c *comparison) all() (failed int, err error) {
	for _, name := range []string{"Mix.class", "Mix$Shape.class", "Mix$Square.class", "Mix$Circle.class", "libmix.so"} {
		data, err := os.ReadFile(filepath.Join(c.classes, name))
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o700); err != nil { //nolint:gosec // a library
			return 0, err
		}
	}
	n, err := c.waiting()
	m, crashed := c.crashed()
	return n + m, errors.Join(err, crashed)
}

// java is the command that runs the program.
func (c *comparison) java(args ...string) *exec.Cmd {
	java := filepath.Join(c.home, "bin", "java")
	if c.root != "" {
		java = filepath.Join(c.home, "jre", "bin", "java")
	}
	list := []string{"-Xmx64m", c.option, "-XX:ErrorFile=" + filepath.Join(c.inside(c.dir), "hs_err"), "-XX:CompressedClassSpaceSize=16m", "-cp", c.inside(c.dir), "Mix", c.rounds, filepath.Join(c.inside(c.dir), "libmix.so")}
	return c.inRoot(c.dir, java, append(list, args...)...)
}

// waiting compares a process in which all threads wait with jstack's and jhsdb's traces.
func (c *comparison) waiting() (failed int, err error) {
	cmd := c.java()
	input, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	defer input.Close()
	log := filepath.Join(c.dir, "out")
	file, err := os.Create(log)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		text, _ := os.ReadFile(log)
		if strings.Contains(string(text), "ready") {
			break
		}
		if time.Since(begin) > 3*time.Minute || strings.Contains(string(text), "rror") {
			end(cmd, syscall.SIGKILL)
			return 0, fmt.Errorf("the program is not ready: %s", text)
		}
	}
	trace, err := c.inRoot(c.dir, filepath.Join(c.home, "bin", "jstack"), "-l", fmt.Sprint(cmd.Process.Pid)).CombinedOutput()
	end(cmd, syscall.SIGABRT)
	if err != nil {
		return 0, fmt.Errorf("jstack: %w: %s", err, trace)
	}
	ours, err := c.stacks()
	if err != nil {
		return 0, err
	}
	failed = c.compare("jstack", threadsOf(string(trace)), ours)
	if c.jhsdb == "" {
		return failed, nil
	}
	trace, err = exec.Command(c.jhsdb, "jstack", "--exe", filepath.Join(c.home, "bin", "java"), "--core", c.core()).Output()
	if err != nil {
		return failed, fmt.Errorf("jhsdb: %w: %s", err, trace)
	}
	return failed + c.compare("jhsdb", threadsOf(string(trace)), ours), nil
}

// crashed compares the thread in which a process crashes with the machine's trace.
func (c *comparison) crashed() (failed int, err error) {
	cmd := c.java("crash")
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_ = cmd.Wait()
	text, err := os.ReadFile(filepath.Join(c.dir, "hs_err"))
	if err != nil {
		return 0, err
	}
	theirs, lwp, err := crashOf(string(text))
	if err != nil {
		return 0, err
	}
	ours, err := c.stacks()
	if err != nil {
		return 0, err
	}
	own := ours[lwp]
	own.frames = own.methods
	return c.compare("hs_err", map[string]thread{lwp: {frames: theirs}}, map[string]thread{lwp: own}), nil
}

// thread is a thread with its frames of Java, innermost first.
type thread struct {
	name, state string
	frames      []frame
	methods     []frame // without inlined calls and lines
}

// frame is a frame of Java.
type frame struct {
	method string
	line   int
}

// core is the core of the latest process: in its folder, which is the root where it has one of its own.
func (c *comparison) core() string { return filepath.Join(cmp.Or(c.root, c.dir), "core") }

// stacks are unwindd's stacks of the core, by thread.
func (c *comparison) stacks() (map[string]thread, error) {
	args := []string{"stack", c.core(), "--format", "json"}
	if c.root != "" {
		args = append(args, "--sysroot", c.root)
	}
	out, err := exec.Command(c.unwindd, args...).Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	var stacks struct {
		Target struct {
			Problems []string `json:"problems"`
		} `json:"target"`
		Threads []struct {
			ID       string `json:"id"`
			Runtimes []struct{ Name, State string }
			Frames   []struct {
				Function, File string
				Line           int
				Inlined        bool
				Managed        *struct {
					Kind   string
					Native bool
				}
				BehindManaged bool `json:"behind_managed"`
			} `json:"frames"`
		} `json:"threads"`
	}
	if err := json.Unmarshal(out, &stacks); err != nil {
		return nil, fmt.Errorf("unwindd: %w", err)
	}
	for _, p := range stacks.Target.Problems {
		fmt.Println("     ", p)
	}
	all := map[string]thread{}
	for _, t := range stacks.Threads {
		th := thread{}
		for _, r := range t.Runtimes {
			th.name, th.state = r.Name, r.State
		}
		for _, f := range t.Frames {
			// The interpreter's own code and stubs have no class.
			isJava := f.Inlined && strings.HasSuffix(f.File, ".java") || f.Managed != nil && strings.Contains(f.Function, ".") && !strings.Contains(f.Function, " ")
			if f.BehindManaged || !isJava {
				continue
			}
			th.frames = append(th.frames, frame{plain(f.Function), f.Line})
			if !f.Inlined {
				th.methods = append(th.methods, frame{method: plain(f.Function)})
			}
		}
		all[t.ID] = th
	}
	return all, nil
}

// compare prints a line of the table, and returns how much differs.
func (c *comparison) compare(beside string, theirs, ours map[string]thread) int {
	var frames, equal, differ, names, states int
	for id, t := range theirs {
		own := ours[id]
		frames += len(t.frames)
		for i := range max(len(t.frames), len(own.frames)) {
			if i < len(t.frames) && i < len(own.frames) && t.frames[i] == own.frames[i] {
				equal++
				continue
			}
			differ++
			if c.isVerbose {
				fmt.Printf("      %s %q frame %d of %d and %d: %v, %v\n", id, t.name, i, len(t.frames), len(own.frames), at(t.frames, i), at(own.frames, i))
			}
		}
		if t.name != "" && t.name != own.name {
			names++
		}
		if t.state != "" && t.state != own.state {
			states++
		}
		if c.isVerbose && (t.name != "" && t.name != own.name || t.state != "" && t.state != own.state) {
			fmt.Printf("      %s %q %q, %q %q\n", id, t.name, t.state, own.name, own.state)
		}
	}
	fmt.Printf("%-4s %-12s %-7s %8d %7d %6d %6d %6d %6d\n", c.version, c.mode.name, beside, len(theirs), frames, equal, differ, names, states)
	return differ + names + states
}

func at(list []frame, i int) any {
	if i < len(list) {
		return list[i]
	}
	return "none"
}
