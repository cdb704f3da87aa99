// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// damaged returns the memory of a fixture with words replaced: each is a place, and what is there.
func (f *stacksFixture) damaged(words []byte) *memory {
	pages := maps.Clone(f.Pages)
	order := slices.Sorted(maps.Keys(pages))
	for ; len(words) >= 12; words = words[12:] {
		at := binary.LittleEndian.Uint32(words)
		start := order[int(at>>12)%len(order)]
		changed := slices.Clone(pages[start])
		copy(changed[at%page&^7:], words[4:12])
		pages[start] = changed
	}
	return &memory{pages: pages}
}

// pointers returns addresses that memory of a fixture has, so that damage leads from one struct to
// another.
func (f *stacksFixture) pointers() (list []uint64) {
	for _, start := range slices.Sorted(maps.Keys(f.Pages)) {
		for at := 0; at < page; at += 8 {
			if word := binary.LittleEndian.Uint64(f.Pages[start][at:]); f.Pages[word&^(page-1)] != nil && word%8 == 0 {
				list = append(list, word)
			}
		}
	}
	return list
}

// TestDamage makes all calls about memory in which words are wrong: numbers, and addresses of other
// structs.
func TestDamage(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	eachStacks(t, func(t *testing.T, f *stacksFixture) {
		random, pointers := rand.New(rand.NewPCG(1, 2)), f.pointers()
		for range rounds {
			var words []byte
			for range 1 + random.IntN(8) {
				value := random.Uint64() >> random.IntN(64)
				if random.IntN(2) == 0 {
					value = pointers[random.IntN(len(pointers))]
				}
				words = binary.LittleEndian.AppendUint32(words, random.Uint32())
				words = binary.LittleEndian.AppendUint64(words, value)
			}
			f.ask(t, f.damaged(words))
		}
	})
}

// FuzzProcess makes all calls about memory in which words were replaced.
func FuzzProcess(f *testing.F) {
	paths, err := filepath.Glob("testdata/frames-*.gz")
	if err != nil || len(paths) == 0 {
		f.Fatal("no fixtures", err)
	}
	var list []*stacksFixture
	for i, path := range paths {
		list = append(list, readStacks(f, path))
		f.Add(byte(i), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	}
	f.Fuzz(func(t *testing.T, which byte, words []byte) {
		one := list[int(which)%len(list)]
		one.ask(t, one.damaged(words))
	})
}
