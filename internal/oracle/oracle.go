// SPDX-License-Identifier: Apache-2.0

// Package oracle finds what tests hold unwindd against: other tools, which it
// also runs, and inputs beside the checkout. A test that lacks one is skipped,
// and says so. Where CI is set it fails: nothing may be missing there.
package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Missing ends a test for want of something.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Tool is the path of a program that a test needs.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s is not installed", name)
	}
	return path
}

// Tools says that a test needs programs.
func Tools(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		Tool(t, name)
	}
}

// Beside lists the files of the folder shared, beside the checkout, whose names
// there one of the patterns matches.
func Beside(t testing.TB, patterns ...string) []string {
	t.Helper()
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
