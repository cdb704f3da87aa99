// SPDX-License-Identifier: Apache-2.0

// Command live takes the stacks of live programs that Debian ships by unwindd, by gdb and
// by eu-stack, and compares them, PC by PC, thread by thread. One that moved is looked at
// again. Before that it takes the stacks of processes that start, execute and end, and
// kills unwindd while it copies: no process may be left stopped. It needs to be allowed
// to stop processes.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/processes"
	"github.com/unwindd/unwindd/.ci/peers/stacks"
)

func main() {
	count := flag.Int("n", 200, "compare `N` processes")
	verbose := flag.Bool("v", false, "print the stacks that differ")
	starts := flag.Int("starts", 1000, "take the stacks of `N` processes that start and end")
	killed := flag.Int("kills", 200, "kill unwindd `N` times while it stops a process")
	flag.Parse()
	cost.Exit("live", run(*count, *starts, *killed, *verbose))
}

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
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		fmt.Printf("%6d %s\n", c.classes[name], name)
	}
	return nil
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
		for _, pid := range processes.Of(cmd.Process.Pid)[1:] {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait()
	}()
	time.Sleep(1500 * time.Millisecond)
	list := processes.Of(cmd.Process.Pid)
	if p.pty {
		list = list[1:]
	}
	if s, err := processes.StatOf(cmd.Process.Pid); err != nil || s.State == "Z" {
		return fmt.Errorf("it has ended")
	}
	for _, pid := range list {
		if err := c.compareProcess(pid, strings.Join(p.argv, " ")); err != nil {
			return err
		}
	}
	return nil
}

// compareProcess compares a process. Where a thread moves between one and the other, all
// are requested again.
func (c *comparison) compareProcess(pid int, name string) error {
	var ours, gdb, eu pcs
	var tails map[uint64]bool
	for range 3 {
		var err error
		if ours, tails, err = c.ours(pid); err != nil {
			return err
		}
		gdb, eu = byGDB(pid), pcsOf(stacks.EUStack("-p", strconv.Itoa(pid)))
		if slices.Equal(slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(gdb))) && isEqual(ours, gdb) && isEqual(ours, eu) {
			break
		}
	}
	if s, _ := processes.StatOf(pid); s.State == "t" || s.State == "T" {
		return fmt.Errorf("process %d is left in state %s", pid, s.State)
	}
	c.processes++
	for _, id := range slices.Sorted(maps.Keys(ours)) {
		c.threads++
		c.frames += len(ours[id])
		class := "equal"
		isGDBs, isEUs := slices.Equal(ours[id], gdb[id]), slices.Equal(ours[id], eu[id])
		switch {
		case !isGDBs && !isEUs && slices.Equal(gdb[id], eu[id]):
			class = "differs from both, which are equal: " + difference(ours[id], gdb[id])
		case !isGDBs && !isEUs:
			class = "all differ: " + difference(ours[id], gdb[id]) + ", " + difference(ours[id], eu[id])
		case !isGDBs:
			class = "differs from gdb, not from eu-stack: " + difference(ours[id], gdb[id])
		case !isEUs:
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
	if n := stacks.Common(ours, theirs); n < min(len(ours), len(theirs)) {
		return fmt.Sprintf("another frame %d of %d and %d", n, len(ours), len(theirs))
	}
	switch {
	case len(theirs) == 0:
		return "it has none"
	case len(ours) > len(theirs):
		return "it ends early"
	}
	return "it goes on"
}

// pcs are the PCs of threads, innermost first.
type pcs map[string][]uint64

func pcsOf(list map[string]*stacks.Stack) pcs {
	p := pcs{}
	for id, s := range list {
		p[id] = s.PCs
	}
	return p
}

func isEqual(a, b pcs) bool {
	for id := range a {
		if !slices.Equal(a[id], b[id]) {
			return false
		}
	}
	return true
}

// ours are the stacks of unwindd. tails are the PCs of functions that were left by tail
// calls: they are no frames of the others.
func (c *comparison) ours(pid int) (list pcs, tails map[uint64]bool, err error) {
	out, err := exec.Command(c.unwindd, "stack", strconv.Itoa(pid), "--no-inlines", "--format", "json").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("unwindd: %w", err)
	}
	all, _, err := stacks.Unwindd(out)
	tails = map[uint64]bool{}
	for id, s := range all {
		for i, found := range s.Found {
			if found == "call-site" {
				tails[s.PCs[i]] = true
			}
		}
		all[id] = s.WithoutTailCalls()
	}
	return pcsOf(all), tails, err
}

func byGDB(pid int) pcs {
	list, _ := stacks.GDB("-p", strconv.Itoa(pid), "-ex", "set $without_tail_calls = 1") // threads without a stack differ
	return pcsOf(list)
}
