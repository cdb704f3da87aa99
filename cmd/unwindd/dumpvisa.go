// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/report"
)

func newDumpVISA(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "visa FILE",
		Short: "Print the vISA debug information of a kernel",
		Long: `Print a debug stream of Intel's graphics compiler: for a kernel and each function
with a frame, where the code of vISA instructions is, where variables live, and
what the frame saves where. Numbers are those of the stream; what is known to be
wrong in them is told.`,
		Example: `  unwindd dump visa kernel.dbg
  unwindd dump visa kernel.dbg --format json`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return g.dumpVISA(args[0]) },
	}
}

func (g *globals) dumpVISA(path string) error {
	if err := g.checkFormat("text", "json"); err != nil {
		return err
	}
	v, file, err := report.OpenVISA(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return v.WriteJSON(w)
		}
		v.Color = w.isColored
		return v.WriteText(w)
	})
}
