// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
)

// Context has the registers of a thread. The zero Context has none.
type Context struct {
	Arch   string // x86_64, aarch64, i386 or arm; "" where the format is unknown
	Flags  uint64 // ContextFlags, the groups of registers that were written
	Raw    []byte // its bytes in the mapped file
	Offset uint64 // of Raw in the file

	format *contextFormat
	groups uint64 // of Flags, or groups implied by the writer
	dump   *Dump
}

// Register is a register and its bytes, in the byte order of the dump (Dump.Order).
type Register struct {
	Name  string
	Value []byte
}

// ErrNoContext is the error for a thread without registers in the dump, or with
// registers in an unknown format.
var ErrNoContext = errors.New("no registers of a form that is known")

// context finds the format of a thread's registers. offset is the place of their
// location in the file.
func (d *Dump) context(s *Stream, offset uint64, l location, what string, index int) Context {
	if l.size == 0 {
		return Context{}
	}
	r := d.part(s, offset, l, "the context of "+what, index)
	c := Context{Raw: r.b, Offset: l.offset, dump: d}
	c.format = findFormat(d.arch(), r)
	if c.format == nil {
		if len(r.b) > 0 {
			d.problem(s, offset, "the context of %s %d at %#x has %d bytes and begins with % x, which is no known form of %s",
				what, index, l.offset, l.size, r.b[:min(8, len(r.b))], cmp.Or(d.arch(), "a processor that is not said"))
		}
		return c
	}
	c.Arch, c.Flags = c.format.arch, c.format.flags(r)
	if c.groups = c.Flags; c.groups&allGroups == 0 {
		// On macOS Breakpad's flags have the processor, but not the groups that it writes
		// (minidump_generator.cc, WriteContext): these.
		c.groups |= control | integer | segments
	}
	return c
}

// Registers returns the registers of the context, by offset, and then the registers of
// the extended state. Registers whose flags are not set are left out. The error wraps
// ErrNoContext, or object.ErrFileShrank.
func (c *Context) Registers() ([]Register, error) {
	if c.format == nil {
		return nil, fmt.Errorf("%w: %d bytes", ErrNoContext, len(c.Raw))
	}
	var list []Register
	err := object.Guard(func() error {
		list = c.registers()
		return nil
	})
	return list, err
}

func (c *Context) registers() []Register {
	list := make([]Register, 0, len(c.format.fields))
	for i := range c.format.fields {
		f := &c.format.fields[i]
		if c.groups&uint64(f.group) == 0 || f.offset+f.size > len(c.Raw) {
			continue
		}
		list = append(list, Register{f.name, slices.Clone(c.Raw[f.offset : f.offset+f.size])})
	}
	return append(list, c.extended()...)
}

// Uint64 returns a register of 64 bits at most. ok is false where the context does not
// have it.
func (c *Context) Uint64(name string) (value uint64, ok bool) {
	if c.format == nil {
		return 0, false
	}
	i := slices.IndexFunc(c.format.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return 0, false
	}
	f := &c.format.fields[i]
	if c.groups&uint64(f.group) == 0 || f.size > 8 || f.offset+f.size > len(c.Raw) {
		return 0, false
	}
	err := object.Guard(func() error {
		value = c.dump.number(c.Raw[f.offset : f.offset+f.size])
		return nil
	})
	return value, err == nil
}

// number decodes a number of 1, 2, 4 or 8 bytes.
func (d *Dump) number(b []byte) uint64 {
	r := record{b, d.Order}
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(r.u16(0))
	case 4:
		return uint64(r.u32(0))
	}
	return r.u64(0)
}

// PC returns the address of the next instruction.
func (c *Context) PC() (uint64, bool) {
	if c.format == nil {
		return 0, false
	}
	return c.Uint64(c.format.pc)
}

// SP returns the stack pointer.
func (c *Context) SP() (uint64, bool) {
	if c.format == nil {
		return 0, false
	}
	return c.Uint64(c.format.sp)
}
