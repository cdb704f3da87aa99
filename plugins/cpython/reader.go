// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// reader reads the memory of a process while a call is under way.
type reader struct {
	*process
	ctx     context.Context
	engine  sdk.RuntimeEngine
	mem     *sdk.MemoryReader
	classes map[uint64]*class // by address
	codes   map[uint64]*code  // by address
}

func newReader(ctx context.Context, e sdk.RuntimeEngine, g *process) *reader {
	r := &reader{
		process: g, ctx: ctx, engine: e, mem: sdk.NewMemoryReader(ctx, e, g.request.ByteOrder, g.request.AddressBits),
		classes: map[uint64]*class{}, codes: map[uint64]*code{},
	}
	g.pages.Prefetch(r.mem)
	return r
}

// lowest is the lowest address that an object or a struct of CPython may have.
const lowest = 1 << 12

// checkPointer checks that an address can be one of an object or a struct of CPython.
func checkPointer(address uint64) error {
	if address < lowest || address%8 != 0 || address >= 1<<63 {
		return fmt.Errorf("%#x is no address of a struct, expected a multiple of 8", address)
	}
	return nil
}

// uint reads an unsigned number of size bytes, a member of the struct at an address.
func (r *reader) uint(address uint64, member offset, size uint64) (uint64, error) {
	if !member.isKnown() {
		return 0, fmt.Errorf("struct at %#x: 3.%d does not have the member", address, r.layout.minor)
	}
	if err := checkPointer(address); err != nil {
		return 0, err
	}
	return r.mem.Uint(address+uint64(member), size) //nolint:gosec // not negative
}

// pointer reads an address, a member of the struct at another one.
func (r *reader) pointer(address uint64, member offset) (uint64, error) {
	return r.uint(address, member, 8)
}

// int reads a number of 4 bytes, a member of the struct at an address.
func (r *reader) int(address uint64, member offset) (int32, error) {
	n, err := r.uint(address, member, 4)
	return int32(n), err //nolint:gosec // the number of four bytes
}

// byte reads a member of one byte of the struct at an address.
func (r *reader) byte(address uint64, member offset) (uint8, error) {
	n, err := r.uint(address, member, 1)
	return uint8(n), err //nolint:gosec // one byte
}

// word returns the number of 8 bytes at a place in a struct that was read; 0 where the version does
// not have it, or the struct is too short.
func (r *reader) word(b []byte, member offset) uint64 { return r.part(b, member, 8) }

// part returns the number of size bytes at a place in a struct that was read; 0 where the version
// does not have it, or the struct is too short.
func (r *reader) part(b []byte, member offset, size int) uint64 {
	if !member.isKnown() || int(member)+size > len(b) {
		return 0
	}
	return r.mem.Number(b[member:][:size])
}
