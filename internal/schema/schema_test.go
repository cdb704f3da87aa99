// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSchemaRefusesWhatItDoesNotDescribe: without this the other tests show nothing.
func TestSchemaRefusesWhatItDoesNotDescribe(t *testing.T) {
	const good = `{"version":1,"target":{"kind":"snapshot","signal":0,"problems":[]},"modules":[{"id":0,"path":"x","debug_info":"none","segments":[]}],"threads":[]}`
	stacks := Docs(t, "stack.schema.json")
	for _, c := range []struct{ old, new, says string }{
		{"", "", ""},
		{`"version":1,`, ``, "stack: has no version"},
		{`"version":1`, `"version":2`, "stack.version: 2 is not 1"},
		{`"threads"`, `"more":1,"threads"`, "stack: has the member more"},
		{`"path":"x"`, `"path":"x","more":1`, "stack.modules[0]: has the member more"},
		{`"debug_info":"none",`, ``, "stack.modules[0]: has no debug_info"},
		{`"none"`, `"lost"`, "stack.modules[0].debug_info: lost is not in"},
		{`"signal":0`, `"signal":0,"process":{"pid":0}`, "stack.target.process.pid: 0 is less"},
		{`"signal":0`, `"signal":1.5`, "stack.target.signal: 1.5 is not of type integer"},
		{`"x"`, `1`, "stack.modules[0].path: 1 is not of type string"},
	} {
		var report any
		if err := json.Unmarshal([]byte(strings.Replace(good, c.old, c.new, 1)), &report); err != nil {
			t.Fatal(err)
		}
		wrong := strings.Join(stacks.Check("stack", report), "; ")
		if wrong != c.says && (c.says == "" || !strings.Contains(wrong, c.says)) {
			t.Errorf("%s: %q, expected %q", c.new, wrong, c.says)
		}
	}
}

func TestKeywords(t *testing.T) {
	for _, c := range []struct{ schema, document, says string }{
		{`{"anyOf":[{"type":"string"},{"type":"number"}]}`, `true`, "it: is none of the alternatives"},
		{`{"anyOf":[{"type":"string"},{"type":"number"}]}`, `1`, ""},
		{`{"pattern":"^0x"}`, `"1"`, `it: "1" does not match ^0x`},
		{`{"mystery":1}`, `1`, `it: the schema has an unknown keyword "mystery"`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"minimum":3}}}}`, `[3,2]`, "it[1]: 2 is less than 3"},
	} {
		s := Schema{}
		var document any
		if err := json.Unmarshal([]byte(c.schema), (*map[string]any)(&s)); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.document), &document); err != nil {
			t.Fatal(err)
		}
		if wrong := strings.Join(s.Check("it", document), "; "); wrong != c.says {
			t.Errorf("%s of %s: %q, expected %q", c.schema, c.document, wrong, c.says)
		}
	}
}
