// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/verify"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// pluginVerifyFlags are the flags of `unwindd plugin verify`.
type pluginVerifyFlags struct {
	*globals
	objects []string
	states  []string
}

func newPluginVerify(g *globals) *cobra.Command {
	f := &pluginVerifyFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "verify PATH",
		Short: "Say what is wrong with a plugin's executable, and what to do about it",
		Long: `Start a plugin's executable as it will be started, confined, and check all that
unwindd relies on: its description, rows, deadlines, cancellation, concurrency,
huge and hostile requests, restarts, and what it leaves behind.

With --object it is asked about a code object of the architecture, whole and
damaged. With --state a recorded state is walked and compared with its true
stacks, which STATE.expected.json holds: JSON of 'unwindd stack' of which anything
may be left out.

The exit status is 1 if a finding is an error.`,
		Example: `  unwindd plugin verify ./unwindd-arch-mychip
  unwindd plugin verify ./unwindd-arch-mychip --object a.elf --state a.snapshot
  unwindd plugin verify ./unwindd-arch-mychip --format json`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.objects, "object", nil, "ask about the code object `FILE`; may be repeated")
	flags.StringArrayVar(&f.states, "state", nil, "walk the recorded state `FILE`, whose stacks FILE.expected.json holds; may be repeated")
	return cmd
}

// errNotVerified is the error of a verification that found errors.
var errNotVerified = errors.New("the plugin did not pass")

func (f *pluginVerifyFlags) run(cmd *cobra.Command, path string) error {
	if err := f.checkFormat("text", "json"); err != nil {
		return err
	}
	for _, name := range append([]string{path}, f.objects...) {
		if err := checkFile("plugin verify", name); err != nil {
			return err
		}
	}
	o, err := f.ownPlugins()
	if err != nil {
		return err
	}
	if os.Getenv(sdk.Reattach) != "" {
		messages.Printf("unwindd: %s is not used: 'plugin verify' starts the executable itself\n", sdk.Reattach)
	}
	r, err := verify.Plugin(cmd.Context(), verify.Options{
		Path: path, Self: o.Self, Build: o.Build, Bundled: bundled.Architectures, Logger: o.Logger, Objects: f.objects, States: f.states,
	})
	if err != nil {
		return err
	}
	err = f.write(func(w *writer) error {
		if f.format == "json" {
			return report.WriteJSON(w, r)
		}
		return writeVerification(w, r)
	})
	if err == nil && !r.Passed {
		err = fmt.Errorf("%s: %w", path, errNotVerified)
	}
	return err
}

// writeVerification writes a line for each check, followed by its findings.
func writeVerification(w *writer, r *verify.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	b := report.NewPrinter(t)
	counts := map[archtest.Severity]int{}
	for _, check := range r.Checks {
		found := 0
		for _, finding := range r.Findings {
			if finding.Check != check {
				continue
			}
			found++
			counts[finding.Severity]++
			b.Printf("%s\t%s: %s\n", check, string(finding.Severity), finding.Detail)
			b.Printf("\tfix: %s\n", finding.Fix)
		}
		if found == 0 {
			b.Printf("%s\tok\n", check)
		}
	}
	result := "passed"
	if !r.Passed {
		result = "failed"
	}
	b.Printf("%s: %d errors, %d warnings\n", result, counts[archtest.Error], counts[archtest.Warning])
	return errors.Join(b.Flush(), t.Flush())
}
