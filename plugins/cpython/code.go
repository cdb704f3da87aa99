// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"errors"
	"fmt"
)

// code is a code object: the function that a frame executes.
type code struct {
	address       uint64
	name          string // co_name
	qualifiedName string // co_qualname, or co_name before 3.11
	file          string // co_filename
	firstLine     int32
	arguments     int32 // positional ones
	keywordOnly   int32
	flags         uint32
	start         uint64 // the address of its first instruction
	size          uint64 // bytes of its instructions
	lines         []byte // the table of its lines
	// isShim says that the interpreter made it for itself: it checks what __init__ has returned.
	isShim bool
	err    error // why it is none
}

// function is the name of the function that frames have.
func (c *code) function() string { return c.qualifiedName }

// Bounds of code objects: the names in characters, the instructions and lines in bytes.
const (
	maxFunction = 1 << 10
	maxFileName = 4 << 10
	maxCode     = 1 << 27
	maxLines    = 1 << 24
)

// prepareCodes reads code objects at many addresses, in few requests.
func (r *reader) prepareCodes(addresses []uint64) {
	var list []uint64
	for _, a := range addresses {
		if r.codes[a] == nil && checkPointer(a) == nil {
			list = append(list, a)
		}
	}
	l := &r.layout.code
	r.mem.Prefetch(list, uint64(l.size)) //nolint:gosec // known in all versions
	var parts []uint64
	for _, a := range list {
		for _, member := range []offset{l.name, l.qualifiedName, l.fileName, l.lines, l.bytes} {
			if !member.isKnown() {
				continue
			}
			if p, err := r.pointer(a, member); err == nil && checkPointer(p) == nil {
				parts = append(parts, p)
			}
		}
	}
	r.mem.Prefetch(parts, 512)
	for _, a := range list {
		r.code(a)
	}
}

// code returns the code object at an address, whose err says where it is none.
func (r *reader) code(address uint64) *code {
	if c := r.codes[address]; c != nil {
		return c
	}
	c := &code{address: address}
	if c.err = r.readCode(c); c.err != nil {
		c.err = fmt.Errorf("code at %#x: %w", address, c.err)
	}
	r.codes[address] = c
	return c
}

func (r *reader) readCode(c *code) error {
	class, err := r.class(c.address)
	if err != nil {
		return err
	}
	if class.name != "code" {
		return fmt.Errorf("it is a %s, expected a code", class.name)
	}
	l := &r.layout.code
	b, err := r.mem.Bytes(c.address, uint64(l.size)) //nolint:gosec // known in all versions
	if err != nil {
		return err
	}
	name, file := r.word(b, l.name), r.word(b, l.fileName)
	c.isShim = name == file
	if c.name, err = r.text(name, maxFunction); err != nil {
		return fmt.Errorf("co_name: %w", err)
	}
	if c.file, err = r.text(file, maxFileName); err != nil {
		return fmt.Errorf("co_filename: %w", err)
	}
	if c.qualifiedName = c.name; l.qualifiedName.isKnown() {
		if c.qualifiedName, err = r.text(r.word(b, l.qualifiedName), maxFunction); err != nil {
			return fmt.Errorf("co_qualname: %w", err)
		}
	}
	c.firstLine = int32(r.part(b, l.firstLine, 4))                                                    //nolint:gosec // signed in C
	c.arguments, c.keywordOnly = int32(r.part(b, l.arguments, 4)), int32(r.part(b, l.keywordOnly, 4)) //nolint:gosec // signed in C
	c.flags = uint32(r.part(b, l.flags, 4))                                                           //nolint:gosec // 4 bytes
	if err := r.findInstructions(c, b); err != nil {
		return err
	}
	var size uint64
	if c.lines, size, err = r.bytes(r.word(b, l.lines), maxLines); err != nil {
		return fmt.Errorf("its table of lines: %w", err)
	}
	if size > maxLines {
		return fmt.Errorf("its table of lines has %d bytes, expected at most %d", size, maxLines)
	}
	return nil
}

// findInstructions finds where the instructions of a code object are.
func (r *reader) findInstructions(c *code, b []byte) error {
	l := &r.layout.code
	if l.adaptive.isKnown() {
		c.start, c.size = c.address+uint64(l.adaptive), r.word(b, r.layout.object.count) //nolint:gosec // not negative
		if c.size > maxCode/2 {
			return fmt.Errorf("it has %d instructions, expected less", c.size)
		}
		c.size *= 2
		return nil
	}
	object := r.word(b, l.bytes)
	if err := r.expect(object, classIsBytes, "bytes"); err != nil {
		return fmt.Errorf("co_code: %w", err)
	}
	size, err := r.count(object, maxCode)
	if err != nil {
		return fmt.Errorf("co_code: %w", err)
	}
	c.start, c.size = object+uint64(r.layout.sequence.bytesData), size //nolint:gosec // known in all versions
	return nil
}

// copyStart returns the first instruction of the copy of a code object's instructions that a thread
// of a free-threaded build executes.
func (r *reader) copyStart(c *code, index int32) (uint64, error) {
	copies, err := r.pointer(c.address, r.layout.code.tlbc)
	if err != nil {
		return 0, err
	}
	size, err := r.uint(copies, 0, 8)
	if err != nil {
		return 0, err
	}
	if index < 0 || uint64(index) >= size {
		return 0, fmt.Errorf("copy %d of its instructions, expected one of %d", index, size)
	}
	start, err := r.mem.Pointer(copies + 8 + uint64(index)*8)
	if err == nil && (start == 0 || start%2 != 0) {
		err = fmt.Errorf("copy %d of its instructions is at %#x, expected an address of instructions", index, start)
	}
	return start, err
}

// errOutside is returned for an instruction in none of a code object's.
var errOutside = errors.New("it is not in the code's instructions")

// place returns the place of an instruction in a code object, in bytes; -2 before the first.
func (c *code) place(instruction, start uint64) (int64, error) {
	distance := int64(instruction - start)                                     //nolint:gosec // checked below
	if distance < -2 || distance >= max(int64(c.size), 1) || distance%2 != 0 { //nolint:gosec // at most maxCode
		return 0, fmt.Errorf("instruction at %#x of code at %#x with %d bytes from %#x on: %w", instruction, c.address, c.size, start, errOutside)
	}
	return distance, nil
}
