// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// command is one that is run, again and again. In its arguments MATERIAL stands for the
// folder of its files, OUT for that of its output, and PID for a process.
type command struct {
	name string
	argv []string
	// stdin is the text that comes by a pipe; "": none.
	stdin string
	// output is the snapshot that it writes; "": it prints JSON.
	output  string
	compare comparer
	// isServer is one that answers a request and is ended then.
	isServer bool
	// isSampled is one that a small run has.
	isSampled bool

	whole *result // what it does without a fault
}

// newCommands are the commands.
func newCommands() []*command {
	return []*command{
		{name: "stack of a core", argv: words("stack MATERIAL/server.core --format json --locals"), compare: compareStacks, isSampled: true},
		{name: "stack of a core that is packed", argv: words("stack MATERIAL/server.core.gz MATERIAL/server --format json"), compare: compareStacks, isSampled: true},
		{name: "stack of a core from a pipe", argv: words("stack - MATERIAL/server --format json"), stdin: "server.core.gz", compare: compareStacks},
		{name: "stack of a minidump", argv: words("stack MATERIAL/server.dmp --format json"), compare: compareStacks},
		{name: "stack of waves", argv: words("stack MATERIAL/mixed.snapshot --format json --lanes"), compare: compareStacks, isSampled: true},
		{name: "stack of a GPU's core", argv: words("stack MATERIAL/crash.core --format json --lanes"), compare: compareStacks},
		{name: "stack of a process", argv: words("stack PID --format json"), compare: compareStacks},
		{name: "snapshot of a core", argv: words("snapshot MATERIAL/server.core -o OUT/s"), output: "s", compare: compareStacks, isSampled: true},
		{name: "snapshot of a process", argv: words("snapshot PID -o OUT/s"), output: "s", compare: compareStacks},
		{name: "profile", argv: words("profile MATERIAL/perf.data --format json"), compare: compareProfiles, isSampled: true},
		{name: "symbolize", argv: words("symbolize --obj MATERIAL/server --output-style json 0x401100 0x401941 0x40170a 0x41342c"), compare: compareSymbols, isSampled: true},
		{name: "serve, asked for a stack", argv: words("serve --listen unix:OUT/socket --workers 1 --state OUT/state"), compare: compareStacks, isServer: true},
	}
}

func words(text string) []string { return strings.Fields(text) }

// arguments returns the arguments of a run.
func (c *command) arguments(b *bench) (list []string) {
	replace := strings.NewReplacer("MATERIAL", b.material(), "OUT", b.folder("out"), "PID", strconv.Itoa(b.subject.Process.Pid))
	for _, a := range c.argv {
		list = append(list, replace.Replace(a))
	}
	return list
}

// material are files of the examples, by the names that they have here.
var material = map[string]string{
	"server.core": "crash/server.core", "server": "crash/server", "server.dmp": "crash/server.dmp", "mixed.snapshot": "mixed/mixed.snapshot",
	"crash.core": "rocm-core/crash.core", "host": "rocm-core/host", "perf.data": "profile/perf.data", "words": "profile/words",
	"gen.snapshot": "gen/gen.snapshot", "riscv64.snapshot": "arch-riscv64/testdata/crash.snapshot",
}

// copyMaterial puts what commands read into a folder that every user may read.
func copyMaterial(dir string) error {
	to := filepath.Join(dir, "material")
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for name, from := range material {
		if err := copyFile(filepath.Join("..", "..", "examples", from), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{
		{"gzip", "-k", "server.core"},
		{"objcopy", "--only-keep-debug", "server", "server.debug"},
		{"objcopy", "--strip-all", "--add-gnu-debuglink=server.debug", "server", "stripped"},
	} {
		if err := cost.Run(to, argv[0], argv[1:]...); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o755)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("what a run needs: %w", err)
	}
	return os.WriteFile(to, data, 0o755) //nolint:gosec // some are executed, by other users
}
