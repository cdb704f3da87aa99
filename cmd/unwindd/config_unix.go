// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// usualConfigs are the configuration files that are looked for: the user's own and the
// machine's.
func usualConfigs() (paths []string) {
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(dir, "unwindd", "config.toml"))
	}
	return append(paths, "/etc/unwindd/config.toml")
}

// writtenByOthers returns why others than this user and root may have written a file; "" if
// they cannot have.
func writtenByOthers(info fs.FileInfo) string {
	owner, isKnown := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case isKnown && owner.Uid != 0 && int(owner.Uid) != os.Geteuid():
		return fmt.Sprintf("its owner is user %d, and neither root nor user %d", owner.Uid, os.Geteuid())
	case mode&0o022 != 0:
		return fmt.Sprintf("others may write to it (its mode is %04o; chmod go-w)", mode)
	}
	return ""
}
