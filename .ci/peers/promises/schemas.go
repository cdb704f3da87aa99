// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// schema is a JSON Schema of what programs read or write.
type schema struct {
	path     string
	isInput  bool // unwindd reads it: others may have it without what becomes required
	hasNotes bool // it has no version of its own, so that it may break as a name of Go may
}

// schemas are those that are promised.
var schemas = []schema{
	{path: "docs/stack.schema.json"},
	{path: "docs/snapshot.schema.json", isInput: true},
	{path: "docs/gpu-samples.schema.json", isInput: true},
	{path: "docs/profile.schema.json", hasNotes: true},
	{path: "docs/annotations.schema.json", hasNotes: true},
}

// documents are the changes of schemas that break who reads or writes such JSON.
func (c *check) documents(r *release) ([]broken, error) {
	var found []broken
	for _, s := range schemas {
		path := c.released(filepath.Base(s.path))
		if r.tree != "" {
			path = filepath.Join(r.tree, s.path)
		}
		before, err := parseSchema(path)
		if err != nil {
			return nil, err
		}
		after, err := parseSchema(filepath.Join(c.top, s.path))
		if err != nil {
			return nil, err
		}
		d := schemaDiff{isInput: s.isInput, before: before, after: after, seen: map[string]bool{}}
		d.compare("", before, after)
		for _, what := range d.broken {
			b := broken{what: s.path + what}
			if s.hasNotes {
				b.name = s.path
			}
			found = append(found, b)
		}
	}
	return found, nil
}

func parseSchema(path string) (map[string]any, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return root, nil
}

// schemaDiff compares two versions of a schema.
type schemaDiff struct {
	isInput       bool
	before, after map[string]any  // the roots
	seen          map[string]bool // pairs of references
	broken        []string
}

func (d *schemaDiff) note(path, format string, args ...any) {
	d.broken = append(d.broken, "#"+path+": "+fmt.Sprintf(format, args...))
}

// compare compares what two versions say at a place.
func (d *schemaDiff) compare(path string, before, after map[string]any) {
	from, to := before["$ref"], after["$ref"]
	if from != nil || to != nil {
		pair := fmt.Sprint(from, " ", to, " ", from != nil && to != nil)
		if from != nil && to != nil && d.seen[pair] {
			return
		}
		d.seen[pair] = true
		before, after = resolve(d.before, before), resolve(d.after, after)
		if after == nil || before == nil {
			d.note(path, "the reference %v or %v leads nowhere", from, to)
			return
		}
	}
	for _, key := range []string{"type", "const", "pattern", "format"} {
		if !reflect.DeepEqual(before[key], after[key]) {
			d.note(path, "%s is %v, and was %v", key, after[key], before[key])
		}
	}
	d.compareLists(path, before, after)
	for _, key := range []string{"properties", "patternProperties"} {
		was, is := object(before[key]), object(after[key])
		for _, name := range keys(was) {
			if is[name] == nil {
				d.note(path, "%q is gone from %s", name, key)
				continue
			}
			d.compare(path+"/"+key+"/"+name, object(was[name]), object(is[name]))
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not", "if", "then", "else"} {
		d.compareOne(path+"/"+key, before[key], after[key])
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		was, is := list(before[key]), list(after[key])
		if len(is) < len(was) {
			d.note(path, "%s has %d alternatives, and had %d", key, len(is), len(was))
			continue
		}
		for i := range was {
			d.compare(fmt.Sprintf("%s/%s/%d", path, key, i), object(was[i]), object(is[i]))
		}
	}
}

// compareOne compares what may be a schema, true or false, or be absent.
func (d *schemaDiff) compareOne(path string, before, after any) {
	was, isSchema := before.(map[string]any)
	is, isStill := after.(map[string]any)
	if isSchema && isStill {
		d.compare(path, was, is)
	} else if !reflect.DeepEqual(before, after) {
		d.note(path, "it is %v, and was %v", after, before)
	}
}

// compareLists compares which members are required, and which values there are. Of what
// unwindd writes no member may become optional; of what it reads none may become required.
func (d *schemaDiff) compareLists(path string, before, after map[string]any) {
	was, is, verb := list(before["required"]), list(after["required"]), "is required no longer"
	if d.isInput {
		was, is, verb = is, was, "was not required"
	}
	for _, name := range was {
		if !slices.Contains(is, name) {
			d.note(path, "%q %s", name, verb)
		}
	}
	now := list(after["enum"])
	for _, value := range list(before["enum"]) {
		if now != nil && !slices.Contains(now, value) {
			d.note(path, "the value %v is gone", value)
		}
	}
}

// resolve follows references within a schema.
func resolve(root, s map[string]any) map[string]any {
	for range 16 {
		ref, is := s["$ref"].(string)
		if !is {
			return s
		}
		at := any(root)
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			at = object(at)[part]
		}
		s = object(at)
	}
	return nil
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func keys(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
