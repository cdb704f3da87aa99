// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// hostileNames are names as a hostile program may have them: each has the word EVIL.
var hostileNames = []string{
	"EVIL`code`", "```EVIL\n```\n# EVIL", "EVIL|cell|", "<script>EVIL</script>", "@EVIL", "EVIL#123", "EVIL owner/repo#1", "[EVIL](http://example.org)",
	"![EVIL](x)", "</details>EVIL", "</code>EVIL", "EVIL\\|\\`", "**EVIL**", "EVIL https://example.org", "\x1b[31mEVIL\u202e", "EVIL\xff", " EVIL ", "`", "EVIL&#64;x", "~~~~EVIL",
}

// hostileTarget is a target in which every text is hostile.
func hostileTarget(name string) *given {
	crash := &trace.Stack{
		Thread: &trace.Thread{ID: name, Name: name, Arch: "x86_64", Crashed: true},
		Frames: []trace.Frame{{PC: 1, FoundBy: trace.ByContext, Module: &libm.Module, Symbols: []trace.Symbol{{Function: name, File: name, Line: 3}}}},
	}
	other := &trace.Stack{Thread: &trace.Thread{ID: "2" + name, Name: name}, Frames: []trace.Frame{{PC: 2, Symbols: []trace.Symbol{{Function: name + "2"}}}}}
	g := reportOf(crash, other)
	g.Target.Path, g.Target.Fact, g.Target.Problems = name, name, []string{name, name}
	g.Target.Process = &Process{Executable: name, Kernel: name, Time: name}
	g.Modules = []Module{{ID: 3, Path: name, BuildID: name, DebugInfo: name}}
	return g
}

func (g *given) markdown(t *testing.T, most int) string {
	t.Helper()
	var b bytes.Buffer
	if err := g.report().WriteMarkdown(&b, TextOptions{}, most); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	inSpan    = regexp.MustCompile("`[^`]+`")
	inElement = regexp.MustCompile(`<code>(?:[A-Za-z0-9 ]|[^\x00-\x7f]|&#[0-9]+;)*</code>`)
	ownLine   = regexp.MustCompile(`^(## C(: C)?|\| \| \||(\|---)+\||\| [A-Z][a-z]+( [a-z]+)* \| C \||\| Module of the stack \| Build ID \| Debug information \||\| C \| C \| C \||- problem: C|` +
		`- [0-9]+ more problems? left out|[0-9]+ more (stack|module)s? left out(\.|: C prints all\.)|</?details>|<summary>[0-9]+ other threads?</summary>|)$`)
)

// outsideCode returns the lines of Markdown outside blocks of code, with C in the place of other
// code.
func outsideCode(t *testing.T, all string) (lines []string) {
	t.Helper()
	fence := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(all, "\n"), "\n") {
		switch ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]; {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence != "" && len(ticks) >= len(fence) && ticks == line:
			fence = ""
		case fence == "":
			lines = append(lines, inElement.ReplaceAllString(inSpan.ReplaceAllString(line, "C"), "C"))
		}
	}
	if fence != "" {
		t.Error("a block of code does not end")
	}
	return lines
}

// TestMarkdownIsInert holds that no text of a target has a meaning in Markdown or HTML: outside
// code there are the program's own words only.
func TestMarkdownIsInert(t *testing.T) {
	for _, name := range hostileNames {
		all := hostileTarget(name).markdown(t, 0)
		for _, line := range outsideCode(t, all) {
			if !ownLine.MatchString(line) {
				t.Errorf("%q: outside code there is %q", name, line)
			}
		}
		if !utf8.ValidString(all) || strings.ContainsAny(all, "\x1b\u202e") {
			t.Errorf("%q is not escaped", name)
		}
	}
}

func TestMarkdownGolden(t *testing.T) {
	g := hostileTarget("a|b`@c #1 <d>")
	got := g.markdown(t, 0)
	path := filepath.Join("testdata", "markdown.md")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is another text, or this one is to be written there: %s\n%s", path, diff, got)
	}
}

// TestMarkdownIsBounded holds the bound of a section, whatever the target has, and the count of
// what is left out.
func TestMarkdownIsBounded(t *testing.T) {
	var stacks []*trace.Stack
	for i := range 3000 {
		s := &trace.Stack{Thread: &trace.Thread{ID: fmt.Sprint(i), Crashed: i == 0}}
		for k := range 50 {
			s.Frames = append(s.Frames, trace.Frame{PC: uint64(i*1000 + k), Symbols: []trace.Symbol{{Function: strings.Repeat("`n", 500+i%7), File: "f.c", Line: i + 1}}})
		}
		stacks = append(stacks, s)
	}
	g := reportOf(stacks...)
	for range 100 {
		g.Target.Problems = append(g.Target.Problems, strings.Repeat("p`", 1000))
	}
	for _, most := range []int{0, 30_000, 2000, 400} {
		all := g.markdown(t, most)
		bound := most
		if most == 0 {
			bound = MaxMarkdown
		}
		if len(all) > bound || len(all) < bound/3 && most != 400 {
			t.Errorf("%d bytes, of at most %d", len(all), bound)
		}
		outsideCode(t, all)
		if most != 400 && !strings.Contains(all, "left out: `unwindd stack` prints all.") {
			t.Errorf("at most %d bytes: nothing is said to be left out:\n%.3000s", most, all[max(0, len(all)-300):])
		}
	}
}
