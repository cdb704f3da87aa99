// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Cache remembers the values of objects in memory, for all frames of a target whose memory does
// not change: a recursion passes one object to every frame, and threads share the objects that
// they work on. It may be used concurrently. nil is a Cache that remembers nothing.
type Cache struct {
	mu     sync.Mutex
	known  map[objectKey]remembered
	older  map[objectKey]remembered // known before it was full; those that are found come back to it
	values int                      // the number of values in known
}

// objectKey is an object of a type, read with a number of levels left; 0: the value has no parts,
// and is the same at each level.
type objectKey struct {
	t       *dwarf.Type
	address uint64
	levels  int
}

type remembered struct {
	trace.Value
	values int // it and all values in it
}

// maxRemembered bounds the values in each of a Cache's two maps.
const maxRemembered = 1 << 14

// NewCache makes a Cache.
func NewCache() *Cache { return &Cache{known: map[objectKey]remembered{}} }

func (c *Cache) find(key objectKey) (remembered, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known[key]
	if !ok {
		if v, ok = c.older[key]; ok {
			c.put(key, v)
		}
	}
	return v, ok
}

func (c *Cache) add(key objectKey, v remembered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, v)
}

func (c *Cache) put(key objectKey, v remembered) {
	if c.values += v.values; c.values > maxRemembered {
		c.older = c.known
		c.known, c.values = map[objectKey]remembered{}, v.values
	}
	c.known[key] = v
}

// remember reads the target of a pointer or a reference into v, through the cache. Values that
// depend on the frame, or on the path to them, are read anew.
func (r *Reader) remember(ctx context.Context, v *trace.Value, name string, t *dwarf.Type, l locexpr.Location, depth int) {
	space, address, ok := l.MemoryAddress()
	if r.cache == nil || !ok || space != locexpr.DefaultSpace || l.Place(0).Scope.Lane >= 0 {
		r.read(ctx, v, name, t, l, depth)
		return
	}
	key := objectKey{t, address, r.limits.Depth - depth}
	isText := r.isText(t)
	if isText {
		key.levels = 0
	}
	if known, ok := r.cache.find(key); ok && known.values <= r.left {
		r.left -= known.values
		*v = known.Value
		v.Name = name
		return
	}
	left, wasOwn := r.left, r.isOwn
	r.isOwn = false
	r.read(ctx, v, name, t, l, depth)
	isWhole := v.Status == trace.ValueOK && len(v.Children) == 0 && !v.IsDeep
	if !r.isOwn && r.left >= 0 && (isWhole || !isText) {
		r.cache.add(key, remembered{*v, left - r.left})
	}
	r.isOwn = r.isOwn || wasOwn
}
