// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/schema"
)

// hostileComparison is a comparison in which every text is a name.
func hostileComparison(name string) *madeJob {
	m := newMadeJob()
	m.add([]int{1}, [2]string{"r", "a;b;c"}, [2]string{"main", "a;b"})
	m.add([]int{2, 3}, [2]string{"r", "a;b;d"}, [2]string{"main", "a;b"})
	m.part.Add(&comparison.Target{Path: "4", Unread: "no"})
	m.after = func(c *trace.Comparison) { makeHostile(c, name) }
	return m
}

func makeHostile(m *trace.Comparison, name string) {
	for _, nodes := range [][]trace.CallNode{m.Functions, m.Lines} {
		for i := range nodes {
			f := &nodes[i].Frame
			f.Function, f.Short, f.Module, f.Runtime, f.File, f.Line = name+strings.Repeat("i", i), name, name, name, name, 7
		}
	}
	m.Functions[0].Frame.Function = ""
	for i := range m.Targets {
		m.Targets[i].Path, m.Targets[i].Problems = name, []string{name}
		m.Targets[i].Labels = map[string]string{"rank": name, name: name}
	}
	m.Targets[0].Labels = map[string]string{name: name + "0"}
	for i := range m.Classes {
		c := &m.Classes[i]
		c.Labels, c.Signature = map[string]string{name: name}, name
		if c.Unread != "" {
			c.Unread = name
			continue
		}
		c.Facts, c.Builds = []string{name}, []trace.ModuleBuild{{Name: name, BuildID: name}}
		for k := range c.Threads {
			if th := &c.Threads[k]; th.Role == "r" {
				th.Role, th.IDs[0].ID, th.Ends, th.Incomplete = name, name, name, 1
			}
		}
		if c.PartsAt != nil {
			c.PartsAt.Role = name
		}
	}
	m.Modules = []trace.ModuleBuilds{{Name: name, Builds: []trace.TargetsOfBuild{{BuildID: name, Targets: []int{0}, Count: 1}}}}
	m.Collectives = []trace.Collective{{Group: name, Operation: name, Entered: name, Missing: name, Different: []string{name}, Frames: []string{name}}}
	m.Problems = []string{name}
}

