// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/symbolize"
)

// addr2line does the work of the GNU binutils' addr2line.
func addr2line(args []string) int {
	tool := args[0]
	a := symbolize.Addr2line{File: "a.out", Output: symbolize.WriterOptions{Style: symbolize.StyleAddr2line, Functions: symbolize.NoNames}}
	info := "" // a requested help or version
	set := optionSet{
		abbreviated: true,
		unknown: func(text string) error {
			if strings.HasPrefix(text, "--") {
				return fmt.Errorf("%s: unrecognized option '%s'", tool, text)
			}
			return fmt.Errorf("%s: invalid option -- '%s'", tool, text[1:])
		},
		missing: func(text string) error {
			if strings.HasPrefix(text, "--") {
				return fmt.Errorf("%s: option '%s' requires an argument", tool, text)
			}
			return fmt.Errorf("%s: option requires an argument -- '%s'", tool, text[1:])
		},
		options: addr2lineOptions(&a, tool, &info),
	}
	addresses, err := set.parse(expand(args[1:], 0))
	switch {
	case err != nil:
		failed(err)
		messages.Printf(addr2lineHelp, tool)
		return exitInput
	case info != "":
		return printInfo(info)
	}
	a.Symbolizer = newSymbolizer(symbolize.Options{})
	defer a.Symbolizer.Close()
	if err := a.Run(stdout, addresses, os.Stdin); err != nil {
		messages.Printf("%s: %v\n", tool, err)
		return exitInput
	}
	return exitDone
}

// addr2lineOptions returns the options of a tool. A requested help or version goes to info.
func addr2lineOptions(a *symbolize.Addr2line, tool string, info *string) []option {
	o, ignored := &a.Output, ""
	return []option{
		flagOption('a', "addresses", func() { o.Addresses = true }),
		textOption('b', "target", &ignored),
		{'C', "demangle", mayHaveArgument, func(string, bool) error { o.Demangle = true; return nil }},
		textOption('e', "exe", &a.File),
		flagOption('f', "functions", func() { o.Functions = symbolize.LinkageNames }),
		flagOption('i', "inlines", func() { a.Inlines = true }),
		textOption('j', "section", &a.Section),
		flagOption('p', "pretty-print", func() { o.Pretty = true }),
		flagOption('s', "basenames", func() { o.Paths = symbolize.BaseNames }),
		flagOption('R', "recurse-limit", func() {}), flagOption(0, "recursion-limit", func() {}),
		flagOption('r', "no-recurse-limit", func() {}), flagOption(0, "no-recursion-limit", func() {}),
		flagOption('h', "help", func() { *info = fmt.Sprintf(addr2lineHelp, tool) }),
		flagOption('H', "", func() { *info = fmt.Sprintf(addr2lineHelp, tool) }),
		flagOption('v', "version", func() { *info = "addr2line (unwindd)\n" }),
	}
}

const addr2lineHelp = `Usage: %s [option(s)] [addr(s)]
 Convert addresses into line number/file name pairs. This is unwindd.
 If no addresses are specified on the command line, they will be read from stdin
 The options are:
  @<file>                Read options from <file>
  -a --addresses         Show addresses
  -b --target=<bfdname>  Ignored: the format is found out
  -e --exe=<executable>  Set the input file name (default is a.out)
  -i --inlines           Unwind inlined functions
  -j --section=<name>    Read section-relative offsets instead of addresses
  -p --pretty-print      One line for a function
  -s --basenames         Strip directory names
  -f --functions         Show function names
  -C --demangle[=style]  Demangle function names
  -h --help              Display this information
  -v --version           Display the program's version
`
