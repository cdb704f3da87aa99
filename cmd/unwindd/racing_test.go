// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// raceVariable is a variable of the Makefile.
func raceVariable(t *testing.T, makefile, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` = ((?:.*\\\n)*.*)$`).FindStringSubmatch(makefile)
	if found == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.ReplaceAll(found[1], "\\\n", " ")
}

// goroutines are the functions of a file that start goroutines. A test that runs
// beside others is none of them for that.
func goroutines(t *testing.T, path string) (functions []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		starts := false
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts = true
			case *ast.CallExpr: // of sync.WaitGroup
				s, ok := n.Fun.(*ast.SelectorExpr)
				starts = starts || ok && s.Sel.Name == "Go" && len(n.Args) == 1
			}
			return !starts
		})
		if starts {
			functions = append(functions, f.Name.Name)
		}
	}
	return functions
}

// TestTheRaceDetectorSeesEveryGoroutine holds the packages and tests of `make race`
// against the code: every package is among them where a goroutine is started, and
// every test that starts one.
func TestTheRaceDetectorSeesEveryGoroutine(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	whole, shared := strings.Fields(raceVariable(t, string(text), "RACE_WHOLE")), strings.Fields(raceVariable(t, string(text), "RACE_SHARED"))
	tests := regexp.MustCompile(raceVariable(t, string(text), "RACE_TESTS"))
	functions := 0
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		dir := "./" + filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../"))
		if slices.Contains(whole, dir) {
			return nil
		}
		for _, f := range goroutines(t, path) {
			functions++
			switch isTest := strings.HasSuffix(path, "_test.go"); {
			case !slices.Contains(shared, dir):
				t.Errorf("%s: %s starts goroutines, but `make race` does not test %s", path, f, dir)
			case isTest && strings.HasPrefix(f, "Test") && !tests.MatchString(f):
				t.Errorf("%s: %s starts goroutines, but `make race` leaves it out", path, f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if functions < 10 {
		t.Errorf("%d functions start goroutines, expected 10 or more", functions)
	}
}
