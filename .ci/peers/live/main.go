// SPDX-License-Identifier: Apache-2.0

// Command live takes the stacks of live programs that Debian ships by unwindd, by gdb and
// by eu-stack, and compares them, PC by PC, thread by thread. One that moved is looked at
// again. Before that it takes the stacks of processes that start, execute and end, and
// kills unwindd while it copies: no process may be left stopped. It needs to be allowed
// to stop processes.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
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

func main() {
	count := flag.Int("n", 200, "compare `N` processes")
	verbose := flag.Bool("v", false, "print the stacks that differ")
	starts := flag.Int("starts", 1000, "take the stacks of `N` processes that start and end")
	killed := flag.Int("kills", 200, "kill unwindd `N` times while it stops a process")
	flag.Parse()
	if err := run(*count, *starts, *killed, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

// stacks are the PCs of threads, innermost first.
type stacks map[string][]uint64

func run(count, starts, killed int, verbose bool) error {
	dir, err := os.MkdirTemp("", "live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd, err := cost.Unwindd("LIVE_UNWINDD", dir)
	if err != nil {
		return err
	}
	if err := churn(unwindd, starts); err != nil {
		return err
	}
	if err := kills(unwindd, killed); err != nil {
		return err
	}
	c := &comparison{unwindd: unwindd, verbose: verbose, classes: map[string]int{}}
	for _, p := range programs(dir, count) {
		if c.processes == count {
			break
		}
		if err := c.compareProgram(&p); err != nil {
			fmt.Printf("left out: %s: %v\n", strings.Join(p.argv, " "), err)
		}
	}
	fmt.Printf("%d processes, %d threads, %d frames\n", c.processes, c.threads, c.frames)
	for _, name := range slices.Sorted(mapKeys(c.classes)) {
		fmt.Printf("%6d %s\n", c.classes[name], name)
	}
	return nil
}

func mapKeys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

type comparison struct {
	unwindd                    string
	verbose                    bool
	processes, threads, frames int
	classes                    map[string]int
}

// compareProgram starts a program and compares its stacks, and its children's.
func (c *comparison) compareProgram(p *program) error {
	argv := p.argv
	if p.pty {
		argv = []string{"script", "-qc", strings.Join(argv, " "), "/dev/null"}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = os.TempDir() // some of the programs write beside themselves
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.input || p.pty {
		if _, err := cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		for _, pid := range descendants(cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait()
	}()
	time.Sleep(1500 * time.Millisecond)
	list := append([]int{cmd.Process.Pid}, descendants(cmd.Process.Pid)...)
	if p.pty {
		list = list[1:]
	}
	if state := state(cmd.Process.Pid); state == "" || state == "Z" {
		return fmt.Errorf("it has ended")
	}
	for _, pid := range list {
		if err := c.compareProcess(pid, strings.Join(p.argv, " ")); err != nil {
			return err
		}
	}
	return nil
}

// state is the state of a process as /proc says it; "": there is none.
func state(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(data), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

func descendants(pid int) (list []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range tasks {
		data, _ := os.ReadFile(path)
		for _, word := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(append(list, child), descendants(child)...)
			}
		}
	}
	return list
}

// compareProcess compares a process. Where a thread moves between one and the other, all
// are requested again.
func (c *comparison) compareProcess(pid int, name string) error {
	var ours, gdb, eu stacks
	var tails map[uint64]bool
	for range 3 {
		var err error
		if ours, tails, err = c.ours(pid); err != nil {
			return err
		}
		if gdb, err = ofGDB(pid); err != nil {
			return err
		}
		if eu, err = ofEUStack(pid); err != nil {
			return err
		}
		if slices.Equal(keys(ours), keys(gdb)) && isEqual(ours, gdb) && isEqual(ours, eu) {
			break
		}
	}
	if s := state(pid); s == "t" || s == "T" {
		return fmt.Errorf("process %d is left in state %s", pid, s)
	}
	c.processes++
	for _, id := range keys(ours) {
		c.threads++
		c.frames += len(ours[id])
		class := "equal"
		byGDB, byEU := slices.Equal(ours[id], gdb[id]), slices.Equal(ours[id], eu[id])
		switch {
		case !byGDB && !byEU && slices.Equal(gdb[id], eu[id]):
			class = "differs from both, which are equal: " + difference(ours[id], gdb[id])
		case !byGDB && !byEU:
			class = "all differ: " + difference(ours[id], gdb[id]) + ", " + difference(ours[id], eu[id])
		case !byGDB:
			class = "differs from gdb, not from eu-stack: " + difference(ours[id], gdb[id])
		case !byEU:
			class = "differs from eu-stack, not from gdb: " + difference(ours[id], eu[id])
		}
		c.classes[class]++
		if class != "equal" {
			fmt.Printf("%s: process %d, thread %s: %s\n", name, pid, id, class)
			if c.verbose {
				fmt.Printf("  unwindd  %#x\n  gdb      %#x\n  eu-stack %#x\n", ours[id], gdb[id], eu[id])
			}
		}
	}
	c.classes["(frames of functions left by tail calls, which only unwindd has)"] += len(tails)
	return nil
}

// difference says where two stacks begin to differ.
func difference(ours, theirs []uint64) string {
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			return fmt.Sprintf("another frame %d of %d and %d", i, len(ours), len(theirs))
		}
	}
	switch {
	case len(theirs) == 0:
		return "it has none"
	case len(ours) > len(theirs):
		return "it ends early"
	}
	return "it goes on"
}

func keys(s stacks) (list []string) {
	for k := range s {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

func isEqual(a, b stacks) bool {
	for id := range a {
		if !slices.Equal(a[id], b[id]) {
			return false
		}
	}
	return true
}

// ours are the stacks of unwindd. tails are the PCs of functions that were left by tail
// calls: they are no frames of the others.
func (c *comparison) ours(pid int) (list stacks, tails map[uint64]bool, err error) {
	out, err := exec.Command(c.unwindd, "stack", strconv.Itoa(pid), "--no-inlines", "--format", "json").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("unwindd: %w", err)
	}
	var report struct {
		Threads []struct {
			ID     string
			Frames []struct {
				PC      string
				FoundBy string `json:"found_by"`
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, nil, err
	}
	list, tails = stacks{}, map[uint64]bool{}
	for _, th := range report.Threads {
		list[th.ID] = nil
		for _, f := range th.Frames {
			pc, _ := strconv.ParseUint(f.PC, 0, 64)
			if f.FoundBy == "call-site" {
				tails[pc] = true
				continue
			}
			list[th.ID] = append(list[th.ID], pc)
		}
	}
	return list, tails, nil
}

// gdbScript prints a line for every frame that has one of its own.
const gdbScript = `
for t in gdb.selected_inferior().threads():
    t.switch()
    print("UNWINDD thread", t.ptid[1])
    try:
        f = gdb.newest_frame()
        while f is not None:
            if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                print("UNWINDD frame %#x" % f.pc())
            f = f.older()
    except gdb.error:
        pass
`

func ofGDB(pid int) (stacks, error) {
	file, err := os.CreateTemp("", "live-*.py")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(gdbScript)
	_ = file.Close()
	if err != nil {
		return nil, err
	}
	out, _ := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-p", strconv.Itoa(pid),
		"-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on", "-x", file.Name()).Output()
	list, id := stacks{}, ""
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "UNWINDD" {
			continue
		}
		if words[1] == "thread" {
			id = words[2]
			list[id] = nil
			continue
		}
		pc, _ := strconv.ParseUint(words[2], 0, 64)
		list[id] = append(list[id], pc)
	}
	return list, nil
}

func ofEUStack(pid int) (stacks, error) {
	out, _ := exec.Command("eu-stack", "-n", "0", "-p", strconv.Itoa(pid)).Output()
	list, id := stacks{}, ""
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "TID":
			id = strings.TrimSuffix(words[1], ":")
			list[id] = nil
		case len(words) > 1 && words[0][0] == '#':
			pc, _ := strconv.ParseUint(words[1], 0, 64)
			list[id] = append(list[id], pc)
		}
	}
	return list, nil
}
