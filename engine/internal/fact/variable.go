// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// variableIn names the variable of the top frame whose value a register has: the one that is in
// it, or the one that the instruction before has just loaded. It returns "" where there is
// none, or more than one.
func (c *crash) variableIn(register uint32) string {
	if len(c.frames) == 0 {
		return ""
	}
	content, ok := c.register(register)
	loads := c.loadsBefore()
	name, count := "", 0
	for _, level := range c.frames[0].Locals(c.ctx, trace.ValueLimits{Depth: 1, Elements: 1}) {
		for i := range level {
			v := &level[i]
			if v.IsShadowed || v.Name == "" || v.Place.NumPlaces() != 1 {
				continue
			}
			p := v.Place.Place(0)
			isIn := p.BitOffset == 0 && c.isPlaceOf(register, &p)
			if a, isLoaded := loads[p.Address]; ok && p.Storage == locexpr.Memory && isLoaded && a == content {
				isIn = true
			}
			if isIn && !hasParts(v) {
				name = v.Name
				count++
			}
		}
	}
	if count != 1 {
		return ""
	}
	return name
}

// isPlaceOf reports whether a place is the register of the top frame: itself, or, for a first
// crash, the memory in which the kernel saved it.
func (c *crash) isPlaceOf(register uint32, p *locexpr.Place) bool {
	if p.Storage == locexpr.Register {
		return p.Register == uint64(register)
	}
	l, err := c.frames[0].Location(c.ctx, uint64(register))
	if err != nil || c.frame == 0 || l.NumPlaces() != 1 {
		return false
	}
	saved := l.Place(0)
	return saved.Storage == p.Storage && saved.Space == p.Space && saved.Address == p.Address && saved.BitOffset == 0
}

// hasParts reports whether a variable is larger than a register: its first member may be in
// one, but the member is not the variable.
func hasParts(v *trace.FrameVariable) bool { return len(v.Children) > 0 && !v.HasText }

// maxBefore is how many instructions before the failed one are looked at for the load of its
// address.
const maxBefore = 2

// loadsBefore returns the words that the instructions right before the PC read, by their
// addresses. The registers are the current ones: for the variables of frames they have not
// changed.
func (c *crash) loadsBefore() map[uint64]uint64 {
	loads := map[uint64]uint64{}
	lines, err := c.process.Disassemble(c.ctx, c.thread, c.pc, maxBefore, 0)
	if err != nil {
		return loads
	}
	for i := range lines {
		if lines[i].IsAt {
			break
		}
		instruction, err := c.process.Instruction(c.ctx, c.thread, lines[i].Address)
		if err != nil {
			continue
		}
		for j := range instruction.Accesses {
			c.addLoad(loads, &instruction.Accesses[j])
		}
	}
	return loads
}

func (c *crash) addLoad(loads map[uint64]uint64, a *sdk.Access) {
	if !a.IsRead || a.IsWrite || a.Size*8 != c.machine.AddressBits {
		return
	}
	if address, ok := c.effective(a); ok {
		if word, ok := c.word(address); ok {
			loads[address] = word
		}
	}
}
