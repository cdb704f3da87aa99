// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package confine

import (
	"fmt"
	"syscall"
)

// Exec executes a file of the given path in the place of this process, so it returns only
// with an error. This system has no sandbox, which is passed to withMissing, which makes
// the arguments.
func (c *Confinement) Exec(path string, withMissing func(missing []string) []string, env []string) error {
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, withMissing([]string{"processes are confined on Linux only"}), env))
}
