// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/internal/host"
)

// This file finds the user's cache of perf, which has copies of the files that were sampled
// (perf-buildid-cache(1)), as perf does (perf-config(1)), and the drives of the user's Wine.

// caches returns the caches of perf that are searched: of --buildid-dir, then the user's.
func (f *fileFlags) caches() []string {
	list := slices.Clone(f.buildIDDirs)
	if dir := perfCache(os.Getenv); dir != "" && !slices.Contains(list, dir) {
		list = append(list, dir)
	}
	return list
}

// drives returns the directory with the links to the drives of the user's Wine; "" where files are of another
// machine.
func (f *fileFlags) drives() string {
	prefix := os.Getenv("WINEPREFIX")
	if home := os.Getenv("HOME"); prefix == "" && home != "" {
		prefix = filepath.Join(home, ".wine")
	}
	if f.sysroot != host.Root || prefix == "" {
		return ""
	}
	return filepath.Join(prefix, "dosdevices")
}

// perfCache returns the directory of the user's cache: of PERF_BUILDID_DIR, or of buildid.dir in
// perf's settings, or else .debug in HOME; "" where none is set.
func perfCache(getenv func(string) string) string {
	if dir := getenv("PERF_BUILDID_DIR"); dir != "" {
		return dir
	}
	home := getenv("HOME")
	settings := []string{"/etc/perfconfig"}
	if home != "" {
		settings = []string{filepath.Join(home, ".perfconfig"), "/etc/perfconfig"}
	}
	if own := getenv("PERF_CONFIG"); own != "" {
		settings = []string{own}
	}
	for _, name := range settings {
		if dir := buildIDSetting(name); dir != "" {
			if rest, ok := strings.CutPrefix(dir, "~/"); ok && home != "" {
				dir = filepath.Join(home, rest)
			}
			return dir
		}
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".debug")
}

// maxPerfConfig bounds the bytes of perf's settings that are read.
const maxPerfConfig = 1 << 20

// buildIDSetting returns the value of dir in the section buildid of a file of perf's settings; ""
// where there is none.
func buildIDSetting(name string) (dir string) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPerfConfig {
		return ""
	}
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	section := ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		switch key, value, isSetting := strings.Cut(line, "="); {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section = strings.ToLower(strings.Trim(line, "[] \t"))
		case isSetting && section == "buildid" && strings.EqualFold(strings.TrimSpace(key), "dir"):
			value, _, _ = strings.Cut(value, "#")
			dir = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return dir
}
