// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/target/minidump"
	"github.com/unwindd/unwindd/plugins/amdgpu"
)

func newDumpNotes(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "notes FILE",
		Short: "Print notes, the code objects inside a file, and what is in a minidump",
		Long: `Print the notes of an ELF file: build IDs, program properties, what describes
the kernels of an accelerator; and list the code objects that a fat binary or an
offload bundle holds. FILE#NAME is such a code object.

Of a minidump, print all that is in it but the bytes of its memory: the exception
with its meaning, threads with their registers, modules with their identifiers.`,
		Example: `  unwindd dump notes server
  unwindd dump notes kernel.co --format json
  unwindd dump notes program#gfx90a
  unwindd dump notes crash.dmp`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return g.dumpNotes(args[0]) },
	}
}

func (g *globals) dumpNotes(path string) error {
	if isMinidump(path) {
		d, err := minidump.Open(path)
		if err != nil {
			return err
		}
		defer d.Close()
		return g.dumpMinidump(d)
	}
	n, err := report.OpenNotes(path, bundledFormats{})
	if err != nil {
		return err
	}
	defer n.Close()
	n.Decode, n.Problem = decodeNote, complain
	if n.Object != nil {
		if err := g.describeNotes(n); err != nil {
			return err
		}
	}
	return object.Guard(func() error {
		return g.write(func(w *writer) error {
			if g.format == "json" {
				return n.WriteJSON(w)
			}
			n.Color = w.isTerminal
			return n.WriteText(w)
		})
	})
}

// isMinidump reports whether a file begins as minidumps do.
func isMinidump(path string) (is bool) {
	m, err := object.Map(path)
	if err != nil {
		return false
	}
	defer m.Close()
	_ = object.Guard(func() error { is = minidump.Is(m.Data()); return nil }) // a file that was truncated meanwhile is none
	return is
}

// dumpMinidump prints the content of a minidump.
func (g *globals) dumpMinidump(d *minidump.Dump) error {
	return object.Guard(func() error {
		m := report.NewMinidump(d)
		return g.write(func(w *writer) error {
			if g.format == "json" {
				return m.WriteJSON(w)
			}
			for _, p := range m.Problems {
				messages.Printf("unwindd: %s\n", p)
			}
			return m.WriteText(w, w.isTerminal)
		})
	})
}

// describeNotes finds the architecture and the processor that the object is for,
// where an architecture claims it.
func (g *globals) describeNotes(n *report.Notes) error {
	m, err := g.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	for _, p := range n.Object.Problems() {
		messages.Printf("unwindd: %s\n", p)
	}
	d, err := describe(m, n.Object)
	switch {
	case errors.Is(err, plugin.ErrNoArchitecture):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", n.File, err)
	}
	n.Describe(d)
	return nil
}

// decodeNote decodes the notes of bundled architectures.
func decodeNote(n *object.Note) (any, error) {
	if n.Owner != amdgpu.MetadataOwner || n.Type != amdgpu.MetadataNote {
		return nil, nil
	}
	m, err := amdgpu.DecodeMetadata(n.Data)
	if err != nil {
		return nil, err // m would be a nil map inside an interface, which is not nil
	}
	return m, nil
}
