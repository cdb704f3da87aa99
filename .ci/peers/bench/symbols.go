// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/templates"
)

// largeUnits make a .debug_info of some 16 MB.
const largeUnits = 16

// symbols are random addresses of the code of three programs.
func symbols(b *bench) (list []*contest, err error) {
	for _, units := range b.sizes(0, 2, largeUnits) {
		program, err := templated(units)
		if err != nil {
			return nil, err
		}
		text, info, err := sections(program)
		if err != nil {
			return nil, err
		}
		sizes := []int{1, 1_000, 100_000, 1_000_000}
		if b.short {
			sizes = []int{10}
		}
		input := func(n int) string {
			return fmt.Sprintf("%d addresses, .debug_info of %s", n, mib(float64(info)/1024))
		}
		for _, n := range sizes {
			path := filepath.Join(b.dir, fmt.Sprintf("addresses-%d-%d", units, n))
			if err := os.WriteFile(path, addresses(text, n), 0o600); err != nil {
				return nil, err
			}
			c := b.symbolContest(input(n), program, path)
			c.series, c.size, c.goals = program, float64(n), symbolGoals(n, input)
			if n >= 1_000_000 {
				c.theirs = c.theirs[:2] // the others take minutes
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// symbolGoals are bounds for n addresses.
func symbolGoals(n int, input func(n int) string) []goal {
	switch n {
	case 1:
		return []goal{{figure: processors, tool: gimliTool, most: 2}}
	case 1_000:
		return []goal{{figure: processors, tool: gimliTool, most: 0.6}, {figure: memory, tool: gimliTool, most: 1}}
	case 1_000_000:
		return []goal{{figure: processors, smaller: input(100_000), most: 1.1}}
	}
	return nil
}

// gimliTool is gimli's addr2line in the tables.
const gimliTool = "gimli's addr2line"

// symbolContest asks symbolizers for the addresses in a file.
func (b *bench) symbolContest(input, program, addresses string) *contest {
	ours := filepath.Join(b.dir, "symbolized")
	c := &contest{input: input, ours: entry{tool: "unwindd", argv: []string{b.unwindd, "symbolize", "--obj", program}, stdin: addresses}}
	c.ours.check = func(output string) (decision, error) { return decision{}, os.Rename(output, ours) }
	// All of LLVM's output is compared, of the others where the innermost function is.
	all := func(text string) []string { return strings.Split(text, "\n") }
	check := func(what string, mine, theirs func(string) []string) func(string) (decision, error) {
		return func(output string) (decision, error) {
			a, err := os.ReadFile(ours)
			if err != nil {
				return decision{}, err
			}
			b, err := os.ReadFile(output)
			return inOrder(what, mine(string(a)), theirs(string(b))), err
		}
	}
	positions := check("positions", afterEmptyLines, afterAddresses)
	// gimli's has a file with a line alone, others the file of a symbol, too.
	lines := check("lines", withLines(afterEmptyLines), withLines(afterAddresses))
	c.theirs = []entry{
		{tool: "llvm-symbolizer", argv: []string{"llvm-symbolizer-22", "--obj=" + program}, stdin: addresses, check: check("lines", all, all), most: 0.01},
		{tool: gimliTool, argv: []string{b.built(gimliAddr2line), "-afiC", "-e", program}, stdin: addresses, check: lines, most: 0.02},
		{tool: "addr2line", argv: []string{"addr2line", "-afiC", "-e", program}, stdin: addresses, check: positions, most: 0.02},
		{tool: "eu-addr2line", argv: []string{"eu-addr2line", "-afiC", "-e", program}, stdin: addresses, check: positions, most: 0.6},
	}
	return c
}

// templated is a C++ program of so many units of templates, built once; without any it has a
// few functions.
func templated(units int) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "unwindd-peers", fmt.Sprintf("symbols-%x", templates.Sum()))
	program := filepath.Join(dir, fmt.Sprintf("program-%d", units))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	objects, err := templates.Compile(dir, units, "-O2", "-g")
	if err != nil {
		return "", err
	}
	main := append(templates.Calls(units), "int main(int, char **v) { return int(all(v[0])); }\n"...)
	if err := os.WriteFile(filepath.Join(dir, "main.cc"), main, 0o600); err != nil {
		return "", err
	}
	if err := cost.Run(dir, "g++", append(objects, "-O2", "-g", "-o", program+".new", "main.cc")...); err != nil {
		return "", err
	}
	return program, os.Rename(program+".new", program)
}

// sections gives .text, and the size of .debug_info.
func sections(file string) (text elf.SectionHeader, info uint64, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return text, 0, err
	}
	defer f.Close()
	t, d := f.Section(".text"), f.Section(".debug_info")
	if t == nil || d == nil {
		return text, 0, fmt.Errorf("%s: expected .text and .debug_info", file)
	}
	return t.SectionHeader, d.Size, nil
}

// addresses are random, and the same in each run.
func addresses(text elf.SectionHeader, n int) []byte {
	random := rand.New(rand.NewPCG(0, uint64(n)))
	var b bytes.Buffer
	for range n {
		fmt.Fprintf(&b, "%#x\n", text.Addr+random.Uint64N(text.Size))
	}
	return b.Bytes()
}

// afterEmptyLines are the positions of answers that end in an empty line, without
// columns.
func afterEmptyLines(output string) []string {
	var list []string
	for _, answer := range strings.Split(strings.TrimSuffix(output, "\n\n"), "\n\n") {
		position := ""
		if l := strings.Split(answer, "\n"); len(l) > 1 {
			position = l[1]
			if at := strings.LastIndexByte(position, ':'); at >= 0 {
				position = position[:at]
			}
		}
		list = append(list, known(position))
	}
	return list
}

// afterAddresses are the positions of answers that begin with their address.
func afterAddresses(output string) []string {
	var list []string
	all := strings.Split(output, "\n")
	for i, line := range all {
		if !strings.HasPrefix(line, "0x") || i+2 >= len(all) {
			continue
		}
		position, _, _ := strings.Cut(all[i+2], " (")
		if isLine := strings.Count(position, ":"); isLine > 1 { // with a column
			position = position[:strings.LastIndexByte(position, ':')]
		}
		list = append(list, known(position))
	}
	return list
}

// withLines has positions without a line as unknown.
func withLines(read func(string) []string) func(string) []string {
	return func(output string) []string {
		list := read(output)
		for i, position := range list {
			if strings.HasSuffix(position, ":0") {
				list[i] = "??"
			}
		}
		return list
	}
}

// known is a position as all tools write it, where there is a line.
func known(position string) string {
	file, line, ok := strings.Cut(position, ":")
	if !ok || file == "??" {
		return "??"
	}
	if _, err := strconv.Atoi(line); err != nil {
		line = "0"
	}
	return filepath.Clean(file) + ":" + line
}
