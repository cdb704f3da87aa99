// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/unwindd/unwindd/engine/symbolize"
)

// llvmFlags are the options of llvm-symbolizer, or of llvm-addr2line.
type llvmFlags struct {
	name               string // of the tool
	output             symbolize.WriterOptions
	file, buildID, dwp string
	debugDirs          []string
	machine            string
	debuginfodFlags
	isLocal         bool // no server is asked
	context, adjust uint64
	isRelative      bool   // addresses of PE files are RVAs
	isGNU           bool   // it is llvm-addr2line
	inlines         bool   // inlined calls are frames of their own
	info            string // a requested help or version
	unused          string // values of options without effect
	unusedNumber    uint64
}

// llvmSymbolizer does the work of llvm-symbolizer, or of llvm-addr2line.
func llvmSymbolizer(args []string, gnu bool) int {
	environment := "LLVM_SYMBOLIZER_OPTS"
	f := &llvmFlags{name: "llvm-symbolizer", inlines: true, output: symbolize.WriterOptions{Demangle: true}}
	if gnu {
		environment = "LLVM_ADDR2LINE_OPTS"
		f = &llvmFlags{name: "llvm-addr2line", isGNU: true, output: symbolize.WriterOptions{Style: symbolize.StyleLLVMGNU, Functions: symbolize.NoNames}}
	}
	set := optionSet{
		letterValue: true,
		unknown:     func(text string) error { return fmt.Errorf("error: unknown argument '%s'", text) },
		missing:     func(text string) error { return fmt.Errorf("error: %s: missing argument", text) },
		options:     slices.Concat(f.inputOptions(), f.outputOptions(), f.otherOptions()),
	}
	questions, err := set.parse(llvmWords(os.Getenv(environment), args[1:]))
	switch {
	case err != nil:
		return failed(err)
	case f.info != "":
		return printInfo(f.info)
	}
	if f.isLocal {
		f.servers = []string{""}
	}
	remotes, err := f.connectServers(nil)
	if err != nil {
		return failed(err)
	}
	defer remotes.Close()
	s := newSymbolSession(symbolize.Options{DebugDirs: f.debugDirs, DefaultMachine: f.machine, Remote: remotes.Debuginfod, Package: f.dwp})
	defer s.Symbolizer.Close()
	s.Tool = args[0]
	if err := f.set(s); err != nil {
		return failed(err)
	}
	return finishLLVM(s, s.Run(stdout, questions, os.Stdin))
}

// llvmWords returns the words of the environment and of a command line.
func llvmWords(environment string, args []string) []string {
	list := append(words(environment), expand(args, 0)...)
	list = slices.DeleteFunc(list, func(w string) bool { return w == "" })
	for i, w := range list {
		switch w {
		case "-demangle=true": // pprof's
			list[i] = "--demangle"
		case "-demangle=false":
			list[i] = "--no-demangle"
		}
	}
	return list
}

// failed prints the errors of a command line, and returns the exit status.
func failed(err error) int {
	for _, one := range joined(err) {
		messages.Printf("%v\n", one)
	}
	return exitInput
}

// inputOptions returns the options for questions and files.
func (f *llvmFlags) inputOptions() []option {
	return []option{
		textOption('e', "obj", &f.file), textOption(0, "exe", &f.file),
		textOption(0, "build-id", &f.buildID),
		textOption(0, "dwp", &f.dwp),
		textOption(0, "default-arch", &f.machine),
		{0, "dsym-hint", needsArgument, f.addDSYM},
		{0, "debug-file-directory", needsArgument, func(v string, _ bool) error {
			f.debugDirs = append(f.debugDirs, v)
			return nil
		}},
		numberOption("adjust-vma", &f.adjust),
		flagOption(0, "relative-address", func() { f.isRelative = true }),
		{'i', "inlines", noArgument, func(string, bool) error { f.inlines = true; return nil }},
		{0, "inlining", mayHaveArgument, func(v string, isSet bool) error {
			f.inlines = !isSet || v != "false"
			return nil
		}},
		flagOption(0, "no-inlines", func() { f.inlines = false }),
	}
}

