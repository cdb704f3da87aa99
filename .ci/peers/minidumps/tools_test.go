// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/.ci/peers/breakpad"
	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/internal/oracle"
)

// unwindd is the command, built once for all tests.
var unwindd = sync.OnceValues(func() (string, error) {
	exe := filepath.Join(folder, "unwindd")
	return exe, cost.Run("../../..", "go", "build", "-trimpath", "-o", exe, "./cmd/unwindd")
})

// folder is where the command is built.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "minidumps-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// tools are Breakpad's, of which the writers are compiled once for all tests.
var tools = sync.OnceValues(breakpad.Tools)

// breakpadTools is a folder with minidump_stackwalk, minidump_dump, dump_syms, core2md and
// libwriter.so.
func breakpadTools(t testing.TB) string {
	t.Helper()
	oracle.Tools(t, "g++", "npm", "tar", "xargs")
	folder, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
