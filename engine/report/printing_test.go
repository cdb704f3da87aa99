// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

const module = "github.com/unwindd/unwindd/"

// checked is a package with what its expressions mean.
type checked struct {
	files []*ast.File
	set   *token.FileSet
	types.Info
}

// checkPackage type-checks a package of this module.
func checkPackage(t *testing.T, path string) *checked {
	t.Helper()
	out := oracle.Run(t, "go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles", module+path)
	exports := map[string]string{}
	c := &checked{set: token.NewFileSet(), Info: types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.ImportPath != module+path {
			continue
		}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(c.set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			c.files = append(c.files, f)
		}
	}
	config := types.Config{Importer: importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	if _, err := config.Check(module+path, c.set, c.files, &c.Info); err != nil {
		t.Fatal(err)
	}
	return c
}

// pastThePrinter lists where a file writes text by other ways than a Printer: by package fmt, by methods of writers that are no strings in memory, or by
// making a format of a string.
func (c *checked) pastThePrinter(f *ast.File) (wrong []string) {
	say := func(n ast.Node, format string, args ...any) {
		p := c.set.Position(n.Pos())
		wrong = append(wrong, fmt.Sprintf("%s:%d: %s", filepath.Base(p.Filename), p.Line, fmt.Sprintf(format, args...)))
	}
	typeOf := func(e ast.Expr) string {
		if t := c.TypeOf(e); t != nil {
			return t.String()
		}
		return ""
	}
	inMemory := func(e ast.Expr) bool {
		name := strings.TrimPrefix(typeOf(e), "*")
		return name == "strings.Builder" || name == "bytes.Buffer" || name == "fmt.State" || name == "hash/maphash.Hash" || strings.HasSuffix(name, "symbolize.Writer")
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if o := c.Uses[n.Sel]; o != nil && o.Pkg() != nil && o.Pkg().Path() == "os" && (o.Name() == "Stdout" || o.Name() == "Stderr") {
				say(n, "os.%s", o.Name())
			}
		case *ast.CompositeLit:
			if strings.HasSuffix(typeOf(n), "report.painted") && len(n.Elts) > 0 {
				say(n, "text is made painted")
			}
		case *ast.BasicLit:
			if strings.HasSuffix(typeOf(n), "report.layout") && strings.Contains(n.Value, "%c") {
				say(n, "%%c in a format")
			}
		case *ast.CallExpr:
			if tv := c.Types[n.Fun]; tv.IsType() {
				if strings.HasSuffix(tv.Type.String(), "report.layout") && c.Types[n.Args[0]].Value == nil {
					say(n, "a string is made a format")
				}
				return true
			}
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := s.Sel.Name
			if _, isMethod := c.Selections[s]; isMethod {
				if strings.HasPrefix(name, "Write") && len(name) > len("Write") && !slices.Contains([]string{"WriteString", "WriteByte", "WriteRune"}, name) {
					return true // of a report
				}
				if (strings.HasPrefix(name, "Write") || name == "ReadFrom") && !inMemory(s.X) {
					say(n, "%s of a %s", name, typeOf(s.X))
				}
				return true
			}
			o := c.Uses[s.Sel]
			if o == nil || o.Pkg() == nil {
				return true
			}
			switch p := o.Pkg().Path(); {
			case p == "fmt" && strings.HasPrefix(name, "Print"):
				say(n, "fmt.%s", name)
			case p == "fmt" && strings.HasPrefix(name, "Fprint"), p == "io" && (name == "WriteString" || strings.HasPrefix(name, "Copy")):
				if !inMemory(n.Args[0]) {
					say(n, "%s.%s to a %s", p, name, typeOf(n.Args[0]))
				}
			}
		}
		return true
	})
	return wrong
}

