// SPDX-License-Identifier: Apache-2.0

// Package manual writes the manual pages of a command line, in the macros of man(7).
// Help texts are plain text with names in it such as DW_OP_breg7, *p or <T>. The
// generator of cobra would take them for Markdown, and has no sections for the exit
// status, the environment and files.
package manual

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/internal/ondemand"
)

// Entry is a name with its meaning.
type Entry struct {
	Name string
	Text string
	// Flag is the flag of the commands that the entry belongs to; "": it belongs to
	// all.
	Flag string
}

// Book has the content that the pages of all commands share.
type Book struct {
	Version string
	// Date is the date of the pages; the zero Time where that is not known.
	Date        time.Time
	Status      []Entry
	Environment []Entry
	Files       []Entry
	// SeeAlso names other pages, as gdb(1), by the path of the command.
	SeeAlso map[string][]string
	// Groups returns the visible flags of a command in groups.
	Groups func(*cobra.Command) []Group
	// Home is the URL of the rest of the documentation.
	Home string
}

// Group is flags of a command under a title.
type Group struct {
	Title string
	Flags []*pflag.Flag
}

// Name returns the name of a command's page, without its section.
func Name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// Commands returns the commands that have a page: root and all below it except help. The
// scripts that complete commands in shells are described by the page of their parent.
func Commands(root *cobra.Command) []*cobra.Command {
	if !root.HasParent() {
		root.InitDefaultCompletionCmd()
	}
	list := []*cobra.Command{root}
	for _, cmd := range Visible(root) {
		if cmd.Name() == "completion" {
			list = append(list, cmd)
			continue
		}
		list = append(list, Commands(cmd)...)
	}
	return list
}

// Visible returns the commands below one that users see.
func Visible(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() || c.Name() == "help"
	})
}

