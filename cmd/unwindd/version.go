// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/version"
	"github.com/unwindd/unwindd/sdk"
)

// buildFacts is the output of `unwindd version`: the build, and the versions of protocols
// and formats.
type buildFacts struct {
	version.Build
	// Plugins is the version of the protocol that plugins speak.
	Plugins int `json:"plugin_protocol"`
	// Stacks is the version of the JSON of stack.
	Stacks int `json:"stack_format"`
	// Snapshots is the version of the snapshots that are read and written.
	Snapshots int `json:"snapshot_format"`
}

func newVersion(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Long: `Print the version of this executable, the commit that it was built from, and the
versions of what it exchanges with others: the protocol of plugins, the JSON of
stacks, snapshots. A build of which nobody said the version is "devel". "+dirty"
says that the sources were not those of the commit.`,
		Example: `  unwindd version
  unwindd version --format json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return g.printVersion() },
	}
}

func (g *globals) printVersion() error {
	if err := g.checkFormat("text", "json"); err != nil {
		return err
	}
	facts := buildFacts{version.Read(), sdk.ProtocolVersion, report.StackVersion, engine.SnapshotVersion}
	return g.write(func(w *writer) error {
		if g.format == "json" {
			return report.WriteJSON(w, facts)
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		p := report.NewPrinter(t)
		line := func(name, value string) {
			if value != "" {
				p.Printf("%s\t%s\n", name, value)
			}
		}
		line("unwindd", facts.Version)
		line("commit", facts.Commit)
		line("of", facts.CommitTime)
		line("built by", facts.Go)
		line("platform", facts.Platform)
		where := ""
		if !plugin.HasProcesses {
			where = ", in this process: confined ones need Linux"
		}
		p.Printf("plugins\tprotocol %d%s\n", facts.Plugins, where)
		p.Printf("JSON of stacks\tversion %d\n", facts.Stacks)
		p.Printf("snapshots\tversion %d\n", facts.Snapshots)
		return errors.Join(p.Flush(), t.Flush())
	})
}

// printName prints the line of --version.
func (g *globals) printName() error {
	return g.write(func(w *writer) error {
		p := report.NewPrinter(w)
		p.Printf("unwindd %s\n", version.Read().Version)
		return p.Flush()
	})
}
