// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"

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
	if err := g.checkFormat("text", "json"); err != nil {
		return err
	}
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
		return fmt.Errorf("%s: %w%s", path, err, insteadOfStream(m))
	}
	v := &report.VISA{Stream: s}
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return v.WriteJSON(w)
		}
		v.Color = w.isTerminal
		return v.WriteText(w)
	})
}

// insteadOfStream describes another file of the same compiler, which users pass by mistake:
// such files do not have the stream.
func insteadOfStream(m *object.Mapping) string {
	for magic, kind := range map[string]string{"\x7fELF": "an ELF file", "CTNI": "a container of ELF files"} {
		var is bool
		if err := object.Guard(func() error { is = bytes.HasPrefix(m.Data(), []byte(magic)); return nil }); err == nil && is {
			return ": this is " + kind + "; the compiler writes the stream to a file of its own, KERNEL.dbg"
		}
	}
	return ""
}
