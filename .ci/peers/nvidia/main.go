// SPDX-License-Identifier: Apache-2.0

// Command nvidia compiles kernels for NVIDIA's processors by the compilers that PyPI has, without a GPU, and holds every line and every chain of inlined calls of every instruction
// against `nvdisasm -gi`, and lines of PTX against `nvdisasm -gp`. It prints a table of compilers. -run names files by a regular expression; -keep is a folder that keeps them; -tools prints where the
// compiler is.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// leastFunctions is how many functions a run without -run compares at least.
const leastFunctions = 2000

func main() {
	pattern := flag.String("run", "", "compare the files whose names match a `REGEXP`")
	keep := flag.String("keep", "", "keep what is compiled in `DIR`")
	details := flag.Int("details", 10, "list `N` differences of each compiler")
	isForPath := flag.Bool("tools", false, "print the folder of nvcc and nvdisasm alone")
	flag.Parse()
	if *isForPath {
		cost.Exit("nvidia", printFolder())
		return
	}
	cost.Exit("nvidia", run(*pattern, *keep, *details))
}

// printFolder prints the folder of nvcc and nvdisasm, for tests that need them in PATH.
func printFolder() error {
	t, err := newTools()
	if err != nil {
		return err
	}
	nvcc, err := t.nvcc()
	fmt.Println(filepath.Dir(nvcc))
	return err
}

func run(pattern, keep string, details int) error {
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	dir, remove, err := cost.Folder(keep, "nvidia-")
	if err != nil {
		return err
	}
	defer remove()
	p := &peer{dir: dir, chosen: chosen, counts: map[string]*count{}}
	if p.tools, err = newTools(); err != nil {
		return err
	}
	if p.unwindd, err = cost.Unwindd("NVIDIA_UNWINDD", dir); err != nil {
		return err
	}
	for _, compile := range []func() error{p.nvcc, p.cub, p.clang, p.triton} {
		if err := compile(); err != nil {
			return err
		}
	}
	if err := p.elfutils(); err != nil {
		return err
	}
	return p.report(pattern == "", details)
}

// peer is a folder for files, the tools, and the results.
type peer struct {
	dir, unwindd string
	tools        *tools
	chosen       *regexp.Regexp
	counts       map[string]*count // by compiler
}

// count is the result of the files of a compiler.
type count struct {
	files, functions, instructions, chains, ptx int
	longest                                     int // calls of a chain
	different                                   []string
}

// report prints the results; details is how many differences of a compiler.
func (p *peer) report(isWhole bool, details int) error {
	fmt.Printf("%-24s %6s %10s %13s %9s %8s %8s %10s\n", "compiler", "files", "functions", "instructions", "chains", "longest", "PTX", "different")
	var names []string
	for name := range p.counts {
		names = append(names, name)
	}
	slices.Sort(names)
	functions, different := 0, 0
	for _, name := range names {
		c := p.counts[name]
		fmt.Printf("%-24s %6d %10d %13d %9d %8d %8d %10d\n", name, c.files, c.functions, c.instructions, c.chains, c.longest, c.ptx, len(c.different))
		functions, different = functions+c.functions, different+len(c.different)
		for _, d := range c.different[:min(len(c.different), details)] {
			fmt.Println("  " + d)
		}
	}
	fmt.Printf("%d functions\n", functions)
	switch {
	case different > 0:
		return fmt.Errorf("%d instructions differ", different)
	case isWhole && functions < leastFunctions:
		return fmt.Errorf("%d functions, expected at least %d", functions, leastFunctions)
	case functions == 0:
		return errors.New("no file was compared")
	}
	return nil
}

// file is the path of a cubin, and whether it is chosen.
func (p *peer) file(name string) (path string, isChosen bool) {
	return filepath.Join(p.dir, name+".cubin"), p.chosen.MatchString(name)
}

// write writes a source file to the folder.
func (p *peer) write(name, text string) (string, error) {
	path := filepath.Join(p.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// forProcessor is a PTX text for another processor and an earlier assembler than it was made for.
func forProcessor(ptx, version, processor string) string {
	lines := strings.Split(ptx, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, ".version "):
			lines[i] = ".version " + version
		case strings.HasPrefix(line, ".target "):
			lines[i] = ".target " + processor
			if strings.Contains(line, ", debug") {
				lines[i] += ", debug"
			}
		}
	}
	return strings.Join(lines, "\n")
}
