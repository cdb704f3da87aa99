// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"context"
	"math"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/sdk"
)

// Analyze analyses the instruction that failed; it returns the zero Analysis where no thread
// did.
func Analyze(ctx context.Context, p *walk.Process) (a trace.Analysis) {
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
		a.Accesses = append(a.Accesses, trace.MemoryAccess{Address: accessed, Size: access.Size, IsRead: access.IsRead, IsWrite: access.IsWrite, IsGuardPage: c.isGuardPage(accessed)})
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
func (c *crash) bitFlips(address uint64) (list []trace.BitFlip) {
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
	case trace.AccessRead:
		return at.IsReadable
	case trace.AccessWrite:
		return at.IsWritable
	case trace.AccessExecute:
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

func (c *crash) bitFlip(from, to uint64) trace.BitFlip {
	f := trace.BitFlip{Address: to, WasNonCanonical: c.isSplit(from), IsNull: to == 0, WasLow: to == 0 && from <= 2*nearRegister}
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
