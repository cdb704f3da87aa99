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
		for _, n := range b.sizes(10, 1_000, 100_000) {
			path := filepath.Join(b.dir, fmt.Sprintf("addresses-%d-%d", units, n))
			if err := os.WriteFile(path, addresses(text, n), 0o600); err != nil {
				return nil, err
			}
			input := fmt.Sprintf("%d addresses, .debug_info of %s", n, mib(float64(info)/1024))
			list = append(list, b.symbolContest(input, program, path))
		}
	}
	return list, nil
}

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
	c.theirs = []entry{
		{tool: "llvm-symbolizer", argv: []string{"llvm-symbolizer-22", "--obj=" + program}, stdin: addresses, check: check("lines", all, all)},
		{tool: "gimli's addr2line", argv: []string{b.built(gimliAddr2line), "-afiC", "-e", program}, stdin: addresses, check: positions, most: 0.02},
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
