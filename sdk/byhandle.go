// SPDX-License-Identifier: Apache-2.0

package sdk

import "sync"

// maxByHandle bounds the values that a ByHandle keeps.
const maxByHandle = 256

// ByHandle keeps what a plugin found out when something was opened, by the handle, and forgets
// the oldest where there are more than 256: the engine opens again what a plugin does not know
// (ErrObjectNotOpen). The zero value is empty. It may be used concurrently.
type ByHandle[T any] struct {
	mu    sync.Mutex
	known map[uint64]T
	order []uint64 // of known, the oldest first
}

// Put keeps a value.
func (k *ByHandle[T]) Put(handle uint64, value T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[uint64]T{}
	}
	if _, isKnown := k.known[handle]; !isKnown {
		k.order = append(k.order, handle)
	}
	k.known[handle] = value
	if len(k.order) > maxByHandle {
		delete(k.known, k.order[0])
		k.order = k.order[1:]
	}
}

// Get returns the value of a handle, if it is kept.
func (k *ByHandle[T]) Get(handle uint64) (value T, isKnown bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	value, isKnown = k.known[handle]
	return value, isKnown
}
