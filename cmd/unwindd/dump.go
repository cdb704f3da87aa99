// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

func newDump(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Print what is in a file",
		Example: `  unwindd dump cfi ./server
  unwindd dump rows ./server
  unwindd dump notes core`,
		Args: usageArgs(noSuchCommand),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDumpCFI(g), newDumpRows(g), newDumpLines(g), newDumpExpr(g), newDumpNotes(g), newDumpVISA(g),
		newDumpIR(g, "spirv", "SPIR-V"), newDumpIR(g, "llvmir", "LLVM IR"))
	for _, c := range cmd.Commands() {
		c.RunE = explained(c.RunE)
	}
	return cmd
}

// explained is the function of a command that reads one file of code. Where that is a file of another
// command, its error says so.
func explained(run func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if err == nil || len(args) != 1 || errors.As(err, new(usageError)) {
			return err
		}
		// A core has notes, which are read, and may be damaged.
		if kind := engine.KindOf(args[0]); kind.What != "" && !kind.IsELF && kind.Command != "symbolize --obj" {
			return fmt.Errorf("%w; %s", err, kind.Sentence("dump", args[0]))
		}
		return err
	}
}

// dumpExprFlags are the flags of `unwindd dump expr`.
type dumpExprFlags struct {
	*globals
	arch    string
	dialect string
	hex     string
}

func newDumpExpr(g *globals) *cobra.Command {
	f := &dumpExprFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "expr FILE | expr --arch ARCH --hex BYTES",
		Short: "Print DWARF expressions as text",
		Long: `Print the DWARF expressions of a file, those of its call frame information, of
its debugging information entries and of their location lists, or the expression
that bytes hold.`,
		Example: `  unwindd dump expr server
  unwindd dump expr --arch x86_64 --hex 770880003f1a3b2a332422
  unwindd dump expr --arch amdgpu --dialect llvm-legacy --hex 9017e414`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == cmd.Flags().Changed("hex") {
				return usageError{errors.New("expected a FILE or --hex, and not both")}
			}
			if len(args) == 1 {
				return f.file(args[0])
			}
			return f.bytes()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.arch, "arch", "", "the architecture `A` of --hex")
	flags.StringVar(&f.dialect, "dialect", "", "the dialect `NAME` of the operations (of --hex: the canonical one; of a file: the first of the architecture's that fits, DWARF 5 where there is none)")
	flags.StringVar(&f.hex, "hex", "", "the expression's `BYTES`")
	return cmd
}

// dialectOf finds a dialect by name, among the architecture's and the project's.
func dialectOf(d *sdk.Description, name string, otherwise *locexpr.Dialect) (*locexpr.Dialect, error) {
	if name == "" {
		return otherwise, nil
	}
	var known []string
	if d != nil {
		for i := range d.Dialects {
			if strings.EqualFold(d.Dialects[i].Name, name) {
				return d.Dialects[i].Table()
			}
			known = append(known, d.Dialects[i].Name)
		}
	}
	if dialect, ok := locexpr.DialectByName(name); ok {
		return dialect, nil
	}
	for _, dialect := range locexpr.Dialects {
		known = append(known, dialect.Name)
	}
	return nil, usageError{fmt.Errorf("--dialect %s: expected one of %s", name, strings.Join(known, ", "))}
}

func (f *dumpExprFlags) bytes() error {
	if f.arch == "" {
		return usageError{errors.New("--hex needs --arch")}
	}
	m, err := f.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	a, err := m.Find(f.arch)
	if err != nil {
		return err
	}
	dialect, err := dialectOf(a.Description(), f.dialect, locexpr.Canonical)
	if err != nil {
		return err
	}
	b, err := hex.DecodeString(strings.TrimPrefix(strings.ReplaceAll(f.hex, " ", ""), "0x"))
	if err != nil {
		return usageError{fmt.Errorf("--hex: %w", err)}
	}
	text := locexpr.FormatText(b, job.TextOptions(a.Description(), dialect, a.Description().Names(0)))
	err = f.write(func(w *writer) error {
		if f.format == "json" {
			return report.WriteJSON(w, report.Expression{Hex: hex.EncodeToString(b), Text: text})
		}
		p := report.NewPrinter(w)
		p.Printf("%s\n", text)
		return p.Flush()
	})
	if err == nil && strings.HasSuffix(text, ">") {
		err = fmt.Errorf("--hex: the bytes cannot all be decoded: %s", text)
	}
	return err
}
