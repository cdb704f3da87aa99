// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"context"
	"math"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/sdk"
)

// Analysis lists the accesses of the failed instruction, and the addresses that may have been meant, as
// in rust-minidump's minidump-processor (op_analysis.rs, process_state.rs).
type Analysis struct {
	// IsDecoded is true where the architecture decoded the instruction's accesses.
	IsDecoded bool
	Accesses  []MemoryAccess
	// BitFlips are addresses that differ from the failed one in one bit.
	BitFlips []BitFlip
}

// MemoryAccess is memory that the instruction reads or writes.
type MemoryAccess struct {
	Address         uint64
	Size            uint32 // 0: not known
	IsRead, IsWrite bool
	// IsGuardPage is true for memory without rights, of at most 64 KiB, next to memory with
	// some.
	IsGuardPage bool
}

// BitFlip is an address that may have been meant: a guess. Confidence is from 0 to 1.
type BitFlip struct {
	Address         uint64
	WasNonCanonical bool
	IsNull          bool
	WasLow          bool // the failed address is low, and Address is null
	NearbyRegisters int  // how many registers point near Address
	PoisonRegisters bool // a register has a pattern of freed memory
	Confidence      float64
}

// Analyze analyses the instruction that failed; it returns the zero Analysis where no thread
// did.
func Analyze(ctx context.Context, p *walk.Process) (a Analysis) {
	thread := Thread(p)
	if thread == nil || thread.Wave != nil || thread.Unread != "" {
		return a
	}
	c := newCrash(ctx, p, thread)
	if c.machine == nil {
		return a
	}
	a.IsDecoded = c.isDecoded
	address, isKnown := c.address, c.hasAddress
	for i := range c.instruction.Accesses {
		access := &c.instruction.Accesses[i]
		accessed, ok := c.effective(access)
		if !ok {
			continue
		}
		a.Accesses = append(a.Accesses, MemoryAccess{accessed, access.Size, access.IsRead, access.IsWrite, c.isGuardPage(accessed)})
		if !isKnown && c.isSplit(accessed) {
			address, isKnown = accessed, true
		}
	}
	if isKnown && c.knowsMappings() {
		a.BitFlips = c.bitFlips(address)
	}
	return a
}

// maxGuardPage is the largest memory without rights that is taken for a guard page.
const maxGuardPage = 1 << 16

func (c *crash) isGuardPage(address uint64) bool {
	below, at, above := c.around(address)
	if at == nil || hasRights(at) || at.End-at.Start > maxGuardPage {
		return false
	}
	return below != nil && below.End == at.Start && hasRights(below) || above != nil && above.Start == at.End && hasRights(above)
}

func hasRights(m *target.Mapping) bool { return m.IsReadable || m.IsWritable || m.IsExecutable }

// bitFlips returns the addresses that differ from an address in one bit and are null, or are
// mapped and allow the access, where the target tells its kind.
func (c *crash) bitFlips(address uint64) (list []BitFlip) {
	if c.mayAccess(address) && c.mapped(address) {
		return nil
	}
	first, last := uint32(0), min(c.userBits(), 63)
	if c.isSplit(address) {
		first, last = c.userBits()+1, 63
	}
	for bit := first; bit <= last; bit++ {
		to := address ^ 1<<bit
		if to == 0 || c.mapped(to) && c.mayAccess(to) {
			list = append(list, c.bitFlip(address, to))
		}
	}
	return list
}

// mayAccess reports whether the access is allowed at an address, if that is mapped.
func (c *crash) mayAccess(address uint64) bool {
	_, at, _ := c.around(address)
	if at == nil {
		return true
	}
	switch c.kept.Access {
	case target.AccessRead:
		return at.IsReadable
	case target.AccessWrite:
		return at.IsWritable
	case target.AccessExecute:
		return at.IsExecutable
	}
	return true
}

// The likelihoods of flips are the numbers of rust-minidump's process_state.rs.
const (
	likelyFlip         = 0.25
	likelyNonCanonical = 0.9
	likelyNull         = 0.5
	likelyNearby       = 0.5  // by one register
	likelierNearby     = 0.05 // by each further one, up to four
	unlikelyFlip       = 0.5  // a factor
	nearRegister       = 1 << 12
)

func (c *crash) bitFlip(from, to uint64) BitFlip {
	f := BitFlip{Address: to, WasNonCanonical: c.isSplit(from), IsNull: to == 0, WasLow: to == 0 && from <= 2*nearRegister}
	for _, number := range c.thread.Registers.Numbers {
		info, ok := c.machine.Register(number)
		v, isKnown := c.register(number)
		if !ok || !isKnown || info.Class != sdk.General {
			continue
		}
		if to > 2*nearRegister && (v-to <= nearRegister || to-v <= nearRegister) {
			f.NearbyRegisters++
		}
		f.PoisonRegisters = f.PoisonRegisters || isPoison(v)
	}
	none := 1 - likelyFlip // the likelihood that none of the reasons holds
	if f.WasNonCanonical {
		none *= 1 - likelyNonCanonical
	}
	if f.WasLow {
		none *= 1 - likelyNull*unlikelyFlip
	} else if f.IsNull {
		none *= 1 - likelyNull
	}
	if n := min(f.NearbyRegisters, 4); n > 0 {
		none *= 1 - likelyNearby - likelierNearby*float64(n-1)
	}
	f.Confidence = 1 - none
	if f.PoisonRegisters {
		f.Confidence *= unlikelyFlip
	}
	f.Confidence = math.Round(f.Confidence*1e6) / 1e6
	return f
}

// poisons are the bytes that allocators and Firefox fill freed memory with.
const poisons = "\x2b\x2d\x2f\x49\x4b\x4d\x4f\x6b\x8b\x9b\x9f\xa5\xbb\xcc\xcd\xce\xdb\xe5"

func isPoison(v uint64) bool {
	if v != (v&0xff)*0x0101010101010101 {
		return false
	}
	for i := range len(poisons) {
		if poisons[i] == byte(v) {
			return true
		}
	}
	return false
}
