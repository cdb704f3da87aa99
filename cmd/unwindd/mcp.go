// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/mcp"
	"github.com/unwindd/unwindd/engine"
)

// mcpFlags are the flags of `unwindd mcp`.
type mcpFlags struct {
	*globals
	targetFlags
	inputFlags
	roots []string
}

func newMCP(g *globals) *cobra.Command {
	f := &mcpFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve tools for language models, by the Model Context Protocol",
		Long: `Answer a client of the Model Context Protocol on standard input and output: a program
with a language model, which starts this command. Its tools are stack, variables, eval,
code, source and profile_top.

They read only: files beneath the folders of --root, neither ".." nor a symbolic link
leads out of them, and the code and debug information of what is in these files, as
'unwindd stack' finds them. No tool runs or changes anything, or looks at a living
process; the network is asked where --debuginfod or --symbols says so.

Answers are bounded, and count what they leave out.`,
		Example: `  unwindd mcp
  unwindd mcp --root /var/crash --root ~/src/server
  unwindd mcp --root /var/crash --debuginfod https://debuginfod.example.org`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.roots, "root", nil, "read files beneath `DIR`; may be repeated (default the current folder)")
	f.targetFlags.add(flags)
	f.inputFlags.add(flags)
	_ = cmd.MarkFlagDirname("root")
	return cmd
}

func (f *mcpFlags) run(ctx context.Context) error {
	switch {
	case f.format != "text":
		return usageError{errors.New("--format: the protocol has its own form")}
	case f.output != "":
		return usageError{errors.New("-o: the answers go to standard output, to the client")}
	}
	if err := f.targetFlags.check(); err != nil {
		return err
	}
	if len(f.roots) == 0 {
		f.roots = []string{"."}
	}
	targets := engine.Options{MaxUnpacked: uint64(f.maxUnpacked)}
	e, end, err := f.newEngine(f.globals, targets)
	if err != nil {
		return err
	}
	defer end()
	if targets, err = f.viewOptions(targets); err != nil {
		return err
	}
	s, err := mcp.New(mcp.Options{Engine: e, Targets: targets, Roots: f.roots})
	if err != nil {
		return usageError{err}
	}
	defer s.Close()
	return s.Serve(ctx, nil)
}

// viewOptions adds the flags' ways of finding files, which each view of an engine has itself.
func (f *mcpFlags) viewOptions(o engine.Options) (engine.Options, error) {
	o.Sysroot, o.Exe, o.DebugDirs, o.BuildIDDirs, o.Drives = f.sysroot, f.exe, f.debugDirs, f.caches(), f.drives()
	var err error
	o.Modules, err = f.modulesByName()
	return o, err
}
