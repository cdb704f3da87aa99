// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/report"
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
	if report.IsMinidump(path) {
		return g.dumpMinidump(path)
	}
	n, err := report.OpenNotes(path, bundledFormats)
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
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return n.WriteJSON(w)
		}
		n.Color = w.isColored
		return n.WriteText(w)
	})
}

// dumpMinidump prints the content of a minidump.
func (g *globals) dumpMinidump(path string) error {
	m, file, err := report.OpenMinidump(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return m.WriteJSON(w)
		}
		for _, p := range m.Problems {
			messages.Printf("unwindd: %s\n", p)
		}
		return m.WriteText(w, w.isColored)
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
	return n.FindArch(m)
}

// decodeNote decodes the notes of bundled architectures.
func decodeNote(owner string, kind uint32, data []byte) (any, error) {
	if owner != amdgpu.MetadataOwner || kind != amdgpu.MetadataNote {
		return nil, nil
	}
	m, err := amdgpu.DecodeMetadata(data)
	if err != nil {
		return nil, err // m would be a nil map inside an interface, which is not nil
	}
	return m, nil
}
