// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// delveVersion is the version of Delve that comparisons are with: that of a distribution
// may not read what Go writes today.
const delveVersion = "v1.27.2"

// Delve is the path of Delve. It is installed once, and kept with what Build makes.
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
