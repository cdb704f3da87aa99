// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// start measures processes that do almost nothing: commands, and what starts plugins.
func start(b *bench) (list []*contest, err error) {
	program, err := b.compile("gcc", "bench/testdata/deep.c", "-O1")
	if err != nil {
		return nil, err
	}
	core, err := b.core("deep-4", program, "4")
	if err != nil {
		return nil, err
	}
	alone := func(flag string) *contest {
		c := &contest{input: "its version", ours: entry{tool: "unwindd", argv: []string{b.unwindd, "version"}}}
		if flag == "--help" {
			c = &contest{input: "help", ours: entry{tool: "unwindd", argv: []string{b.unwindd, "--help"}}}
		}
		for _, p := range []struct{ tool, name string }{
			{"gdb", "gdb"}, {"eu-stack", "eu-stack"}, {"llvm-symbolizer", "llvm-symbolizer-22"}, {"addr2line", "addr2line"},
		} {
			c.theirs = append(c.theirs, entry{tool: p.tool, argv: []string{p.name, flag}})
		}
		c.goals = []goal{{figure: processors, most: 6e6}}
		return c
	}
	// Without the name of a plugin it prints what it expects, and ends with 1.
	plugins := &contest{input: "what starts plugins", ours: entry{tool: "unwindd-plugins", argv: []string{b.unwindd + "-plugins"}, exit: 1}, goals: []goal{{figure: processors, most: 4e6}}}
	stack := b.coreContest("the stack of a small core", 1, program, core)
	stack.goals = append(stack.goals, goal{figure: processors, tool: "gdb", most: 0.3}, goal{figure: memory, most: 25 << 10})
	inProcess := *stack
	inProcess.input += ", in process"
	inProcess.ours = entry{tool: "unwindd", argv: append(slices.Clone(stack.ours.argv), "--in-process")}
	return []*contest{alone("--version"), alone("--help"), plugins, stack, &inProcess}, nil
}
