// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxMapDepth bounds the spaces that an address passes through. The known machines need at most
// three: generic, private_lane, private_wave.
const maxMapDepth = 8

// readSpace reads memory of an address space, as the thread's binding maps it: an address of a
// space with maps is an address of another space, or a register's byte, or is translated by the
// plugin; in a space without maps, it is the target's.
func (w *walker) readSpace(ctx context.Context, space locexpr.AddressSpace, scope locexpr.Scope, address uint64, dst []byte) error {
	return w.readMapped(ctx, space, scope, address, dst, 0)
}

func (w *walker) readMapped(ctx context.Context, space locexpr.AddressSpace, scope locexpr.Scope, address uint64, dst []byte, depth int) error {
	if depth > maxMapDepth {
		return fmt.Errorf("address %#x of %s: the maps of address spaces go round", address, w.spaceName(space))
	}
	m := w.spaceMap(space)
	if m == nil {
		_, err := w.input.memory.ReadMemory(space, w.thread.Thread, address, dst)
		return err
	}
	for len(dst) > 0 {
		r := rangeAt(m, address)
		if r == nil && space == locexpr.DefaultSpace {
			// What no range of the default address space has is the target's own memory.
			n := untilRange(m, address, uint64(len(dst)))
			if _, err := w.input.memory.ReadMemory(space, w.thread.Thread, address, dst[:n]); err != nil {
				return err
			}
			address, dst = address+n, dst[n:]
			continue
		}
		if r == nil {
			return fmt.Errorf("address %#x of %s: %w", address, w.spaceName(space), target.ErrNoMemory)
		}
		offset := address - r.Start
		n := min(uint64(len(dst)), r.Size-offset)
		var err error
		switch r.Kind {
		case sdk.IdentityMap:
			err = w.readMapped(ctx, r.Into, scope, r.Base+offset, dst[:n], depth+1)
		case sdk.InterleavedMap:
			w.input.laneUsed = true
			if scope.Lane < 0 {
				return fmt.Errorf("address %#x of %s belongs to a lane: %w", address, w.spaceName(space), locexpr.ErrNoContext)
			}
			if lanes := w.thread.lanes(); lanes > 0 && uint32(scope.Lane) >= lanes {
				return fmt.Errorf("address %#x of %s: lane %d of a thread with %d", address, w.spaceName(space), scope.Lane, lanes)
			}
			element := uint64(r.Element)
			n = min(n, element-offset%element)
			err = w.readMapped(ctx, r.Into, scope, r.Base+offset/element*r.Stride+uint64(scope.Lane)*element+offset%element, dst[:n], depth+1)
		case sdk.RegisterMap:
			n, err = w.readRegisterBytes(r, offset, dst[:n])
		case sdk.OpaqueMap:
			w.input.laneUsed = true
			err = w.readTranslated(ctx, space, scope, address, dst[:n])
		}
		if err != nil {
			return err
		}
		address, dst = address+n, dst[n:]
	}
	return nil
}

// readRegisterBytes reads bytes of consecutive registers in a range. It stops at the end of a
// register.
func (w *walker) readRegisterBytes(r *sdk.MapRange, offset uint64, dst []byte) (n uint64, err error) {
	for reg := r.Register; ; reg++ {
		info, ok := w.machine.Description.Register(reg)
		if !ok {
			return 0, fmt.Errorf("register %d: %w", reg, target.ErrNoMemory)
		}
		size := uint64(w.threadBits(reg, info.Bits)) / 8
		if offset >= size {
			offset -= size
			continue
		}
		bytes, ok := w.topRegister(uint64(reg))
		if !ok || uint64(len(bytes)) < size {
			return 0, fmt.Errorf("%s is not in the target: %w", info.Name, target.ErrNoMemory)
		}
		return uint64(copy(dst, bytes[offset:size])), nil
	}
}

// readTranslated asks the plugin for the place of an address in an opaque range.
func (w *walker) readTranslated(ctx context.Context, space locexpr.AddressSpace, scope locexpr.Scope, address uint64, dst []byte) error {
	answer, err := w.machine.Plugin.Translate(ctx, &view{w.process}, &sdk.TranslateRequest{
		Space: space, Address: address, Thread: w.thread.Handle, Frame: uint32(max(scope.Frame, 0)), Lane: scope.Lane,
	})
	if err != nil {
		return err
	}
	c := frameContext{frame: &frame{walker: w}}
	ev := w.evals.plugin
	ev.LoadBias = 0
	l, err := ev.Location(ctx, answer.Expr, c)
	if err != nil {
		return err
	}
	return l.Read(ctx, c, dst, uint64(len(dst))*8)
}

func (w *walker) spaceMap(space locexpr.AddressSpace) *sdk.SpaceMap {
	if w.thread.binding == nil {
		return nil
	}
	for i := range w.thread.binding.Maps {
		if m := &w.thread.binding.Maps[i]; m.Space == space {
			return m
		}
	}
	return nil
}

func rangeAt(m *sdk.SpaceMap, address uint64) *sdk.MapRange {
	for i := range m.Ranges {
		if r := &m.Ranges[i]; address-r.Start < r.Size {
			return r
		}
	}
	return nil
}

// untilRange returns how many of n bytes lie before the next range.
func untilRange(m *sdk.SpaceMap, address, n uint64) uint64 {
	for i := range m.Ranges {
		if r := &m.Ranges[i]; r.Size > 0 && r.Start > address {
			n = min(n, r.Start-address)
		}
	}
	return n
}

func (w *walker) spaceName(space locexpr.AddressSpace) string { return w.machine.SpaceName(space) }

// threadBits returns the size of a register in this thread, by default bits.
func (w *walker) threadBits(number, bits uint32) uint32 {
	if w.thread.binding != nil {
		for _, width := range w.thread.binding.Widths {
			if number-width.First < width.Count {
				return width.Bits
			}
		}
	}
	return bits
}
