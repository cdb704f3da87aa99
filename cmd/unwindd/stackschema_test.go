// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// isStackJSON says whether a command line asks for the JSON of stacks.
func isStackJSON(args []string) bool {
	i := slices.Index(args, "--format")
	return len(args) > 0 && args[0] == "stack" && i > 0 && i+1 < len(args) && args[i+1] == "json" &&
		!slices.Contains(args, "--help")
}

// written is what a command wrote where its arguments say: its standard output, or a file.
func written(t *testing.T, args []string, stdout *bytes.Buffer) *bytes.Buffer {
	t.Helper()
	i := slices.Index(args, "-o")
	if i < 0 || args[i+1] == "-" {
		return stdout
	}
	b, err := os.ReadFile(args[i+1])
	if err != nil {
		t.Error(err)
	}
	return bytes.NewBuffer(b)
}

// stackSchema is docs/stack.schema.json, closed: a member that it does not describe is an
// error.
var stackSchema = sync.OnceValue(func() map[string]any { return readSchema("stack.schema.json") })

// validateStack holds the JSON of stacks, a document for each target, against the schema.
func validateStack(t *testing.T, args []string, out *bytes.Buffer) {
	t.Helper()
	schema := stackSchema()
	if slices.Contains(args, "--signature") {
		schema = map[string]any{"$ref": "#/$defs/signature"}
	}
	for d := json.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		var report any
		if err := d.Decode(&report); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%v: %v", args, err)
			return
		}
		for i, wrong := range checkSchema(stackSchema(), "stack", report, schema) {
			if i == 10 {
				return
			}
			t.Errorf("%v: %s", args, wrong)
		}
	}
}

// TestSchemaRefusesWhatItDoesNotDescribe: without this the other tests show nothing.
func TestSchemaRefusesWhatItDoesNotDescribe(t *testing.T) {
	const good = `{"version":1,"target":{"kind":"snapshot","signal":0,"problems":[]},"modules":[{"id":0,"path":"x","debug_info":"none","segments":[]}],"threads":[]}`
	for _, c := range []struct{ old, new, says string }{
		{"", "", ""},
		{`"version":1,`, ``, "stack: has no version"},
		{`"version":1`, `"version":2`, "stack.version: 2 is not 1"},
		{`"threads"`, `"more":1,"threads"`, "stack: has the member more"},
		{`"path":"x"`, `"path":"x","more":1`, "stack.modules[0]: has the member more"},
		{`"debug_info":"none",`, ``, "stack.modules[0]: has no debug_info"},
		{`"none"`, `"lost"`, "stack.modules[0].debug_info: lost is not in"},
		{`"signal":0`, `"signal":0,"process":{"pid":0}`, "stack.target.process.pid: 0 is less"},
	} {
		var report any
		if err := json.Unmarshal([]byte(strings.Replace(good, c.old, c.new, 1)), &report); err != nil {
			t.Fatal(err)
		}
		wrong := strings.Join(checkSchema(stackSchema(), "stack", report, stackSchema()), "; ")
		if wrong != c.says && (c.says == "" || !strings.Contains(wrong, c.says)) {
			t.Errorf("%s: %q, expected %q", c.new, wrong, c.says)
		}
	}
}

// TestVersionIsFirst of what a reader meets.
func TestVersionIsFirst(t *testing.T) {
	out, stderr, status := unwindd(t, "stack", "--format", "json", serverCore)
	if status != exitDone || !strings.HasPrefix(out, "{\n \"version\": 1,\n ") {
		t.Errorf("status %d: %s%.80s", status, stderr, out)
	}
}

// TestPageIsOfOneTarget: two pages behind one another would be none.
func TestPageIsOfOneTarget(t *testing.T) {
	for _, targets := range [][]string{{serverCore, serverCore}, {crashDir}} {
		out, stderr, status := unwindd(t, append([]string{"stack", "--format", "html"}, targets...)...)
		if status != exitUsage || out != "" || !strings.Contains(stderr, "--format html: expected one target") {
			t.Errorf("%v: status %d: %s%.80s", targets, status, stderr, out)
		}
	}
}
