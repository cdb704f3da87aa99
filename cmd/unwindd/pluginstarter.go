// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"

	"github.com/unwindd/unwindd/internal/confine"
)

// starterName names the executable that starts plugins in half of this one's time: it
// links nothing else. A release has it in libexec, `make build` puts it beside this one, `go
// install` does without.
const starterName = "unwindd-plugins"

// pluginStarter returns the executable that starts plugins, this one where there is no other,
// and the build that it must have.
func pluginStarter() (path, build string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", "", err
	}
	for _, dir := range []string{".", "../libexec/unwindd"} {
		path := filepath.Join(filepath.Dir(self), dir, starterName)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, confine.Build(), nil
		}
	}
	return self, "", nil
}
