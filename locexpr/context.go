// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"fmt"
)

// Machine is the state that locations name.
//
// Bits are numbered as in the package comment. A method whose dst holds a size that is no
// multiple of 8 leaves zero bits there.
type Machine interface {
	// ReadMemory fills dst from the bytes at address in the instance of space
	// that belongs to scope.
	ReadMemory(ctx context.Context, space AddressSpace, scope Scope, address uint64, dst []byte) error
	// ReadRegister reads bits of a register's storage from bitOffset on into
	// the first (bits+7)/8 bytes of dst.
	ReadRegister(ctx context.Context, reg uint64, scope Scope, dst []byte, bitOffset uint64, bits uint64) error
	// RegisterBits returns the size of a register; false: no such register.
	RegisterBits(reg uint64) (uint32, bool)
	// SpaceBits returns the address size of a space; false: no such space.
	SpaceBits(space AddressSpace) (uint32, bool)
	// ByteOrder returns the byte order of memory and registers.
	ByteOrder() ByteOrder
}

// WritableMachine is a Machine whose state can be changed. A src of a size that is
// no multiple of 8 has zero bits at its end.
type WritableMachine interface {
	Machine
	// WriteMemory writes src to where ReadMemory would read.
	WriteMemory(ctx context.Context, space AddressSpace, scope Scope, address uint64, src []byte) error
	// WriteRegister writes bits of src to where ReadRegister would read.
	WriteRegister(ctx context.Context, reg uint64, scope Scope, src []byte, bitOffset uint64, bits uint64) error
}

// Context is the part of an evaluation's context (A.2.5.1) that every frame has. It is
// unrelated to context.Context, which an evaluation passes on to methods that read state.
//
// A Context has other elements where it implements their interfaces, each of which stands
// beside the operations that need it: CFAContext, FrameBaseContext, ObjectContext and so on.
// An operation whose element is missing fails with an error that wraps ErrNoContext, as does
// a method that cannot provide it.
type Context interface {
	Machine
	// Scope returns the current thread, call frame and lane.
	Scope() Scope
	// Register returns the location of the register reg of the current frame: the register
	// itself in the top frame, the result of call frame information in another (A.2.5.4.4.4).
	Register(ctx context.Context, reg uint64) (Location, error)
	// RegisterValue returns the contents of a register of the current frame
	// that has at most 64 bits, zero-extended.
	RegisterValue(ctx context.Context, reg uint64) (uint64, error)
}

// NoContext is a Context in which no element is specified. A type that embeds it overrides
// the elements that it has.
type NoContext struct{}

// noContext makes the error of an element that is not specified.
func noContext(element string) error { return fmt.Errorf("%s: %w", element, ErrNoContext) }

// ReadMemory returns ErrNoContext.
func (NoContext) ReadMemory(context.Context, AddressSpace, Scope, uint64, []byte) error {
	return noContext("memory")
}

// ReadRegister returns ErrNoContext.
func (NoContext) ReadRegister(context.Context, uint64, Scope, []byte, uint64, uint64) error {
	return noContext("registers of a thread")
}

// RegisterBits returns that there is no such register.
func (NoContext) RegisterBits(uint64) (uint32, bool) { return 0, false }

// SpaceBits returns that there is no such space.
func (NoContext) SpaceBits(AddressSpace) (uint32, bool) { return 0, false }

// ByteOrder returns LittleEndian.
func (NoContext) ByteOrder() ByteOrder { return LittleEndian }

// Scope returns a scope without a thread and a lane.
func (NoContext) Scope() Scope { return noScope }

// Register returns ErrNoContext.
func (NoContext) Register(context.Context, uint64) (Location, error) {
	return Location{}, noContext("call frame")
}

// RegisterValue returns ErrNoContext.
func (NoContext) RegisterValue(context.Context, uint64) (uint64, error) {
	return 0, noContext("call frame")
}
