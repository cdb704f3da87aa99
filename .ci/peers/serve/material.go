// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/unwindd/unwindd/.ci/peers/daemon"
)

// snapshotOfServer takes a snapshot of a server that waits.
func snapshotOfServer(unwindd, dir string) (path string, err error) {
	home, remove, err := daemon.Folder()
	if err != nil {
		return "", err
	}
	defer remove()
	s, err := daemon.Start(unwindd, home)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "large.snapshot")
	cmd := exec.Command(unwindd, "snapshot", strconv.Itoa(s.Command.Process.Pid), "-o", path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return path, errors.Join(err, s.End())
}
