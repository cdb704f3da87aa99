// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

// The kernel puts the words of the command line, the environment and the auxiliary vector above the stack of the
// first thread (create_elf_tables of fs/binfmt_elf.c), from low addresses to high ones:
//
//	argc  argv[0] ... NULL  envp[0] ... NULL  auxv[0] ... AT_NULL  random bytes  strings of argv and envp  path
//
// NT_AUXV has a copy of the vector. Some of its entries are addresses a little behind the vector, which is found by them.

// behindVector are entries of the vector with such addresses, the nearest first.
var behindVector = []struct{ typ, distance uint64 }{
	{atRandom, 16 << 10},
	{atPlatform, 16 << 10},
	{atExecFn, maxStrings + 16<<10},
}

const (
	atPlatform = 15
	atRandom   = 25
)

const (
	// maxStrings bounds the bytes of the command line and of the environment. The kernel bounds both together by
	// a quarter of the stack's limit, and by 6 MiB (fs/exec.c).
	maxStrings = 6 << 20
	// maxString bounds one of them, as the kernel does (MAX_ARG_STRLEN).
	maxString = 128 << 10
	// maxPointers bounds their number.
	maxPointers = 1 << 16
	// maxAuxv bounds the entries of the vector; Linux writes some 20.
	maxAuxv = 128
	// maxCommand bounds the command line among the facts.
	maxCommand = 64 << 10
)

// Start reads the command line and the environment from the memory of the process, as they were when the core was
// written: a program may have changed both. They are empty where the core does not have that memory.
func (c *Core) Start() (s target.Start) {
	_ = object.Guard(func() error { // a file that was cut off has none
		vector, ok := c.findVector()
		if !ok {
			return nil
		}
		budget := maxStrings
		size := uint64(c.header.size())
		variables, end, ok := c.pointersBelow(vector-size, func(word uint64, _ int) bool { return word == 0 })
		if !ok {
			return nil
		}
		for _, address := range variables {
			if v, ok := c.stringAt(address, &budget); ok && strings.IndexByte(v, '=') > 0 {
				s.Environment = append(s.Environment, v)
			}
		}
		// argc is the number of pointers between it and the NULL behind argv.
		words, _, ok := c.pointersBelow(end, func(word uint64, count int) bool { return word == uint64(count) }) //nolint:gosec // a count
		for i := 0; ok && i < len(words); i++ {
			var word string
			word, ok = c.stringAt(words[i], &budget)
			s.Command = append(s.Command, word)
		}
		if !ok {
			s.Command = nil
		}
		return nil
	})
	return s
}

// findVector finds the auxiliary vector in memory, with the NULL of envp before it.
func (c *Core) findVector() (address uint64, ok bool) {
	for _, entry := range behindVector {
		value := c.process.auxv[entry.typ]
		s := c.memory.segment(value)
		if value == 0 || s == nil {
			continue
		}
		size := uint64(c.header.size())
		start := alignUp(max(s.start, value-min(value, entry.distance)), size)
		if start >= value {
			continue
		}
		block := c.memory.readDumped(start, value-start)
		for i := len(block) &^ (int(size) - 1); i >= 0; i -= int(size) { //nolint:gosec // 4 or 8
			if at, ok := c.vectorAround(block, i, entry.typ, value); ok {
				return start + uint64(at), true //nolint:gosec // an offset
			}
		}
	}
	return 0, false
}

// vectorAround returns where the vector begins in a block of words if it has an entry at an offset.
func (c *Core) vectorAround(block []byte, offset int, typ, value uint64) (begin int, ok bool) {
	size := c.header.size()
	has := func(i int, typ, value uint64) bool {
		return i >= 0 && i+2*size <= len(block) && c.header.word(block[i:]) == typ && c.header.word(block[i+size:]) == value
	}
	if !has(offset, typ, value) {
		return 0, false
	}
	known := 0
	isKnown := func(i int) bool {
		typ := c.header.word(block[i:])
		want, ok := c.process.auxv[typ]
		if ok && has(i, typ, want) {
			known++
		}
		return typ != 0 && typ < 1<<10
	}
	begin = offset
	for n := 0; begin >= 3*size && n < maxAuxv && isKnown(begin-2*size); n++ {
		begin -= 2 * size
	}
	for i := offset; i+2*size <= len(block) && i < offset+2*size*maxAuxv && isKnown(i); i += 2 * size {
	}
	// A program may have a copy of a part of the vector, and ld.so changes some entries where it is started by
	// its name.
	return begin, begin >= size && c.header.word(block[begin-size:]) == 0 && known*4 >= len(c.process.auxv)*3
}

// pointersBelow returns the words of memory below a NULL down to the one that ends them, in ascending order, and
// the address of that.
func (c *Core) pointersBelow(null uint64, ends func(word uint64, count int) bool) (list []uint64, end uint64, ok bool) {
	size := uint64(c.header.size())
	if word, ok := c.word(null); !ok || word != 0 {
		return nil, 0, false
	}
	for end = null - size; end < null && len(list) <= maxPointers; end -= size {
		word, ok := c.word(end)
		if !ok {
			return nil, 0, false
		}
		if ends(word, len(list)) {
			slices.Reverse(list)
			return list, end, true
		}
		list = append(list, word)
	}
	return nil, 0, false
}

// stringAt reads a string that the core has. budget is how many bytes may still be read.
func (c *Core) stringAt(address uint64, budget *int) (string, bool) {
	b := c.memory.readDumped(address, uint64(min(maxString, *budget))) //nolint:gosec // at least 0
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		return "", false
	}
	*budget -= n + 1
	return string(b[:n]), true
}

// commandLine returns the command line: the whole one where memory has it, and it begins as that of NT_PRPSINFO, of
// which there are 79 bytes.
func (c *Core) commandLine() string {
	c.command.once.Do(func() {
		recorded := c.process.command
		c.command.line = recorded
		if len(recorded) < psargsBytes {
			return
		}
		if whole := strings.Join(c.Start().Command, " "); strings.HasPrefix(whole, recorded) {
			c.command.line = whole[:min(len(whole), maxCommand)]
		}
	})
	return c.command.line
}

// psargsBytes is how much of a long command line NT_PRPSINFO has, without a blank at its end.
const psargsBytes = 78
