// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/internal/manual"
)

// helpWidth is the width of help in columns.
const helpWidth = 80

// topExamples is the number of examples that help begins with. The others come behind the text.
const topExamples = 3

// flagGroups are the flags of all commands in groups, those that most users need first.
var flagGroups = []struct{ title, flags string }{
	{"Common flags", `obj thread crashed top source locals full-names goroutines fail-on-crash fail-if-differ signature
		functions event focus callers http annotate gpu pid pids collect duration
		files expr var arch runtime request reg mem hex as wait group
		listen otlp-listen otlp-to queue workers check cancel state
		format output color verbose help version`},
	{"What is printed", `globals registers code depth elements raw no-inlines no-fold max-frames max-stack
		signature-version mark-guesses disassembler
		addresses basenames relativenames pretty-print print-source-context-lines output-style no-demangle
		dialect trace`},
	{"What is evaluated", `var snapshot frame stack object kind read cfa unit processor wave`},
	{"What is selected", `process thread cpu time focus ignore hide callers bottom-up per-second`},
	{"What is recorded", `tid idle recorder native frequency repeat every interval keep live`},
	{"Targets", `from label threads`},
	{"What is profiled", `jobs objects join-window otlp symbolize kallsyms root perf-map`},
	{"Waves of accelerators", `lanes lane iteration gpu-core`},
	{"Files and symbols", `exe module sysroot debug-dir buildid-dir debuginfod symbols dwp dsym-hint default-arch adjust-vma relative-address any-file store max-unpacked no-files`},
	{"Jobs", `priority deadline again parts`},
	{"The queue", `queue-listen queue-ca queue-cert queue-key queue-creds queue-config queue-keep queue-replicas queue-size`},
	{"Who is let in", `tls-cert tls-key client-ca tokens host`},
	{"Bounds", `max-body max-answer max-time max-memory max-idle max-connections max-waiting max-waiting-each max-handed-over max-spool max-objects max-reports drain`},
	{"The log", `log-level log-json`},
	{"Settings and plugins", `config server in-process plugin-dir plugin-log`},
}

const (
	// otherGroup is the title of flags that are in no group.
	otherGroup = "Other flags"
	// fewFlags is how many flags a command has of its own that are all common.
	fewFlags = 6
)

// groupsOf returns the visible flags of a command, its own and those that all commands have, in
// groups.
func groupsOf(cmd *cobra.Command) (groups []manual.Group) {
	cmd.InitDefaultHelpFlag()
	left := map[string]*pflag.Flag{}
	note := func(f *pflag.Flag) {
		if !f.Hidden && (f.Name != "server" || slices.Contains(serverCommands, cmd.Name()) || !cmd.HasParent()) {
			left[f.Name] = f
		}
	}
	cmd.LocalFlags().VisitAll(note)
	var own []string
	if len(left) <= fewFlags {
		own = slices.Sorted(maps.Keys(left))
		own = slices.DeleteFunc(own, func(name string) bool { return name == "help" })
	}
	cmd.InheritedFlags().VisitAll(note)
	add := func(title string, names []string) {
		g := manual.Group{Title: title}
		for _, name := range names {
			if f := left[name]; f != nil {
				g.Flags = append(g.Flags, f)
				delete(left, name)
			}
		}
		if len(g.Flags) > 0 {
			groups = append(groups, g)
		}
	}
	for i, g := range flagGroups {
		names := strings.Fields(g.flags)
		if i == 0 {
			names = append(own, names...)
		}
		add(g.title, names)
	}
	add(otherGroup, slices.Sorted(maps.Keys(left)))
	return groups
}

// printHelp prints the help of a command: what it does, examples, and its flags in groups.
func printHelp(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	first, others := splitExamples(cmd.Example)
	b.WriteString(wrapped(cmd.Short+".", 0) + "\n")
	if first != "" {
		b.WriteString(first + "\n")
	}
	b.WriteString("Usage:\n")
	for _, line := range usageLines(cmd) {
		b.WriteString("  " + line + "\n")
	}
	if cmd.Long != "" {
		b.WriteString("\n" + filledText(cmd.Long))
	}
	if others != "" {
		b.WriteString("\nMore examples:\n" + others)
	}
	if list := manual.Visible(cmd); len(list) > 0 {
		b.WriteString("\nCommands:\n")
		for _, c := range list {
			b.WriteString(commandText(c))
		}
	}
	for _, g := range groupsOf(cmd) {
		b.WriteString("\n" + g.Title + ":\n" + flagTexts(g.Flags))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n'" + cmd.CommandPath() + " COMMAND --help' is about a command.\n")
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), b.String())
}

// commandText describes a command below another one.
func commandText(c *cobra.Command) string {
	const column = 14 // of the description
	name := "  " + c.Name()
	text := wrapped(strings.Repeat(" ", column)+c.Short, column)
	return name + text[min(len(name), column-1):]
}

// filledText returns text whose paragraphs are as wide as help. Lines that begin with a blank are
// left as they are.
func filledText(text string) string {
	var b strings.Builder
	paragraph := ""
	end := func() {
		if paragraph != "" {
			b.WriteString(wrapped(paragraph, 0))
		}
		paragraph = ""
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, " "):
			end()
			b.WriteString(line + "\n")
		case paragraph == "":
			paragraph = line
		default:
			paragraph += " " + line
		}
	}
	end()
	return b.String()
}

// wrapped returns lines as wide as help that have the words of a line. All except the first begin
// with as many blanks as indent says; the first one begins as the line does.
func wrapped(line string, indent int) string {
	var b strings.Builder
	rest := strings.TrimLeft(line, " ")
	column := len(line) - len(rest)
	b.WriteString(line[:column])
	begin := column
	for word := range strings.FieldsSeq(rest) {
		width := utf8.RuneCountInString(word)
		switch {
		case column > begin && column+1+width > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column, begin = indent, indent
		case column > begin:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += width
	}
	return b.String() + "\n"
}

// splitExamples splits the lines of examples into those at the top and the others. An example may
// go on in lines that are indented further.
func splitExamples(text string) (first, others string) {
	count := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n") + "\n"
		if !strings.HasPrefix(line, "    ") {
			count++
		}
		if count <= topExamples {
			first += line
		} else {
			others += line
		}
	}
	return first, others
}

// usageLines returns the ways to call a command.
func usageLines(cmd *cobra.Command) (lines []string) {
	parent := ""
	if cmd.HasParent() {
		parent = cmd.Parent().CommandPath() + " "
	}
	switch {
	case cmd.HasAvailableSubCommands():
		return []string{cmd.CommandPath() + " COMMAND"}
	case cmd.DisableFlagsInUseLine:
		return []string{parent + cmd.Use}
	}
	for i, way := range strings.Split(cmd.Use, " | ") {
		if i > 0 && !strings.HasPrefix(way, cmd.Name()+" ") {
			way = cmd.Name() + " " + way
		}
		lines = append(lines, parent+way+" [FLAGS]")
	}
	return lines
}

// flagTexts describes flags in their order.
func flagTexts(flags []*pflag.Flag) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	for _, f := range flags {
		set.AddFlag(f)
	}
	return set.FlagUsagesWrapped(helpWidth)
}
