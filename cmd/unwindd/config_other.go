// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
)

// usualConfigs are the configuration files that are looked for: the user's own.
func usualConfigs() (paths []string) {
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(dir, "unwindd", "config.toml"))
	}
	return paths
}

// writtenByOthers returns "": the folder of usualConfigs is the user's alone.
func writtenByOthers(fs.FileInfo) string { return "" }
