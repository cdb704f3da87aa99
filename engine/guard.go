// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/unwindd/unwindd/engine/object"

// Guard runs f, which reads files. The error is f's, or that of a file that was truncated
// meanwhile: files are mapped, and the data that f read of it may be wrong.
func Guard(f func() error) error {
	if err := object.Guard(f); err != nil {
		return err
	}
	return object.Shrunk()
}
