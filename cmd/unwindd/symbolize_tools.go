package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// toolNamed is the tool that the executable is under a name that it was
// started by; nil where it is unwindd itself. A version or a target may be part
// of the name: llvm-symbolizer-22, x86_64-linux-gnu-addr2line.
func toolNamed(path string) func(args []string) int {
	name := filepath.Base(path)
	switch {
	case strings.HasPrefix(name, "llvm-symbolizer"):
		return func(args []string) int { return llvmSymbolizer(args, false) }
	case strings.HasPrefix(name, "llvm-addr2line"):
		return func(args []string) int { return llvmSymbolizer(args, true) }
	case name == "addr2line", strings.HasSuffix(name, "-addr2line"):
		return addr2line
	}
	return nil
}

// llvmSymbolizer is llvm-symbolizer, or llvm-addr2line.
func llvmSymbolizer(args []string, gnu bool) int {
	name, environment := "llvm-symbolizer", "LLVM_SYMBOLIZER_OPTS"
	if gnu {
		name, environment = "llvm-addr2line", "LLVM_ADDR2LINE_OPTS"
	}
	fail := func(err error) int {
		for _, one := range joined(err) {
			messages.Printf("%v\n", one)
		}
		return exitInput
	}
	o := symbolize.WriterOptions{Demangle: !gnu}
	if gnu {
		o.Style, o.Functions = symbolize.StyleLLVMGNU, symbolize.NoNames
	}
	var file, buildID, dwp string
	var debugDirs []string
	var context, adjust, ignoredNumber uint64
	var ignored, said string
	inlines := !gnu
	functions := func(v string, given bool) error {
		o.Functions = symbolize.LinkageNames
		if n, ok := functionNames[v]; ok && given {
			o.Functions = n
		}
		return nil
	}
	ignore := func() {}
	set := optionSet{
		letterValue: true,
		unknown:     func(text string) error { return fmt.Errorf("error: unknown argument '%s'", text) },
		missing:     func(text string) error { return fmt.Errorf("error: %s: missing argument", text) },
		options: []option{
			flagOption('a', "addresses", func() { o.Addresses = true }),
			flagOption(0, "print-address", func() { o.Addresses = true }),
			numberOption("adjust-vma", &adjust),
			flagOption('s', "basenames", func() { o.Paths = symbolize.BaseNames }),
			flagOption(0, "relativenames", func() { o.Paths = symbolize.RelativePaths }),
			textOption(0, "build-id", &buildID),
			textOption(0, "dwp", &dwp),
			{0, "debug-file-directory", needsArgument, func(v string, _ bool) error {
				debugDirs = append(debugDirs, v)
				return nil
			}},
			textOption(0, "fallback-debug-path", &ignored),
			flagOption('C', "demangle", func() { o.Demangle = true }),
			flagOption(0, "no-demangle", func() { o.Demangle = false }),
			textOption('e', "obj", &file), textOption(0, "exe", &file),
			{'f', "functions", mayHaveArgument, functions},
			{'i', "inlines", noArgument, func(string, bool) error { inlines = true; return nil }},
			{0, "inlining", mayHaveArgument, func(v string, given bool) error {
				inlines = !given || v != "false"
				return nil
			}},
			flagOption(0, "no-inlines", func() { inlines = false }),
			{0, "output-style", needsArgument, func(v string, _ bool) error {
				o.Style = symbolize.StyleLLVM
				switch v {
				case "GNU":
					o.Style = symbolize.StyleLLVMGNU
				case "JSON":
					o.Style = symbolize.StyleJSON
				}
				return nil
			}},
			flagOption('p', "pretty-print", func() { o.Pretty = true }),
			numberOption("print-source-context-lines", &context),
			flagOption(0, "verbose", func() { o.Verbose = true }),
			// What concerns other formats of files, and servers, does nothing.
			textOption(0, "default-arch", &ignored), textOption(0, "dsym-hint", &ignored),
			textOption(0, "gsym-file-directory", &ignored), flagOption(0, "disable-gsym", ignore), flagOption(0, "dia", ignore),
			flagOption(0, "relative-address", ignore), flagOption(0, "untag-addresses", ignore), flagOption(0, "no-untag-addresses", ignore),
			flagOption(0, "debuginfod", ignore), flagOption(0, "no-debuginfod", ignore), numberOption("cache-size", &ignoredNumber),
			flagOption('h', "help", func() { said = llvmHelp(name) }),
			flagOption('v', "version", func() { said = name + "\nunwindd\n" }),
		},
	}
	words := append(words(os.Getenv(environment)), expand(args[1:], 0)...)
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	for i, w := range words {
		switch w {
		case "-demangle=true": // as pprof has it
			words[i] = "--demangle"
		case "-demangle=false":
			words[i] = "--no-demangle"
		}
	}
	questions, err := set.parse(words)
	switch {
	case err != nil:
		return fail(err)
	case said != "":
		return sayAsked(said)
	}
	o.Context = int64(min(context, 1<<31))
	s := newSymbolSession(symbolize.Options{DebugDirs: debugDirs, Package: dwp}, false)
	defer s.symbolizer.Close()
	if buildID != "" {
		if s.buildID, err = hex.DecodeString(buildID); err != nil || len(s.buildID) == 0 {
			return fail(fmt.Errorf("--build-id=: expected a build ID, but got '%s'", buildID))
		}
		if file != "" {
			return fail(errors.New("error: cannot specify both --build-id and --obj"))
		}
	}
	if gnu && file == "" && buildID == "" {
		file = "a.out"
	}
	s.tool, s.object, s.inlines, s.hex = args[0], file, inlines, gnu
	s.style, s.linkage, s.adjustVMA = o.Style, o.Functions == symbolize.LinkageNames, adjust
	s.out, s.options = bufio.NewWriterSize(stdout, outputBuffer), o
	return s.finish(s.run(questions, os.Stdin))
}