// written is a comparison in a form.
func (m *madeJob) written(t testing.TB, write func(*Comparison, io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(NewComparison(m.comparison()), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// comparisonForms are the forms that have lines of text.
var comparisonForms = map[string]func(*Comparison, io.Writer) error{
	"text": func(c *Comparison, w io.Writer) error { return c.WriteText(w, TextOptions{}) },
	"verbose": func(c *Comparison, w io.Writer) error {
		return c.WriteText(w, TextOptions{Verbose: true, FullNames: true})
	},
	"markdown":   func(c *Comparison, w io.Writer) error { return c.WriteMarkdown(w, TextOptions{}, 0) },
	"dot":        (*Comparison).WriteDOT,
	"folded":     (*Comparison).WriteFolded,
	"signatures": (*Comparison).WriteSignatures,
}

// hostileTexts are names with characters that end lines, texts or commands of some form.
func hostileTexts() []string {
	return append([]string{"EVIL\n  n1 -> n2", `EVIL"];`, `EVIL\`, `\N\L\"`, "EVIL;EVIL 7", "EVIL &quot; &lt;", "EVIL\x00\r\x1b]0;title\x07", strings.Repeat("EVIL ", 1<<12), "<EVIL>", "EVIL{0..9}", "0-18446744073709551615"}, hostileNames...)
}

// TestNamesInComparisonsAreEscaped: no name makes lines of its own, or commands of a terminal.
func TestNamesInComparisonsAreEscaped(t *testing.T) {
	for form, write := range comparisonForms {
		lines := strings.Count(hostileComparison("plain").written(t, write), "\n")
		for _, name := range hostileTexts() {
			text := hostileComparison(name).written(t, write)
			if strings.ContainsAny(text, "\x00\x1b\x07\r\u202e") || !utf8.ValidString(text) {
				t.Errorf("%s of %.40q is not escaped", form, name)
			}
			if n := strings.Count(text, "\n"); n != lines && form != "markdown" {
				t.Errorf("%s of %.40q has %d lines, expected %d:\n%.2000s", form, name, n, lines, text)
			}
		}
	}
}

var comparisonOwnLine = regexp.MustCompile(`^(## C|\| Class \| Number of targets \| Which \| Parts in \| Here \| The others \||(\|---)+\||\| [0-9]+ \| [0-9]+ \|( C? ?\|)+|` +
	`[0-9]+ more class(es)? left out\.|</?details>|<summary>[A-Z][a-z ]+</summary>|)$`)

// TestMarkdownOfComparisonsIsInert holds that no text has a meaning in Markdown or HTML.
func TestMarkdownOfComparisonsIsInert(t *testing.T) {
	for _, name := range hostileTexts() {
		for _, line := range outsideCode(t, hostileComparison(name).written(t, comparisonForms["markdown"])) {
			if !comparisonOwnLine.MatchString(line) {
				t.Errorf("%.40q: outside code there is %.200q", name, line)
			}
		}
	}
}

// TestMarkdownOfComparisonsIsBounded holds the bound of a section.
func TestMarkdownOfComparisonsIsBounded(t *testing.T) {
	for _, most := range []int{0, 30_000, 4000, 400} {
		for name, m := range map[string]*madeJob{"many classes": manyClasses(), "long names": hostileComparison(strings.Repeat("`x", 9000)), "one": oneOutlier(9600)} {
			text := m.written(t, func(c *Comparison, w io.Writer) error { return c.WriteMarkdown(w, TextOptions{}, most) })
			if bound := most; most == 0 && len(text) > MaxMarkdown || most > 0 && len(text) > bound {
				t.Errorf("%s: %d bytes, of at most %d", name, len(text), most)
			}
			outsideCode(t, text)
		}
	}
}

// TestJSONOfHostileNamesIsAsDescribed: the names are whole, and the document is that of the schema.
func TestJSONOfHostileNamesIsAsDescribed(t *testing.T) {
	described := schema.Docs(t, "compare.schema.json")
	for _, name := range hostileTexts() {
		text := hostileComparison(name).written(t, (*Comparison).WriteJSON)
		checkJSON(t, name, described, []byte(text))
		var document struct{ Problems []string }
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(name, "\ufffd"); document.Problems[0] != want {
			t.Errorf("%.40q became %.40q", name, document.Problems[0])
		}
	}
}

// TestFoldedStacksOfComparisonsAreThreads: a line is a role and a stack, and its number that of threads.
func TestFoldedStacksOfComparisonsAreThreads(t *testing.T) {
	const want = "io#;clone3;io_loop;epoll_wait 394\nmain;main;run;handler;abort 1\nmain;main;run;wait 393\nmain;run;wait 1\n"
	if got := manyKinds().written(t, (*Comparison).WriteFolded); got != want {
		t.Errorf("%s", got)
	}
	for _, name := range hostileTexts() {
		for line := range strings.Lines(hostileComparison(name).written(t, (*Comparison).WriteFolded)) {
			if !regexp.MustCompile(`^[^;]+(;[^;]+)+ [12]\n$|^main;[^;]+;[^;]+ 3\n$`).MatchString(line) {
				t.Errorf("%.40q: %.300q", name, line)
			}
		}
	}
}

// TestPprofOfComparisonsCountsThreadsAndTargets reads the profile by the library of pprof.
func TestPprofOfComparisonsCountsThreadsAndTargets(t *testing.T) {
	p, err := profile.ParseData([]byte(oneOutlier(9600).written(t, (*Comparison).WritePprof)))
	if err != nil {
		t.Fatal(err)
	}
	threads, alone := int64(0), 0
	for _, s := range p.Sample {
		threads += s.Value[0]
		if s.Label["class"][0] == "1" && s.Label["role"][0] == "main" {
			alone++
			if s.Value[0] != 1 || s.Value[1] != 1 || s.Location[0].Line[0].Function.Name != "read" || len(s.Location) != 12 {
				t.Errorf("%v", s)
			}
		}
	}
	if threads != 28_800 || alone != 1 || len(p.Sample) != 6 {
		t.Errorf("%d threads, %d samples, %d of rank 137", threads, len(p.Sample), alone)
	}
	for _, name := range hostileTexts() {
		if _, err := profile.ParseData([]byte(hostileComparison(name).written(t, (*Comparison).WritePprof))); err != nil {
			t.Errorf("%.40q: %v", name, err)
		}
	}
}

// TestGraphvizDrawsComparisons draws graphs with hostile names, and looks for their nodes.
func TestGraphvizDrawsComparisons(t *testing.T) {
	dot := oracle.Tool(t, "dot")
	for _, name := range hostileTexts() {
		if len(name) > 1<<11 {
			continue // its part in the graph is short, too
		}
		path := filepath.Join(t.TempDir(), "graph.dot")
		if err := os.WriteFile(path, []byte(hostileComparison(name).written(t, (*Comparison).WriteDOT)), 0o600); err != nil {
			t.Fatal(err)
		}
		drawn := oracle.Run(t, dot, "-Tplain", path)
		if nodes, edges := strings.Count(drawn, "\nnode "), strings.Count(drawn, "\nedge "); nodes != 3 || edges != 2 {
			t.Errorf("%.40q: %d nodes, %d edges:\n%s", name, nodes, edges, drawn)
		}
	}
}

// TestGoReadsPprofOfComparisons lists functions by `go tool pprof`.
func TestGoReadsPprofOfComparisons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "comparison.pb.gz")
	oracle.All(t)
	if err := os.WriteFile(path, []byte(oneOutlier(9600).written(t, (*Comparison).WritePprof)), 0o600); err != nil {
		t.Fatal(err)
	}
	out := oracle.Run(t, "go", "tool", "pprof", "-top", "-sample_index=targets", "-tagfocus=class=^1$", path)
	if !regexp.MustCompile(`(?m)^ +1 +\S+ +\S+ +1 +\S+ +read$`).MatchString(out) {
		t.Errorf("%s", out)
	}
}
