// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// With has the conditions of a tool's run besides its arguments.
type With struct {
	Dir   string   // the folder that it runs in; "" is the test's
	Input string   // its standard input
	Env   []string // variables ("NAME=value") beside the test's own
}

// shown bounds the output of a tool in the failure of a test.
const shown = 10000

// goCache has the go command's cache in the environment before a test gives the
// commands under test a cache of their own (XDG_CACHE_HOME). In that one the go command
// would compile everything once more, its library included.
var goCache = func() []string {
	dir, err := os.UserCacheDir()
	if os.Getenv("GOCACHE") != "" || err != nil {
		return nil
	}
	return []string{"GOCACHE=" + filepath.Join(dir, "go-build")}
}()

// Run runs a tool and returns its standard output. A test whose tool is missing is
// skipped (see Missing), unless the name is a path. One whose tool fails ends, and
// shows the tool's standard error, then its standard output, where some compilers
// complain.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	return With{}.Run(t, name, args...)
}

// Run runs a tool as the function Run does.
func (w With) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	if filepath.Base(name) == name {
		command(t, name, args)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = w.Dir
	if w.Input != "" {
		cmd.Stdin = strings.NewReader(w.Input)
	}
	// The output of tools must not depend on the machine's language.
	cmd.Env = slices.Concat(cmd.Environ(), goCache, []string{"LC_ALL=C.UTF-8"}, w.Env)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%.*s\n%.*s", strings.Join(cmd.Args, " "), err, shown, stderr.String(), shown, stdout.String())
	}
	return stdout.String()
}

// Filter runs a tool that answers every line of its input with a line of its
// output, and returns the answers.
func Filter(t testing.TB, name string, questions []string) []string {
	t.Helper()
	out := With{Input: strings.Join(questions, "\n") + "\n"}.Run(t, name)
	answers := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(answers) != len(questions) {
		t.Fatalf("%s gives %d answers to %d lines", name, len(answers), len(questions))
	}
	return answers
}
