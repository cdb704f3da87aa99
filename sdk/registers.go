// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Get returns the bytes of a register, in the byte order of the architecture.
// They alias r.Data. ok is false where the register is absent.
func (r *Registers) Get(number uint32) (value []byte, ok bool) {
	i, found := slices.BinarySearch(r.Numbers, number)
	if !found || i+1 >= len(r.Offsets) {
		return nil, false
	}
	start, end := r.Offsets[i], r.Offsets[i+1]
	if start > end || uint64(end) > uint64(len(r.Data)) {
		return nil, false
	}
	return r.Data[start:end:end], true
}

// Uint64 returns a register as a number, zero-extended. ok is false where the
// register is absent, has no bytes, or has more than 64 bits.
func (r *Registers) Uint64(number uint32, order ByteOrder) (value uint64, ok bool) {
	b, ok := r.Get(number)
	if !ok || len(b) == 0 || len(b) > 8 {
		return 0, false
	}
	if len(b) == 8 {
		if order == BigEndian {
			return binary.BigEndian.Uint64(b), true
		}
		return binary.LittleEndian.Uint64(b), true
	}
	for i := range b {
		if order == BigEndian {
			value = value<<8 | uint64(b[i])
		} else {
			value = value<<8 | uint64(b[len(b)-1-i])
		}
	}
	return value, true
}

// Set sets the bytes of a register, which are copied, and keeps Numbers sorted.
// Setting registers in the order of their numbers costs no moving. Where r is not
// valid, or Data would pass 4 GiB, Set does nothing. Set writes into r's slices: Clone
// them first where they are shared.
func (r *Registers) Set(number uint32, value []byte) {
	if len(r.Offsets) == 0 && len(r.Numbers) == 0 && len(r.Data) == 0 {
		r.Offsets = append(r.Offsets, 0)
	}
	n := len(r.Numbers)
	if len(r.Offsets) != n+1 || uint64(r.Offsets[n]) != uint64(len(r.Data)) ||
		uint64(len(r.Data))+uint64(len(value)) > math.MaxUint32 {
		return
	}
	i, found := slices.BinarySearch(r.Numbers, number)
	start, end := r.Offsets[i], r.Offsets[i]
	if found {
		end = r.Offsets[i+1]
	}
	if start > end || uint64(end) > uint64(len(r.Data)) {
		return
	}
	if found && int(end-start) == len(value) {
		copy(r.Data[start:end], value)
		return
	}
	if !found {
		r.Numbers = slices.Insert(r.Numbers, i, number)
		r.Offsets = slices.Insert(r.Offsets, i, start)
	}
	// Modular arithmetic: a shorter value moves the following ones down.
	moved := uint32(len(value)) - (end - start)
	for j := i + 1; j < len(r.Offsets); j++ {
		r.Offsets[j] += moved
	}
	r.Data = slices.Replace(r.Data, int(start), int(end), value...)
}

// Clone returns a copy that shares nothing with r.
func (r *Registers) Clone() Registers {
	return Registers{
		Numbers: slices.Clone(r.Numbers),
		Offsets: slices.Clone(r.Offsets),
		Data:    slices.Clone(r.Data),
	}
}

// Validate checks the structure of r: Numbers sorted and without repetition, one offset
// more than numbers, offsets that start at 0, never fall, and end with the data.
// Registers without any register are valid with and without the one offset.
func (r *Registers) Validate() error {
	if len(r.Numbers) == 0 && len(r.Offsets) == 0 && len(r.Data) == 0 {
		return nil
	}
	if len(r.Offsets) != len(r.Numbers)+1 {
		return fmt.Errorf("Registers.Offsets: %d offsets for %d registers, expected %d",
			len(r.Offsets), len(r.Numbers), len(r.Numbers)+1)
	}
	if r.Offsets[0] != 0 {
		return fmt.Errorf("Registers.Offsets[0]: %d, expected 0", r.Offsets[0])
	}
	for i, n := range r.Numbers {
		if n == NoRegister {
			return fmt.Errorf("Registers.Numbers[%d]: %d stands for no register", i, n)
		}
		if i > 0 && n <= r.Numbers[i-1] {
			return fmt.Errorf("Registers.Numbers[%d]: %d after %d, expected ascending numbers", i, n, r.Numbers[i-1])
		}
		if r.Offsets[i+1] < r.Offsets[i] {
			return fmt.Errorf("Registers.Offsets[%d]: %d after %d, expected ascending offsets", i+1, r.Offsets[i+1], r.Offsets[i])
		}
	}
	if end := r.Offsets[len(r.Numbers)]; uint64(end) != uint64(len(r.Data)) {
		return fmt.Errorf("Registers.Offsets: the last is %d, expected %d, the bytes of data", end, len(r.Data))
	}
	return nil
}
