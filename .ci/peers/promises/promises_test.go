// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// small is a module with the names of this one, for what apidiff says of it.
var small = map[string]string{
	"go.mod": "module github.com/unwindd/unwindd\n\ngo 1.26.0\n",
	"sdk/sdk.go": `package sdk

type Row struct{ Start, End uint64 }

func (*Row) Size() uint64 { return 0 }

type Engine interface{ ReadMemory(address uint64) byte }

type Architecture interface{ Describe() string }

type Base struct{}
`,
	"engine/engine.go": "package engine\n\ntype Options struct {\n\tPlugins []string\n\tName    string\n}\n",
	"internal/house/testdata/api.txt": `engine: type Options struct
sdk: type Architecture interface{Describe() string}
sdk: type Row struct
sdk: Row.Start uint64
sdk: Row.End uint64
sdk: Row.Size() uint64
`,
	"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- A line.\n\n## v0.9.0\n\n### Breaking\n\n- `sdk.Row` is of that version.\n",
}

// released makes a clone of a module whose last release is tagged, with a check of it.
func released(t *testing.T, version string) *check {
	t.Helper()
	dir := t.TempDir()
	for path, text := range small {
		put(t, filepath.Join(dir, path), text)
	}
	promised := slices.Clone(protos)
	for _, s := range schemas {
		promised = append(promised, s.path)
	}
	for _, p := range promised {
		text, err := os.ReadFile(filepath.Join("../../..", p))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, p), string(text))
	}
	if err := write(dir, version); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "a release")
	git(t, dir, "tag", version)
	return &check{top: dir, buf: oracle.Tool(t, "buf"), packages: []string{"sdk", "engine"}}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	oracle.Run(t, "git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=n@example.com"}, args...)...)
}

// replace changes a text in a file of the tree that is checked.
func (c *check) replace(t *testing.T, path, from, to string) {
	t.Helper()
	path = filepath.Join(c.top, path)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %q: %v", path, from, err)
	}
	put(t, path, strings.Replace(string(text), from, to, 1))
}

