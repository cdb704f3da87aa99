// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// goBlocks are the ```go blocks of a document.
var goBlocks = regexp.MustCompile("(?s)```go\n(.*?)```")

// An example is Go code that a document shows.
type example struct {
	where string // FILE:LINE
	text  string
}

// TestGoExamplesCompile builds every Go example of the README, of docs/, and of
// the comments of packages. One that begins with a package clause is a file.
// Any other is a fragment, and the packages that it names are imported:
// declarations, which belong to the file before them where the document has
// one, or else statements of a function that has ctx and returns an error, where
// variables of the outermost block need not be used.
func TestGoExamplesCompile(t *testing.T) {
	long(t)
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b := newExampleBuild(t, root)
	for _, document := range documentsWithGo(t, root) {
		b.document(t, document)
	}
	if b.examples < 5 {
		t.Errorf("%d Go examples, expected 5 or more", b.examples)
	}
	if said := b.run(t); said != "" {
		t.Errorf("the Go examples of the documents:\n%s", said)
	}
}

func TestWrongGoExamplesAreFound(t *testing.T) {
	long(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b := newExampleBuild(t, root)
	b.document(t, []example{{"statements:1", "e, err := engine.New(engine.Options{OutOfProcess: nil})\n"}})
	b.document(t, []example{{"file:1", "package main\n\nfunc main() { greet() }\n"}, {"rest:1", "func greet(ctx context.Context) {}\n"}})
	b.document(t, []example{{"right:1", "fmt.Println(object.Open)\n"}})
	said := b.run(t)
	for _, want := range []string{"statements:1, line of the file:7:37: unknown field OutOfProcess", "file:1, line of the file:3:15: not enough arguments"} {
		if !strings.Contains(said, want) {
			t.Errorf("not said: %q", want)
		}
	}
	if strings.Contains(said, "right:1") || t.Failed() {
		t.Errorf("said:\n%s", said)
	}
}

// documentsWithGo are the Go examples of each Markdown file and of each
// package's comment, in their order.
func documentsWithGo(t *testing.T, root string) [][]example {
	t.Helper()
	var documents [][]example
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (d.Name() == ".git" || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		}
		var list []example
		switch {
		case d.Name() == walkthrough: // whose files are built one after the other: TestWritingAPlugin
		case strings.HasSuffix(path, ".md"):
			list, err = examplesOfMarkdown(path)
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			list, err = examplesOfPackage(path)
		}
		if len(list) > 0 {
			documents = append(documents, list)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

func examplesOfMarkdown(path string) ([]example, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []example
	for _, m := range goBlocks.FindAllSubmatchIndex(b, -1) {
		line := 1 + strings.Count(string(b[:m[2]]), "\n")
		list = append(list, example{fmt.Sprintf("%s:%d", path, line), string(b[m[2]:m[3]])})
	}
	return list, nil
}

// looksLikeGo tells code in a comment from diagrams and commands.
var looksLikeGo = regexp.MustCompile(`(?m):=|^func `)

// examplesOfPackage are the blocks of Go code in the comments of a file: that of the
// package and those of its declarations.
func examplesOfPackage(path string) ([]example, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var list []example
	for _, doc := range docsOf(f) {
		for _, block := range new(comment.Parser).Parse(doc.Text()).Content {
			if code, ok := block.(*comment.Code); ok && looksLikeGo.MatchString(code.Text) {
				list = append(list, example{fset.Position(doc.Pos()).String(), code.Text})
			}
		}
	}
	return list, nil
}

// docsOf are the documentation comments of a file.
func docsOf(f *ast.File) (list []*ast.CommentGroup) {
	ast.Inspect(f, func(n ast.Node) bool {
		var doc *ast.CommentGroup
		switch n := n.(type) {
		case *ast.File:
			doc = n.Doc
		case *ast.GenDecl:
			doc = n.Doc
		case *ast.FuncDecl:
			doc = n.Doc
		case *ast.TypeSpec:
			doc = n.Doc
		case *ast.BlockStmt:
			return false
		}
		if doc != nil {
			list = append(list, doc)
		}
		return true
	})
	return list
}

// packagesByName are the import paths of the packages that a fragment may name:
// the project's, and the standard library's, of which a name that is not in the
// project counts only if it is one package's.
func packagesByName(t *testing.T, root string) map[string][]string {
	t.Helper()
	byName := map[string][]string{}
	for _, pattern := range []string{"./...", "std"} {
		out := oracle.With{Dir: root}.Run(t, "go", "list", "-f", "{{.Name}} {{.ImportPath}}", pattern)
		found := map[string][]string{}
		for line := range strings.Lines(out) {
			name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			if pattern == "std" && (strings.Contains(path, "internal/") || strings.HasPrefix(path, "vendor/")) {
				continue
			}
			found[name] = append(found[name], path)
		}
		for name, paths := range found {
			if len(byName[name]) == 0 {
				byName[name] = paths
			}
		}
	}
	return byName
}

// An exampleBuild lays the examples over the tree as packages of it.
type exampleBuild struct {
	root     string
	packages map[string][]string
	examples int
	dirs     []string          // of the packages, under root
	overlay  map[string]string // the file in the tree that is not there, and the one that has its text
	where    map[string]string // the example that a file of text is
}

func newExampleBuild(t *testing.T, root string) *exampleBuild {
	t.Helper()
	return &exampleBuild{root: root, overlay: map[string]string{}, where: map[string]string{}, packages: packagesByName(t, root)}
}

// document adds the examples of one document.
func (b *exampleBuild) document(t *testing.T, list []example) {
	t.Helper()
	file := "" // the package clause of the last example that is a file
	for i, e := range list {
		text := e.text
		isFile := strings.HasPrefix(strings.TrimSpace(text), "package ")
		if isFile {
			file, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
		} else {
			declared, err := b.declarations(file, text)
			if err != nil {
				t.Errorf("%s: %v", e.where, err)
				continue
			}
			text = declared
		}
		if file == "" || isFile || i == 0 {
			b.dirs = append(b.dirs, fmt.Sprintf("engine/internal/example%d", len(b.dirs)))
		}
		b.add(t, e, text)
	}
}

// declarations makes a file of a fragment.
func (b *exampleBuild) declarations(clause, text string) (string, error) {
	if clause == "" {
		clause = "package example"
	}
	source := clause + "\n\n" + text
	f, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		text, err = function(text)
		if err != nil {
			return "", fmt.Errorf("neither declarations nor statements: %w", err)
		}
		if f, err = parser.ParseFile(token.NewFileSet(), "", clause+"\n\n"+text, 0); err != nil {
			return "", err
		}
	}
	imports := map[string]bool{}
	unresolved := map[*ast.Ident]bool{}
	for _, id := range f.Unresolved {
		unresolved[id] = true
	}
	var wrong error
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := s.X.(*ast.Ident)
		if !ok || !unresolved[id] {
			return true
		}
		switch paths := b.packages[id.Name]; len(paths) {
		case 1:
			imports[paths[0]] = true
		default:
			wrong = fmt.Errorf("%s is the name of %d packages, expected one: %q", id.Name, len(paths), paths)
		}
		return true
	})
	var lines strings.Builder
	for _, path := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&lines, "import %q\n", path)
	}
	return clause + "\n\n" + lines.String() + "\n" + text, wrong
}

