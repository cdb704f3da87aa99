// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// shellBlocks are the ```sh blocks of a document, each with the text block that
// follows it at once, "" where none does.
var shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```\n(.*?)```)?")

// TestDocumentedCommands runs every command of the README, of docs/ and of the example
// that shows a file byte by byte. Where a document shows what a command prints, it must
// print that.
func TestDocumentedCommands(t *testing.T) {
	long(t)
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	documents, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	documents = append(documents, filepath.Join(root, "README.md"), filepath.Join(root, "examples", "rocm-core", "README.md"),
		filepath.Join(root, "examples", "cuda-core", "README.md"), filepath.Join(root, "examples", "python-gpu", "README.md"))
	commands := 0
	for _, document := range documents {
		if filepath.Base(document) == walkthrough {
			continue // TestWritingAPlugin
		}
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlocks.FindAllStringSubmatch(string(text), -1) {
			if tryFolder.MatchString(block[0]) {
				continue // makeTryFolder
			}
			for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
				if line == "go test ./..." {
					continue // this very run
				}
				commands++
				t.Run(filepath.Base(document)+"/"+line, func(t *testing.T) {
					out := runDocumented(t, root, line)
					if block[2] != "" && strings.Count(block[1], "\n") == 1 {
						if diff := cmp.Diff(block[2], out); diff != "" {
							t.Errorf("%s shows (-) what is not printed (+):\n%s", document, diff)
						}
					}
				})
			}
		}
	}
	if commands < 5 {
		t.Errorf("%d commands in %v, expected 5 or more", commands, documents)
	}
}

// tryFolder are the commands of the README that make the folder ~/try, which other commands
// of the documents work in.
var tryFolder = regexp.MustCompile("(?s)```sh\n(mkdir ~/try .*?)```")

// makeTryFolder makes that folder in a home of its own, as the README says.
func makeTryFolder(t *testing.T, root string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := tryFolder.FindSubmatch(readme)
	if commands == nil {
		t.Fatal("the README does not say how to make the folder ~/try")
	}
	home := t.TempDir()
	oracle.With{Dir: root, Env: []string{"HOME=" + home}}.Run(t, "sh", "-e", "-c", string(commands[1]))
	return filepath.Join(home, "try")
}

// runDocumented runs a command line of a document. `unwindd` is this build; what begins with
// go, or names a file of the sources, is run in the checkout, everything else in a folder as
// the README has its readers make it. What the line leaves running in the background ends
// with it.
func runDocumented(t *testing.T, root, line string) string {
	t.Helper()
	dir := root
	if !strings.HasPrefix(line, "go ") && !strings.Contains(line, "./") && !strings.HasPrefix(line, "cd ") {
		dir = makeTryFolder(t, root)
	}
	return oracle.With{Dir: dir, Env: commandEnvironment(t)}.Run(t, "sh", "-c", "trap 'kill $! 2>/dev/null' EXIT\n"+line)
}

// commandEnvironment is the environment in which `unwindd` is this build.
func commandEnvironment(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\nexec " + self + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "unwindd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "NO_COLOR=1", "XDG_CACHE_HOME=" + cacheDir}
}

// subcommands are the commands of `unwindd plugin` and `unwindd dump` that text
// names, several with a bar between them.
var subcommands = regexp.MustCompile(`unwindd (plugin|dump) ([a-z]+(?:\|[a-z]+)*)`)

// TestNamedCommandsExist looks for commands that are named, in documents and in
// what the executable says, before there are any.
func TestNamedCommandsExist(t *testing.T) {
	named := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") && !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range subcommands.FindAllStringSubmatch(string(text), -1) {
			for name := range strings.SplitSeq(m[2], "|") {
				named++
				found, _, err := newRoot().Find([]string{m[1], name})
				if err != nil || found.Name() != name {
					t.Errorf("%s: `unwindd %s %s` is named, and there is no such command", path, m[1], name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 10 {
		t.Errorf("%d commands are named, expected 10 or more", named)
	}
}
