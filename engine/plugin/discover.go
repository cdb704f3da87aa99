// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// maxVendors bounds the number of executables in one directory.
const maxVendors = 256

// candidate is an executable found in a plugin directory.
type candidate struct {
	kind    *kind
	name    string // what follows the prefix of its kind
	path    string // with symbolic links resolved, so that a file is one plugin
	folder  string // the plugin directory that it was found in
	data    string // the folder of its data; "": there is none
	problem string // why it cannot be used; "" when it can
}

// discover finds the executables in the plugin directories, sorted by directory and name.
// A directory that cannot be read is an error, because the user named it.
func discover(dirs []string) ([]candidate, error) {
	var found []candidate
	seen := map[string]bool{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("plugin directory %s: %w", dir, errors.Unwrap(err))
		}
		if err := checkTrust(dir); err != nil {
			return nil, fmt.Errorf("plugin directory %s is not used: %w", dir, err)
		}
		here := 0
		for _, entry := range entries {
			k, name := kindOf(entry.Name())
			if k == nil || strings.HasSuffix(name, DataSuffix) && isFolder(filepath.Join(dir, entry.Name())) {
				continue
			}
			if here++; here > maxVendors {
				return nil, fmt.Errorf("plugin directory %s: more than %d files named %sNAME or %sNAME", dir, maxVendors, sdk.ExecutablePrefix, sdk.RuntimePrefix)
			}
			c := examine(name, filepath.Join(dir, entry.Name()))
			c.kind, c.folder = k, dir
			if !seen[c.path] {
				seen[c.path] = true
				found = append(found, c)
			}
		}
	}
	return found, nil
}

// kindOf returns the kind of a plugin and its name, by the name of its executable; nil: it
// is no plugin's.
func kindOf(file string) (k *kind, name string) {
	for _, k := range []*kind{architectures, runtimes} {
		if name, ok := strings.CutPrefix(file, k.prefix); ok {
			return k, name
		}
	}
	return nil, ""
}

func examine(name, path string) candidate {
	c := candidate{name: name, path: path}
	if !isValidName(name) {
		c.name = printable(clip(name))
		c.problem = "its name has characters other than letters, digits, '.', '_', '+' and '-'"
		return c
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		c.problem = err.Error()
		return c
	}
	c.path = resolved
	info, err := os.Stat(resolved)
	switch {
	case err != nil:
		c.problem = err.Error()
	case !info.Mode().IsRegular():
		c.problem = fmt.Sprintf("it is not a regular file (%s)", info.Mode().Type())
	case info.Mode().Perm()&0o111 == 0:
		c.problem = fmt.Sprintf("it is not executable (%s)", info.Mode().Perm())
	default:
		c.data, err = dataFolder(path)
		if err = errors.Join(checkTrust(path), err); err != nil {
			c.problem = "it is not started: " + err.Error()
		}
	}
	return c
}

// reason is the error of an executable that cannot be used.
func (c *candidate) reason() error {
	if strings.Contains(c.problem, c.path) {
		return errors.New(c.problem)
	}
	return fmt.Errorf("%s: %s", c.path, c.problem)
}

func isValidName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		digit := r >= '0' && r <= '9'
		if !letter && !digit && !strings.ContainsRune("._+-", r) {
			return false
		}
	}
	return true
}
