// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/internal/oracle"
)

// hostile is a command whose texts formatters would take for requests.
func hostile() *cobra.Command {
	root := &cobra.Command{Use: "tool", Short: "Root", Run: func(*cobra.Command, []string) {}}
	cmd := &cobra.Command{
		Use:   "do-it FILE | do-it --all [*.c]",
		Short: `DWARF \fB and "quotes"`,
		Long: `Begins. .SH of a sentence.
.TH is a macro, 'so this is; DW_OP_breg7 8 and *p and <T> and ~ and ^ and ` + "`x`" + ` and ä and -1.

  .nf
  'unwindd \n'
	behind a tab

.PP`,
		Example: "  tool do-it .\n  .so /etc/passwd",
		Run:     func(*cobra.Command, []string) {},
	}
	cmd.Flags().String("with-dash", ".x", "`.FILE` of \\fIthings")
	cmd.Flags().Bool("empty", false, "")
	root.AddCommand(cmd, &cobra.Command{Use: "hidden", Hidden: true, Run: func(*cobra.Command, []string) {}})
	return root
}

// oneGroup is all flags of a command in one group, whose title is hostile.
func oneGroup(cmd *cobra.Command) []Group {
	g := Group{Title: ".so flags"}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { g.Flags = append(g.Flags, f) })
	return []Group{g}
}

func TestTextsAreNoRequests(t *testing.T) {
	oracle.Tools(t, "man", "mandoc", "groff")
	dir := t.TempDir()
	var names []string
	for _, cmd := range Commands(hostile()) {
		names = append(names, Name(cmd))
		var b strings.Builder
		book := Book{Version: `v1 "x"`, Groups: oneGroup, Date: time.Unix(1795468087, 0), Files: []Entry{{Name: ".a-b", Text: ".text"}, {Name: "c", Text: "-", Flag: "none"}}}
		if err := book.WritePage(&b, cmd); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, Name(cmd)+".1"), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(names, " "); got != "tool tool-completion tool-do-it" {
		t.Errorf("pages %s", got)
	}
	page := filepath.Join(dir, "tool-do-it.1")
	for _, tool := range [][]string{{"man", "-l", page}, {"mandoc", "-T", "utf8", page}} {
		text := oracle.With{Env: []string{"MANWIDTH=200", "LC_ALL=C.UTF-8", "MAN_KEEP_FORMATTING=", "GROFF_NO_SGR=1"}}.Run(t, tool[0], tool[1:]...)
		for strings.Contains(text, "\b") { // mandoc's bold
			at := strings.Index(text, "\b")
			text = text[:at-1] + text[at+1:]
		}
		text = strings.Join(strings.Fields(text), " ")
		for _, want := range []string{
			`tool-do-it - DWARF \fB and "quotes"`, "tool do-it FILE [OPTION]... tool do-it --all [*.c] [OPTION]...",
			"Begins. .SH of a sentence. .TH is a macro, 'so this is; DW_OP_breg7 8 and *p and <T> and ~ and ^ and `x` and ä and -1.",
			`.nf 'unwindd \n' behind a tab .PP`, "tool do-it . .so /etc/passwd", `--with-dash .FILE .FILE of \fIthings (default .x).`, ".a-b .text",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not show %s in\n%s", tool[0], want, text)
			}
		}
	}
	oracle.Run(t, "mandoc", "-T", "lint", "-W", "warning", page)
}
