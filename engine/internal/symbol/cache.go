// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"hash/maphash"
	"sync"
)

const (
	cacheShards = 16
	// generationBytes bounds the names in one generation of one shard; the whole cache has
	// at most cacheShards*2 times as much.
	generationBytes = 1 << 20
)

// nameCache maps linkage names to readable ones. Each shard has two generations: when the
// young one is full it becomes the old one, and names that are still in use move back as
// they are requested.
type nameCache struct {
	seed   maphash.Seed
	shards [cacheShards]nameShard
}

type nameShard struct {
	mu         sync.Mutex
	young, old map[string]string
	bytes      int // in young
}

func newNameCache() *nameCache {
	c := &nameCache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].young = make(map[string]string)
	}
	return c
}

// get returns the value of key, and computes it where it is missing.
func (c *nameCache) get(key string, compute func(string) string) string {
	s := &c.shards[maphash.String(c.seed, key)%cacheShards]
	s.mu.Lock()
	value, ok := s.young[key]
	if !ok {
		if value, ok = s.old[key]; ok {
			s.put(key, value)
		}
	}
	s.mu.Unlock()
	if ok {
		return value
	}
	value = compute(key)
	s.mu.Lock()
	s.put(key, value)
	s.mu.Unlock()
	return value
}

// put stores a pair under s.mu. A pair that would fill a generation alone is not stored.
func (s *nameShard) put(key, value string) {
	size := len(key) + len(value)
	if size > generationBytes {
		return
	}
	if s.bytes+size > generationBytes {
		s.old, s.young, s.bytes = s.young, make(map[string]string), 0
	}
	s.young[key] = value
	s.bytes += size
}
