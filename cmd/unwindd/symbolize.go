// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/sdk"
)

// symbolizeFlags are the flags of `unwindd symbolize`.
type symbolizeFlags struct {
	*globals
	object     string
	style      string
	functions  string
	noDemangle bool
	noInlines  bool
	pretty     bool
	addresses  bool
	baseNames  bool
	relative   bool
	context    int64
	adjustVMA  string
	isRelative bool
	debugDirs  []string
	dsyms      []string
	machine    string
	debuginfodFlags
	symbolFlags
	dwp string
}

func newSymbolize(g *globals) *cobra.Command {
	f := &symbolizeFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "symbolize --obj FILE [ADDRESS...]",
		Short: "Say what functions and lines addresses of a file are",
		Long: `Print the functions and source lines at addresses of a code object, inlined
calls included, innermost first. Without addresses they are read from standard
input, one a line, and each answer ends with an empty line.

A line, or an argument, may also name the file: "FILE ADDRESS". CODE, DATA or
FRAME before it say what is asked for; FILE: and BUILDID: before the name, what
it is. Instead of an address, the name of a function in the symbol table will do.

Of a SPIR-V or LLVM IR module the positions are FUNCTION+INSTRUCTION, counted from
0, %ID of an instruction's result (in LLVM IR FUNCTION%ID), or a number: of a word
of SPIR-V, of a line of LLVM IR.

Of a cubin they are FUNCTION+OFFSET or SECTION+OFFSET: each section of code begins
at address 0.

Of a file of macOS they are those in the file. FILE:MACHINE, as app:arm64, is one of
the files in a universal one. Its dSYM is found beside it and in --debug-dir; without one, the
object files that the linker names are read.

Of a PE file (.exe, .dll) they are the image base that it prefers plus the offset in
the image. Its PDB file is found beside it, at the path where it was built, in
--debug-dir and in --symbols. A PDB file alone has no image base: its addresses are
offsets in the image.

The executable does what llvm-symbolizer does under the name llvm-symbolizer,
and what addr2line does under the name addr2line, with their options.`,
		Example: `  unwindd symbolize --obj server 0x401257
  unwindd symbolize --obj server --output-style json 0x401257
  unwindd symbolize --obj kernel.spv kern+12 %65
  echo 'server 0x401257' | unwindd symbolize`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.object, "obj", "e", "", "the addresses are of `FILE`")
	flags.StringVar(&f.style, "output-style", "llvm", "print as `STYLE`: llvm, gnu (as addr2line, and read numbers as hexadecimal) or json")
	flags.StringVar(&f.functions, "functions", "linkage", "print functions' `NAMES`: linkage, short or none")
	flags.BoolVar(&f.noDemangle, "no-demangle", false, "print names as linkers have them")
	flags.BoolVar(&f.noInlines, "no-inlines", false, "leave out inlined calls")
	flags.BoolVarP(&f.pretty, "pretty-print", "p", false, "print a function and its line as one line, JSON indented")
	flags.BoolVarP(&f.addresses, "addresses", "a", false, "print each address before its functions")
	flags.BoolVarP(&f.baseNames, "basenames", "s", false, "print files without their directories")
	flags.BoolVar(&f.relative, "relativenames", false, "print files without the compilation directory")
	flags.Int64Var(&f.context, "print-source-context-lines", 0, "print `N` lines of source around each line")
	flags.StringVar(&f.adjustVMA, "adjust-vma", "0", "subtract `OFFSET` from addresses")
	flags.Lookup("adjust-vma").DefValue = ""
	flags.BoolVar(&f.isRelative, "relative-address", false, "addresses of a PE file are offsets from the beginning of its image")
	flags.StringArrayVar(&f.debugDirs, "debug-dir", nil, "look for separate debug files under `DIR`; may be repeated")
	flags.StringArrayVar(&f.dsyms, "dsym-hint", nil, "look for debug information of macOS in `DIR`, the folder of a dSYM, too; may be repeated")
	flags.StringVar(&f.machine, "default-arch", "", "of a universal file of macOS read the one for the machine `NAME`, as arm64")
	f.debuginfodFlags.add(flags)
	f.symbolFlags.add(flags)
	flags.StringVar(&f.dwp, "dwp", "", "read split units from the package `FILE`")
	return cmd
}

// chosen returns the value of a name among the names that a flag takes.
func chosen[T any](flag, name string, values map[string]T, expected string) (T, error) {
	v, ok := values[strings.ToLower(name)]
	if !ok {
		return v, usageError{fmt.Errorf("--%s %s: expected %s", flag, name, expected)}
	}
	return v, nil
}

