// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// revision is a commit to build.
type revision struct {
	version string // as the go command names it
	commit  string
	time    time.Time // of the commit
	author  string    // NAME <MAIL>
}

// readRevision reads the checked out commit from git. The go command itself does not find the
// repository of a linked work tree.
func readRevision() (revision, error) {
	commit, err := git("log", "-1", "--format=%H%n%ct%n%an <%ae>")
	if err != nil {
		return revision{}, fmt.Errorf("what is released is a commit, expected a checkout by git: %w", err)
	}
	lines := strings.Split(commit, "\n")
	if len(lines) != 3 {
		return revision{}, fmt.Errorf("git log says %q, expected three lines", commit)
	}
	seconds, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return revision{}, err
	}
	r := revision{commit: lines[0], time: time.Unix(seconds, 0).UTC(), author: lines[2]}
	here, err1 := git("-c", order, "tag", "--points-at", "HEAD", "--sort=-version:refname", "--list", "v*")
	before, err2 := git("-c", order, "tag", "--merged", "HEAD", "--sort=-version:refname", "--list", "v*")
	changed, err3 := git("status", "--porcelain")
	if err := errors.Join(err1, err2, err3); err != nil {
		return revision{}, err
	}
	r.version = r.named(firstVersion(here), firstVersion(before))
	if changed != "" {
		r.version += "+dirty"
	}
	return r, nil
}

// order makes git sort a version behind its own candidates.
const order = "versionsort.suffix=-"

func git(args ...string) (string, error) { return output(exec.Command("git", args...)) }

// output returns the output of a command, without the line's end.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, failed.Stderr)
	}
	return strings.TrimRight(string(out), "\n"), err
}

// semantic matches a version of a module.
var semantic = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?$`)

// firstVersion returns the first version in a list of tags.
func firstVersion(tags string) string {
	for tag := range strings.Lines(tags) {
		if tag = strings.TrimSpace(tag); semantic.MatchString(tag) {
			return tag
		}
	}
	return ""
}

// named returns the version of a commit: its tag, or else a pseudo-version behind the highest
// version before it, as the go command makes them.
func (r *revision) named(tag, before string) string {
	if tag != "" {
		return tag
	}
	when := r.time.Format("20060102150405") + "-" + r.commit[:12]
	m := semantic.FindStringSubmatch(before)
	switch {
	case m == nil:
		return "v0.0.0-" + when
	case m[4] != "":
		return before + ".0." + when
	}
	patch, _ := strconv.Atoi(m[3])
	return fmt.Sprintf("v%s.%s.%d-0.%s", m[1], m[2], patch+1, when)
}
