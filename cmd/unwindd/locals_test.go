// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/schema"
	"github.com/unwindd/unwindd/internal/subject"
)

const (
	serverCore   = "../../examples/crash/server.core"
	mixedCapture = "../../examples/mixed/mixed.snapshot"
)

// What is printed of the frame of main in examples/crash is what its source says.
func TestStackPrintsVariables(t *testing.T) {
	out, stderr, status := unwindd(t, "stack", serverCore, "--locals")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	_, frame, _ := strings.Cut(out, "main+0x18a /example/server.c:101:2\n")
	frame, _, _ = strings.Cut(frame, "  #9")
	want := `        small = {__size = "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\020\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\200", __align = 0}
        names = <optimized out>
        host = {name = 0x48d025 "Host", value = 0x48d02a "example.org", next = 0x0}
        good = {line = "GET /", headers = 0x7ffebe744c50}
        bad = {line = "!POST /upload", headers = 0x7ffebe744c50}
        batch = {0x7ffebe744d00, 0x7ffebe744cb0}
`
	if diff := cmp.Diff(want, frame); diff != "" {
		t.Error(diff)
	}
	if without, _, _ := unwindd(t, "stack", serverCore); strings.Contains(without, " = ") {
		t.Errorf("variables without --locals:\n%s", without)
	}
}

// TestEvalPrintsVariables selects parts of variables.
func TestEvalPrintsVariables(t *testing.T) {
	for _, c := range []struct{ path, want, problem string }{
		{path: "bad", want: `bad = {line = "!POST /upload", headers = 0x7ffebe744c50}`},
		{path: "bad.line", want: `bad.line = "!POST /upload"`},
		{path: "bad.line[1]", want: `bad.line[1] = 80 'P'`},
		{path: "batch[1]->headers->value", want: `batch[1]->headers->value = 0x48d02a "example.org"`},
		{path: "*batch[0]->headers", want: `*batch[0]->headers = {name = 0x48d025 "Host", value = 0x48d02a "example.org", next = 0x0}`},
		{path: "**bad.headers->name", problem: "no part *"},
		{path: "waiting", want: "waiting = 3"}, // a global
		{path: "lock.__data.__nusers", want: "lock.__data.__nusers = 3"},
		{path: "bad.nothing", problem: "no part .nothing"},
		{path: "bad.line[64]", problem: "expected 0 to 63"},
		{path: "host.next->name", problem: "not in the target"},
		{path: "nothing", problem: "no variable nothing"},
		{path: "bad..line", problem: "expected the name of a member"},
		{path: "bad[x]", problem: "expected a number"},
		{path: "", problem: "--arch is missing"},
	} {
		t.Run(c.path, func(t *testing.T) {
			out, stderr, status := unwindd(t, "eval", "--snapshot", serverCore, "--frame", "7", "--var", c.path)
			if want := c.want; want != "" && (status != 0 || strings.TrimSpace(out) != want) {
				t.Errorf("status %d: %s%s", status, out, stderr)
			}
			if c.problem != "" && (status == 0 || !strings.Contains(stderr+out, c.problem)) {
				t.Errorf("status %d: %s%s, expected %q", status, out, stderr, c.problem)
			}
		})
	}
}

func TestGlobalsThatNothingHasAreAMistake(t *testing.T) {
	_, stderr, status := unwindd(t, "stack", serverCore, "--globals", "waiting", "--globals", "no_such")
	if status != 1 || !strings.Contains(stderr, "no variable no_such") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestStackIsAsItsSchemaHasIt reads the JSON by docs/stack.schema.json, which has every
// member that is written.
func TestStackIsAsItsSchemaHasIt(t *testing.T) {
	stacks := schema.Docs(t, "stack.schema.json")
	for _, args := range [][]string{
		{serverCore}, {serverCore, "--locals", "--registers", "--globals", "lock", "--source", "3"}, {serverCore, "--locals", "--depth", "1"},
		{mixedCapture, "--locals"}, {"../../examples/gen/gen.snapshot", "--locals", "--registers"},
		{serverCore, "--code", "3"}, {mixedCapture, "--code", "5"},
	} {
		out, stderr, status := unwindd(t, append([]string{"stack", "--format", "json"}, args...)...)
		if status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, stderr)
		}
		var report any
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range stacks.Check("stack", report) {
			t.Errorf("%v: %s", args, wrong)
		}
	}
}

// TestArraysOfFortran prints arrays that only their descriptors describe, and those that
// lie column by column.
func TestArraysOfFortran(t *testing.T) {
	out, stderr, status := unwindd(t, "stack", subject.Core(t, subject.Build(t, "arrays")), "--locals", "--globals", "table")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, want := range []string{
		"table = {{7, 7, 7}, {7, 9, 7}, {7, 7, 7}}", "a = {12, 9, 6, 3}", "b = {{1, 2, 3}, {4, 5, 6}}", `name = "hello"`, "local = {4, 4, 4, 4}",
		"p = {x = 3, y = -4}", "ptr = {1, 3}", "some = {50, 60, 70, 80}", "none = <the array has no elements yet: DW_AT_allocated is 0>",
		"m = {{1, 2, 3}, {4, 5, 6}}",
	} {
		if !strings.Contains(out, " "+want+"\n") {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}
