// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTheCacheOfPerf finds the user's cache as perf-config(1) says.
func TestTheCacheOfPerf(t *testing.T) {
	home := t.TempDir()
	if _, err := os.Stat("/etc/perfconfig"); err == nil {
		t.Skip("this machine has settings of perf")
	}
	cache := func(variables ...string) string {
		return perfCache(func(name string) string {
			for i := 0; i < len(variables); i += 2 {
				if variables[i] == name {
					return variables[i+1]
				}
			}
			return ""
		})
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, expected %q", what, got, want)
		}
	}
	check("nothing is set", cache(), "")
	check("HOME", cache("HOME", home), filepath.Join(home, ".debug"))
	check("PERF_BUILDID_DIR", cache("HOME", home, "PERF_BUILDID_DIR", "/x"), "/x")
	for text, want := range map[string]string{
		"[buildid]\n\tdir = /elsewhere\n":                         "/elsewhere",
		"# dir = /no\n[other]\ndir = /no\n[BuildID]\nDir=~/cache": filepath.Join(home, "cache"),
		"[buildid]\ndir = \"/with blanks\" # why\n":               "/with blanks",
		"[buildid]\nother = /no\n":                                filepath.Join(home, ".debug"),
		"dir = /no\n[":                                            filepath.Join(home, ".debug"),
	} {
		if err := os.WriteFile(filepath.Join(home, ".perfconfig"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check(text, cache("HOME", home), want)
	}
	check("PERF_CONFIG", cache("HOME", home, "PERF_CONFIG", "/none"), filepath.Join(home, ".debug"))
	f := fileFlags{buildIDDirs: []string{"/a", "/b"}}
	t.Setenv("PERF_BUILDID_DIR", "/b")
	if got := f.caches(); !slices.Equal(got, []string{"/a", "/b"}) {
		t.Errorf("%q", got)
	}
}
