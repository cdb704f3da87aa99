// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// What the user names has to be there: a wrong path is a mistake, and what is
// not found because of it looks as if there were nothing to find.

// checkFile says why a flag's value is no file; nil for no value.
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

// checkDirs says which of a flag's values is no directory.
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

// check says which of the places that the flags name is not there.
func (f *targetFlags) check() error {
	if err := checkFile("exe", f.exe); err != nil {
		return err
	}
	if _, err := f.givenModules(); err != nil {
		return err
	}
	if f.sysroot != "" {
		if err := checkDirs("sysroot", f.sysroot); err != nil {
			return err
		}
	}
	return checkDirs("debug-dir", f.debugDirs...)
}

// givenModules are the files of --module, by name.
func (f *targetFlags) givenModules() (map[string]string, error) {
	given := map[string]string{}
	for _, text := range f.modules {
		i := strings.LastIndexByte(text, '=')
		if i <= 0 || i == len(text)-1 {
			return nil, fmt.Errorf("--module: %q, expected NAME=FILE", text)
		}
		name, file := text[:i], text[i+1:]
		if other := given[name]; other != "" {
			return nil, fmt.Errorf("--module: %s is both %s and %s", name, other, file)
		}
		if err := checkFile("module", file); err != nil {
			return nil, err
		}
		given[name] = file
	}
	return given, nil
}
