// SPDX-License-Identifier: Apache-2.0

// Package schema checks documents against JSON Schemas, for tests.
package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// Schema is a JSON Schema with the keywords of the project's schemas.
type Schema map[string]any

// Docs reads a schema of the folder docs, which then refuses members that it does not
// describe.
func Docs(t testing.TB, name string) Schema {
	t.Helper()
	b, err := os.ReadFile(oracle.Checkout(t, "docs/"+name))
	if err != nil {
		t.Fatal(err)
	}
	s := Schema{}
	if err := json.Unmarshal(b, (*map[string]any)(&s)); err != nil {
		t.Fatalf("docs/%s: %v", name, err)
	}
	shut(map[string]any(s))
	return s
}

// shut makes a schema refuse members that it does not describe.
func shut(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		for _, sub := range s {
			shut(sub)
		}
		if _, ok := s["properties"].(map[string]any); ok {
			s["additionalProperties"] = false
		}
	case []any:
		for _, sub := range s {
			shut(sub)
		}
	}
}

// Definition returns the schema of one of the definitions.
func (s Schema) Definition(name string) Schema {
	return Schema{"$ref": "#/$defs/" + name, "$defs": s["$defs"]}
}

// Check returns where a document, as encoding/json decodes one into an interface, violates
// the schema. An unknown keyword is a finding, too.
func (s Schema) Check(name string, document any) []string {
	c := checker{root: s, patterns: map[string]*regexp.Regexp{}}
	c.value(name, document, s)
	return c.wrong
}

// checker checks a document against a schema.
type checker struct {
	root     Schema
	patterns map[string]*regexp.Regexp
	wrong    []string
}

func (c *checker) say(name, format string, args ...any) {
	c.wrong = append(c.wrong, name+": "+fmt.Sprintf(format, args...))
}

// keywords has the check of each keyword; nil: there is none.
var keywords map[string]func(c *checker, name string, v, want any, schema map[string]any)

func init() {
	keywords = map[string]func(c *checker, name string, v, want any, schema map[string]any){
		"$schema": nil, "$id": nil, "$defs": nil, "definitions": nil, "title": nil, "description": nil,
		"$ref": (*checker).reference, "type": (*checker).kind, "const": (*checker).constant, "enum": (*checker).enum,
		"minimum": (*checker).minimum, "pattern": (*checker).pattern, "items": (*checker).items, "required": (*checker).required,
		"properties": (*checker).properties, "additionalProperties": (*checker).others, "anyOf": (*checker).anyOf,
	}
}

// value checks a value.
func (c *checker) value(name string, v any, schema map[string]any) {
	for keyword, want := range schema {
		check, ok := keywords[keyword]
		switch {
		case !ok:
			c.say(name, "the schema has an unknown keyword %q", keyword)
		case check != nil:
			check(c, name, v, want, schema)
		}
	}
}

func (c *checker) reference(name string, v, want any, _ map[string]any) {
	d := map[string]any(c.root)
	for part := range strings.SplitSeq(strings.TrimPrefix(want.(string), "#/"), "/") {
		d = d[part].(map[string]any)
	}
	c.value(name, v, d)
}

func (c *checker) kind(name string, v, want any, _ map[string]any) {
	ok := false
	switch v := v.(type) {
	case map[string]any:
		ok = want == "object"
	case []any:
		ok = want == "array"
	case string:
		ok = want == "string"
	case bool:
		ok = want == "boolean"
	case float64:
		ok = want == "number" || want == "integer" && v == math.Trunc(v)
	}
	if !ok {
		c.say(name, "%v is not of type %s", v, want)
	}
}

func (c *checker) constant(name string, v, want any, _ map[string]any) {
	if v != want {
		c.say(name, "%v is not %v", v, want)
	}
}

func (c *checker) enum(name string, v, want any, _ map[string]any) {
	if !slices.Contains(want.([]any), v) {
		c.say(name, "%v is not in %v", v, want)
	}
}

func (c *checker) minimum(name string, v, want any, _ map[string]any) {
	if n, ok := v.(float64); ok && n < want.(float64) {
		c.say(name, "%v is less than %v", v, want)
	}
}

func (c *checker) pattern(name string, v, want any, _ map[string]any) {
	text, ok := v.(string)
	if !ok {
		return
	}
	p := c.patterns[want.(string)]
	if p == nil {
		p = regexp.MustCompile(want.(string))
		c.patterns[want.(string)] = p
	}
	if !p.MatchString(text) {
		c.say(name, "%q does not match %s", text, want)
	}
}

func (c *checker) items(name string, v, want any, _ map[string]any) {
	list, _ := v.([]any)
	for i, e := range list {
		c.value(fmt.Sprintf("%s[%d]", name, i), e, want.(map[string]any))
	}
}

func (c *checker) required(name string, v, want any, _ map[string]any) {
	object, ok := v.(map[string]any)
	for _, member := range want.([]any) {
		if _, has := object[member.(string)]; ok && !has {
			c.say(name, "has no %s", member)
		}
	}
}

func (c *checker) properties(name string, v, want any, _ map[string]any) {
	object, _ := v.(map[string]any)
	for member, sub := range want.(map[string]any) {
		if e, ok := object[member]; ok {
			c.value(name+"."+member, e, sub.(map[string]any))
		}
	}
}

func (c *checker) others(name string, v, want any, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	object, _ := v.(map[string]any)
	for member := range object {
		if want == false && properties[member] == nil {
			c.say(name, "has the member %s", member)
		}
	}
}

func (c *checker) anyOf(name string, v, want any, _ map[string]any) {
	for _, sub := range want.([]any) {
		one := checker{root: c.root, patterns: c.patterns}
		if one.value(name, v, sub.(map[string]any)); len(one.wrong) == 0 {
			return
		}
	}
	c.say(name, "is none of the alternatives")
}