// function makes a function of statements.
func function(text string) (string, error) {
	const head = "func example(ctx context.Context) error {\n"
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+head+text+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var use strings.Builder
	for _, statement := range f.Decls[0].(*ast.FuncDecl).Body.List {
		assign, ok := statement.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		for _, variable := range assign.Lhs {
			if name := variable.(*ast.Ident).Name; name != "_" {
				fmt.Fprintf(&use, "_ = %s\n", name)
			}
		}
	}
	return head + text + "\n" + use.String() + "return nil\n}\n", nil
}

// add puts a file into the last package.
func (b *exampleBuild) add(t *testing.T, e example, text string) {
	t.Helper()
	b.examples++
	file := filepath.Join(t.TempDir(), "example.go")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(b.root, b.dirs[len(b.dirs)-1], fmt.Sprintf("file%d.go", b.examples))
	b.overlay[name] = file
	b.where[file] = e.where
}

// run builds the packages, and returns what the compiler says of them.
func (b *exampleBuild) run(t *testing.T) string {
	t.Helper()
	overlay, err := json.Marshal(map[string]any{"Replace": b.overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-overlay", file}
	for _, dir := range b.dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	said := string(out)
	if err != nil && said == "" {
		t.Fatal(err)
	}
	for file, where := range b.where {
		said = strings.ReplaceAll(said, file, where+", line of the file")
	}
	return said
}
