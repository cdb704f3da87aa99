// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var updatePage = flag.Bool("update", false, "write the tables of docs/configuration.md")

// pageTables are the parts of docs/configuration.md that are made here: what is between the comments.
var pageTables = regexp.MustCompile(`(?s)(<!-- made: (\w+) -->\n).*?(<!-- end -->)`)

// TestConfigurationPage compares docs/configuration.md with the flags, whose words describe the keys, and
// with the manual, whose words describe the variables. With -update it writes the page.
func TestConfigurationPage(t *testing.T) {
	const path = "../../docs/configuration.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	want := pageTables.ReplaceAllStringFunc(string(text), func(part string) string {
		m := pageTables.FindStringSubmatch(part)
		found[m[2]] = true
		return m[1] + madeTable(m[2]) + m[3]
	})
	for _, name := range []string{"all", "serve", "stack", "profile", "symbols", "variables"} {
		if !found[name] {
			t.Errorf("%s has no table %s", path, name)
		}
	}
	switch {
	case want == string(text):
	case *updatePage:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has (-) what is not so (+); write it with -update:\n%s", path, cmp.Diff(string(text), want))
	}
}

// madeTable makes a table of the page.
func madeTable(name string) string {
	var b strings.Builder
	switch name {
	case "variables":
		b.WriteString("| variable | | for |\n|---|---|---|\n")
		for _, e := range book.Environment {
			flag := ""
			if e.Flag != "" {
				flag = "`--" + e.Flag + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(e.Name, ", ", "`, `"), inPageTable(e.Text), flag)
		}
	default:
		b.WriteString("| key | value | |\n|---|---|---|\n")
		elsewhere := func(flag *pflag.Flag) bool {
			isOfAll := newRoot().PersistentFlags().Lookup(flag.Name) != nil && flag.Name != "format"
			isOfSymbols := (name == "stack" || name == "profile") && tableFlags(symbolsTable).Lookup(flag.Name) != nil
			return isOfAll != (name == "all") || isOfSymbols
		}
		table := name
		if name == "all" {
			table = "stack"
		}
		tableFlags(table).VisitAll(func(f *pflag.Flag) {
			if !elsewhere(f) {
				_, usage := pflag.UnquoteUsage(f)
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, settingKind(f).says, inPageTable(usage))
			}
		})
	}
	return b.String()
}

// inPageTable escapes text for a table of Markdown.
func inPageTable(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}
