// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"cmp"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/internal/version"
)

// Build names the build of this executable; "" where its version is unknown: two such
// builds cannot be told apart.
func Build() string {
	b := version.Read()
	if b.Version == version.Unknown {
		return ""
	}
	return b.Version + " " + b.Commit
}

// checkBuild returns an error if this executable is not of the expected build.
func checkBuild(expected string) error {
	if expected == "" || expected == Build() {
		return nil
	}
	path, _ := os.Executable() // only for the message
	return fmt.Errorf("%s is of build %q, expected %q: remove it, or install it and unwindd from one release", path, cmp.Or(Build(), version.Unknown), expected)
}
