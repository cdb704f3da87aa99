// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"slices"
)

// Addresses at which Build puts parts without an address of their own, page by page.
const (
	gpuArena  = 0x7e80_0000_0000
	hostArena = 0x6000_0000_0000
	pageSize  = 0x1000
)

// chunk is a mapping of the process.
type chunk struct {
	place      Place
	address    uint64
	content    content
	executable bool
	readOnly   bool
	name       string // its name in messages
}

// Image is a Core laid out: every address is known, nothing is written yet.
type Image struct {
	core    *Core
	rdebug  uint64
	objects []objectPlan
	queues  []*QueuePlan
	chunks  []chunk
	next    [2]uint64 // the arenas' next free pages
	note    []byte
	err     error
}

// Build lays the core out. It fails where a value does not fit its field, where
// memory overlaps, or where the description contradicts itself.
func (c *Core) Build() (*Image, error) {
	im := &Image{core: c, next: [2]uint64{GPU: gpuArena, Host: hostArena}}
	im.placeMemory()
	im.placeObjects()
	for i := range c.Agents {
		im.placeAgent(&c.Agents[i])
	}
	im.note = im.buildNote()
	if im.err == nil {
		im.err = im.checkOverlaps()
	}
	if im.err != nil {
		return nil, im.err
	}
	return im, nil
}

// fail keeps the first error.
func (im *Image) fail(format string, args ...any) {
	if im.err == nil {
		im.err = fmt.Errorf("corefile: "+format, args...)
	}
}

// allocate returns address, or free pages for n bytes if address is 0.
func (im *Image) allocate(place Place, address, n uint64) uint64 {
	if address != 0 {
		return address
	}
	address = im.next[place]
	im.next[place] += roundUp(n, pageSize) + pageSize
	return address
}

func (im *Image) add(place Place, address uint64, name string, c content) {
	im.chunks = append(im.chunks, chunk{place: place, address: address, content: c, name: name})
}

func (im *Image) placeMemory() {
	for i, m := range im.core.Memory {
		n := max(m.Size, uint64(len(m.Data)))
		im.chunks = append(im.chunks, chunk{m.Place, m.Address, data{m.Data, n}, m.Executable, m.ReadOnly,
			fmt.Sprintf("Memory[%d]", i)})
	}
}

func (im *Image) checkOverlaps() error {
	im.chunks = slices.DeleteFunc(im.chunks, func(c chunk) bool { return c.content.size() == 0 })
	slices.SortStableFunc(im.chunks, func(a, b chunk) int {
		switch {
		case a.address < b.address:
			return -1
		case a.address > b.address:
			return 1
		}
		return 0
	})
	for i := 1; i < len(im.chunks); i++ {
		a, b := im.chunks[i-1], im.chunks[i]
		if b.address-a.address < a.content.size() {
			return fmt.Errorf("corefile: %s at %#x runs into %s at %#x", a.name, a.address, b.name, b.address)
		}
	}
	return nil
}

// put sets a run of bits of a word. A value that does not fit fails the build.
func (im *Image) put(word *uint32, b Bits, v uint64, what string) {
	if b.Width == 0 {
		if v != 0 {
			im.fail("%s is %d, and the machine has no field for it", what, v)
		}
		return
	}
	if v>>b.Width != 0 {
		im.fail("%s is %#x, and its field has %d bits", what, v, b.Width)
		return
	}
	mask := uint32((uint64(1)<<b.Width - 1) << b.Low)
	*word = *word&^mask | uint32(v)<<b.Low
}

func roundUp[T ~int | ~uint64](n, unit T) T { return (n + unit - 1) / unit * unit }
