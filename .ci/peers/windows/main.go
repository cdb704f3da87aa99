// SPDX-License-Identifier: Apache-2.0

// Command windows holds what unwindd reads of Windows programs against LLVM's tools: every function, line
// and inlined call of programs that it makes for x86-64, AArch64 and 32-bit x86, of public PDB files,
// damaged ones and a large one, decorated names, and stacks by symbol files.
//
//	go run ./windows [-quick] [-run REGEXP] [-details N] [-keep DIR] [-public DIR]
//
// WINDOWS_UNWINDD is the executable.
package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// rig is shared by the parts of a run.
type rig struct {
	unwindd  string
	dir      string // where programs are made, and kept where -keep names it
	public   string // a folder of public PDB files and dumps; "": none
	isQuick  bool
	details  int // how many differences of each kind are shown
	programs []built
	failures []string
}

// part is a comparison.
type part struct {
	name string
	run  func(*rig) error
}

// parts are the comparisons, the quickest first.
var parts = []part{
	{"programs", (*rig).comparePrograms},
	{"names", (*rig).compareNames},
	{"symbols", (*rig).compareSymbols},
	{"public", (*rig).comparePublic},
	{"mutations", (*rig).mutate},
	{"large", (*rig).measureLarge},
}

func main() {
	var r rig
	flag.BoolVar(&r.isQuick, "quick", false, "a part of each comparison, in a minute")
	only := flag.String("run", "", "only the parts whose names match `REGEXP`")
	flag.IntVar(&r.details, "details", 5, "show `N` differences of each kind")
	keep := flag.String("keep", "", "keep the programs in `DIR`")
	flag.StringVar(&r.public, "public", "", "a `DIR` of public PDB files and dumps")
	flag.Parse()
	cost.Exit("windows", r.run(*only, *keep))
}

func (r *rig) run(only, keep string) error {
	which, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, remove, err := cost.Folder(keep, "unwindd-windows-")
	if err != nil {
		return err
	}
	defer remove()
	r.dir = dir
	if r.unwindd, err = cost.Unwindd("WINDOWS_UNWINDD", dir); err != nil {
		return err
	}
	if r.unwindd, err = filepath.Abs(r.unwindd); err != nil {
		return err
	}
	if err := r.make(); err != nil {
		return err
	}
	for _, p := range parts {
		if !which.MatchString(p.name) {
			continue
		}
		began := time.Now()
		if err := p.run(r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Printf("== %s: %.1fs\n", p.name, time.Since(began).Seconds())
	}
	if len(r.failures) > 0 {
		return fmt.Errorf("%d comparisons failed: %q", len(r.failures), r.failures)
	}
	return nil
}

// fail notes that a comparison failed, and goes on.
func (r *rig) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Println("FAILED", text)
	r.failures = append(r.failures, text)
}
