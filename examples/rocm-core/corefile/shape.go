// SPDX-License-Identifier: Apache-2.0

package corefile

// shape has the sizes of the parts of a wave's record, rounded up to the units of the
// state word.
type shape struct {
	lanes                       int
	vgprs, agprs, shared, sgprs int
	lds                         int // bytes of the group; in the first wave's record
	wholeLDS                    bool
}

// shapeOf rounds a wave's registers and its group's LDS up.
func (im *Image) shapeOf(m *Machine, g *Group, w *Wave) shape {
	s := shape{lanes: g.Lanes, lds: max(len(g.LDS), g.LDSSize), wholeLDS: g.WholeLDS}
	if s.lanes == 0 {
		s.lanes = m.Lanes()[0]
	}
	unit := 0
	if s.lanes == 64 || s.lanes == 32 {
		unit = m.VGPRUnit[1-(s.lanes/64)]
	}
	if unit == 0 {
		im.fail("%s has no waves of %d lanes", m.Name, s.lanes)
		return s
	}
	s.lds = roundUp(s.lds, m.LDSUnit)
	if s.wholeLDS {
		s.lds = m.WholeLDSSize
	}
	im.countVGPRs(m, w, unit, &s)
	s.shared = roundUp(len(w.SharedVGPRs)/32, 8)
	s.sgprs = m.FixedSGPRs
	if s.sgprs == 0 {
		s.sgprs = min(max(roundUp(len(w.SGPRs)+m.Aliases, 16), 16), 112)
	}
	if general := min(m.AliasEnd, s.sgprs) - m.Aliases; len(w.SGPRs) > general {
		im.fail("a wave has %d SGPRs, %s keeps at most %d", len(w.SGPRs), m.Name, general)
	}
	return s
}

func (im *Image) countVGPRs(m *Machine, w *Wave, unit int, s *shape) {
	n, a := (len(w.VGPRs)+s.lanes-1)/s.lanes, (len(w.AGPRs)+63)/64
	switch m.Accumulation {
	case NoAccumulation:
		if a != 0 {
			im.fail("%s has no accumulation VGPRs", m.Name)
		}
		s.vgprs = max(roundUp(n, unit), unit)
	case AsManyAsVGPRs:
		s.vgprs = max(roundUp(max(n, a), unit), unit)
		s.agprs = s.vgprs
	case RestOfVGPRs:
		s.vgprs = max(roundUp(n, 4), 4)
		s.agprs = roundUp(s.vgprs+a, unit) - s.vgprs
	}
}

// recordBytes is the length of a record without the gap above it.
func (s *shape) recordBytes(m *Machine, isFirst bool) uint64 {
	words := s.vgprs*s.lanes + s.agprs*64 + s.shared*32 + s.sgprs + m.HwregWords
	if !m.TTMPsInSGPRs {
		words += 16
	}
	n := 4 * uint64(words)
	if isFirst {
		n += uint64(s.lds)
	}
	return n
}

// notAWave is the second word of a state. It has neither the bit of a state nor the bit
// of an event, so that a reader that does not skip it takes it for a wave.
const notAWave = 0x1000

// stateWords returns the words of the control stack that encode s.
func (im *Image) stateWords(m *Machine, s *shape) []uint32 {
	word := uint32(1) << 31
	unit := m.VGPRUnit[1-(s.lanes/64)]
	im.put(&word, m.VGPRs, uint64((s.vgprs+s.restAGPRs(m))/unit-1), "a wave's blocks of VGPRs")
	if m.Accumulation == RestOfVGPRs {
		im.put(&word, m.ArchVGPRs, uint64(s.vgprs/4-1), "a wave's blocks of VGPRs below the accumulation VGPRs")
	}
	if m.FixedSGPRs == 0 {
		im.put(&word, m.SGPRs, uint64(s.sgprs/16), "a wave's blocks of SGPRs")
	}
	if s.wholeLDS {
		im.put(&word, m.WholeLDS, 1, "a group's hold of all LDS")
	} else {
		im.put(&word, m.LDS, uint64(s.lds/m.LDSUnit), "a group's blocks of LDS")
	}
	if m.Wave32.Width != 0 {
		im.put(&word, m.Wave32, uint64(2-s.lanes/32), "wave32")
	}
	im.put(&word, m.SharedVGPRs, uint64(s.shared/8), "a wave's blocks of shared VGPRs")
	if m.StateWords == 2 {
		return []uint32{word, notAWave}
	}
	return []uint32{word}
}

// restAGPRs is the number of accumulation VGPRs that the state word counts with the
// others.
func (s *shape) restAGPRs(m *Machine) int {
	if m.Accumulation == RestOfVGPRs {
		return s.agprs
	}
	return 0
}
