// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/unwindd/unwindd/.ci/peers/breakpad"
	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// minidumps are of processes with many threads. The modules have symbol files:
// minidump_stackwalk reads no others.
func minidumps(b *bench) (list []*contest, err error) {
	if b.short && !breakpad.HasTools() {
		b.absent("minidump_stackwalk", "core2md takes a minute to compile")
		return nil, nil
	}
	tools, err := breakpad.Tools()
	if err != nil {
		b.absent("minidump_stackwalk", strings.TrimSpace(err.Error()))
		return nil, nil
	}
	store, empty := filepath.Join(b.dir, "symbols"), filepath.Join(b.dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		return nil, err
	}
	for _, n := range b.sizes(10, 100, 1000) {
		dump, err := b.minidump(tools, store, n)
		if err != nil {
			return nil, err
		}
		argv := []string{b.unwindd, "stack", "--no-fold", "--max-frames", "0", "--symbols", store, "--sysroot", empty, dump}
		ours := func() ([]string, error) {
			d, err := ourStacks(argv)
			if err != nil {
				return nil, err
			}
			return d.returns(), nil
		}
		list = append(list, &contest{
			input: fmt.Sprintf("%d threads", n), size: float64(n), ours: entry{tool: "unwindd", argv: argv},
			theirs: []entry{
				{tool: "minidump_stackwalk", argv: []string{filepath.Join(tools, "minidump_stackwalk"), dump, store}, check: checkStacks(ours, byStackwalk)},
				{tool: "rust-minidump", argv: []string{b.built(rustMinidump), dump, store}, check: checkStacks(ours, byStackwalk)},
			},
		})
	}
	return list, nil
}

// minidump is the minidump of a process with n threads, which Breakpad's core2md makes of its
// core. The symbols of its modules are put into a store.
func (b *bench) minidump(tools, store string, n int) (string, error) {
	dir := filepath.Join(b.dir, fmt.Sprintf("minidump-%d", n))
	proc, dump := filepath.Join(dir, "proc"), filepath.Join(dir, "dump.dmp")
	if err := os.MkdirAll(proc, 0o700); err != nil {
		return "", err
	}
	program, err := b.compile("g++", threadsSource, threadsFlags...)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-c", `ulimit -c unlimited; exec "$@"`, "sh", program, strconv.Itoa(n), "wait")
	cmd.Dir = dir
	if err := b.startWaiting(cmd); err != nil {
		return "", err
	}
	for _, name := range []string{"maps", "auxv", "cmdline", "environ", "status"} { // core2md reads them
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(proc, name), text, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		return "", err
	}
	modules := slices.Compact(regexp.MustCompile(`(?m) /.*$`).FindAllString(string(maps), -1))
	for i := range modules {
		modules[i] = strings.TrimSpace(modules[i])
	}
	if err := cost.Run(".", b.unwindd, append([]string{"symbols", "--store", store}, modules...)...); err != nil {
		return "", err
	}
	err = cmd.Process.Signal(syscall.SIGSEGV)
	var exit *exec.ExitError
	if ended := cmd.Wait(); err != nil || !errors.As(ended, &exit) {
		return "", errors.Join(err, ended)
	}
	core, err := coreIn(dir)
	if err != nil {
		return "", err
	}
	return dump, cost.Run(dir, filepath.Join(tools, "core2md"), core, proc, dump)
}

// byStackwalk reads frames of minidump_stackwalk, Breakpad's or that of rust-minidump, which
// prints the registers of each but of inlined calls.
func byStackwalk() stackReader {
	ended := false
	pc := regexp.MustCompile(`\brip = (0x[0-9a-f]+)`)
	return func(line string) (string, bool) {
		ended = ended || strings.HasPrefix(line, "Loaded modules")
		if m := pc.FindStringSubmatch(line); m != nil && !ended {
			return hex(m[1]), false
		}
		return "", strings.HasPrefix(line, "Thread ")
	}
}
