// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"os"

	"github.com/unwindd/unwindd/internal/version"
)

// Build names the build of this executable; "" where its version is not known: two builds of
// that kind cannot be told apart.
func Build() string {
	b := version.Read()
	if b.Version == version.Unknown {
		return ""
	}
	return b.Version + " " + b.Commit
}

// checkBuild refuses to be of another build than the one that is expected.
func checkBuild(expected string) error {
	if expected == "" || expected == Build() {
		return nil
	}
	path, _ := os.Executable() // for the message alone
	return fmt.Errorf("%s is of build %q, expected %q: remove it, or install it and unwindd from one release", path, Build(), expected)
}
