// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// release is the version that this tree is held against.
type release struct {
	name   string
	tree   string // a folder of its sources; "" where this clone has none
	remove func()
}

// versions are the tags of releases.
var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`)

// mayBreak reports whether a note is enough for a name of Go that breaks.
func (r *release) mayBreak() bool {
	m := versions.FindStringSubmatch(r.name)
	return m == nil || m[1] == "0"
}

// advice names the other way out than to undo a change.
func (r *release) advice() string {
	if !r.mayBreak() {
		return ""
	}
	return ", or, where it is a name of Go, write it in backquotes under `### Breaking` of what CHANGELOG.md has as Unreleased, with what to use in its place"
}

// release finds the last release, and unpacks its sources where this clone has them.
func (c *check) release() (*release, error) {
	r := &release{name: c.base, remove: func() {}}
	if r.name == "" {
		text, err := os.ReadFile(c.released("base"))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, errNoRelease)
		}
		r.name = strings.TrimSpace(string(text))
		if tag := c.git("describe", "--tags", "--abbrev=0", "--match=v[0-9]*"); tag != "" && tag != r.name {
			return nil, fmt.Errorf("%s is %s, and the last tag %s: run `go run ./promises -write %s` before a release is tagged", c.released("base"), r.name, tag, tag)
		}
	}
	commit := c.git("rev-parse", "--quiet", "--verify", r.name+"^{commit}")
	if commit == "" {
		if c.base != "" {
			return nil, fmt.Errorf("this clone has no commit %s", c.base)
		}
		fmt.Printf("this clone has no %s: apidiff has nothing to compare with, and %s is used\n", r.name, c.released(""))
		return r, nil
	}
	dir, err := os.MkdirTemp("", "unwindd-promises-")
	if err != nil {
		return nil, err
	}
	r.tree, r.remove = dir, func() { _ = os.RemoveAll(dir) }
	if err := c.unpack(commit, dir); err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// git returns the output of a command of git; "" where it fails.
func (c *check) git(args ...string) string {
	out, err := exec.Command("git", append([]string{"-C", c.top}, args...)...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// unpack writes the sources of a commit into a folder.
func (c *check) unpack(commit, dir string) error {
	var problems bytes.Buffer
	archive, tar := exec.Command("git", "-C", c.top, "archive", commit), exec.Command("tar", "-x", "-C", dir)
	archive.Stderr, tar.Stderr = &problems, &problems
	var err error
	if tar.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := tar.Start(); err != nil {
		return err
	}
	problem := archive.Run()
	if err := tar.Wait(); problem == nil {
		problem = err
	}
	if problem != nil {
		return fmt.Errorf("git archive %s: %w: %s", commit, problem, problems.Bytes())
	}
	return nil
}

// mayBeCalled refuses a name of a release that is none, and a patch that breaks something.
func mayBeCalled(c *check, name string) error {
	m := versions.FindStringSubmatch(name)
	if m == nil {
		if c.git("rev-parse", "--quiet", "--verify", name+"^{commit}") == "" {
			return fmt.Errorf("%s is neither a version, as v1.2.3, nor a commit", name)
		}
		return nil
	}
	noted, err := notes(c.top + "/CHANGELOG.md")
	if err != nil {
		return err
	}
	if m[3] != "0" && noted != "" {
		return fmt.Errorf("%s is a patch, and CHANGELOG.md has something under Breaking: expected a new minor version", name)
	}
	return nil
}
