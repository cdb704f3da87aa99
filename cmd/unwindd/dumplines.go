// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/report"
)

func newDumpLines(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "lines FILE",
		Short: "Print line tables",
		Long: `Print every row of the line tables of a file by address, also of those without
.debug_info: the position and the function, with the inlined calls at the row's
first address, innermost first. Of a cubin the lines of PTX are below each row,
where it has them.`,
		Example: `  unwindd dump lines kernel.cubin
  unwindd dump lines server --format json`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return g.dumpLines(args[0]) },
	}
}

func (g *globals) dumpLines(path string) error {
	if err := g.checkFormat("text", "json"); err != nil {
		return err
	}
	m, err := g.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	o, d, err := report.OpenObject(path, m, bundledFormats)
	if err != nil {
		return err
	}
	defer o.Close()
	l, err := report.NewLines(o, d)
	if err != nil {
		return err
	}
	for _, p := range o.Problems() {
		messages.Printf("unwindd: %s\n", p)
	}
	var rows tally
	l.Rows, l.Problem = counted(l.Rows, &rows), complain
	err = g.write(func(w *writer) error {
		l.Color = w.isColored
		if g.format == "json" {
			return l.WriteJSON(w)
		}
		return l.WriteText(w)
	})
	if err == nil && rows == (tally{}) && g.format == "text" {
		messages.Printf("unwindd: %s: no line tables\n", path)
	}
	if err == nil {
		err = rows.failure(path, "line tables")
	}
	return err
}
