// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
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
	if len(os.Args) > 1 && (!strings.HasPrefix(os.Args[1], "-") || os.Args[1] == "--version") {
		os.Exit(run(os.Args[1:]))
	}
	// What is cached of plugins is of this run alone.
	cache, err := os.MkdirTemp("", "unwindd-cache-")
	if err != nil {
		panic(err)
	}
	cacheDir = cache
	os.Setenv("MALLOC_ARENA_MAX", "1") // keeps cores small
	os.Unsetenv("DEBUGINFOD_URLS")     // no test asks a server that it did not start
	status := m.Run()
	os.RemoveAll(cache)
	os.Exit(status)
}
