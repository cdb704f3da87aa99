// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// cacheDir is the cache directory of the commands under test.
var cacheDir string

// command is unwindd as a process of its own.
func command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheDir)
	return cmd
}

// TestMain lets the test binary be unwindd: the engine starts its own
// executable as the plugins' parent, and here that is the test binary.
func TestMain(m *testing.M) {
	if tool := toolNamed(os.Args[0]); tool != nil {
		os.Exit(tool(os.Args))
	}
	if name, ok := strings.CutPrefix(filepath.Base(os.Args[0]), sdk.RuntimePrefix); ok {
		sdk.ServeRuntime(scriptRuntime{name: name})
		return
	}
	if len(os.Args) > 1 && (!strings.HasPrefix(os.Args[1], "-") || os.Args[1] == "--version") {
		os.Exit(run(os.Args[1:]))
	}
	oracle.Umask(0o022) // plugins that others may write to are refused
	// What is cached of plugins is of this run alone.
	cache, err := os.MkdirTemp("", "unwindd-cache-")
	if err != nil {
		panic(err)
	}
	cacheDir = cache
	os.Unsetenv("DEBUGINFOD_URLS") // no test asks a server that it did not start
	os.Setenv(configVariable, "")  // nor takes settings of who runs it
	status := m.Run()
	os.RemoveAll(cache)
	os.Exit(status)
}

// unwindd runs the command as a process of its own and returns what it wrote.
func unwindd(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status = cmd.ProcessState.ExitCode()
	if (status == exitDone || status == exitUnwalked) && isStackJSON(args) {
		validateStack(t, args, written(t, args, &out))
	}
	return out.String(), errs.String(), status
}

// stackJSON runs `unwindd stack --format json`.
func stackJSON(t *testing.T, args ...string) *report.Report {
	t.Helper()
	return stackJSONWith(t, exitDone, args...)
}

// stackJSONWith expects an exit status.
func stackJSONWith(t *testing.T, want int, args ...string) *report.Report {
	t.Helper()
	stdout, stderr, status := unwindd(t, append([]string{"stack", "--format", "json"}, args...)...)
	if status != want {
		t.Fatalf("unwindd stack %v: status %d, expected %d\n%s", args, status, want, stderr)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("unwindd stack %v: %v\n%s", args, err, stdout)
	}
	return &r
}

// TestCommandsByTheirNames keeps the names by which commands are made alone.
func TestCommandsByTheirNames(t *testing.T) {
	for name, newCommand := range commands() {
		if got := newCommand(&globals{}).Name(); got != name {
			t.Errorf("%s makes %s", name, got)
		}
		if list := newRootOf(&globals{}, []string{name}).Commands(); len(list) != 1 {
			t.Errorf("%s: %d commands were made, expected it alone", name, len(list))
		}
	}
}
