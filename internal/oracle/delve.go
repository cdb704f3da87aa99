// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// delveVersion is the version of Delve for comparisons: a distribution's may not read
// current Go programs.
const delveVersion = "v1.27.2"

// Delve returns the path of Delve. It is installed once, and kept with the folders
// of Build.
func Delve(t testing.TB) string {
	t.Helper()
	Tools(t, "go")
	root, err := cacheFolder()
	if err != nil {
		root = t.TempDir()
	}
	dir := filepath.Join(root, "delve-"+delveVersion)
	path := filepath.Join(dir, "dlv")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	install := exec.Command("go", "install", "github.com/go-delve/delve/cmd/dlv@"+delveVersion)
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		Missing(t, "Delve cannot be had: %v\n%s", err, out)
	}
	return path
}
