// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/manual"
	"github.com/unwindd/unwindd/internal/oracle"
)

// manualPages are the paths of the pages, written in a time zone of its own.
func manualPages(t *testing.T, zone string) []string {
	t.Helper()
	dir := t.TempDir()
	cmd := command("man", dir)
	cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH=1795468087", "TZ="+zone)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	return pages
}

func TestEveryCommandHasAManualPage(t *testing.T) {
	pages := manualPages(t, "Pacific/Auckland")
	again := manualPages(t, "UTC")
	texts := map[string]string{}
	for i, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(again[i])
		if err != nil || string(other) != string(text) {
			t.Errorf("%s differs with the time zone, %v", path, err)
		}
		texts[strings.TrimSuffix(filepath.Base(path), ".1")] = string(text)
	}
	for _, cmd := range manual.Commands(newRoot()) {
		text := texts[manual.Name(cmd)]
		for _, want := range []string{"\"2026-11-23\"", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH OPTIONS\n", ".SH EXIT STATUS\n", ".SH ENVIRONMENT\n", ".SH FILES\n", ".SH SEE ALSO\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("the page of %s lacks %q", cmd.CommandPath(), want)
			}
		}
		if cmd.Example != "" && !strings.Contains(text, ".SH EXAMPLES\n") {
			t.Errorf("the page of %s lacks its examples", cmd.CommandPath())
		}
		delete(texts, manual.Name(cmd))
	}
	for name := range texts {
		t.Errorf("%s is a page of no command", name)
	}
	for path := range book.SeeAlso {
		if cmd, rest, err := newRoot().Find(strings.Fields(path)[1:]); err != nil || len(rest) > 0 || cmd.CommandPath() != path {
			t.Errorf("%s is no command", path)
		}
	}
}

// TestManualPagesRender reads every page by both formatters.
func TestManualPagesRender(t *testing.T) {
	oracle.Tools(t, "man", "mandoc", "groff")
	for _, path := range manualPages(t, "UTC") {
		cmd := exec.Command("man", "--warnings=w", "-l", path)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80")
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil || said.Len() > 0 || !strings.Contains(string(out), "EXIT STATUS") {
			t.Errorf("man %s: %v, %s", filepath.Base(path), err, said.String())
		}
		if out, err := exec.Command("mandoc", "-T", "lint", "-W", "warning", path).CombinedOutput(); err != nil {
			t.Errorf("mandoc %s: %v\n%s", filepath.Base(path), err, out)
		}
	}
}

func TestManualPagesNeedADirectoryAndADate(t *testing.T) {
	if _, said, status := unwindd(t, "man", filepath.Join(t.TempDir(), "none")); status != exitInput || !strings.Contains(said, "none") {
		t.Errorf("status %d, %s", status, said)
	}
	cmd := command("man", t.TempDir())
	cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH=today")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), "SOURCE_DATE_EPOCH=today") {
		t.Errorf("%s", out)
	}
}

// TestVariablesAreInTheManual looks for the environment variables that the sources read.
func TestVariablesAreInTheManual(t *testing.T) {
	described := "HOME" // as every program takes it
	for _, e := range book.Environment {
		described += ", " + e.Name
	}
	known := map[string]bool{"SOURCE_DATE_EPOCH": true} // for those who package this
	for name := range strings.SplitSeq(described, ", ") {
		known[name] = true
	}
	read := 0
	for _, room := range []string{".", "../../engine"} {
		err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				name := variableRead(n)
				if name == "" {
					return true
				}
				read++
				if !known[name] {
					t.Errorf("%s reads %s, which the manual does not have", path, name)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 10 {
		t.Errorf("%d variables are read, expected 10 or more", read)
	}
}

// variableRead is the variable of a call of Getenv, getenv or LookupEnv; "": n is none.
func variableRead(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return ""
	}
	name := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	text, ok := call.Args[0].(*ast.BasicLit)
	if !ok || !strings.EqualFold(name, "getenv") && name != "LookupEnv" {
		return ""
	}
	variable, _ := strconv.Unquote(text.Value)
	return variable
}
