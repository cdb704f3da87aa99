// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
)

// Guard runs f, which reads files. The error is f's, or that of a file that was truncated
// meanwhile: files are mapped, and the data that f read of it may be wrong.
func Guard(f func() error) error {
	if err := object.Guard(f); err != nil {
		return err
	}
	return object.Shrunk()
}

// Abandon ends the processes of plugins, and waits until no temporary file has a name; no more
// are made. It is for a process that is about to end by a signal.
func Abandon() {
	plugin.Abandon()
	unpack.Abandon()
}
