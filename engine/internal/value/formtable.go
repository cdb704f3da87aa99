// SPDX-License-Identifier: Apache-2.0

package value

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
)

// This file reads the tables of forms: how objects of libraries' types are shown.
// docs/values.md describes the format of a table.

//go:embed tables/*.forms
var tableFiles embed.FS

// form is how objects of types are shown whose names match a pattern.
type form struct {
	name     string   // of the first pattern, without arguments; problems use it
	patterns []string // of types' names
	clauses  []clause
	isText   bool // it shows a string
}

// clauseOp is the effect of a clause.
type clauseOp uint8

const (
	opWhen   clauseOp = iota // the form is for objects with this condition
	opLet                    // names a number or a type
	opPlace                  // names an object
	opCheck                  // a condition of every initialized object
	opCount                  // the number of elements
	opText                   // the summary
	opString                 // the object is a string
	opUTF8                   // the object is a string of UTF-8
	opIf                     // the next clauses apply only where this holds
	opFor                    // the next clauses apply to each number below one
	opFollow                 // the next clauses apply to each node of a chain
	opTree                   // the next clauses apply to each node of a binary tree, in order
	opBTree                  // the next clauses apply to each place in the nodes of a B-tree, in order
	opItem                   // an element
	opEntry                  // a key and a value
	opMember                 // a named part
	opWhole                  // the value that stands for the object
	opLeaves                 // members of one name of all base classes
)

// clause is a line of a form.
type clause struct {
	op    clauseOp
	name  string // of the variable, or of the part
	index string // of the variable that counts the places in a node of a B-tree
	text  string // why a check fails
	exprs []*expr
	parts []textPart // of a summary
}

// textPart is a text, or an expression whose value is inserted.
type textPart struct {
	text  string
	expr  *expr
	isHex bool
	// isCount is true where the word for elements follows the number.
	isCount bool
	isName  bool // the name of the type is inserted
	isType  bool // the whole type is inserted
	isShort bool // the whole type as people write it
	isCode  bool // the number is an address, whose symbol is inserted
}

// table is the forms of the types of a language's libraries.
type table struct {
	byName    map[string][]*form // by the pattern's name, without arguments
	patterned []*form            // whose patterns do not begin with a whole name
}

var tables = sync.OnceValue(func() map[string]*table {
	all := map[string]*table{}
	files, err := tableFiles.ReadDir("tables")
	if err != nil {
		panic(err) // the tables are part of the executable
	}
	for _, f := range files {
		text, err := tableFiles.ReadFile("tables/" + f.Name())
		if err == nil {
			err = readTable(all, string(text))
		}
		if err != nil {
			panic(fmt.Sprintf("%s: %v", f.Name(), err)) // a test reads them all
		}
	}
	return all
})

// languageOf returns the name of a unit's language in the tables.
func languageOf(u dwarf.Unit) string {
	switch u.Language() {
	case dw.LangRust:
		return "rust"
	case dw.LangGo:
		return "go"
	}
	if u.HasScopedNames() {
		return "c++"
	}
	return ""
}