func (c *check) broken(t *testing.T) (names []string) {
	t.Helper()
	r, err := c.release()
	if err != nil {
		t.Fatal(err)
	}
	defer r.remove()
	found, err := c.names(r)
	if err != nil {
		t.Fatal(err)
	}
	protocols, err := c.protocols(r)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := c.documents(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range documents {
		names = append(names, b.what)
	}
	for _, b := range append(found, protocols...) {
		if name := b.name; name != "" {
			names = append(names, name)
		} else {
			names = append(names, b.what[strings.LastIndexByte(b.what, '(')+1:len(b.what)-1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Every kind of change, as the full clone sees it and as one that lacks the tag does.
func TestChangesThatBreak(t *testing.T) {
	const source, listed = "sdk/sdk.go", "internal/house/testdata/api.txt"
	for _, test := range []struct {
		name    string
		changes [][3]string // of a file, a text and another one
		broken  string      // by apidiff and buf, separated by spaces
		listed  string      // without the tag; "" is the same
	}{
		{"nothing", nil, "", ""},
		{"a new function", [][3]string{{source, "type Base", "func New() {}\n\ntype Base"}}, "", ""},
		{"a new field", [][3]string{{source, "Start, End uint64", "Start, End, Next uint64"}}, "", ""},
		{"a type is gone", [][3]string{{source, "Row", "Line"}, {source, "*Row", "*Line"}, {listed, "sdk: type Row struct\n", ""}}, "sdk.Row", ""},
		{"a field is gone", [][3]string{{source, "Start, End uint64", "Start uint64"}, {listed, "sdk: Row.End uint64\n", ""}}, "sdk.Row.End", ""},
		{"a method has another type", [][3]string{{source, "Size() uint64", "Size() uint32"}, {listed, "Size() uint64", "Size() uint32"}}, "sdk.Row.Size", ""},
		{"the engine's interface grows", [][3]string{{source, "ReadMemory(address uint64) byte", "ReadMemory(address uint64) byte; Close()"}}, "", ""},
		{"the plugin's grows, and its base does not", [][3]string{{source, "Describe() string", "Describe() string; Open()"}}, "sdk.Architecture.Open", "-"},
		{"both grow", [][3]string{{source, "Describe() string", "Describe() string; Open()"}, {source, "type Base struct{}", "type Base struct{}\n\nfunc (Base) Open() {}"},
			{listed, "{Describe() string}", "{Describe() string; Open()}"}}, "", ""},
		{"the plugin's has another method", [][3]string{{source, "Describe() string", "Describe() int"}, {listed, "Describe() string", "Describe() int"}}, "sdk.Architecture.Describe", "sdk.Architecture"},
		{"a member of unwindd's own", [][3]string{{"engine/engine.go", "Plugins []string", "Plugins []int"}}, "", ""},
		{"a field of a message has another number", [][3]string{{protos[0], "uint64 session = 1;", "uint64 session = 1001;"}}, "FIELD_NO_DELETE FIELD_NO_DELETE_UNLESS_NAME_RESERVED FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED", ""},
		{"a field has another name", [][3]string{{protos[1], "bool crashed = 4", "bool ended = 4"}}, "FIELD_SAME_JSON_NAME FIELD_SAME_NAME", ""},
		{"a new field of a message", [][3]string{{protos[1], "bool crashed = 4", "string more_of_it = 1000; bool crashed = 4"}}, "", ""},
		{"a call is gone", [][3]string{{protos[0], "  rpc Describe(DescribeRequest) returns (Description);\n", ""}}, "RPC_NO_DELETE", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := released(t, "v0.9.0")
			for _, change := range test.changes {
				c.replace(t, change[0], change[1], change[2])
			}
			if got := strings.Join(c.broken(t), " "); got != test.broken {
				t.Errorf("with the tag: %q, want %q", got, test.broken)
			}
			git(t, c.top, "tag", "-d", "v0.9.0")
			want := test.broken
			if test.listed != "" {
				want = strings.TrimPrefix(test.listed, "-")
			}
			if got := strings.Join(c.broken(t), " "); got != want {
				t.Errorf("without it: %q, want %q", got, want)
			}
		})
	}
}

// Of schemas, members of which nothing may be taken, and to which may be added.
func TestSchemasThatBreak(t *testing.T) {
	for _, test := range []struct {
		name, path, from, to string
		broken               string // the beginning of the finding; "": none
	}{
		{"a member is gone", "docs/stack.schema.json", `"kernel": {`, `"system": {`, `docs/stack.schema.json#/properties/target/properties/process: "kernel" is gone`},
		{"a new member", "docs/stack.schema.json", `"kernel": {`, `"more": {"type": "string"}, "kernel": {`, ""},
		{"a member becomes optional", "docs/stack.schema.json", `["version", "target", "modules", "threads"]`, `["version", "target", "modules"]`, `docs/stack.schema.json#: "threads" is required no longer`},
		{"a member becomes required", "docs/stack.schema.json", `["version", "target", "modules", "threads"]`, `["version", "target", "modules", "threads", "more"]`, ""},
		{"another version", "docs/stack.schema.json", `"const": 1`, `"const": 2`, "docs/stack.schema.json#/properties/version: const is 2, and was 1"},
		{"another type", "docs/stack.schema.json", `Linux 6.8.0.", "type": "string"`, `Linux 6.8.0.", "type": "integer"`, "docs/stack.schema.json#/properties/target/properties/process/properties/kernel: type is integer"},
		{"a value is gone", "docs/profile.schema.json", `["nanoseconds", "count"]`, `["nanoseconds"]`, "docs/profile.schema.json#/properties/events/items/properties/unit: the value count is gone"},
		{"snapshots must have more", "docs/snapshot.schema.json", `"required": ["format_version"]`, `"required": ["format_version", "modules"]`, `docs/snapshot.schema.json#: "modules" was not required`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := released(t, "v0.9.0")
			c.replace(t, test.path, test.from, test.to)
			got := c.broken(t)
			if test.broken == "" && len(got) > 0 || test.broken != "" && (len(got) != 1 || !strings.HasPrefix(got[0], test.broken)) {
				t.Errorf("%q, want %q", got, test.broken)
			}
		})
	}
}

// A note excuses a name of Go before the first major version, and a protocol never.
func TestNotesExcuseNames(t *testing.T) {
	const note = "## Unreleased\n\n### Breaking\n\n- `sdk.Row.End` is gone: add the size.\n"
	for _, test := range []struct {
		name, version string
		changes       [][3]string
		problem       string
	}{
		{"without a note", "v0.9.0", [][3]string{{"sdk/sdk.go", "Start, End", "Start"}}, "this tree breaks what v0.9.0 promises, as listed: undo that, or"},
		{"with a note", "v0.9.0", [][3]string{{"sdk/sdk.go", "Start, End", "Start"}, {"CHANGELOG.md", "## Unreleased\n", note}}, ""},
		{"of the type", "v0.9.0", [][3]string{{"sdk/sdk.go", "Start, End", "Start"}, {"CHANGELOG.md", "## Unreleased\n", strings.Replace(note, ".End", "", 1)}}, ""},
		{"of another member", "v0.9.0", [][3]string{{"sdk/sdk.go", "Start, End", "End"}, {"CHANGELOG.md", "## Unreleased\n", note}}, "this tree breaks"},
		{"of a major version", "v1.0.0", [][3]string{{"sdk/sdk.go", "Start, End", "Start"}, {"CHANGELOG.md", "## Unreleased\n", note}}, "this tree breaks what v1.0.0 promises, as listed: undo that"},
		{"JSON without a version", "v0.9.0", [][3]string{{"docs/profile.schema.json", `"nanoseconds", "count"`, `"count"`}, {"CHANGELOG.md", "## Unreleased\n", note + "- `docs/profile.schema.json`: no unit is nanoseconds.\n"}}, ""},
		{"JSON with one", "v0.9.0", [][3]string{{"docs/stack.schema.json", `"const": 1`, `"const": 2`}, {"CHANGELOG.md", "## Unreleased\n", note + "- `docs/stack.schema.json`\n"}}, "this tree breaks"},
		{"a protocol", "v0.9.0", [][3]string{{protos[0], "uint64 session = 1;", ""}, {"CHANGELOG.md", "## Unreleased\n", note + "- `session`\n"}}, "this tree breaks"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := released(t, test.version)
			for _, change := range test.changes {
				c.replace(t, change[0], change[1], change[2])
			}
			err := c.run()
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.HasPrefix(err.Error(), test.problem) || test.version == "v1.0.0" && strings.Contains(err.Error(), "Breaking")) {
				t.Errorf("%v, want %q", err, test.problem)
			}
		})
	}
}

func TestTheLastTagCounts(t *testing.T) {
	c := released(t, "v0.9.0")
	git(t, c.top, "commit", "-q", "--allow-empty", "-m", "another")
	git(t, c.top, "tag", "v0.10.0")
	if _, err := c.release(); err == nil || !strings.Contains(err.Error(), "the last tag v0.10.0") {
		t.Errorf("%v, want that the folder is of another release", err)
	}
	if err := write(c.top, "v0.10.0"); err != nil {
		t.Fatal(err)
	}
	if err := c.run(); err != nil {
		t.Error(err)
	}
}

func TestAPatchBreaksNothing(t *testing.T) {
	c := released(t, "v0.9.0")
	c.replace(t, "CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n### Breaking\n\n- `sdk.Row`\n")
	if err := write(c.top, "v0.9.1"); err == nil || !strings.Contains(err.Error(), "expected a new minor version") {
		t.Errorf("v0.9.1: %v", err)
	}
	if err := write(c.top, "v0.10"); err == nil {
		t.Error("v0.10 is taken for a version")
	}
	if err := write(c.top, "v0.10.0"); err != nil {
		t.Error(err)
	}
}

// The same with a copy of the real tree: a name of a package is removed, and a field of the
// plugins' protocol gets another number.
func TestACopyThatBreaks(t *testing.T) {
	oracle.All(t)
	dir := t.TempDir()
	checkout := &check{top: "../../.."}
	if err := checkout.unpack("HEAD", dir); err != nil {
		oracle.Missing(t, "a checkout by git is needed: %v", err)
	}
	if err := write(dir, "v0.9.0"); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "a release")
	git(t, dir, "tag", "v0.9.0")
	c := &check{top: dir, buf: oracle.Tool(t, "buf"), packages: []string{"sdk/codeflow", "cfi"}}
	c.replace(t, "sdk/archpb/arch.proto", "uint64 session = 1;", "uint64 session = 1001;")
	c.replace(t, "cfi/location.go", "frame.(LaneCounter)", "frame.(Counter)")
	c.replace(t, "cfi/location.go", "type LaneCounter interface", "type Counter interface")
	if got := c.broken(t); !slices.Contains(got, "cfi.LaneCounter") || !slices.Contains(got, "FIELD_NO_DELETE") {
		t.Errorf("broken are %q, want cfi.LaneCounter and FIELD_NO_DELETE among them", got)
	}
}
