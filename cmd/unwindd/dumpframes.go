// SPDX-License-Identifier: Apache-2.0

package main

import (
	"iter"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/report"
)

// dumpFramesFlags are the flags of `unwindd dump cfi` and `dump rows`.
type dumpFramesFlags struct {
	*globals
	dialect string
}

// newDumpFrames makes a command that writes the call frame information of a file, by text
// or json.
func newDumpFrames(g *globals, cmd *cobra.Command, text, json func(*report.CallFrames, *writer) error) *cobra.Command {
	f := &dumpFramesFlags{globals: g}
	cmd.Args = usageArgs(cobra.ExactArgs(1))
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return f.file(args[0], func(c *report.CallFrames, w *writer) error {
			if f.format == "json" {
				return json(c, w)
			}
			return text(c, w)
		})
	}
	cmd.Flags().StringVar(&f.dialect, "dialect", "", "the dialect `NAME` of expressions (the first of the architecture's that fits)")
	return cmd
}

func newDumpCFI(g *globals) *cobra.Command {
	return newDumpFrames(g, &cobra.Command{
		Use:   "cfi FILE",
		Short: "Print call frame information as it is written",
		Long: `Print every CIE and FDE of a file with its instructions, section by section.
Numbers are multiplied by the alignment factors. Of a PE file for x86-64 the unwind
codes of each function follow.`,
		Example: `  unwindd dump cfi server
  unwindd dump cfi server.debug --format json`,
	}, func(c *report.CallFrames, w *writer) error { return c.WriteCFIText(w) },
		func(c *report.CallFrames, w *writer) error { return c.WriteCFIJSON(w) })
}

func newDumpRows(g *globals) *cobra.Command {
	return newDumpFrames(g, &cobra.Command{
		Use:   "rows FILE",
		Short: "Print call frame information as tables of rows",
		Long: `Print the rows of every FDE of a file, and of every function of a PE file that has
unwind codes: where the CFA is at each PC, and where the
caller's registers are. Only what the file says is printed; a dash or an absent
rule is the default of the architecture.`,
		Example: `  unwindd dump rows server
  unwindd dump rows kernel.co --format json`,
	}, func(c *report.CallFrames, w *writer) error { return c.WriteRowsText(w) },
		func(c *report.CallFrames, w *writer) error { return c.WriteRowsJSON(w) })
}

func (f *dumpFramesFlags) file(path string, write func(*report.CallFrames, *writer) error) error {
	m, err := f.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	o, d, err := report.OpenObject(path, m, bundledFormats)
	if err != nil {
		return err
	}
	defer o.Close()
	dialect, err := dialectOf(d, f.dialect, nil)
	if err != nil {
		return err
	}
	c, err := report.NewCallFrames(path, o, d, dialect)
	if err != nil {
		return err
	}
	for _, p := range o.Problems() {
		messages.Printf("unwindd: %s\n", p)
	}
	var entries tally
	c.Entries, c.SFrame, c.Unwind = counted(c.Entries, &entries), counted(c.SFrame, &entries), counted(c.Unwind, &entries)
	c.Compact = counted(c.Compact, &entries)
	c.Problem = complain
	err = f.write(func(w *writer) error {
		c.Color = w.isColored
		return write(c, w)
	})
	if err == nil && entries == (tally{}) && f.format == "text" {
		messages.Printf("unwindd: %s: no call frame information\n", path)
	}
	if err == nil {
		err = entries.failure(path, "call frame information")
	}
	return err
}

// counted yields a list, and counts its entries.
func counted[T any](list iter.Seq2[T, error], n *tally) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range list {
			n.add(err)
			if !yield(e, err) {
				return
			}
		}
	}
}
