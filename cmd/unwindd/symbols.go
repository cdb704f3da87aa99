// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// symbolsFlags are the flags of `unwindd symbols`.
type symbolsFlags struct {
	*globals
	store     string
	sysroot   string
	debugDirs []string
	dwp       string
	debuginfodFlags
	symbolFlags
}

func newSymbols(g *globals) *cobra.Command {
	f := &symbolsFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "symbols FILE | symbols --store DIR FILE...",
		Short: "Write a Breakpad symbol file",
		Long: `Write the symbol file (.sym) of an executable or a shared library, which says what
a stack walker needs of a minidump's module: functions, lines, inlined calls,
symbols, and how frames are unwound.

They come from the file and from its separate debug file. With --store a file goes
where symbol stores have it, DIR/NAME/ID/NAME.sym, and there may be several.`,
		Example: `  unwindd symbols server -o server.sym
  unwindd symbols --store symbols server /lib/x86_64-linux-gnu/libc.so.6`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "write into the symbol store `DIR`, which is made if need be")
	flags.StringVar(&f.sysroot, "sysroot", "/", "look up debug files, and what they lead to, under `DIR`")
	flags.StringArrayVar(&f.debugDirs, "debug-dir", nil, "look for separate debug files under `DIR`; may be repeated")
	f.debuginfodFlags.add(flags)
	f.symbolFlags.add(flags)
	flags.StringVar(&f.dwp, "dwp", "", "read split units from the package `FILE`")
	return cmd
}

// check refuses flags and arguments that have no meaning.
func (f *symbolsFlags) check(args []string) error {
	switch {
	case f.store != "" && f.output != "":
		return usageError{errors.New("--store and -o: expected one of them")}
	case f.store == "" && len(args) > 1:
		return usageError{fmt.Errorf("%d files without --store, expected one", len(args))}
	}
	if err := f.checkFormat("text"); err != nil {
		return err
	}
	if err := checkDirs("sysroot", f.sysroot); err != nil {
		return err
	}
	if err := checkDirs("debug-dir", f.debugDirs...); err != nil {
		return err
	}
	return checkFile("dwp", f.dwp)
}

func (f *symbolsFlags) run(args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	remotes, err := f.connectStores(&f.symbolFlags, f.log())
	if err != nil {
		return err
	}
	defer remotes.Close()
	collectOften()
	plugins, end := f.findPlugins()
	defer end()
	options := symbolize.Options{
		Plugins: plugins,
		Sysroot: f.sysroot, DebugDirs: f.debugDirs, Remote: remotes.Debuginfod, Symbols: remotes.Stores, Package: f.dwp, Log: f.log(),
		Warn: func(text string) { messages.Printf("unwindd: %s\n", text) },
	}
	var failed []error
	for _, path := range args {
		if err := f.file(path, options); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// findPlugins returns a function that finds the plugins when they are needed, and one that ends them.
func (f *symbolsFlags) findPlugins() (find func() (*plugin.Manager, error), end func()) {
	var found *plugin.Manager
	find = sync.OnceValues(func() (m *plugin.Manager, err error) {
		found, err = f.manager()
		return found, err
	})
	return find, func() {
		if found != nil {
			found.Close()
		}
	}
}

// file writes the symbol file of one file.
func (f *symbolsFlags) file(path string, options symbolize.Options) error {
	s := newSymbolizer(options)
	defer s.Close()
	o, err := s.Open(path)
	if err != nil {
		return err
	}
	out, err := f.target(o)
	if err != nil {
		return err
	}
	w, err := f.open(out)
	if err != nil {
		return err
	}
	defer func() { _ = w.file.abandon() }() // for a panic
	written, err := o.WriteSymbolFile(w)
	if err := w.file.finish(err); err != nil {
		return err
	}
	f.tell(path, out, o, &written)
	return nil
}

// target returns the path of the symbol file of a file.
func (f *symbolsFlags) target(o *symbolize.File) (string, error) {
	if f.store == "" {
		return f.output, nil
	}
	path, err := o.SymbolStorePath()
	if err != nil {
		return "", err
	}
	path = filepath.Join(f.store, path)
	return path, os.MkdirAll(filepath.Dir(path), 0o777)
}

// tell reports problems on standard error, and with -v the written records.
func (f *symbolsFlags) tell(path, out string, o *symbolize.File, w *symbolize.WrittenSymbols) {
	for _, p := range append(o.Problems(), w.Problems...) {
		messages.Printf("unwindd: %s\n", p)
	}
	if !w.HasDebugInfo {
		messages.Printf("unwindd: %s: no debug information: the symbol file has neither lines nor inlined calls\n", path)
	}
	if log := f.log(); log != nil {
		log(fmt.Sprintf("%s: %d functions, %d lines and inlined calls, %d public symbols, %d records of call frame information",
			path, w.Functions, w.Records, w.Publics, w.CFIRows))
		if w.Unwritten+w.Lost > 0 {
			log(fmt.Sprintf("%s: %d rows and %d rules of registers are expressions that symbol files cannot say", path, w.Unwritten, w.Lost))
		}
		if f.store != "" {
			log(fmt.Sprintf("%s: written to %s", path, out))
		}
	}
}
