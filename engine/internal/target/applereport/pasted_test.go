// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"os"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/filekind"
)

// A report that was pasted into Markdown, quoted, indented or written on Windows is read as the file was.
func TestPastedReports(t *testing.T) {
	each := func(text, before string) string {
		var b strings.Builder
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) == "" {
				line = strings.TrimRight(before, " ") + line
			} else {
				line = before + line
			}
			b.WriteString(line)
		}
		return b.String()
	}
	for _, name := range []string{"crash.ips", "crash.crash", "ios.crash", "translated.txt", "sample.txt", "spindump.txt"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		r, err := Read(data)
		if err != nil {
			t.Fatal(err)
		}
		want := shown(r)
		ways := map[string]string{
			"fence":     "```\n" + text + "```\n",
			"fenced as": "\n~~~ text\n" + text + "~~~\n",
			"CRLF":      strings.ReplaceAll(text, "\n", "\r\n"),
			"mark":      "\ufeff" + text,
		}
		if name != "crash.ips" { // a quoted JSON is none
			ways["quoted"], ways["indented"], ways["tabs"] = each(text, "> "), each(text, "    "), each(text, "\t")
		}
		for way, pasted := range ways {
			if !filekind.IsAppleReport(pasted[:min(len(pasted), filekind.HeadSize)]) {
				t.Errorf("%s, %s: it is not known as a report", name, way)
			}
			if got, err := Read([]byte(pasted)); err != nil || shown(got) != want {
				t.Errorf("%s, %s: %v", name, way, err)
			}
			if IsTree([]byte(pasted)) != IsTree(data) {
				t.Errorf("%s, %s: a tree: %v", name, way, IsTree([]byte(pasted)))
			}
		}
	}
}
