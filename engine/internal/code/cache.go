// SPDX-License-Identifier: Apache-2.0

package code

import "sync"

// A cache remembers answers of an object, and counts about how much memory they take. The zero
// cache is empty. It may be used concurrently.
type cache[K comparable, V any] struct {
	mu    sync.RWMutex
	known map[K]V
	bytes int
}

func (c *cache[K, V]) find(key K) (v V, ok bool) {
	c.mu.RLock()
	v, ok = c.known[key]
	c.mu.RUnlock() // not deferred: every frame does this, and it takes half as long
	return v, ok
}

// add remembers a value that takes about so many bytes, and reports whether it did: a known
// value stays as it is, and beyond maxKept nothing is added.
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

// forget empties the cache, and returns how much memory its values took.
func (c *cache[K, V]) forget() (bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes = c.bytes
	c.known, c.bytes = nil, 0
	return bytes
}

// remember adds a value to a cache of an object. The caller may hold the object's mu.
func remember[K comparable, V any](o *Object, c *cache[K, V], key K, v V, bytes int) {
	if c.add(key, v, bytes) {
		o.count(bytes)
	}
}

// keep adds a value to a cache of an object, and has others forgotten where there is too much.
// The caller does not hold the object's mu.
func keep[K comparable, V any](o *Object, c *cache[K, V], key K, v V, bytes int) {
	if c.add(key, v, bytes) {
		o.grow(bytes)
	}
}