// readTable adds the forms of a file.
func readTable(all map[string]*table, text string) error {
	var t *table
	var current *form
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		var err error
		switch {
		case word == "":
		case word == "language":
			if t = all[rest]; t == nil {
				t = &table{byName: map[string][]*form{}}
				all[rest] = t
			}
		case t == nil:
			err = fmt.Errorf("%q before the language", word)
		case word == "form":
			current = t.add(rest)
		case current == nil:
			err = fmt.Errorf("%q before the first form", word)
		default:
			err = current.add(word, rest)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

// add begins a form for patterns that bars separate.
func (t *table) add(patterns string) *form {
	f := &form{}
	for p := range strings.SplitSeq(patterns, " | ") {
		p = strings.TrimSpace(p)
		f.patterns = append(f.patterns, p)
		name := withoutArguments(p)
		if i := strings.IndexByte(name, '*'); i > 0 { // names with the same beginning
			t.patterned = append(t.patterned, f)
			if f.name == "" {
				f.name = name[:i]
			}
			continue
		}
		if f.name == "" {
			f.name = name
		}
		if !isWord(p[0]) {
			t.patterned = append(t.patterned, f)
			continue
		}
		t.byName[name] = append(t.byName[name], f)
	}
	return f
}

// withoutArguments returns a type's name without template arguments.
func withoutArguments(name string) string {
	if i := strings.IndexByte(name, '<'); i > 0 {
		return name[:i]
	}
	return name
}

// add adds a clause.
func (f *form) add(word, rest string) error {
	how, ok := clauseWords[word]
	if !ok {
		return fmt.Errorf("%q is no clause of a form", word)
	}
	c := clause{op: how.op}
	err := how.parse(&c, rest)
	f.isText = f.isText || c.op == opString || c.op == opUTF8
	f.clauses = append(f.clauses, c)
	return err
}

// clauseWords are the words that clauses begin with, and the parsers of the rest.
var clauseWords = map[string]struct {
	op    clauseOp
	parse func(c *clause, rest string) error
}{
	"when":   {opWhen, (*clause).one},
	"let":    {opLet, nameAnd("=")},
	"place":  {opPlace, nameAnd("=")},
	"check":  {opCheck, (*clause).condition},
	"count":  {opCount, (*clause).one},
	"text":   {opText, (*clause).summary},
	"string": {opString, (*clause).two},
	"utf8":   {opUTF8, (*clause).two},
	"if":     {opIf, (*clause).one},
	"for":    {opFor, nameAnd("<")},
	"follow": {opFollow, keywords("=", " while ", " next ")},
	"tree":   {opTree, keywords("=", " parent ", " left ", " right ")},
	"btree":  {opBTree, keywords("=", " height ", " size ", " child ")},
	"item":   {opItem, (*clause).one},
	"entry":  {opEntry, (*clause).two},
	"member": {opMember, nameAnd("=")},
	"whole":  {opWhole, (*clause).one},
	"leaves": {opLeaves, nameAnd(" of ")},
}

// nameAnd parses a name and an expression with text between them.
func nameAnd(between string) func(c *clause, rest string) error {
	return func(c *clause, rest string) error {
		name, value, _ := strings.Cut(rest, between)
		c.name = strings.TrimSpace(name)
		return c.one(value)
	}
}

// condition parses a condition and the reason why it may not hold.
func (c *clause) condition(rest string) error {
	condition, reason, _ := strings.Cut(rest, " : ")
	c.text = strings.TrimSpace(reason)
	return c.one(condition)
}

// one sets the expression of a clause that has one.
func (c *clause) one(text string) error {
	e, err := parseExpr(text)
	c.exprs = []*expr{e}
	return err
}

// two parses two expressions.
func (c *clause) two(text string) (err error) {
	c.exprs, err = parseExprs(text)
	if err == nil && len(c.exprs) != 2 {
		err = fmt.Errorf("%q: %d expressions, 2 are expected", text, len(c.exprs))
	}
	return err
}

// keywords parses a name, or the names of a node and of a place in it, and expressions with
// words between them.
func keywords(words ...string) func(c *clause, rest string) error {
	return func(c *clause, text string) error {
		name, rest, ok := strings.Cut(text, words[0])
		c.name, c.index, _ = strings.Cut(strings.TrimSpace(name), " ")
		for i := range words {
			if !ok {
				return fmt.Errorf("%q: %q is missing", text, words[i])
			}
			part := rest
			if i+1 < len(words) {
				part, rest, ok = strings.Cut(rest, words[i+1])
			}
			e, err := parseExpr(part)
			if err != nil {
				return err
			}
			c.exprs = append(c.exprs, e)
		}
		return nil
	}
}

// summary parses a text in quotes, which has expressions in braces, and the condition after it.
func (c *clause) summary(text string) error {
	end := strings.LastIndexByte(text, '"')
	if end < 1 || text[0] != '"' {
		return fmt.Errorf("%q where a text in quotes is expected", text)
	}
	if condition := strings.TrimSpace(text[end+1:]); condition != "" {
		condition, ok := strings.CutPrefix(condition, "if ")
		if !ok {
			return fmt.Errorf("%q behind a text", condition)
		}
		if err := c.one(condition); err != nil {
			return err
		}
	}
	for rest := text[1:end]; rest != ""; {
		plain, after, hasExpr := strings.Cut(rest, "{")
		if plain != "" {
			c.parts = append(c.parts, textPart{text: plain})
		}
		if !hasExpr {
			break
		}
		inside, after, ok := strings.Cut(after, "}")
		if !ok {
			return fmt.Errorf("%q: a brace is not closed", text)
		}
		rest = after
		if inside == "name" {
			c.parts = append(c.parts, textPart{isName: true})
			continue
		}
		if inside == "typename" {
			c.parts = append(c.parts, textPart{isType: true})
			continue
		}
		if inside == "shorttype" {
			c.parts = append(c.parts, textPart{isShort: true})
			continue
		}
		inside, isCode := strings.CutSuffix(inside, ":symbol")
		inside, isHex := strings.CutSuffix(inside, ":x")
		inside, isCount := strings.CutSuffix(inside, ":elements")
		e, err := parseExpr(inside)
		if err != nil {
			return err
		}
		c.parts = append(c.parts, textPart{expr: e, isHex: isHex, isCount: isCount, isCode: isCode})
	}
	return nil
}

// matching returns the forms for a type's name, in the order of the table.
func (t *table) matching(name string) (list []*form) {
	if name == "" {
		return nil
	}
	candidates := t.patterned
	if known := t.byName[withoutArguments(name)]; known != nil {
		candidates = known
	}
	for _, f := range candidates {
		for _, p := range f.patterns {
			if matches(p, name) {
				list = append(list, f)
				break
			}
		}
	}
	return list
}

// matches reports whether a name matches a pattern, in which * stands for anything. The name of
// a template without arguments matches every pattern for the template.
func matches(pattern, name string) bool {
	if !strings.Contains(name, "<") && isWord(name[0]) {
		pattern = withoutArguments(pattern)
	}
	first, rest, isOpen := strings.Cut(pattern, "*")
	name, ok := strings.CutPrefix(name, first)
	if !ok || !isOpen {
		return ok && name == ""
	}
	for {
		part, after, hasMore := strings.Cut(rest, "*")
		if !hasMore {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], after
	}
}
