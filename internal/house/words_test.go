// SPDX-License-Identifier: Apache-2.0

package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// prepositions name no parameter, result or field: code that says `of` makes its reader look
// up what it is.
var prepositions = map[string]bool{"of": true, "in": true, "at": true, "by": true}

// retired are private words that names had once, and the field's words that took their place.
var retired = map[string]string{
	"keeper": "counting writer", "verdict": "decision", "loose": "unmapped", "standin": "synthetic", "manner": "style or ABI",
	"manners": "styles", "passage": "copy", "handover": "transfer", "awaited": "pending", "noted": "recorded", "asked": "requested",
	"given": "user-provided", "made": "JIT or generated", "held": "deferred or locked", "way": "edge or path", "ways": "edges or paths",
}

// riddles are turns of comments whose meaning a reader has to guess.
var riddles = regexp.MustCompile(`(?i)\bwhat (is|are|was|were)\b|\b(is|are|was|were) what\b|\bthose of\b|\bsays? (what|whether)\b|\bnobody\b|\bbut for\b`)

func TestWords(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".pb.go") || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		problems, err := unwantedWords(path, text)
		for _, p := range problems {
			t.Error(p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// unwantedWords lists the words of a file that are not to be used.
func unwantedWords(path string, text []byte) (problems []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	note := func(pos token.Pos, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: %s", files.Position(pos), fmt.Sprintf(format, args...)))
	}
	declared := func(id *ast.Ident, isField bool) {
		if isField && prepositions[id.Name] {
			note(id.Pos(), "a preposition names a parameter or a field: %s", id.Name)
		}
		for _, word := range components(id.Name) {
			if better := retired[word]; better != "" {
				note(id.Pos(), "%s: expected a word such as %s", id.Name, better)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				declared(id, true)
			}
		case *ast.FuncDecl:
			declared(n.Name, false)
		case *ast.TypeSpec:
			declared(n.Name, false)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				declared(id, false)
			}
		}
		return true
	})
	for _, group := range file.Comments {
		for _, c := range group.List {
			for _, riddle := range riddles.FindAllString(c.Text, -1) {
				note(c.Pos(), "%q in %s", riddle, c.Text)
			}
		}
	}
	return problems, nil
}

// components are the words that a name is made of: standInText has standin and text.
func components(name string) (words []string) {
	name = strings.NewReplacer("standIn", "standin", "StandIn", "Standin").Replace(name)
	start := 0
	for i, r := range name {
		if i > start && (unicode.IsUpper(r) || r == '_') {
			words = append(words, strings.ToLower(strings.Trim(name[start:i], "_")))
			start = i
		}
	}
	return append(words, strings.ToLower(strings.Trim(name[start:], "_")))
}

func TestWordsThatAreFound(t *testing.T) {
	text := "package p\n\n// f says what is there, but for those of others.\nfunc f(of int, keeperOf string) {}\n\ntype standIn struct{ at int }\n"
	problems, err := unwantedWords("p.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, p := range problems {
		places = append(places, strings.Join(strings.SplitN(p, ":", 4)[1:3], ":"))
	}
	if got, want := strings.Join(places, " "), "4:8 4:16 6:6 6:22 3:1 3:1 3:1"; got != want {
		t.Errorf("%s, expected %s\n%s", got, want, strings.Join(problems, "\n"))
	}
}
