// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"slices"
	"sync"
)

// changes are the build IDs whose files have changed since a worker began its last run: what it
// remembers of them is wrong.
type changes struct {
	mu  sync.Mutex
	ids [][]byte
	all bool // there are too many
}

// maxChanges bounds the build IDs of a message.
const maxChanges = 256

func (c *changes) add(id []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) == maxChanges {
		c.ids, c.all = nil, true
	}
	if !c.all {
		c.ids = append(c.ids, slices.Clone(id))
	}
}

// take returns the changes, and begins anew.
func (c *changes) take() (f forget) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f = forget{c.ids, c.all}
	c.ids, c.all = nil, false
	return f
}
