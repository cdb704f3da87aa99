// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/internal/manual"
	"github.com/unwindd/unwindd/internal/oracle"
)

// documented returns all commands that users see and that are not cobra's own.
func documented() (list []*cobra.Command) {
	for _, cmd := range manual.Commands(newRoot()) {
		if cmd.Name() != "completion" {
			list = append(list, cmd)
		}
	}
	return list
}

// helpOf returns the help of a command.
func helpOf(cmd *cobra.Command) string {
	var out bytes.Buffer
	cmd.Root().SetOut(&out)
	printHelp(cmd, nil)
	return out.String()
}

func TestHelpHasEightyColumns(t *testing.T) {
	for _, cmd := range documented() {
		for line := range strings.Lines(helpOf(cmd)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	}
}

// TestHelpBeginsWithExamples reads the examples as command lines.
func TestHelpBeginsWithExamples(t *testing.T) {
	for _, cmd := range documented() {
		if strings.Contains(cmd.Short, "starts this itself") {
			continue
		}
		lines := strings.Split(helpOf(cmd), "\n")
		for _, line := range lines[2:4] {
			if !strings.Contains(line, "unwindd ") || !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: %q is no example", cmd.CommandPath(), line)
			}
		}
		for example := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", "")) {
			for part := range strings.SplitSeq(example, "|") {
				if _, after, ok := strings.Cut(part, "unwindd "); ok && !strings.HasPrefix(part, "#") {
					checkExample(t, cmd, after)
				}
			}
		}
	}
}

// checkExample parses a command line, without what a shell takes from it. At the root's examples
// words say what they do.
func checkExample(t *testing.T, cmd *cobra.Command, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " >")
	if !cmd.HasParent() {
		line, _, _ = strings.Cut(line, "  ")
	}
	found, args, err := newRoot().Find(words(strings.TrimSpace(line)))
	if err == nil && !found.DisableFlagParsing {
		err = found.ParseFlags(args)
		if err == nil {
			err = found.ValidateArgs(found.Flags().Args())
		}
	}
	if err != nil || found.Name() != cmd.Name() && cmd.HasParent() && !cmd.HasSubCommands() {
		t.Errorf("%s: the example %q: %v", cmd.CommandPath(), line, err)
	}
}

func TestFlagsHaveGroups(t *testing.T) {
	const few = 12
	for _, cmd := range documented() {
		groups := groupsOf(cmd)
		if groups[0].Title != "Common flags" {
			t.Errorf("%s begins with %s", cmd.CommandPath(), groups[0].Title)
		}
		all := 0
		for _, g := range groups {
			all += len(g.Flags)
		}
		last := groups[len(groups)-1]
		if all <= few || last.Title != otherGroup {
			continue
		}
		for _, f := range last.Flags {
			t.Errorf("%s: --%s is in no group: flagGroups has them", cmd.CommandPath(), f.Name)
		}
	}
}

// TestDefaultsHaveAMeaning looks for defaults that stand for none.
func TestDefaultsHaveAMeaning(t *testing.T) {
	for _, cmd := range documented() {
		for _, none := range []string{"(default -1)", "(default 0)", `(default "0")`, "(default [])", `(default "")`, "(default 0s)", "(default false)", "(default true)"} {
			if strings.Contains(helpOf(cmd), none) {
				t.Errorf("%s: %s", cmd.CommandPath(), none)
			}
		}
	}
}

// TestOtherNamesOfFlags has names that flags have in other commands, or had before.
func TestOtherNamesOfFlags(t *testing.T) {
	for _, c := range []struct{ command, name, here string }{
		{"stack", "max-stack", "max-frames"},
		{"profile", "max-frames", "max-stack"},
		{"profile", "gpu-samples", "gpu"},
	} {
		cmd, _, err := newRoot().Find([]string{c.command})
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Flags().Set(c.name, "17"); err != nil {
			t.Error(err)
		}
		if got := cmd.Flag(c.here).Value.String(); strings.Trim(got, "[]") != "17" {
			t.Errorf("%s --%s 17: --%s is %s", c.command, c.name, c.here, got)
		}
		if strings.Contains(helpOf(cmd), "--"+c.name+" ") {
			t.Errorf("the help of %s has --%s", c.command, c.name)
		}
	}
	_, said, _ := unwindd(t, "stack", "--max-stack", "x", "core")
	if !strings.Contains(said, "unwindd: --max-stack is --max-frames here\n") {
		t.Errorf("%s", said)
	}
}

func TestColors(t *testing.T) {
	core := crashDir + "/server.core"
	for _, c := range []struct {
		args      []string
		isColored bool
	}{
		{nil, false},
		{[]string{"--color", "auto"}, false},
		{[]string{"--color", "always"}, true},
		{[]string{"--color=never"}, false},
	} {
		out, said, status := unwindd(t, append([]string{"stack", "--in-process", core}, c.args...)...)
		if got := strings.Contains(out, "\x1b["); got != c.isColored || status != 0 {
			t.Errorf("%q: coloured %v, status %d, %s", c.args, got, status, said)
		}
	}
	if _, said, status := unwindd(t, "stack", core, "--color", "blue"); status != exitUsage || !strings.Contains(said, "auto, always or never") {
		t.Errorf("status %d, %s", status, said)
	}
}

// TestColorsOfATerminal has the flag, and NO_COLOR.
func TestColorsOfATerminal(t *testing.T) {
	_, theirs := oracle.Terminal(t)
	defer theirs.Close()
	for _, c := range []struct {
		when              colorWhen
		noColor, terminal string
		want              bool
	}{
		{"auto", "", "xterm", true},
		{"auto", "1", "xterm", false},
		{"auto", "", "dumb", false},
		{"never", "", "xterm", false},
		{"always", "1", "dumb", true},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.terminal)
		g := &globals{color: c.when}
		if got := g.colors(theirs); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
