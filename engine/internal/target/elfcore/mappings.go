// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"

	"github.com/unwindd/unwindd/engine/target"
)

// Around returns the mappings around an address, as the core's program headers list them. gdb
// writes none for memory without any right, nor for read-only mappings of files.
func (c *Core) Around(address uint64) (below, containing, above *target.Mapping) {
	list := c.memory.segments
	bounds := func(i int) (start, end uint64) { return list[i].start, list[i].start + list[i].size }
	return target.MappingsAround(len(list), bounds, func(i int) *target.Mapping { return c.mappingOf(&list[i]) }, address)
}

func (c *Core) mappingOf(s *segment) *target.Mapping {
	m := &target.Mapping{
		Start: s.start, End: s.start + s.size,
		IsReadable: s.flags&elf.PF_R != 0, IsWritable: s.flags&elf.PF_W != 0, IsExecutable: s.flags&elf.PF_X != 0,
	}
	if r := c.process.files.containing(s.start); r != nil {
		m.File, m.Offset = r.path, r.offset+(s.start-r.start)
	}
	return m
}
