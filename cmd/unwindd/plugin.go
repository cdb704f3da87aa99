// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/sdk"
)

func newPlugin(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Architecture plugins: which there are and what they say",
		Args:  usageArgs(noSuchCommand),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List the architectures that are known",
			Args:  usageArgs(cobra.NoArgs),
			RunE:  func(*cobra.Command, []string) error { return g.listPlugins() },
		},
		&cobra.Command{
			Use:     "info NAME",
			Short:   "Print what an architecture says of itself",
			Example: "  unwindd plugin info x86_64",
			Args:    usageArgs(cobra.ExactArgs(1)),
			RunE:    func(_ *cobra.Command, args []string) error { return g.pluginInfo(args[0]) },
		},
		newPluginVerify(g),
		newPluginCall(g),
		&cobra.Command{
			Use:   "serve NAME",
			Short: "Be the plugin of a bundled architecture (unwindd starts this itself)",
			// Its flags are the engine's and its own process's affair.
			DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
					return cmd.Help()
				}
				return servePlugin(args)
			},
		},
		&cobra.Command{
			Use:                "exec [--socket-dir DIR] -- PATH [ARGS...]",
			Short:              "Confine this process and execute a plugin in its place (unwindd starts this itself)",
			DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
					return cmd.Help()
				}
				return execPlugin(args)
			},
		},
	)
	return cmd
}

func servePlugin(args []string) error { return asUsage(plugin.ServeMain(args, bundled)) }

func execPlugin(args []string) error { return asUsage(plugin.ExecMain(args)) }

// asUsage makes a usageError of an error that is one.
func asUsage(err error) error {
	if errors.Is(err, plugin.ErrUsage) {
		return usageError{err}
	}
	return err
}

// manager finds the plugins that the flags name. It starts none of them yet.
func (g *globals) manager() (*plugin.Manager, error) {
	if err := g.checkFormat("text", "json"); err != nil {
		return nil, err
	}
	o, err := g.plugins()
	if err != nil {
		return nil, err
	}
	return plugin.NewManager(o)
}

// pluginStatus is a line of `plugin list`.
type pluginStatus struct {
	Name       string   `json:"name"`
	Arch       string   `json:"arch,omitempty"`
	Version    string   `json:"version,omitempty"`
	Origin     string   `json:"origin"`
	SHA256     string   `json:"sha256,omitempty"`
	Pinned     bool     `json:"pinned"`
	Recognises []string `json:"recognises"`
	Problem    string   `json:"problem,omitempty"`
}

func (g *globals) listPlugins() error {
	m, err := g.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	list := []pluginStatus{}
	for _, s := range m.List() {
		p := pluginStatus{Name: s.Name, Origin: s.Origin, SHA256: s.SHA256, Pinned: s.Pinned, Problem: s.Problem, Recognises: []string{}}
		if d := s.Description; d != nil {
			p.Arch, p.Version = d.Name, d.Version
			p.Recognises = recognises(d)
		}
		list = append(list, p)
	}
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return report.WriteJSON(w, list)
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		b := report.NewPrinter(t)
		b.Printf("NAME\tVERSION\tORIGIN\tRECOGNISES\n")
		for _, p := range list {
			what := strings.Join(p.Recognises, ", ")
			if p.Problem != "" {
				what = "problem: " + p.Problem
			}
			b.Printf("%s\t%s\t%s\t%s\n", p.Name, p.Version, p.Origin, what)
		}
		return errors.Join(b.Flush(), t.Flush())
	})
}