// finish says what went wrong and gives the exit status.
func (s *symbolSession) finish(err error) int {
	var file *fileError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &file):
		if s.style != symbolize.StyleJSON {
			s.stderr.Printf("%s\n", s.message(file.name, sayFile(file.name, file.err)))
		}
	default:
		s.stderr.Printf("%s: error: %v\n", s.tool, err)
	}
	return exitInput
}

// sayAsked prints a help or a version.
func sayAsked(text string) int {
	p := report.NewPrinter(stdout)
	for line := range strings.Lines(text) {
		p.Printf("%s\n", strings.TrimSuffix(line, "\n"))
	}
	if p.Flush() != nil {
		return exitInput
	}
	return exitDone
}

func llvmHelp(name string) string {
	return "USAGE: " + name + ` [options] addresses...

This is unwindd. It takes the options of ` + name + `; "unwindd symbolize --help"
describes what they do.
`
}

// addr2line is addr2line of the GNU binutils.
func addr2line(args []string) int {
	tool := args[0]
	o := symbolize.WriterOptions{Style: symbolize.StyleAddr2line, Functions: symbolize.NoNames}
	file, section, ignored, said := "a.out", "", "", ""
	inlines := false
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
		options: []option{
			flagOption('a', "addresses", func() { o.Addresses = true }),
			textOption('b', "target", &ignored),
			{'C', "demangle", mayHaveArgument, func(string, bool) error { o.Demangle = true; return nil }},
			textOption('e', "exe", &file),
			flagOption('f', "functions", func() { o.Functions = symbolize.LinkageNames }),
			flagOption('i', "inlines", func() { inlines = true }),
			textOption('j', "section", &section),
			flagOption('p', "pretty-print", func() { o.Pretty = true }),
			flagOption('s', "basenames", func() { o.Paths = symbolize.BaseNames }),
			flagOption('R', "recurse-limit", func() {}), flagOption(0, "recursion-limit", func() {}),
			flagOption('r', "no-recurse-limit", func() {}), flagOption(0, "no-recursion-limit", func() {}),
			flagOption('h', "help", func() { said = fmt.Sprintf(addr2lineHelp, tool) }),
			flagOption('H', "", func() { said = fmt.Sprintf(addr2lineHelp, tool) }),
			flagOption('v', "version", func() { said = "addr2line (unwindd)\n" }),
		},
	}
	addresses, err := set.parse(expand(args[1:], 0))
	switch {
	case err != nil:
		for _, one := range joined(err) {
			messages.Printf("%v\n", one)
		}
		messages.Printf(addr2lineHelp, tool)
		return exitInput
	case said != "":
		return sayAsked(said)
	}
	s := newSymbolSession(symbolize.Options{}, false)
	defer s.symbolizer.Close()
	a := &addr2lineSession{file: file, inlines: inlines, options: o}
	if err := a.run(s.symbolizer, section, addresses); err != nil {
		messages.Printf("%s: %v\n", tool, err)
		return exitInput
	}
	return exitDone
}

// addr2lineSession answers the questions of an addr2line.
type addr2lineSession struct {
	file    string
	inlines bool
	options symbolize.WriterOptions
	// Addresses are offsets in the section, where one is given.
	section *object.Section
}

func (s *addr2lineSession) run(symbolizer *symbolize.Symbolizer, section string, addresses []string) error {
	f, err := symbolizer.Open(s.file)
	switch {
	case err == nil:
	case sayFile(s.file, err) == "No such file or directory":
		return fmt.Errorf("'%s': No such file", s.file)
	case sayFile(s.file, err) == "Is a directory":
		return fmt.Errorf("Warning: '%s' is a directory", s.file)
	case errors.Is(err, object.ErrNotELF), errors.Is(err, object.ErrEmpty):
		return fmt.Errorf("%s: file format not recognized", s.file)
	default:
		return fmt.Errorf("%s: %s", s.file, sayFile(s.file, err))
	}
	if section != "" {
		if s.section = f.Object.Section(section); s.section == nil {
			return fmt.Errorf("%s: cannot find section %s", s.file, section)
		}
	}
	a := answering{
		out: bufio.NewWriterSize(stdout, outputBuffer), stderr: messages, options: s.options, fill: s.fill,
		prepare: func(text string) pending {
			return pending{Answer: symbolize.Answer{Module: s.file, Address: leadingHex(text), HasAddress: true}, file: f}
		},
		failed: func(p *pending) error { return p.err },
	}
	if len(addresses) > 0 {
		return a.list(addresses)
	}
	return a.lines(os.Stdin)
}

func (s *addr2lineSession) fill(p *pending, frames []symbol.Frame) {
	switch {
	case s.section == nil:
		p.Frames = p.file.FramesGNU(frames, p.Address, s.inlines)
	case p.Address < s.section.Size:
		p.Frames = p.file.FramesGNU(frames, s.section.Address+p.Address, s.inlines)
	}
}

// leadingHex is the hexadecimal number that a text begins with, after blanks
// and 0x; 0 where it begins with none, all ones where it has too many digits.
func leadingHex(text string) uint64 {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	end := 0
	for end < len(text) && strings.IndexByte("0123456789abcdefABCDEF", text[end]) >= 0 {
		end++
	}
	n, _ := strconv.ParseUint(text[:end], 16, 64)
	return n
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
