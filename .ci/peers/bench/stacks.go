// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/waves"
)

// gdbFlags have gdb print all frames, as the others do, and ask no servers.
var gdbFlags = []string{"-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set backtrace past-main on", "-iex", "set backtrace past-entry on", "-ex", "thread apply all bt"}

// stackContest asks for the stacks of a target: ours are the arguments of `unwindd stack`, and
// the peers get their own ways to name it.
func (b *bench) stackContest(input string, size int, ours, gdb, eu, lldb []string) *contest {
	argv := append([]string{b.unwindd, "stack", "--no-fold", "--max-frames", "0"}, ours...)
	document := sync.OnceValues(func() (*stackDocument, error) { return ourStacks(argv) })
	as := func(form func(*stackDocument) []string) func() ([]string, error) {
		return func() ([]string, error) {
			d, err := document()
			if err != nil {
				return nil, err
			}
			return form(d), nil
		}
	}
	byLLDB := append([]string{"lldb-22", "-b", "-x"}, lldb...)
	c := &contest{input: input, size: float64(size), ours: entry{tool: "unwindd", argv: argv}}
	c.theirs = []entry{
		{tool: "gdb", argv: append(append([]string{"gdb"}, gdbFlags...), gdb...), check: checkStacks(as((*stackDocument).callers), byGDB)},
		// Its exit status is 1 where a stack ends in an error.
		{tool: "eu-stack", argv: append([]string{"eu-stack", "-n", "0", "-s", "-i"}, eu...), exit: 1,
			check: checkStacks(as((*stackDocument).calls), func() stackReader { return byEUStack })},
		{tool: "lldb", argv: append(byLLDB[:len(byLLDB):len(byLLDB)], "-o", "bt all"), check: checkLLDB(as((*stackDocument).returns), byLLDB), most: 0.1},
	}
	if size <= smallStack {
		c.goals = []goal{{figure: memory, tool: "eu-stack", most: 2}, {figure: memory, tool: "gdb", most: 2}}
	}
	return c
}

// smallStack is the size of a target up to which memory is held against that of the peers.
const smallStack = 100

// coreContest is stackContest of a core.
func (b *bench) coreContest(input string, size int, program, core string) *contest {
	return b.stackContest(input, size, []string{"--exe", program, core},
		[]string{program, core}, []string{"-e", program, "--core", core}, []string{"-c", core, program})
}

// compile compiles a program of testdata.
func (b *bench) compile(compiler, source string, flags ...string) (string, error) {
	program := filepath.Join(b.dir, strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, cost.Run(".", compiler, append(flags, "-g", "-o", program, source)...)
}

// core runs a program that ends by a signal in a folder of its own.
func (b *bench) core(name, program string, args ...string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -c unlimited; exec "$@"`, "sh", program}, args...)...)
	cmd.Dir = dir
	_ = cmd.Run() // it ends by a signal
	return coreIn(dir)
}

// coreIn is the core that a process left in a folder.
func coreIn(dir string) (string, error) {
	list, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(list) != 1 {
		return "", fmt.Errorf("%d files core* are in %s, expected one: /proc/sys/kernel/core_pattern is to be `core`", len(list), dir)
	}
	return list[0], nil
}

// The program with many threads.
const threadsSource = "bench/testdata/threads.cpp"

var threadsFlags = []string{"-std=c++17", "-O2", "-pthread"}

// threads are cores of processes with many threads, each deep in templates and inlined calls.
func threads(b *bench) (list []*contest, err error) {
	program, err := b.compile("g++", threadsSource, threadsFlags...)
	if err != nil {
		return nil, err
	}
	for _, n := range b.sizes(10, 100, 1000) {
		core, err := b.core(fmt.Sprintf("threads-%d", n), program, strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		list = append(list, b.coreContest(fmt.Sprintf("%d threads", n), n, program, core))
	}
	return list, nil
}

// depth are cores of one thread with many frames.
func depth(b *bench) (list []*contest, err error) {
	program, err := b.compile("gcc", "bench/testdata/deep.c", "-O1")
	if err != nil {
		return nil, err
	}
	for _, n := range b.sizes(100, 10_000, 100_000) {
		core, err := b.core(fmt.Sprintf("deep-%d", n), program, strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		list = append(list, b.coreContest(fmt.Sprintf("%d frames", n), n, program, core))
	}
	return list, nil
}

// living are processes whose threads wait.
func living(b *bench) (list []*contest, err error) {
	program, err := b.compile("g++", threadsSource, threadsFlags...)
	if err != nil {
		return nil, err
	}
	for _, n := range b.sizes(10, 100, 1000) {
		cmd := exec.Command(program, strconv.Itoa(n), "wait")
		if err := b.startWaiting(cmd); err != nil {
			return nil, err
		}
		pid := strconv.Itoa(cmd.Process.Pid)
		list = append(list, b.stackContest(fmt.Sprintf("%d threads", n), n, []string{pid}, []string{"-p", pid}, []string{"-p", pid}, []string{"-p", pid}))
	}
	return list, nil
}

// startWaiting starts a process that prints a line when its threads wait. It ends with the
// section.
func (b *bench) startWaiting(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.atEnd(func() {
		_ = cmd.Process.Kill() // it waits for this
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	return nil
}

// waveSnapshots are snapshots of waves, which no other tool reads, as text and as JSON.
func waveSnapshots(b *bench) (list []*contest, err error) {
	for _, n := range b.sizes(10_000, 100_000, 1_000_000) {
		path := filepath.Join(b.dir, fmt.Sprintf("waves-%d.snapshot", n))
		if err := waves.Write(path, "places", n); err != nil {
			return nil, err
		}
		text := []string{b.unwindd, "stack", path}
		c := &contest{input: fmt.Sprintf("%d waves", n), size: float64(n), ours: entry{tool: "unwindd", argv: text}}
		list = append(list, c)
		if n == 1_000_000 { // as JSON they take more than the limit of a run
			c.goals = []goal{{figure: byClock, most: 10e9}, {figure: memory, most: 500 << 10}}
			continue
		}
		list = append(list, &contest{
			input: fmt.Sprintf("%d waves, json", n), size: float64(n),
			ours:   entry{tool: "unwindd", argv: append(slices.Clone(text), "--format", "json")},
			theirs: []entry{{tool: "unwindd, as text", argv: text}},
			goals:  []goal{{figure: processors, tool: "unwindd, as text", most: 3}},
		})
	}
	return list, nil
}
