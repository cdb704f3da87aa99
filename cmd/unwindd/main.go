// SPDX-License-Identifier: Apache-2.0

// Command unwindd unwinds and symbolizes stacks that run across CPUs and
// accelerators.
//
// The package is large because every command is in it, flags and help, a file or two for
// each; the packages beneath do the work.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// Exit statuses. A stack that is cut short is not a failure.
const (
	exitDone     = 0
	exitInput    = 1 // the input could not be read
	exitUsage    = 2 // the command line is wrong
	exitUnwalked = 3 // it was read, but nothing in it could be walked for lack of an architecture
	exitCrashed  = 4 // with --fail-on-crash, a thread of a target crashed; with --fail-if-differ, targets differ
)

// usageError is an error in the command line itself.
type usageError struct{ error }

func main() {
	if tool := toolNamed(os.Args[0]); tool != nil {
		os.Exit(tool(os.Args))
	}
	os.Exit(run(os.Args[1:]))
}

// pluginProcess returns the function of a process that the engine, or a user with a
// debugger, has started for a plugin; nil: it is another process. Such processes are many
// and short, and need none of a command's preparations.
func pluginProcess(args []string) func(args []string) error {
	const started = "--report-fd"
	switch {
	case len(args) > 4 && args[0] == "plugin" && args[1] == "serve" && args[3] == started:
		return servePlugin
	case len(args) > 4 && args[0] == "plugin" && args[1] == "exec" && args[2] == started:
		return execPlugin
	case len(args) == 3 && args[0] == "plugin" && args[1] == "serve" && os.Getenv(sdk.Debug) != "":
		return servePlugin // it handles signals itself
	}
	return nil
}

// run executes the command, and returns the exit status.
func run(args []string) int {
	command, err := execute(args)
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		complain(err)
		messages.Printf("Run '%s --help' for usage.\n", command)
		return exitUsage
	}
	complain(err)
	var other statusError
	switch {
	case errors.As(err, &other):
		return other.status
	case errors.Is(err, errCrashed), errors.Is(err, errDiffer):
		return exitCrashed
	case errors.Is(err, trace.ErrNotWalked):
		return exitUnwalked
	}
	return exitInput
}

// execute executes the command, and returns its name.
func execute(args []string) (command string, err error) {
	if process := pluginProcess(args); process != nil {
		return "unwindd", process(args[2:])
	}
	if isWorker, err := service.RunWorker(args, workerPlugins); isWorker {
		return "unwindd", err
	}
	collectLate()
	watchSignals()
	g := &globals{}
	root := newRootOf(g, args)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(messageWriter{})
	root.SetFlagErrorFunc(flagError(args))
	executed, err := root.ExecuteContextC(context.Background())
	return executed.CommandPath(), g.withSettings(err)
}

func newRoot() *cobra.Command { return newRootOf(&globals{}, nil) }

// newRootOf makes the command, with flags that set g, and all commands beneath; where args
// begin with one of these that needs no other, only that: the flags of all take as long as
// a small answer.
func newRootOf(g *globals, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "unwindd",
		Short: "Unwind and symbolize stacks across CPUs and accelerators",
		Example: `  unwindd stack core                     the stacks of a core or a minidump
  unwindd stack 4711                     those of a living process
  unwindd profile perf.data              a profile of what perf recorded
  unwindd symbolize --obj server 0x1257  the functions and lines at an address
  unwindd plugin list                    the architectures it knows`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(noSuchCommand),
	}
	isVersion := root.Flags().Bool("version", false, "say which version this is")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *isVersion {
			return g.printName()
		}
		return cmd.Help()
	}
	root.PersistentPreRunE = g.prepare
	root.SetHelpFunc(printHelp)
	g.addFlags(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colorValues, cobra.ShellCompDirectiveNoFileComp))
	all := commands()
	if len(args) > 0 && all[args[0]] != nil {
		root.AddCommand(all[args[0]](g))
		return root
	}
	for _, newCommand := range all {
		root.AddCommand(newCommand(g))
	}
	root.AddCommand(newManual())
	checkHelp(root)
	return root
}

// commands returns what makes each command that needs no other, by its name.
func commands() map[string]func(*globals) *cobra.Command {
	return map[string]func(*globals) *cobra.Command{
		"stack": newStack, "profile": newProfile, "diff": newDiff, "snapshot": newSnapshot, "collect": newCollect, "compare": newCompare,
		"symbolize": newSymbolize, "symbols": newSymbols, "eval": newEval, "dump": newDump, "plugin": newPlugin, "serve": newServe, "worker": newWorker,
		"submit": newSubmit, "results": newResults, "mcp": newMCP, "version": newVersion,
	}
}
