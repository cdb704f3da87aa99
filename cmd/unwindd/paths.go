// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// This file checks that paths on the command line exist: with a mistyped path, a search
// would find nothing, without an error.

// checkFile refuses a flag's value that is no regular file; "" is no value.
func checkFile(flag, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("--%s: %w", flag, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("--%s: %s is not a regular file", flag, path)
	}
	return nil
}

// checkDirs refuses a flag's values that are no directories.
func checkDirs(flag string, paths ...string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return fmt.Errorf("--%s: %w", flag, err)
		case !info.IsDir():
			return fmt.Errorf("--%s: %s is not a directory", flag, path)
		}
	}
	return nil
}

// check refuses flags whose files or directories are not there.
func (f *fileFlags) check() error {
	if err := checkFile("exe", f.exe); err != nil {
		return err
	}
	if _, err := f.modulesByName(); err != nil {
		return err
	}
	if f.sysroot != "" {
		if err := checkDirs("sysroot", f.sysroot); err != nil {
			return err
		}
	}
	if err := checkDirs("debug-dir", f.debugDirs...); err != nil {
		return err
	}
	return checkDirs("buildid-dir", f.buildIDDirs...)
}

// modulesByName returns the files of --module, by name.
func (f *fileFlags) modulesByName() (map[string]string, error) {
	modules := map[string]string{}
	for _, text := range f.modules {
		i := strings.LastIndexByte(text, '=')
		if i <= 0 || i == len(text)-1 {
			return nil, fmt.Errorf("--module: %q, expected NAME=FILE", text)
		}
		name, file := text[:i], text[i+1:]
		if other := modules[name]; other != "" {
			return nil, fmt.Errorf("--module: %s is both %s and %s", name, other, file)
		}
		if err := checkFile("module", file); err != nil {
			return nil, err
		}
		modules[name] = file
	}
	return modules, nil
}
