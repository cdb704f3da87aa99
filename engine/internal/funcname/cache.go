// SPDX-License-Identifier: Apache-2.0

package funcname

import (
	"strings"
	"sync"
)

const (
	// maxCachedName is the longest name that a Cache keeps.
	maxCachedName = 1 << 12
	// maxCached bounds the bytes of the names in a table of a Cache.
	maxCached = 1 << 20
)

// Cache keeps results of reading names of functions: the frames of many threads have the same ones.
// Its tables are free for the garbage collector between calls. It is safe for concurrent use.
type Cache[V any] struct{ tables sync.Pool }

// CacheKey is a name in a Cache. Style tells names apart that are read by different rules.
type CacheKey struct {
	Function string
	Style    byte
}

type cacheTable[V any] struct {
	values map[CacheKey]V
	bytes  int // of the keys
}

// Get returns the value of a key, which read computes where it is missing. The value is kept with
// a copy of the name that read is called with.
func (c *Cache[V]) Get(key CacheKey, read func(CacheKey) V) V {
	if len(key.Function) > maxCachedName {
		return read(key)
	}
	t, _ := c.tables.Get().(*cacheTable[V])
	if t == nil {
		t = &cacheTable[V]{values: make(map[CacheKey]V)}
	}
	value, isKnown := t.values[key]
	if !isKnown {
		key.Function = strings.Clone(key.Function) // it may be a small part of a large text
		value = read(key)
		if t.bytes += len(key.Function); t.bytes > maxCached {
			clear(t.values)
			t.bytes = len(key.Function)
		}
		t.values[key] = value
	}
	c.tables.Put(t)
	return value
}
