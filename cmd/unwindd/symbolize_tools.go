// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/engine/report"
)

// toolNamed returns the tool that the executable stands for under the name by which it was
// started; nil for unwindd itself. The name may have a version or a target:
// llvm-symbolizer-22, x86_64-linux-gnu-addr2line.
func toolNamed(path string) func(args []string) int {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	switch {
	case strings.HasPrefix(name, "llvm-symbolizer"):
		return func(args []string) int { return llvmSymbolizer(args, false) }
	case strings.HasPrefix(name, "llvm-addr2line"):
		return func(args []string) int { return llvmSymbolizer(args, true) }
	case name == "addr2line", strings.HasSuffix(name, "-addr2line"):
		return addr2line
	}
	return nil
}

// printInfo prints a help or a version.
func printInfo(text string) int {
	p := report.NewPrinter(stdout)
	for line := range strings.Lines(text) {
		p.Printf("%s\n", strings.TrimSuffix(line, "\n"))
	}
	if p.Flush() != nil {
		return exitInput
	}
	return exitDone
}
