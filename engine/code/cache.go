// SPDX-License-Identifier: Apache-2.0

package code

import "sync"

// A cache remembers what an object found out, and counts about how much memory that
// takes. The zero cache is empty. It may be used concurrently.
type cache[K comparable, V any] struct {
	mu    sync.RWMutex
	known map[K]V
	bytes int
}

func (c *cache[K, V]) find(key K) (v V, ok bool) {
	c.mu.RLock()
	v, ok = c.known[key]
	c.mu.RUnlock() // not deferred: this is on the way of every frame, and takes half as long
	return v, ok
}

// add remembers a value that takes about so many bytes, and says whether it does so
// from now on: what is known stays as it is, and beyond maxKept nothing is added.
func (c *cache[K, V]) add(key K, v V, bytes int) (isAdded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[key]; ok || len(c.known) >= maxKept {
		return false
	}
	if c.known == nil {
		c.known = map[K]V{}
	}
	c.known[key] = v
	c.bytes += bytes
	return true
}

// forget empties the cache, and returns what its values took.
func (c *cache[K, V]) forget() (bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes = c.bytes
	c.known, c.bytes = nil, 0
	return bytes
}

// keep adds a value to a cache of an object, and makes room for it.
func keep[K comparable, V any](o *Object, c *cache[K, V], key K, v V, bytes int) {
	if c.add(key, v, bytes) {
		o.grow(bytes)
	}
}