// TestTextIsPrintedByThePrinterAlone: foreign text reaches a terminal through
// report.Printer, which escapes it. The files named here write no text for
// people: JSON, which is encoded, the formats of other tools, and bytes.
func TestTextIsPrintedByThePrinterAlone(t *testing.T) {
	long(t)
	for path, others := range map[string]map[string]string{
		"engine/report": {
			"printer.go": "the printer", "json.go": "JSON", "jsonlist.go": "JSON", "profilejson.go": "JSON", "speedscope.go": "JSON", "stackjson.go": "JSON",
			"folded.go": "names that were escaped once, each of which is in many lines", "pprofwrite.go": "bytes", "httpguard.go": "pages",
			"profilepages.go": "pages", "profilediffwrite.go": "names that were escaped once, and bytes", "firefoxcolumns.go": "JSON", "otlpmessage.go": "bytes", "markdown.go": "what the printer wrote, which TestMarkdownIsInert looks at",
			"comparisonmarkdown.go": "what the printer wrote, which TestMarkdownOfComparisonsIsInert looks at", "comparisonstacks.go": "bytes",
		},
		"engine/symbolize": {
			"writer.go": "answers, which TestAnswersAreEscaped looks at", "batch.go": "likewise", "profile.go": "bytes", "profilefiles.go": "bytes, to a hash",
		},
		"cmd/unwindd": {
			"signals.go": "standard output and standard error themselves", "output.go": "bytes",
			"globals.go": "whether standard output is a terminal", "profile.go": "likewise", "snapshot.go": "bytes, and whether they go to standard output",
			"debuginfod.go": "whether standard error is a terminal", "progress.go": "likewise",
			"server.go":       "JSON and pages of a server, and whether standard output is a terminal",
			"servesystemd.go": "what systemd is told, which no terminal shows",
			"help.go":         "its own words, which no input changes",
			"sampling.go":     "a line that the printer wrote, which is cleared, and whether standard error is a terminal",
			"diff.go":         "whether they are terminals",
			"child.go":        "a recorded program has the command's terminal",
			"liveview.go":     "lines that the printer wrote, at the bottom of the terminal, and whether standard error is one",
			"sections.go":     "what the printer wrote", "submitinput.go": "bytes, to a file",
			"collect.go": "whether standard output is a terminal", "compare.go": "likewise", "submit.go": "a snapshot's bytes, to a file",
			"profileserver.go": "bytes, reports of a server, which TestHostileServers looks at, and whether they go to terminals",
			"plugin.go":        "an empty line", "pluginpin.go": "a configuration file",
		},
	} {
		c := checkPackage(t, path)
		used := map[string]bool{}
		for _, f := range c.files {
			name := filepath.Base(c.set.Position(f.Package).Filename)
			wrong := c.pastThePrinter(f)
			used[name] = len(wrong) > 0
			if others[name] != "" {
				continue
			}
			for _, w := range wrong {
				t.Errorf("%s/%s", path, w)
			}
		}
		for name := range others {
			if !used[name] {
				t.Errorf("%s/%s writes nothing past the printer, and need not be named here", path, name)
			}
		}
	}
}

// TestPrintingPastThePrinterIsSeen holds the check against ways past the printer.
func TestPrintingPastThePrinterIsSeen(t *testing.T) {
	const source = `package p
import ("fmt"; "io"; "os"; "bufio"; "strings")
func f(w io.Writer, b *bufio.Writer, s string) {
	fmt.Fprintf(w, s)
	fmt.Println(s)
	io.WriteString(w, s)
	b.WriteString(s)
	w.Write([]byte(s))
	_ = os.Stderr
	var inMemory strings.Builder
	inMemory.WriteString(s)
	fmt.Fprint(&inMemory, s)
}`
	out := oracle.Run(t, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "fmt", "bufio")
	exports := map[string]string{}
	for line := range strings.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	c := &checked{set: token.NewFileSet(), Info: types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	f, err := parser.ParseFile(c.set, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fs.ErrNotExist
		}
		return os.Open(exports[path])
	})}
	if _, err := config.Check("p", c.set, []*ast.File{f}, &c.Info); err != nil {
		t.Fatal(err)
	}
	if wrong := c.pastThePrinter(f); len(wrong) != 6 {
		t.Errorf("%d of 6 are seen: %q", len(wrong), wrong)
	}
}
