// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// hint says on standard error what the answers lack. Standard output is llvm-symbolizer's.
func (f *symbolizeFlags) hint(s *symbolize.Session, args []string) {
	var hints []report.Hint
	for _, l := range s.Symbolizer.Lacking() {
		hints = append(hints, report.FileHint(l.Path, l.BuildID, l.Asked, l.HasNames))
	}
	line := report.HintLine(hints)
	switch unknown := s.Unknown(); {
	case f.object == "" && len(args) > 1 && !strings.Contains(args[0], " ") && isThere(args[0]):
		line = "the file has a flag of its own: unwindd symbolize --obj " + strings.Join(args, " ")
	case unknown != "":
		line = unknown + " is neither an address nor a function in the symbol table"
		if f.object != "" {
			line += " of " + f.object
		}
		line += ": give an address, as 0x1257, or the name as the linker has it"
	}
	if line != "" {
		messages.Printf("unwindd: hint: %s\n", line)
	}
}

// isThere reports whether a path names something.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
