// SPDX-License-Identifier: Apache-2.0

// Command compatibility has the engine of this tree use the plugins of an older commit, and the
// engine of that commit the plugins of this tree. Every target of the examples and the fixtures
// is walked by the four pairs of an engine and plugins; the JSON of `stack` of an engine must be
// the same, byte for byte, whichever plugins it has. It ends with the status 1 where it is not.
//
//	go run ./compatibility [-run REGEXP] [-keep DIR] COMMIT
//
// The bundled architectures are executables of their own, which run as a debugger's do
// (UNWINDD_REATTACH_PLUGINS): that replaces a bundled one in engines of any age. The plugins of
// examples/arch-riscv64 and examples/arch-toy are started by the engines, as a vendor's.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

var (
	only = flag.String("run", "", "walk only targets whose paths match `REGEXP`")
	keep = flag.String("keep", "", "keep what is built, and the outputs that differ, in `DIR`")
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./compatibility [-run REGEXP] [-keep DIR] COMMIT")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	cost.Exit("compatibility", run(flag.Arg(0)))
}

func run(commit string) error {
	filter, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	dir, remove, err := cost.Folder(*keep, "unwindd-compatibility-")
	if err != nil {
		return err
	}
	defer remove()
	top, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	sources := filepath.Join(dir, "sources")
	if err := unpack(top, commit, sources); err != nil {
		return err
	}
	after := &side{name: "this tree", sources: top, dir: filepath.Join(dir, "after")}
	before := &side{name: commit, sources: sources, dir: filepath.Join(dir, "before")}
	for _, s := range []*side{before, after} {
		if err := s.build(); err != nil {
			return err
		}
		if err := s.start(); err != nil {
			return err
		}
		defer s.stop()
	}
	targets, err := find(top, filepath.Join(dir, "targets"), filter)
	if err != nil {
		return err
	}
	w := &walks{before: before, after: after, dir: dir}
	if err := w.checkPairs(); err != nil {
		return err
	}
	return w.compare(targets)
}

// unpack writes the sources of a commit into a new folder.
func unpack(top, commit, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tar := dir + ".tar"
	if err := cost.Run(top, "git", "archive", "-o", tar, commit); err != nil {
		return err
	}
	return cost.Run(dir, "tar", "-x", "-f", tar)
}
