// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"errors"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
)

// NamesSource reports whether the line tables of an object name a source file by an absolute path,
// in which "." and ".." do not count. One without debug information names none.
func NamesSource(o *object.Object, path string) (bool, error) {
	r, err := dwarf.New(o)
	if errors.Is(err, dwarf.ErrNoDebugInfo) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer r.Close()
	return r.NamesFile(path)
}