func (f *symbolizeFlags) run(cmd *cobra.Command, args []string) error {
	output, err := f.outputOptions()
	if err != nil {
		return err
	}
	adjust, err := symbolize.ParseNumber(f.adjustVMA)
	if err != nil {
		return usageError{fmt.Errorf("--adjust-vma %s: expected a number", f.adjustVMA)}
	}
	if f.context < 0 {
		return usageError{errors.New("--print-source-context-lines: expected 0 or more")}
	}
	if err := checkDirs("debug-dir", f.debugDirs...); err != nil {
		return err
	}
	if err := checkDirs("dsym-hint", f.dsyms...); err != nil {
		return err
	}
	if err := checkFile("dwp", f.dwp); err != nil {
		return err
	}
	server, err := f.connectServer(cmd)
	if err != nil {
		return err
	}
	if server != nil {
		defer server.Close()
		if f.dwp != "" {
			return usageError{fmt.Errorf("--dwp %s: split units are read here: expected no --server with it", f.dwp)}
		}
	}
	remotes, err := f.connectStores(&f.symbolFlags, f.log())
	if err != nil {
		return err
	}
	defer remotes.Close()
	options := f.symbolizerOptions()
	options.Remote, options.Symbols = remotes.Debuginfod, remotes.Stores
	s := newSymbolSession(options)
	defer s.Symbolizer.Close() // after write has looked for truncated files
	return f.write(func(w *writer) error {
		s.Tool, s.Object, s.Inlines, s.Output = "unwindd", f.object, !f.noInlines, output
		s.Hex, s.AdjustVMA, s.IsRelative = output.Style == symbolize.StyleAddr2line, adjust, f.isRelative
		s.IR, s.Log, s.Refuse = true, f.log(), f.refuse()
		if server != nil {
			s.Elsewhere = server.Symbols(cmd.Context(), s)
			defer f.saySent(server, "all questions")
		}
		if err := s.Run(w, args, os.Stdin); err != nil {
			return ofServer(f.explained(err))
		}
		f.hint(s, args)
		return nil
	})
}

// outputOptions returns the options of writing answers.
func (f *symbolizeFlags) outputOptions() (o symbolize.WriterOptions, err error) {
	if err := f.checkFormat("text", "json"); err != nil {
		return o, err
	}
	o = symbolize.WriterOptions{Demangle: !f.noDemangle, Pretty: f.pretty, Addresses: f.addresses, Context: f.context}
	if o.Style, err = chosen("output-style", f.style, symbolStyles, "llvm, gnu or json"); err != nil {
		return o, err
	}
	if f.format == "json" {
		o.Style = symbolize.StyleJSON
	}
	if o.Functions, err = chosen("functions", f.functions, functionNames, "linkage, short or none"); err != nil {
		return o, err
	}
	switch {
	case f.baseNames:
		o.Paths = symbolize.BaseNames
	case f.relative:
		o.Paths = symbolize.RelativePaths
	}
	return o, nil
}

// symbolStyles are the values of --output-style.
var symbolStyles = map[string]symbolize.Style{
	"llvm": symbolize.StyleLLVM, "gnu": symbolize.StyleAddr2line, "json": symbolize.StyleJSON,
}

// functionNames are the values of --functions.
var functionNames = map[string]symbolize.FunctionNames{
	"linkage": symbolize.LinkageNames, "short": symbolize.ShortNames, "none": symbolize.NoNames,
}

// refuse returns a function that refuses files that the output would overwrite, and caches
// its results.
func (f *symbolizeFlags) refuse() func(path string) error {
	results := map[string]error{}
	return func(path string) error {
		err, ok := results[path]
		if !ok {
			f.reads(path)
			err = f.notOverInput(f.output)
			results[path] = err
		}
		return err
	}
}

// symbolizerOptions returns options that warn on standard error of debug files that could
// not be used. The tools that unwindd replaces do not warn of these.
func (f *symbolizeFlags) symbolizerOptions() symbolize.Options {
	return symbolize.Options{
		DebugDirs: append(f.dsyms, f.debugDirs...), DefaultMachine: f.machine, Package: f.dwp, Log: f.log(),
		Warn: func(text string) { messages.Printf("unwindd: %s\n", text) },
	}
}

// newSymbolizer makes a Symbolizer, and opens nothing yet.
func newSymbolizer(options symbolize.Options) *symbolize.Symbolizer {
	options.Relocations, options.Formats = relocations, bundledFormats
	return symbolize.New(options)
}

// newSymbolSession makes a session that reports wrong questions on standard error.
func newSymbolSession(options symbolize.Options) *symbolize.Session {
	return &symbolize.Session{
		Symbolizer: newSymbolizer(options),
		// A message repeats the question, in which tabs are usual.
		Message: func(text string) { messages.Printf("%s\n", report.WithTabs(text)) },
	}
}

// relocations returns the relocation types of a machine (e_machine), from the built-in
// descriptions.
func relocations(machine uint16) []sdk.Relocation {
	for _, b := range bundled.Architectures {
		d := b.Description()
		for _, r := range d.Recognises {
			if r.ELFMachine != 0 && r.ELFMachine == machine {
				return d.Relocations
			}
		}
	}
	return nil
}
