// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/unwindd/unwindd/internal/host"
)

// A plugin is code that runs as whoever runs unwindd, and a folder of plugins is a place from
// which it is taken. So neither is used where somebody else could have put it there: as ssh does
// with the files of a user's keys, the owner of each file and folder on the way has to be root or
// this user, and no other user may write to it.

// checkTrust returns an error if another user could have put something else at a path: by writing
// to it, or by replacing it, or a folder above it. Symbolic links are followed, and each folder
// on the way counts. A folder that all may write to and in which only owners
// may replace entries (/tmp) may be above the path.
func checkTrust(path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return withoutCall(err)
	}
	for _, end := range slices.Compact([]string{absolute, resolved}) {
		for at := end; ; at = filepath.Dir(at) {
			if err := checkOwner(at, at != end); err != nil {
				return err
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return nil
}

// checkOwner returns an error if another user may change a file or a folder. isAbove means that
// the folder is one above the path that is to be trusted.
func checkOwner(path string, isAbove bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return withoutCall(err)
	}
	user, _, isKnown := host.Owner(info)
	mode := info.Mode()
	switch {
	case !isKnown: // a system without owners
		return nil
	case user != 0 && user != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, who could change it, expected %s: chown %d %s", path, user, expectedOwner(), os.Geteuid(), path)
	case mode.Type() == fs.ModeSymlink: // its own mode says nothing
		return nil
	case isAbove && mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil // the owners of its entries are checked
	case mode.Perm()&0o022 != 0:
		return fmt.Errorf("others than its owner may write to %s (its mode is %04o): %s %s", path, mode.Perm(), remedyOf(mode), path)
	}
	return nil
}

// remedyOf returns the command that takes the rights to write from all but the owner.
func remedyOf(mode fs.FileMode) string {
	switch mode.Perm() & 0o022 {
	case 0o020:
		return "chmod g-w"
	case 0o002:
		return "chmod o-w"
	}
	return "chmod go-w"
}

// expectedOwner describes the users that may own a trusted file.
func expectedOwner() string {
	if id := os.Geteuid(); id != 0 {
		return fmt.Sprintf("root or user %d, who runs unwindd", id)
	}
	return "root, who runs unwindd"
}

// withoutCall returns an error of a file without the name of the system call.
func withoutCall(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", failed.Path, failed.Err)
	}
	return err
}
