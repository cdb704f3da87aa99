// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// lockBytes is the size of a lock in the frame of the interpreter: a word of the lock, and its
	// object.
	lockBytes = 16
	// maxLocks bounds the locks of a frame.
	maxLocks = 256
)

// heldBy adds the locks that an interpreted method holds. They are in its frame, between its end and
// an address, or a distance in words, that it has below the position in the bytecode.
func (w *stackWalk) heldBy(fp uint64) {
	end := fp + 8*uint64(w.version.bcp-1) //nolint:gosec // below
	top, err := w.Pointer(end)
	if err != nil {
		return
	}
	if words := int64(top); words < 0 && words > -maxArguments { //nolint:gosec // a distance
		top = fp + 8*top
	}
	if top%8 != 0 || top > end || (end-top)%lockBytes != 0 || end-top > maxLocks*lockBytes {
		return
	}
	for at := top; at < end; at += lockBytes {
		object, err := w.Pointer(at + w.basicObject.offset)
		if err != nil || object == 0 || object == w.notifier {
			continue
		}
		name, err := w.typeOf(object)
		if err != nil {
			continue
		}
		l := sdk.ManagedLock{Address: object, Name: "a " + name}
		waited := l
		waited.IsWaited = true
		if !slices.Contains(w.stack.Locks, l) && !slices.Contains(w.stack.Locks, waited) {
			w.stack.Locks = append(w.stack.Locks, l)
		}
	}
}

// maxArguments bounds the words of an interpreter's frame.
const maxArguments = 1 << 16