// WritePage writes the page of a command.
func (b *Book) WritePage(w io.Writer, cmd *cobra.Command) error {
	p := &page{}
	date := ""
	if !b.Date.IsZero() {
		date = b.Date.UTC().Format(time.DateOnly)
	}
	name := Name(cmd)
	p.printf(".TH \"%s\" 1 \"%s\" \"%s\" \"User Commands\"\n", escape(strings.ToUpper(name)), date, escape("unwindd "+b.Version))
	p.heading("NAME")
	p.printf("%s \\- %s\n", escape(name), escape(beginning(cmd.Short)))
	p.heading("SYNOPSIS")
	p.synopsis(cmd)
	p.heading("DESCRIPTION")
	p.text(cmp.Or(cmd.Long, cmd.Short+"."))
	p.commands(cmd)
	p.heading("OPTIONS")
	for _, g := range b.Groups(cmd) {
		p.printf(".SS %s\n", escape(g.Title))
		p.flags(g.Flags)
	}
	if cmd.Example != "" {
		p.heading("EXAMPLES")
		p.literal(strings.Split(cmd.Example, "\n"))
	}
	p.entries("EXIT STATUS", cmd, b.Status)
	p.entries("ENVIRONMENT", cmd, b.Environment)
	p.entries("FILES", cmd, b.Files)
	p.seeAlso(cmd, b.SeeAlso[cmd.CommandPath()])
	if b.Home != "" {
		p.printf(".PP\nThe formats, and all that is printed: %s\n", escape(b.Home))
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// beginning returns a sentence without its initial capital letter. Names such as DWARF
// keep theirs.
func beginning(text string) string {
	if len(text) > 1 && text[1] >= 'a' && text[1] <= 'z' {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

// page is the text of a page.
type page struct{ strings.Builder }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *page) heading(text string) { p.printf(".SH %s\n", text) }

// synopsis writes a line for each usage of a command.
func (p *page) synopsis(cmd *cobra.Command) {
	own := strings.TrimPrefix(cmd.Use, cmd.Name())
	if cmd.HasSubCommands() {
		own = " COMMAND"
	}
	for i, way := range strings.Split(own, " | ") {
		if i > 0 {
			p.printf(".br\n")
		}
		way = strings.TrimPrefix(strings.TrimSpace(way), cmd.Name()+" ")
		p.printf("\\fB%s\\fR", escape(cmd.CommandPath()))
		for word := range strings.FieldsSeq(way) {
			p.printf(" %s", marked(word))
		}
		p.printf(" [\\fIOPTION\\fR]...\n")
	}
}

// inSynopsis finds options, and placeholders for the user's own words.
var inSynopsis = ondemand.Regexp(`--?[a-z][a-z-]*|[A-Z][A-Z]+`)

// marked returns a word of a synopsis with options in bold and other names in
// italics.
func marked(word string) string {
	var b strings.Builder
	last := 0
	for _, match := range inSynopsis().FindAllStringIndex(word, -1) {
		font := "I"
		if word[match[0]] == '-' {
			font = "B"
		}
		fmt.Fprintf(&b, "%s\\f%s%s\\fR", escape(word[last:match[0]]), font, escape(word[match[0]:match[1]]))
		last = match[1]
	}
	return b.String() + escape(word[last:])
}

// text writes paragraphs, which an empty line ends. Lines that begin with a blank are
// examples.
func (p *page) text(text string) {
	var lines []string
	isExample, begun := false, false
	end := func() {
		switch {
		case len(lines) == 0:
			return
		case isExample:
			p.printf(".PP\n.RS 4\n")
			p.literal(lines)
			p.printf(".RE\n")
		case begun:
			p.printf(".PP\n%s", filled(lines))
		default:
			p.printf("%s", filled(lines))
		}
		lines, begun = nil, true
	}
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		if line == "" || indented != isExample {
			end()
			isExample = indented
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	end()
}

// options finds options in a text.
var options = ondemand.Regexp(`(^|[ (])(--[a-z][a-z-]*|-[a-z])\b`)

// filled returns lines that formatters fill to the width of the reader's screen. A
// sentence ends where its line does, as formatters expect it.
func filled(lines []string) string {
	var b strings.Builder
	for sentence := range strings.SplitSeq(sentenceEnds().ReplaceAllString(strings.Join(lines, " "), "$1\n"), "\n") {
		last := 0
		line := ""
		for _, match := range options().FindAllStringSubmatchIndex(sentence, -1) {
			line += escape(sentence[last:match[4]]) + `\fB` + escape(sentence[match[4]:match[5]]) + `\fR`
			last = match[5]
		}
		b.WriteString(protected(line+escape(sentence[last:])) + "\n")
	}
	return b.String()
}

var sentenceEnds = ondemand.Regexp(`([.:]) +`)

// literal writes lines as they are, without their common indentation.
func (p *page) literal(lines []string) {
	p.printf(".EX\n")
	for _, line := range lines {
		p.printf("%s\n", protected(escape(strings.TrimPrefix(strings.TrimPrefix(line, "\t"), "  "))))
	}
	p.printf(".EE\n")
}

// commands lists the commands below one.
func (p *page) commands(cmd *cobra.Command) {
	list := Visible(cmd)
	if len(list) == 0 {
		return
	}
	p.heading("COMMANDS")
	for _, c := range list {
		p.printf(".TP\n\\fB%s\\fR\n%s", escape(c.Name()), filled([]string{c.Short + "."}))
	}
}

// flags lists flags.
func (p *page) flags(list []*pflag.Flag) {
	for _, f := range list {
		value, usage := pflag.UnquoteUsage(f)
		p.printf(".TP\n")
		if f.Shorthand != "" {
			p.printf("\\fB%s\\fR, ", escape("-"+f.Shorthand))
		}
		p.printf("\\fB%s\\fR", escape("--"+f.Name))
		if value != "" {
			p.printf(" \\fI%s\\fR", escape(value))
		}
		p.printf("\n%s", filled([]string{strings.ToUpper(usage[:min(1, len(usage))]) + usage[min(1, len(usage)):] + standard(f) + "."}))
	}
}

// standard returns the text of a flag's default value; "" where there is
// none.
func standard(f *pflag.Flag) string {
	if slices.Contains([]string{"", "0", "0s", "[]", "false"}, f.DefValue) || strings.Contains(f.Usage, "(default ") {
		return ""
	}
	return " (default " + f.DefValue + ")"
}

// entries lists the entries of a command.
func (p *page) entries(heading string, cmd *cobra.Command, list []Entry) {
	begun := false
	for _, e := range list {
		if e.Flag != "" && cmd.Flags().Lookup(e.Flag) == nil && (cmd.InheritedFlags().Lookup(e.Flag) == nil) {
			continue
		}
		if !begun {
			p.heading(heading)
			begun = true
		}
		whole := `\%` + strings.ReplaceAll(escape(e.Name), " ", ` \%`) // without hyphens
		p.printf(".TP\n\\fB%s\\fR\n%s", whole, filled([]string{e.Text}))
	}
}

// seeAlso names the pages of the commands around one, and others.
func (p *page) seeAlso(cmd *cobra.Command, others []string) {
	var names []string
	add := func(list ...*cobra.Command) {
		for _, c := range list {
			if c != cmd {
				names = append(names, fmt.Sprintf("\\fB%s\\fR(1)", escape(Name(c))))
			}
		}
	}
	if cmd.HasParent() {
		add(cmd.Parent())
		if cmd.Parent().HasParent() {
			add(Visible(cmd.Parent())...)
		}
	}
	if cmd.Name() != "completion" {
		add(Visible(cmd)...)
	}
	for _, other := range others {
		name, section, _ := strings.Cut(other, "(")
		names = append(names, fmt.Sprintf("\\fB%s\\fR(%s", escape(name), section))
	}
	p.heading("SEE ALSO")
	p.printf("%s\n", strings.Join(names, ",\n"))
}

// escapes has the characters that have a meaning for formatters.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`, "\t", "    ")

// escape returns text for the inside of a line. Characters beyond ASCII are named,
// since a formatter may expect any encoding.
func escape(text string) string {
	text = escapes.Replace(text)
	if strings.IndexFunc(text, func(r rune) bool { return r > 0x7e }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if r > 0x7e {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// protected returns a line that does not begin like a request. An apostrophe is escaped
// already.
func protected(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
