// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"hash/maphash"
	"sync"
)

const (
	cacheShards = 16
	// generationBytes bounds the names in one generation of one shard; the
	// whole cache holds at most cacheShards*2 times as much.
	generationBytes = 1 << 20
)

// A nameCache maps linkage names to readable ones. Each shard keeps two
// generations: when the young one is full it becomes the old one, and what is
// still in use moves back as it is asked for.
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

// get returns the value of key, made by compute when it is not there.
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

// put stores under s.mu. A pair that would fill a generation alone is not kept.
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
