// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrForeign is the error for a file of a user who is neither this one, root, nor another who is
// trusted.
var ErrForeign = errors.New("it belongs to another user")

// AnyUser is a user who is not known.
const AnyUser = -1

// CheckOwner checks that a file in a directory that everyone may write to, as /tmp, is root's,
// this user's or trusted's. A link that another user made is an error that does not wrap
// ErrForeign: it may lead to a file that only this user can read.
func CheckOwner(path string, trusted int) error {
	for _, look := range []struct {
		info   func(string) (fs.FileInfo, error)
		isLink bool
	}{{os.Lstat, true}, {os.Stat, false}} {
		info, err := look.info(path)
		if err != nil {
			return err
		}
		user, _, ok := Owner(info)
		if IsOwn(info) || ok && user == trusted && trusted != AnyUser {
			continue
		}
		if look.isLink && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link that user %d made", path, user)
		}
		return fmt.Errorf("%s: %w, %d", path, ErrForeign, user)
	}
	return nil
}
