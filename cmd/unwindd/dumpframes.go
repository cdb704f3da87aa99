// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// dumpFramesFlags are the flags of `unwindd dump cfi` and `dump rows`.
type dumpFramesFlags struct {
	*globals
	dialect string
}

// newDumpFrames makes a command that writes the call frame information of a
// file by one of two functions.
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
	o, d, err := f.openDescribed(path)
	if err != nil {
		return err
	}
	defer o.Close()
	expression, err := newExpressionReader(d, o, f.dialect)
	if err != nil {
		return err
	}
	for _, p := range o.Problems() {
		messages.Printf("unwindd: %s\n", p)
	}
	var entries tally
	c := &report.CallFrames{
		File: path, Entries: counted(engine.CallFrameEntries(o), &entries), SFrame: counted(engine.SFrameEntries(o), &entries),
		Unwind:     counted(engine.UnwindEntries(o), &entries),
		Expression: expression.text, Register: registerNames(d, o), Space: spaceNames(d),
		Forbidden: expression.forbidden, HasSpace: hasSpace(d),
		Problem: complain,
	}
	err = object.Guard(func() error {
		return f.write(func(w *writer) error {
			c.Color = w.isTerminal
			return write(c, w)
		})
	})
	if err == nil && entries == (tally{}) && f.format == "text" {
		messages.Printf("unwindd: %s: no call frame information\n", path)
	}
	if err == nil {
		err = entries.failure(path, "call frame information")
	}
	return err
}

// counted counts what is taken from a list.
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

// objectNames are the names that threads of an object know.
func objectNames(d *sdk.Description, o *object.Object) sdk.Names {
	lanes := uint32(0)
	if p, ok := d.ObjectProcessor(o.Flags()); ok {
		lanes = p.Lanes[0]
	}
	return d.Names(lanes)
}

// registerNames returns the function that names the columns of an object's rows.
// A register without a name goes by its number, which is rN on a machine that is
// not known.
func registerNames(d *sdk.Description, o *object.Object) func(uint64) string {
	if d == nil {
		return func(n uint64) string { return fmt.Sprintf("r%d", n) }
	}
	names, known := objectNames(d, o), map[uint64]string{}
	return func(n uint64) string {
		name, ok := known[n]
		if ok {
			return name
		}
		if name, ok = names.RegisterName(n); !ok {
			return fmt.Sprint(n)
		}
		known[n] = name
		return name
	}
}

// spaceNames names address spaces; those without a name go by their number.
func spaceNames(d *sdk.Description) func(locexpr.AddressSpace) string {
	return func(space locexpr.AddressSpace) string {
		if d != nil {
			if info, ok := d.Space(space); ok {
				return info.Name
			}
		}
		return fmt.Sprint(uint64(space))
	}
}

// hasSpace is the function that says whether an architecture has an address space; nil
// where the architecture is not known.
func hasSpace(d *sdk.Description) func(locexpr.AddressSpace) bool {
	if d == nil {
		return nil
	}
	return func(space locexpr.AddressSpace) bool { _, ok := d.Space(space); return ok }
}

// An expressionReader reads an object's expressions.
type expressionReader struct {
	options  locexpr.TextOptions
	dialects []*locexpr.Dialect
}

// text is an expression as text.
func (r *expressionReader) text(expr []byte) string {
	return locexpr.FormatText(expr, r.optionsOf(expr))
}

// forbidden is the error of an operation that call frame information must not use.
func (r *expressionReader) forbidden(expr []byte) error {
	o := r.optionsOf(expr)
	return locexpr.CheckCFI(expr, o.Dialect, o.AddressSize, o.Order)
}

// optionsOf has the first dialect that an expression can be of.
func (r *expressionReader) optionsOf(expr []byte) locexpr.TextOptions {
	options := r.options
	options.Dialect = r.dialects[0]
	for _, dialect := range r.dialects {
		if decodes(expr, dialect, options) {
			options.Dialect = dialect
			break
		}
	}
	return options
}

// newExpressionReader returns what reads an object's expressions in the dialect that name says. Where name is empty it tries the
// architecture's dialects one after the other for each expression, since a file
// does not say which it is in.
func newExpressionReader(d *sdk.Description, o *object.Object, name string) (*expressionReader, error) {
	options := locexpr.TextOptions{AddressSize: o.AddressSize(), Order: locexpr.LittleEndian}
	if o.ByteOrder() == binary.BigEndian {
		options.Order = locexpr.BigEndian
	}
	if d != nil {
		options.Names = objectNames(d, o)
	}
	dialects := []*locexpr.Dialect{locexpr.DWARF5}
	switch {
	case name != "":
		dialect, err := dialectOf(d, name, nil)
		if err != nil {
			return nil, err
		}
		dialects = []*locexpr.Dialect{dialect}
	case d != nil && len(d.Dialects) > 0:
		dialects = dialects[:0]
		for i := range d.Dialects {
			dialect, err := d.Dialects[i].Table()
			if err != nil {
				return nil, err
			}
			dialects = append(dialects, dialect)
		}
	}
	return &expressionReader{options, dialects}, nil
}

func decodes(expr []byte, dialect *locexpr.Dialect, o locexpr.TextOptions) bool {
	for _, err := range locexpr.Decode(expr, dialect, o.AddressSize, o.Order) {
		if err != nil {
			return false
		}
	}
	return true
}
