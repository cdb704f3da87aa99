// SPDX-License-Identifier: Apache-2.0

// Package oracle finds the references that tests compare unwindd with: other tools,
// which it also runs, and inputs beside the checkout. Tests that compile, wait or
// compare run where UNWINDD_TESTS=all requests them; without it `go test ./...` needs
// Go alone and takes minutes. A test that lacks a tool, or has one that is too old, is
// skipped then, with the name of the tool. Where CI is set it fails: nothing may be
// missing there.
package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// AllRequested reports whether the tests that compile, wait or compare run:
// UNWINDD_TESTS=all requests them.
func AllRequested() bool { return os.Getenv("UNWINDD_TESTS") == "all" }

// All skips a test that compiles, waits or compares for long, unless AllRequested.
func All(t testing.TB) {
	t.Helper()
	if !AllRequested() {
		t.Skip("compiles, waits or compares: UNWINDD_TESTS=all runs it")
	}
}

// Missing ends a test that lacks something.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Tool returns the path of a program that a test of All needs.
func Tool(t testing.TB, name string) string {
	t.Helper()
	All(t)
	path, err := exec.LookPath(name)
	if err != nil && slices.Contains(strings.Fields(os.Getenv("UNWINDD_UNREACHED")), name) {
		t.Skipf("%s could not be fetched in this run", name) // CI says so
	}
	if err != nil {
		Missing(t, "%s is not installed", name)
	}
	if why := unfit(name, path); why != "" {
		Missing(t, "%s", why)
	}
	return path
}

// Tools requires programs for a test.
func Tools(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		Tool(t, name)
	}
}

// Beside lists the files of the folder shared, beside the checkout, whose names
// there one of the patterns matches. The test becomes one of All.
func Beside(t testing.TB, patterns ...string) []string {
	t.Helper()
	All(t)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		var all []string
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(dir, "shared", filepath.FromSlash(pattern)))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, files...)
		}
		if len(all) > 0 {
			return all
		}
	}
	Missing(t, "shared/%s is missing beside the checkout", patterns[0])
	return nil
}

// started is the folder that this process was started in: the package's, by go test.
var started, _ = os.Getwd()

// Checkout returns the path of a file or folder of the project, by its path
// there.
func Checkout(t testing.TB, name string) string {
	t.Helper()
	for dir := started; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("%s is in no folder above the test's", name)
	return ""
}
