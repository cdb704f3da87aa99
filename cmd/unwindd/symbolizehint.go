// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// hint says on standard error what the answers lack. Standard output is llvm-symbolizer's.
func (f *symbolizeFlags) hint(s *symbolize.Session, args []string) {
	var hints []report.Hint
	for _, l := range s.Symbolizer.Lacking() {
		hints = append(hints, report.FileHint(&l))
	}
	line := report.HintLine(hints)
	switch unknown := s.Unknown(); {
	case f.otherKind() != "":
		line = f.otherKind()
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

// otherKind describes a file that another command reads; "" where it may have code.
func (f *symbolizeFlags) otherKind() string {
	if kind := engine.KindOf(f.object); kind.What != "" && kind.Command != "symbolize --obj" {
		return kind.Sentence("symbolize", f.object)
	}
	return ""
}

// explained adds to an error what the file is.
func (f *symbolizeFlags) explained(err error) error {
	if text := f.otherKind(); text != "" {
		return fmt.Errorf("%w; %s", err, text)
	}
	return err
}

// isThere reports whether a path names something.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
