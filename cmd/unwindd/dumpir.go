// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/report"
)

// newDumpIR makes the command for a format of report.OpenIR; name is the format's proper
// name.
func newDumpIR(g *globals, format, name string) *cobra.Command {
	return &cobra.Command{
		Use:   format + " FILE",
		Short: "Print the debug information of " + name,
		Long: `Print the debug information of a module of ` + name + `: its records; for every
instruction the source position, with the calls that were inlined; variables
with where they are while instructions run; macros and source files.`,
		Example: `  unwindd dump ` + format + ` kernel` + irSuffixes[format] + `
  unwindd dump ` + format + ` kernel` + irSuffixes[format] + ` --format json`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return g.dumpIR(format, args[0]) },
	}
}

var irSuffixes = map[string]string{"spirv": ".spv", "llvmir": ".ll"}

func (g *globals) dumpIR(format, path string) error {
	if err := g.checkFormat("text", "json"); err != nil {
		return err
	}
	r, file, err := report.OpenIR(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if got := r.IR.Format(); got != format {
		return fmt.Errorf("%s: a %s file, expected %s", path, got, format)
	}
	return g.write(func(w *writer) error {
		r.Color = w.isColored
		if g.format == "json" {
			return r.WriteJSON(w)
		}
		return r.WriteText(w)
	})
}
