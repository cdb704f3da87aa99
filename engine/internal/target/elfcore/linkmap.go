// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"debug/elf"

	"github.com/unwindd/unwindd/engine/object"
)

const (
	// maxLinks bounds the entries of all link maps together.
	maxLinks = 1 << 16
	// maxNamespaces bounds the link maps; glibc has at most 16.
	maxNamespaces = 64
	// maxDynamic bounds the entries of the executable's PT_DYNAMIC.
	maxDynamic = 4096
	// maxPath is the longest path (PATH_MAX).
	maxPath = 4096
)

// link is an entry of the dynamic loader's list: struct link_map.
type link struct {
	bias    uint64 // l_addr
	name    uint64 // l_name: the address of its name
	dynamic uint64 // l_ld: the address of its PT_DYNAMIC
}

// executable is the main executable, as NT_AUXV describes it.
type executable struct {
	isKnown  bool
	bias     uint64
	programs []object.Program
	file     object.Found // if memory does not have its program headers
}

// word reads a word of the target's memory.
func (c *Core) word(address uint64) (uint64, bool) {
	var buf [8]byte
	b := buf[:c.header.size()]
	if c.memory.read(address, b) < len(b) {
		return 0, false
	}
	return c.header.word(b), true
}

// text reads a string of the target's memory that ends with NUL.
func (c *Core) text(address uint64) (string, bool) {
	if address == 0 {
		return "", false
	}
	var s []byte
	var buf [256]byte
	for len(s) < maxPath {
		n := c.memory.read(address+uint64(len(s)), buf[:])
		if i := bytes.IndexByte(buf[:n], 0); i >= 0 {
			return string(append(s, buf[:i]...)), true
		}
		s = append(s, buf[:n]...)
		if n < len(buf) {
			break
		}
	}
	return "", false
}

// findExecutable finds the main executable's program headers and bias by
// AT_PHDR, AT_PHNUM, AT_PHENT and AT_ENTRY. Program headers that the core does not
// have are read from the executable's file.
func (c *Core) findExecutable() (exe executable) {
	address, ok := c.process.auxv[atPHDR]
	if !ok || address == 0 {
		return exe
	}
	count, entry := c.process.auxv[atPHNUM], c.process.auxv[atPHENT]
	size := c.header.programSize()
	if count == 0 || count > maxImagePrograms || entry < size || entry > 4*size {
		c.problem("NT_AUXV: AT_PHNUM is %d and AT_PHENT is %d, expected 1 to %d and %d; the executable is not looked for by them", count, entry, maxImagePrograms, size)
		return exe
	}
	if b := c.memory.readDumped(address, count*entry); uint64(len(b)) == count*entry {
		exe.programs = make([]object.Program, 0, count)
		for i := range count {
			exe.programs = append(exe.programs, c.header.objectProgram(b[i*entry:]))
		}
		exe.bias, exe.isKnown = c.executableBias(exe.programs, address)
		return exe
	}
	if c.process.files.containing(address) != nil {
		return exe // NT_FILE has it
	}
	exe.file = c.find(c.executablePath(), nil, true)
	o := exe.file.Object
	if o == nil {
		c.problem("the executable is not known: the core does not have its program headers at address %#x (AT_PHDR), and %s", address, exe.file.Problem)
		return exe
	}
	exe.programs = o.Programs()
	exe.bias, exe.isKnown = c.header.mask(c.process.auxv[atEntry]-o.Entry()), c.process.auxv[atEntry] != 0
	return exe
}

// executablePath returns the path by which the executable was started.
func (c *Core) executablePath() string {
	if path, ok := c.text(c.process.auxv[atExecFn]); ok && path != "" {
		return path
	}
	return c.process.name
}

// executableBias finds the bias of an executable from the address of its program
// headers: by PT_PHDR, which has their virtual address; else by the image that has
// its program headers there; else, as only executables with fixed addresses lack
// PT_PHDR, it is 0 if the entry point agrees.
func (c *Core) executableBias(programs []object.Program, address uint64) (bias uint64, ok bool) {
	for _, p := range programs {
		if p.Type == elf.PT_PHDR {
			return c.header.mask(address - p.Address), true
		}
	}
	start := address - uint64(c.header.offset(52, 64))
	if im, ok := c.imageAt(start); ok {
		return im.bias, true
	}
	entry := c.process.auxv[atEntry]
	for _, p := range programs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && entry-p.Address < p.MemSize {
			return 0, true
		}
	}
	return 0, false
}

// links reads the dynamic loader's lists of loaded code: DT_DEBUG of the
// executable's PT_DYNAMIC points to struct r_debug (r_version, r_map, r_brk,
// r_state, r_ldbase; from version 2 on r_next, of the next namespace),
// and that to struct link_map (l_addr, l_name, l_ld, l_next). There is none
// if the executable has no dynamic loader, or the loader had not begun.
func (c *Core) links(exe *executable) (list []link) {
	debug := c.debugAddress(exe)
	if debug == 0 {
		return nil
	}
	size := uint64(c.header.size())
	seen := map[uint64]bool{}
	for range maxNamespaces {
		first, ok := c.word(debug + size)
		if !ok {
			c.problem("r_debug at address %#x is not in the core: not all loaded code may be known", debug)
			return list
		}
		for address := first; address != 0; {
			if seen[address] {
				c.problem("the dynamic loader's list is a circle at address %#x and was left there", address)
				return list
			}
			if len(list) == maxLinks {
				c.problem("the dynamic loader's list has more than %d entries and was left at address %#x", maxLinks, address)
				return list
			}
			seen[address] = true
			var l link
			var ok [4]bool
			var next uint64
			l.bias, ok[0] = c.word(address)
			l.name, ok[1] = c.word(address + size)
			l.dynamic, ok[2] = c.word(address + 2*size)
			next, ok[3] = c.word(address + 3*size)
			if ok != [4]bool{true, true, true, true} {
				c.problem("entry %d of the dynamic loader's list, at address %#x, is not in the core: not all loaded code may be known", len(list), address)
				break
			}
			list = append(list, l)
			address = next
		}
		var version [4]byte
		if c.memory.read(debug, version[:]) < 4 || int32(c.header.order.Uint32(version[:])) < 2 {
			return list
		}
		next, ok := c.word(debug + 5*size)
		if !ok || next == 0 {
			return list
		}
		if seen[next] {
			c.problem("the dynamic loader's namespaces are a circle at address %#x and were left there", next)
			return list
		}
		seen[next] = true
		debug = next
	}
	c.problem("the dynamic loader has more than %d namespaces", maxNamespaces)
	return list
}

// debugAddress returns the value of DT_DEBUG; 0 if there is none.
func (c *Core) debugAddress(exe *executable) uint64 {
	if !exe.isKnown {
		return 0
	}
	size := uint64(c.header.size())
	for _, p := range exe.programs {
		if p.Type != elf.PT_DYNAMIC {
			continue
		}
		address := c.header.mask(p.Address + exe.bias)
		for i := range min(p.MemSize/(2*size), maxDynamic) {
			tag, ok := c.word(address + i*2*size)
			if !ok {
				c.problem("PT_DYNAMIC of the executable at address %#x is not in the core: the dynamic loader's list is not known", address)
				return 0
			}
			switch elf.DynTag(tag) {
			case elf.DT_NULL:
				return 0
			case elf.DT_DEBUG:
				debug, _ := c.word(address + i*2*size + size)
				return debug
			}
		}
	}
	return 0
}