// addDSYM adds the folder of a dSYM; another is not used.
func (f *llvmFlags) addDSYM(path string, _ bool) error {
	if filepath.Ext(path) != ".dSYM" {
		messages.Printf("%s: warning: invalid dSYM hint: \"%s\" (must have the '.dSYM' extension)\n", f.name, path)
		return nil
	}
	f.debugDirs = append(f.debugDirs, path)
	return nil
}

// outputOptions returns the options for writing answers.
func (f *llvmFlags) outputOptions() []option {
	o := &f.output
	return []option{
		flagOption('a', "addresses", func() { o.Addresses = true }),
		flagOption(0, "print-address", func() { o.Addresses = true }),
		flagOption('s', "basenames", func() { o.Paths = symbolize.BaseNames }),
		flagOption(0, "relativenames", func() { o.Paths = symbolize.RelativePaths }),
		flagOption('C', "demangle", func() { o.Demangle = true }),
		flagOption(0, "no-demangle", func() { o.Demangle = false }),
		{'f', "functions", mayHaveArgument, func(v string, isSet bool) error {
			o.Functions = symbolize.LinkageNames
			if n, ok := functionNames[v]; ok && isSet {
				o.Functions = n
			}
			return nil
		}},
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
		numberOption("print-source-context-lines", &f.context),
		flagOption(0, "verbose", func() { o.Verbose = true }),
	}
}

// otherOptions returns help, version, options for servers, and options without effect,
// about other formats of files.
func (f *llvmFlags) otherOptions() []option {
	list := []option{
		flagOption('h', "help", func() { f.info = llvmHelp(f.name) }),
		flagOption('v', "version", func() { f.info = f.name + "\nunwindd\n" }),
		numberOption("cache-size", &f.unusedNumber),
		flagOption(0, "debuginfod", func() { f.isLocal = false }), // asks DEBUGINFOD_URLS, which is the default
		flagOption(0, "no-debuginfod", func() { f.isLocal = true }),
	}
	for _, name := range []string{"fallback-debug-path", "gsym-file-directory"} {
		list = append(list, textOption(0, name, &f.unused))
	}
	for _, name := range []string{
		"disable-gsym", "dia", "untag-addresses", "no-untag-addresses",
	} {
		list = append(list, flagOption(0, name, func() {}))
	}
	return list
}

// set sets the options of a session.
func (f *llvmFlags) set(s *symbolize.Session) (err error) {
	if f.buildID != "" {
		if s.BuildID, err = hex.DecodeString(f.buildID); err != nil || len(s.BuildID) == 0 {
			return fmt.Errorf("--build-id=: expected a build ID, but got '%s'", f.buildID)
		}
		if f.file != "" {
			return errors.New("error: cannot specify both --build-id and --obj")
		}
	}
	if f.isGNU && f.file == "" && f.buildID == "" {
		f.file = "a.out"
	}
	s.Object, s.Inlines, s.Hex, s.AdjustVMA, s.IsRelative = f.file, f.inlines, f.isGNU, f.adjust, f.isRelative
	s.Output = f.output
	s.Output.Context = int64(min(f.context, 1<<31))
	return nil
}

// finishLLVM prints the error of a session and returns the exit status. A file that cannot
// be opened is in the JSON.
func finishLLVM(s *symbolize.Session, err error) int {
	if err == nil {
		return exitDone
	}
	var file *symbolize.FileError
	if !errors.As(err, &file) || s.Output.Style != symbolize.StyleJSON {
		messages.Printf("%s: error: %v\n", s.Tool, err)
	}
	return exitInput
}

func llvmHelp(name string) string {
	return "USAGE: " + name + ` [options] addresses...

This is unwindd. It takes the options of ` + name + `; "unwindd symbolize --help"
describes what they do.
`
}
