// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// project is a checkout with three packages: a imports b, opens a file above it and one beside the
// checkout; c starts a program.
var project = map[string]string{
	"here/go.mod":        "module example.com/here\n\ngo 1.26\n",
	"here/.ci/run":       "",
	"here/.ci/each":      "#!/bin/sh\nexec \"$@\" -test.testlogfile=\"$UNWINDD_TESTLOGS/$(echo \"$PWD\" | tr / +).1\"\n",
	"here/README.md":     "words\n",
	"here/data.txt":      "good\n",
	"here/unread.txt":    "one\n",
	"here/b/b.go":        "package b\n\nconst Good = \"good\\n\"\n",
	"here/a/a.go":        "package a\n",
	"here/a/testdata/x":  "one\n",
	"shared/spec/one":    "one\n",
	"here/a/a_test.go":   "package a\n\nimport (\"example.com/here/b\"; \"os\"; \"testing\")\n\nfunc TestData(t *testing.T) {\n\tos.Getenv(\"A_VARIABLE\")\n\tos.ReadFile(\"../../shared/spec/one\")\n\tif d, _ := os.ReadFile(\"../data.txt\"); string(d) != b.Good {\n\t\tt.Error(\"not good\")\n\t}\n}\n",
	"here/c/c_test.go":   "package c\n\nimport (\"os/exec\"; \"testing\")\n\nfunc TestProgram(t *testing.T) {\n\tif err := exec.Command(\"cat\", \"../unread.txt\").Run(); err != nil {\n\t\tt.Error(err)\n\t}\n}\n",
	"here/d/d_test.go":   "package d\n\nimport (\"os/exec\"; \"testing\")\n\nfunc TestGo(t *testing.T) {\n\tif err := exec.Command(\"go\", \"version\").Run(); err != nil {\n\t\tt.Error(err)\n\t}\n}\n",
	"here/e/e.go":        "package e\n",
	"here/e/e_test.go":   "package e\n",
	"here/e/nobody.json": "{}\n",
}

// rig is a copy of project, and this program.
type rig struct {
	t            *testing.T
	program, dir string
	env          []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, program: filepath.Join(t.TempDir(), "unchanged"), dir: t.TempDir()}
	if out, err := exec.Command("go", "build", "-o", r.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "XDG_CACHE_HOME="+t.TempDir(), "GOCACHE="+strings.TrimSpace(string(goCache)))
	for name, text := range project {
		r.write(name, text)
	}
	return r
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	mode := os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o700
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

// run returns the output, and the names of what was run.
func (r *rig) run(env string, args ...string) (names, out string, err error) {
	r.t.Helper()
	cmd := exec.Command(r.program, args...)
	cmd.Dir = filepath.Join(r.dir, "here")
	cmd.Env = append(r.env, env)
	said, err := cmd.CombinedOutput()
	var list []string
	for line := range strings.Lines(string(said)) {
		if fields := strings.Split(line, "\t"); fields[0] == "run" {
			list = append(list, strings.TrimPrefix(fields[1], "example.com/here/"))
		}
	}
	slices.Sort(list)
	return strings.Join(list, " "), string(said), err
}

func TestPackagesAreTestedWhereTheirInputsDiffer(t *testing.T) {
	r := newRig(t)
	args := []string{"test", "-vet=off", "-exec", filepath.Join(r.dir, "here/.ci/each"), "./..."}
	for _, c := range []struct {
		change     string
		file, text string
		env        string
		want       string
		fails      bool
	}{
		{change: "the first run", want: "a c d e"},
		{change: "a document", file: "here/README.md", text: "other words\n"},
		{change: "a file that a test opens", file: "here/data.txt", text: "bad\n", want: "a c d", fails: true},
		{change: "the same since a failure", want: "a", fails: true},
		{change: "the file as it was", file: "here/data.txt", text: "good\n", want: "c d"},
		{change: "data of a package", file: "here/a/testdata/x", text: "two\n", want: "a c d"},
		{change: "a file that programs may read", file: "here/unread.txt", text: "two\n", want: "c d"},
		{change: "code", file: "here/b/b.go", text: "package b\n\nconst Good = \"good\" + \"\\n\" // as before\n\nvar More = 1\n", want: "a d"},
		{change: "a file beside the checkout", file: "shared/spec/one", text: "two\n", want: "a"},
		{change: "a variable that a test reads", env: "A_VARIABLE=1", want: "a"},
		{change: "a variable that tools read", env: "UNWINDD_SOMETHING=1", want: "a c d e"},
		{change: "everything is requested", env: "UNWINDD_ANEW=1", want: "a c d e"},
		{change: "nothing"},
	} {
		if c.file != "" {
			r.write(c.file, c.text)
		}
		names, out, err := r.run(c.env, args...)
		if names != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q is tested, expected %q (%v)\n%s", c.change, names, c.want, err, out)
		}
	}
}

func TestCommandsRunWhereTheirInputsDiffer(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		change     string
		file, text string
		all        bool
		ran        bool
	}{
		{change: "the first run", ran: true},
		{change: "nothing"},
		{change: "a document", file: "here/README.md", text: "other words\n"},
		{change: "a test", file: "here/a/a_test.go", text: "package a\n"},
		{change: "code", file: "here/b/b.go", text: "package b\n", ran: true},
		{change: "the first run with all files", all: true, ran: true},
		{change: "a document, with all files", file: "here/README.md", text: "words again\n", all: true, ran: true},
		{change: "a file beside the checkout", file: "shared/spec/one", text: "two\n", ran: true},
	} {
		if c.file != "" {
			r.write(c.file, c.text)
		}
		args := []string{"run", "-all", "true"}
		if !c.all {
			args = []string{"run", "true"}
		}
		names, out, err := r.run("", args...)
		if (names != "") != c.ran || err != nil {
			t.Errorf("%s: it runs: %t, expected %t (%v)\n%s", c.change, names != "", c.ran, err, out)
		}
	}
	for range 2 {
		if names, out, err := r.run("", "run", "false"); err == nil || names != "false" {
			t.Errorf("a command that fails: %v\n%s", err, out)
		}
	}
}
