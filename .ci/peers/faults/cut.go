// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// cutting is a command that reads a file which is cut meanwhile.
type cutting struct {
	kind string
	file string // of the material
	argv []string
	// beside are files of the material that are in its folder, too.
	beside []string
	command
}

// cuttings are the commands. CUT stands for the folder of the file.
func cuttings() []*cutting {
	return []*cutting{
		{kind: "a core", file: "server.core", argv: words("stack CUT/server.core MATERIAL/server --format json --locals"), command: command{compare: compareStacks, isSampled: true}},
		{kind: "an executable", file: "server", argv: words("stack MATERIAL/server.core --exe CUT/server --format json --locals"), command: command{compare: compareStacks, isSampled: true}},
		{kind: "a debug file", file: "server.debug", argv: words("stack CUT/server.core --exe CUT/stripped --format json --locals"), beside: words("server.core stripped"), command: command{compare: compareStacks}},
		{kind: "a minidump", file: "server.dmp", argv: words("stack CUT/server.dmp MATERIAL/server --format json"), command: command{compare: compareStacks}},
		{kind: "a snapshot", file: "mixed.snapshot", argv: words("stack CUT/mixed.snapshot --format json --lanes"), command: command{compare: compareStacks}},
		{kind: "a GPU's core", file: "crash.core", argv: words("stack CUT/crash.core --format json --lanes"), beside: words("host"), command: command{compare: compareStacks}},
		{kind: "a packed core", file: "server.core.gz", argv: words("stack CUT/server.core.gz MATERIAL/server --format json"), command: command{compare: compareStacks}},
		{kind: "a recording", file: "perf.data", argv: words("profile CUT/perf.data --format json"), beside: words("words"), command: command{compare: compareProfiles, isSampled: true}},
		{kind: "the executable of a recording", file: "words", argv: words("profile CUT/perf.data --format json"), beside: words("perf.data"), command: command{compare: compareProfiles}},
		{kind: "an executable that is symbolized", file: "server", argv: words("symbolize --obj CUT/server --output-style json 0x401100 0x401941 0x40170a"), command: command{compare: compareSymbols}},
		{kind: "a core of which a snapshot is made", file: "server.core", argv: words("snapshot CUT/server.core --exe MATERIAL/server -o OUT/s"), command: command{compare: compareStacks, output: "s"}},
	}
}

// cutFiles cuts each file at many moments.
func (b *bench) cutFiles() error {
	for _, c := range cuttings() {
		c.name = c.kind
		times := *cuts
		if *isSmall {
			times = 6
		}
		if *isSmall && !c.isSampled || !isChosen("cut: "+c.kind) {
			continue
		}
		if err := b.cutFile(c, times); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) cutFile(c *cutting, times int) error {
	dir := filepath.Join(b.dir, "cut")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, a := range c.argv {
		c.command.argv = append(c.command.argv, strings.ReplaceAll(a, "CUT", dir))
	}
	for _, name := range c.beside {
		if err := copyFile(filepath.Join(b.material(), name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	file := filepath.Join(dir, c.file)
	whole := func(*bench) (func() error, error) {
		return func() error { return os.Remove(file) }, copyFile(filepath.Join(b.material(), c.file), file)
	}
	var err error
	if c.whole, err = b.run(&c.command, &fault{name: "none", prepare: whole}); err != nil {
		return err
	}
	if err := c.whole.check(); err != nil {
		return fmt.Errorf("%s, without a fault: %w", c.kind, err)
	}
	info, err := os.Stat(filepath.Join(b.material(), c.file))
	if err != nil {
		return err
	}
	for range times {
		// Every moment from the start on until a little after the end.
		after := time.Duration(b.random.Int64N(int64(c.whole.took) * 5 / 4))
		to := b.random.Int64N(info.Size())
		if b.random.IntN(2) == 0 {
			to &^= 4095 // mapped memory behind it is gone, not zero
		}
		f := &fault{kind: "cut: " + c.kind, name: fmt.Sprintf("to %d bytes of %d after %v of %v", to, info.Size(), after, c.whole.took), prepare: whole}
		f.during = func(*bench, int) {
			time.Sleep(after)
			if err := syscall.Truncate(file, to); err != nil {
				panic(err) // it is there
			}
		}
		if _, err := b.try(&c.command, f); err != nil {
			return err
		}
	}
	return nil
}
