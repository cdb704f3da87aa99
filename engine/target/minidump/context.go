// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
)

// A Context has the registers of a thread. The zero Context has none.
type Context struct {
	Arch   string // x86_64, aarch64, i386 or arm; "" where the form is not known
	Flags  uint64 // ContextFlags, which say what of it was written
	Raw    []byte // as it lies in the mapped file
	Offset uint64 // of Raw in the file

	form   *form
	groups uint64 // of Flags, or what stands for them
	dump   *Dump
}

// A Register is a register and its bytes, which are in the byte order of the dump
// (Dump.Order).
type Register struct {
	Name  string
	Value []byte
}

// ErrNoContext says that a thread has no registers in the dump, or that their form
// is not known.
var ErrNoContext = errors.New("no registers of a form that is known")

// context finds the form of a thread's registers. at is where the record names them.
func (d *Dump) context(s *Stream, at uint64, l location, what string, index int) Context {
	if l.size == 0 {
		return Context{}
	}
	r := d.part(s, at, l, "the context of "+what, index)
	c := Context{Raw: r.b, Offset: l.offset, dump: d}
	c.form = findForm(d.arch(), r)
	if c.form == nil {
		if len(r.b) > 0 {
			d.problem(s, at, "the context of %s %d at %#x has %d bytes and begins with % x, which is no known form of %s",
				what, index, l.offset, l.size, r.b[:min(8, len(r.b))], cmp.Or(d.arch(), "a processor that is not said"))
		}
		return c
	}
	c.Arch, c.Flags = c.form.arch, c.form.flags(r)
	if c.groups = c.Flags; c.groups&allGroups == 0 {
		// Breakpad says on macOS which processor it is, and not which registers it writes
		// (minidump_generator.cc, WriteContext): these.
		c.groups |= control | integer | segments
	}
	return c
}

// Registers are those that the context has, in the order of their place in it, and
// those of the extended state behind them. Registers that the flags do not say to
// be there are left out. The error wraps ErrNoContext, or object.ErrFileShrank.
func (c *Context) Registers() ([]Register, error) {
	if c.form == nil {
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
	list := make([]Register, 0, len(c.form.fields))
	for i := range c.form.fields {
		f := &c.form.fields[i]
		if c.groups&uint64(f.group) == 0 || f.offset+f.size > len(c.Raw) {
			continue
		}
		list = append(list, Register{f.name, slices.Clone(c.Raw[f.offset : f.offset+f.size])})
	}
	return append(list, c.extended()...)
}

// Uint64 is a register of 64 bits at most. ok is false where the context does not
// have it.
func (c *Context) Uint64(name string) (value uint64, ok bool) {
	if c.form == nil {
		return 0, false
	}
	i := slices.IndexFunc(c.form.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return 0, false
	}
	f := &c.form.fields[i]
	if c.groups&uint64(f.group) == 0 || f.size > 8 || f.offset+f.size > len(c.Raw) {
		return 0, false
	}
	err := object.Guard(func() error {
		value = c.dump.number(c.Raw[f.offset : f.offset+f.size])
		return nil
	})
	return value, err == nil
}

// number is a number of 1, 2, 4 or 8 bytes.
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

// PC is the address of the next instruction.
func (c *Context) PC() (uint64, bool) {
	if c.form == nil {
		return 0, false
	}
	return c.Uint64(c.form.pc)
}

// SP is the stack pointer.
func (c *Context) SP() (uint64, bool) {
	if c.form == nil {
		return 0, false
	}
	return c.Uint64(c.form.sp)
}
