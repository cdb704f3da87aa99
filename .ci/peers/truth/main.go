// SPDX-License-Identifier: Apache-2.0

// Command truth executes programs instruction by instruction, and holds the stack that
// unwindd walks at each instruction against the calls that the processor has made: every
// return address of it must be one that a call pushed, in order, to the program's start.
//
//	go run ./truth [-steps N] [-peers N] [-tables N] [-run REGEXP] [-v] [-keep DIR]
package main

import (
	"flag"
	"os"
	"regexp"
	"runtime"
	"slices"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

var (
	steps   = flag.Int("steps", 1_000_000, "walk the stack at `N` instructions; with less than 100,000 only some programs are executed")
	only    = flag.String("run", "", "only programs whose `name` matches this expression")
	verbose = flag.Bool("v", false, "show a stack of each mismatch")
	points  = flag.Int("peers", 2000, "ask gdb, eu-stack and libunwind at `N` of them, too")
	count   = flag.Int("tables", 0, "hold the call frame information of the `N` most needed libraries against an emulation of their code, too")
	keep    = flag.String("keep", "", "a `folder` that keeps the programs")
)

// smallSteps is how many make the long form, which has every program.
const smallSteps = 100_000

func main() {
	flag.Parse()
	runtime.LockOSThread() // which ptrace knows a tracer by
	cost.Exit("truth", run())
}

func run() error {
	dir, remove, err := cost.Folder(*keep, "truth-")
	if err != nil {
		return err
	}
	defer remove()
	if err := unpackSources(dir); err != nil && !os.IsExist(err) {
		return err
	}
	expression, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	isLeftOut := func(p program) bool {
		return !expression.MatchString(p.name) || *steps < smallSteps && !p.isSmall
	}
	list := slices.DeleteFunc(slices.Concat(own, debians), isLeftOut)
	others := slices.DeleteFunc(slices.Clone(linked), isLeftOut)
	w, err := newWork(dir)
	if err != nil {
		return err
	}
	defer w.engine.Close()
	if w.peers, err = newPeers(dir, *points); err != nil {
		return err
	}
	defer w.peers.close()
	makeAll(slices.Concat(list, others), dir)
	if err := w.stepAll(list, *steps, w.stepProgram); err != nil {
		return err
	}
	if err := w.stepAll(others, *steps/10, w.stepLinked); err != nil {
		return err
	}
	if *count > 0 {
		t, err := validate(*count)
		if err != nil {
			return err
		}
		defer t.report()
	}
	return w.report()
}

// newWork makes the engine that walks.
func newWork(dir string) (*work, error) {
	w := &work{dir: dir, visits: map[instruction]*uint32{}, classes: map[class]*mismatch{}, stepsPerWalk: 4}
	if *steps >= smallSteps {
		w.stepsPerWalk = 10
	}
	var err error
	w.engine, err = engine.New(engine.Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), aarch64.New()}}, NoSymbols: true, Registers: true, DebugDirs: []string{"/usr/lib/debug"},
	})
	return w, err
}
