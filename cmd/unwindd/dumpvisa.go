package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/plugins/visa/stream"
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
	m, err := object.Map(path)
	if err != nil {
		return err
	}
	defer m.Close()
	var s *stream.Stream
	err = object.Guard(func() error {
		s, err = stream.Decode(m.Data())
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	v := &report.VISA{Stream: s, Problem: func(err error) { fmt.Fprintf(os.Stderr, "unwindd: %s: %v\n", path, err) }}
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return v.WriteJSON(w)
		}
		v.Color = w.terminal
		return v.WriteText(w)
	})
}