// recognises says in words which code objects an architecture claims.
func recognises(d *sdk.Description) []string {
	out := []string{}
	for _, r := range d.Recognises {
		var parts []string
		if r.ELFMachine != 0 {
			parts = append(parts, fmt.Sprintf("ELF machine %d", r.ELFMachine))
		}
		if r.OSABI >= 0 {
			parts = append(parts, fmt.Sprintf("OS ABI %d", r.OSABI))
		}
		if r.FlagsMask != 0 {
			parts = append(parts, fmt.Sprintf("flags %#x/%#x", r.Flags, r.FlagsMask))
		}
		if len(r.Magic) > 0 {
			parts = append(parts, fmt.Sprintf("magic %x", r.Magic))
		}
		if r.NoteOwner != "" {
			parts = append(parts, "notes of "+r.NoteOwner)
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

// pluginInfo prints a description.
func (g *globals) pluginInfo(name string) error {
	m, err := g.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	a, err := m.Find(name)
	if err != nil {
		return err
	}
	d := a.Description()
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return report.WriteJSON(w, d)
		}
		return writeDescription(w, a.Origin(), d)
	})
}

// writeDescription writes a description for people.
func writeDescription(w io.Writer, origin string, d *sdk.Description) error {
	register := func(n uint32) string {
		if info, ok := d.Register(n); ok {
			return info.Name
		}
		return "none"
	}
	order := "little-endian"
	if d.ByteOrder == sdk.BigEndian {
		order = "big-endian"
	}
	frames := report.CallFrames{Space: spaceNames(d), Register: func(n uint64) string {
		return register(uint32(n)) //nolint:gosec // a valid row has numbers of registers
	}}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	b := report.NewPrinter(t)
	line := func(what, format string, args ...any) {
		b.Printf("%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	line("architecture", "%s %s", d.Name, d.Version)
	line("origin", "%s", origin)
	line("recognises", "%s", strings.Join(recognises(d), ", "))
	line("addresses", "%d bits, %s", d.AddressBits, order)
	if d.CanonicalBits > 0 {
		line("canonical", "addresses of %d bits", d.CanonicalBits)
	}
	if d.TagBits > 0 {
		line("tags", "the upper %d bits of addresses of data", d.TagBits)
	}
	line("PC, SP, FP", "%s, %s, %s", register(d.PC), register(d.SP), register(d.FP))
	line("return address", "column %d", d.ReturnAddress)
	for _, r := range []struct {
		what string
		row  *cfi.Row
	}{{"entry", d.Entry}, {"frame pointer", d.FramePointer}} {
		if r.row != nil {
			line(r.what, "%s", frames.RowText(r.row))
		}
	}
	if d.SignState != 0 {
		line("sign state", "%s", register(d.SignState))
	}
	if s := d.ThreadLocal; s != nil {
		variant := map[sdk.ThreadLocalVariant]string{sdk.ThreadLocalVariantI: "I", sdk.ThreadLocalVariantII: "II"}[s.Variant]
		line("thread-local storage", "variant %s, thread pointer %s", variant, register(s.Pointer))
	}
	for _, s := range d.AddressSpaces {
		line("address space", "%d %s, %d bits", s.Number, s.Name, s.Bits)
	}
	for _, r := range d.Registers {
		names := strings.Join(r.Names, " ")
		if len(r.Names) == 1 && r.Count > 1 {
			names = register(r.First) + " to " + register(r.First+r.Count-1)
		}
		if r.Lanes > 0 {
			names += fmt.Sprintf(", of threads with %d lanes", r.Lanes)
		}
		if r.Count == 1 {
			line("register", "%d: %s, %d bits", r.First, names, r.Bits)
		} else {
			line("registers", "%d-%d: %s, %d bits", r.First, r.First+r.Count-1, names, r.Bits)
		}
	}
	for _, s := range d.RegisterSets {
		source := map[sdk.RegisterSource]string{
			sdk.CoreNote: "core note", sdk.PerfSample: "perf sample", sdk.MinidumpContext: "minidump context",
		}[s.Source]
		line("register set", "%s %s %#x: %d fields", source, s.Owner, s.Type, len(s.Fields))
	}
	for _, dialect := range d.Dialects {
		line("dialect", "%s: %d operations", dialect.Name, len(dialect.Operations))
	}
	return errors.Join(b.Flush(), t.Flush())
}
