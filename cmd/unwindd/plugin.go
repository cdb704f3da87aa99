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
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

func newPlugin(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Plugins: which there are and what they say",
		Example: `  unwindd plugin list
  unwindd plugin info x86_64
  unwindd plugin verify ./unwindd-arch-mychip`,
		Args: usageArgs(noSuchCommand),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List the architectures and language runtimes that are known",
			Example: `  unwindd plugin list
  unwindd plugin list --plugin-dir ./plugins -v`,
			Args: usageArgs(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error { return g.listPlugins() },
		},
		&cobra.Command{
			Use:     "info NAME",
			Short:   "Print what an architecture or a language runtime says of itself",
			Example: "  unwindd plugin info x86_64\n  unwindd plugin info amdgpu --format json",
			Args:    usageArgs(cobra.ExactArgs(1)),
			RunE:    func(_ *cobra.Command, args []string) error { return g.pluginInfo(args[0]) },
		},
		newPluginPin(g),
		newPluginVerify(g),
		newPluginCall(g),
		&cobra.Command{
			Use:   "serve NAME",
			Short: "Be the plugin of a bundled architecture (unwindd starts this itself)",
			// servePlugin parses its flags.
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

func servePlugin(args []string) error {
	return asUsage(confine.ServeMain(args, bundled.Architectures, bundled.Runtimes))
}

func execPlugin(args []string) error { return asUsage(confine.ExecMain(args)) }

// asUsage makes an error of usage a usageError.
func asUsage(err error) error {
	if errors.Is(err, confine.ErrUsage) {
		return usageError{err}
	}
	return err
}

// manager finds the plugins that the flags name, and starts none yet.
func (g *globals) manager() (*plugin.Manager, error) {
	if err := g.checkFormat("text", "json"); err != nil {
		return nil, err
	}
	o, err := g.plugins()
	if err != nil {
		return nil, err
	}
	m, err := plugin.NewManager(o)
	return m, g.ofSetting(err)
}

// checkPlugins finds the plugins of options, and starts none: an error is better told at once
// than by each worker.
func (g *globals) checkPlugins(o plugin.Options) error {
	m, err := plugin.NewManager(o)
	if err != nil {
		return g.ofSetting(err)
	}
	m.Close()
	return nil
}

// pluginStatus is a line of `plugin list`.
type pluginStatus struct {
	Name       string   `json:"name"`
	Arch       string   `json:"arch,omitempty"`
	Runtime    string   `json:"runtime,omitempty"`
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
		if d := s.Runtime; d != nil {
			p.Runtime, p.Version = d.Name, d.Version
			p.Recognises = recognisesModules(d)
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

// recognises describes the code objects that an architecture claims.
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
		if r.ELFClass != 0 {
			parts = append(parts, fmt.Sprintf("%d-bit", 32*uint(r.ELFClass)))
		}
		if r.ELFData != 0 {
			parts = append(parts, map[uint8]string{1: "little-endian", 2: "big-endian"}[r.ELFData])
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

// recognisesModules describes the modules that have a runtime.
func recognisesModules(d *sdk.RuntimeDescription) []string {
	out := []string{}
	for _, r := range d.Recognises {
		var parts []string
		if r.Section != "" {
			parts = append(parts, "section "+r.Section)
		}
		if r.Symbol != "" {
			parts = append(parts, "symbol "+r.Symbol)
		}
		if len(r.BuildID) > 0 {
			parts = append(parts, fmt.Sprintf("build ID %x", r.BuildID))
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

// pluginInfo prints the description of the architecture of a name, of the language runtime, or of both.
func (g *globals) pluginInfo(name string) error {
	m, err := g.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	a, err := m.Find(name)
	r, runtimeErr := m.FindRuntime(name)
	if err != nil && runtimeErr != nil {
		if !errors.Is(runtimeErr, plugin.ErrNoRuntime) {
			return runtimeErr
		}
		return fmt.Errorf("%w, and %w", err, runtimeErr)
	}
	return g.write(func(w *writer) error {
		switch {
		case g.format == "json" && runtimeErr != nil:
			return report.WriteJSON(w, a.Description())
		case g.format == "json" && err != nil:
			return report.WriteJSON(w, r.Description())
		case g.format == "json":
			return report.WriteJSON(w, struct {
				Architecture *sdk.Description
				Runtime      *sdk.RuntimeDescription
			}{a.Description(), r.Description()})
		}
		if err == nil {
			if err := writeDescription(w, a.Origin(), a.Description()); err != nil || runtimeErr != nil {
				return err
			}
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		return writeRuntime(w, r.Origin(), r.Description())
	})
}

// writeRuntime writes the description of a language runtime for people.
func writeRuntime(w io.Writer, origin string, d *sdk.RuntimeDescription) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	p := descriptionPrinter{printer: report.NewPrinter(t)}
	p.line("language runtime", "%s %s", d.Name, d.Version)
	p.line("origin", "%s", origin)
	p.features(d.Feature)
	p.line("recognises", "%s", strings.Join(recognisesModules(d), ", "))
	if d.ThreadKind != "" {
		p.line("threads", "%s", d.ThreadKind)
	}
	for _, s := range d.Symbols {
		p.line("symbol", "%s", s)
	}
	for _, about := range d.Types {
		text := about.Name + inUnit(about.Unit)
		if len(about.Members) > 0 {
			text += ": " + strings.Join(about.Members, " ")
		}
		p.line("type", "%s", text)
	}
	for _, c := range d.Constants {
		p.line("constants", "%s*%s", c.Prefix, inUnit(c.Unit))
	}
	return errors.Join(p.printer.Flush(), t.Flush())
}

// inUnit returns the words for a unit of debug information; "" for any.
func inUnit(unit string) string {
	if unit == "" {
		return ""
	}
	return " in " + unit
}

// writeDescription writes a description for people.
func writeDescription(w io.Writer, origin string, d *sdk.Description) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	p := descriptionPrinter{report.NewPrinter(t), d}
	p.general(origin)
	p.rules()
	for _, s := range d.AddressSpaces {
		p.line("address space", "%d %s, %d bits", s.Number, s.Name, s.Bits)
	}
	for i := range d.Registers {
		p.registers(&d.Registers[i])
	}
	for _, s := range d.RegisterSets {
		source := map[sdk.RegisterSource]string{
			sdk.CoreNote: "core note", sdk.PerfSample: "perf sample", sdk.MinidumpContext: "minidump context",
		}[s.Source]
		p.line("register set", "%s %s %#x: %d fields", source, s.Owner, s.Type, len(s.Fields))
	}
	for _, dialect := range d.Dialects {
		operations := fmt.Sprintf("%d operations", len(dialect.Operations))
		if _, isBuiltIn := locexpr.DialectByName(dialect.Name); isBuiltIn && len(dialect.Operations) == 0 {
			operations = "as built in"
		}
		p.line("dialect", "%s: %s", dialect.Name, operations)
	}
	return errors.Join(p.printer.Flush(), t.Flush())
}

// descriptionPrinter prints a description, in lines of a name and a value.
type descriptionPrinter struct {
	printer *report.Printer
	*sdk.Description
}

func (p descriptionPrinter) line(what, format string, args ...any) {
	p.printer.Printf("%s\t%s\n", what, fmt.Sprintf(format, args...))
}

// name returns the name of a register.
func (p descriptionPrinter) name(n uint32) string {
	if info, ok := p.Register(n); ok {
		return info.Name
	}
	return "none"
}

// features prints the features of the protocol that a plugin knows, where this program lacks some.
func (p descriptionPrinter) features(known uint32) {
	if known > sdk.Feature {
		p.line("features", "%d of the protocol; this unwindd knows %d, and ignores what is newer: `plugin verify` names it", known, sdk.Feature)
	}
}

// general prints the properties of the architecture as a whole.
func (p descriptionPrinter) general(origin string) {
	order := "little-endian"
	if p.ByteOrder == sdk.BigEndian {
		order = "big-endian"
	}
	p.line("architecture", "%s %s", p.Name, p.Version)
	p.line("origin", "%s", origin)
	p.features(p.Feature)
	p.line("recognises", "%s", strings.Join(recognises(p.Description), ", "))
	p.line("addresses", "%d bits, %s", p.AddressBits, order)
	if p.CanonicalBits > 0 {
		p.line("canonical", "addresses of %d bits", p.CanonicalBits)
	}
	if p.TagBits > 0 {
		p.line("tags", "the upper %d bits of addresses of data", p.TagBits)
	}
}

// rules prints the rules of unwinding.
func (p descriptionPrinter) rules() {
	frames := report.CallFrames{Space: report.SpaceNames(p.Description), Register: func(n uint64) string {
		return p.name(uint32(n)) //nolint:gosec // a valid row has numbers of registers
	}}
	p.line("PC, SP, FP", "%s, %s, %s", p.name(p.PC), p.name(p.SP), p.name(p.FP))
	p.line("return address", "column %d", p.ReturnAddress)
	for _, r := range []struct {
		what string
		row  *cfi.Row
	}{{"entry", p.Entry}, {"frame pointer", p.FramePointer}} {
		if r.row != nil {
			p.line(r.what, "%s", frames.RowText(r.row))
		}
	}
	if p.SignState != 0 {
		p.line("sign state", "%s", p.name(p.SignState))
	}
	if s := p.ThreadLocal; s != nil {
		variant := map[sdk.ThreadLocalVariant]string{sdk.ThreadLocalVariantI: "I", sdk.ThreadLocalVariantII: "II"}[s.Variant]
		p.line("thread-local storage", "variant %s, thread pointer %s", variant, p.name(s.Pointer))
	}
	if s := p.SignalFrame; s != nil {
		p.line("signal frame", "siginfo at %s+%d", p.name(p.SP), s.Info)
	}
}

// registers prints a range of registers.
func (p descriptionPrinter) registers(r *sdk.RegisterRange) {
	names := strings.Join(r.Names, " ")
	if len(r.Names) == 1 && r.Count > 1 {
		names = p.name(r.First) + " to " + p.name(r.First+r.Count-1)
	}
	if r.Lanes > 0 {
		names += fmt.Sprintf(", of threads with %d lanes", r.Lanes)
	}
	if r.Count == 1 {
		p.line("register", "%d: %s, %d bits", r.First, names, r.Bits)
	} else {
		p.line("registers", "%d-%d: %s, %d bits", r.First, r.First+r.Count-1, names, r.Bits)
	}
}
