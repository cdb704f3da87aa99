// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package confine

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// run executes the plugin. Systems other than Linux have no sandbox, which is
// reported.
func (e *execution) run(report func(missing []string)) error {
	if e.sha256 != "" {
		sum, err := HashFile(e.path)
		if err != nil {
			return err
		}
		if sum != e.sha256 {
			return fmt.Errorf("%s has SHA-256 %s, expected %s", e.path, sum, e.sha256)
		}
	}
	report([]string{"the sandbox: there is none on " + runtime.GOOS})
	return fmt.Errorf("execute %s: %w", e.path, syscall.Exec(e.path, e.args, os.Environ()))
}
