// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io/fs"
	"os"

	"github.com/unwindd/unwindd/internal/host"
)

// isOwnedByUs reports whether a file belongs to this user.
func isOwnedByUs(info fs.FileInfo) bool {
	user, _, ok := host.Owner(info)
	return ok && user == os.Geteuid()
}
