// SPDX-License-Identifier: Apache-2.0

package corefile

import "slices"

// registers are the words of a record's hardware block and trap temporaries.
type registers [numRegs]uint32

func (im *Image) set(r *registers, f Field, v uint64, what string) {
	im.put(&r[f.Reg], f.Bits, v, what)
}

func (r *registers) pair(lo, hi Reg, v uint64) {
	r[lo], r[hi] = uint32(v), uint32(v>>32)
}

// registersOf returns the registers of a wave in its context save, after the trap handler
// where that stopped the wave: ROCr's trap_handler.s and trap_handler_gfx12.s, from
// .halt_wave backwards.
func (im *Image) registersOf(q *QueuePlan, p *wavePlan) *registers {
	m, w, r := q.machine, p.wave, new(registers)
	r[M0], r[Mode], r[Status], r[TrapSts] = w.M0, w.Mode, w.Status, w.TrapSts
	r[StatePriv], r[ExcpFlagPriv] = w.StatePriv, w.ExcpFlagPriv
	r[ExcpFlagUser], r[TrapCtrl] = w.ExcpFlagUser, w.TrapCtrl
	r.pair(ExecLo, ExecHi, w.Exec)
	r.pair(XNACKLo, XNACKHi, w.XNACKMask)
	r.pair(FlatScratchLo, FlatScratchHi, im.flatScratch(q, p))
	for i := range Reg(16) {
		r[TTMP0+i] = w.Noise * (2*uint32(i) + 1)
	}
	im.setPC(q, p, r)
	im.setDispatch(q, p, r)
	im.setStop(q, p, r)
	im.setExceptions(m, w, r)
	return r
}

func (im *Image) setPC(q *QueuePlan, p *wavePlan, r *registers) {
	m, w := q.machine, p.wave
	pc := w.SavedPC(im.core.RuntimeVersion)
	if pc>>m.PCBits != 0 {
		im.fail("PC %#x has more than %d bits", pc, m.PCBits)
	}
	if w.Stopped && m.IsParked(im.core.RuntimeVersion) {
		im.set(r, m.ParkedPC[0], pc&0xffff_ffff, "PC[31:0]")
		im.set(r, m.ParkedPC[1], pc>>32, "PC[47:32]")
		pc = q.agent.TrapHandler
	}
	r.pair(PCLo, PCHi, pc)
}

// setDispatch sets the trap temporaries that the SPI sets as a wave begins.
func (im *Image) setDispatch(q *QueuePlan, p *wavePlan, r *registers) {
	m, g := q.machine, p.group
	if p.wave.NoTTMPs {
		for _, f := range []Field{m.Packet, m.GroupIDs[0], m.GroupIDs[1], m.GroupIDs[2], m.WaveInGroup} {
			im.set(r, f, 0, "unset")
		}
		return
	}
	packet := q.queue.Dispatches[g.Dispatch].ID % uint64(q.queue.Packets)
	im.set(r, m.Packet, packet, "the packet's index")
	im.set(r, m.WaveInGroup, uint64(p.position), "the wave's place in its group")
	id := im.setCluster(m, g, r)
	im.set(r, m.GroupIDs[0], uint64(id[0]), "the group's x")
	hasYZ := id[1]|id[2] != 0 || q.queue.Dispatches[g.Dispatch].Dimensions > 1
	if m.GroupYZ.Width != 0 {
		im.set(r, m.GroupYZ, toBit(hasYZ), "whether the group has y and z")
		if !hasYZ {
			return
		}
	}
	im.set(r, m.GroupIDs[1], uint64(id[1]), "the group's y")
	im.set(r, m.GroupIDs[2], uint64(id[2]), "the group's z")
}

// setCluster sets the group's place in its cluster and returns the cluster's id; without
// a cluster that is the group's.
func (im *Image) setCluster(m *Machine, g *Group, r *registers) [3]uint32 {
	id := g.ID
	for i, n := range g.Cluster {
		if m.InCluster[i].Width == 0 && n == 0 {
			continue
		}
		n = max(n, 1)
		im.set(r, m.InCluster[i], uint64(id[i]%n), "the group's place in its cluster")
		im.set(r, m.ClusterLast[i], uint64(n-1), "the cluster's last place")
		id[i] /= n
	}
	return id
}

// setStop sets the registers that the trap handler and the debugger set.
func (im *Image) setStop(q *QueuePlan, p *wavePlan, r *registers) {
	m, w := q.machine, p.wave
	im.set(r, m.Halt, toBit(w.Stopped || w.Halted), "halt")
	if w.NoTTMPs && (!m.SPIUnset || im.core.RuntimeVersion < 10) {
		im.fail("%s with runtime version %d cannot say that a wave has no trap temporaries",
			m.Name, im.core.RuntimeVersion)
	}
	isMarked := m.Mark.Width == 0 || w.Stopped || w.ID != 0 || w.NoTTMPs
	if m.Mark.Width != 0 {
		im.set(r, m.Mark, toBit(isMarked), "the mark of the trap temporaries")
	}
	if !isMarked {
		return
	}
	im.set(r, waveIDLo, w.ID&0xffff_ffff, "ID[31:0]")
	im.set(r, waveIDHi, w.ID>>32, "ID[63:32]")
	im.set(r, waveStopped, toBit(w.Stopped), "stopped")
	im.set(r, savedHalt, toBit(w.SavedHalt), "the saved halt")
	im.set(r, m.TrapID, uint64(w.TrapID), "the number of the trap")
	if m.SPIUnset {
		im.set(r, spiUnset, toBit(w.NoTTMPs), "unset trap temporaries")
	}
	if m.TrapEntered.Width != 0 && w.Stopped && im.core.RuntimeVersion >= 10 {
		im.set(r, m.TrapEntered, 1, "the mark of the trap handler")
	}
	if !w.Stopped && (w.TrapID != 0 || w.SavedHalt) {
		im.fail("a wave that is not stopped has a trap or a saved halt")
	}
}

func (im *Image) setExceptions(m *Machine, w *Wave, r *registers) {
	for _, e := range w.Exceptions {
		if !m.Has(e) {
			im.fail("%s has no bit for exception %d", m.Name, e)
			return
		}
		b := m.Exceptions[e]
		im.set(r, b.Flag, 1, "an exception")
		if b.Enable.Width != 0 && !w.isMasked(e) {
			im.set(r, b.Enable, 1, "an exception's enable bit")
		}
	}
}

func (w *Wave) isMasked(e Exception) bool {
	return slices.Contains(w.Masked, e)
}

func toBit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// sgprBlock is the words of a record's SGPRs with the aliases in their slots.
func (p *wavePlan) sgprBlock(m *Machine, r *registers, into []uint32) []uint32 {
	block := into[:p.shape.sgprs]
	clear(block)
	copy(block, p.wave.SGPRs)
	end := min(m.AliasEnd, p.shape.sgprs)
	block[end-2], block[end-1] = uint32(p.wave.VCC), uint32(p.wave.VCC>>32)
	if !m.FlatInHwregs {
		block[end-6], block[end-5] = r[FlatScratchLo], r[FlatScratchHi]
	}
	if m.TTMPsInSGPRs {
		copy(block[len(block)-16:], r[TTMP0:])
	}
	return block
}

// emit writes a record from its lowest address to its highest.
func (p *wavePlan) emit(s *sink, m *Machine, r *registers) {
	var words [128]uint32
	s.padded(p.wave.VGPRs, p.shape.vgprs*p.shape.lanes)
	s.padded(p.wave.AGPRs, p.shape.agprs*64)
	s.padded(p.wave.SharedVGPRs, p.shape.shared*32)
	s.words(p.sgprBlock(m, r, words[:]))
	for i, reg := range m.Hwregs {
		words[i] = r[reg]
	}
	s.padded(words[:len(m.Hwregs)], m.HwregWords)
	if !m.TTMPsInSGPRs {
		s.words(r[TTMP0:])
	}
	if p.isFirst {
		s.bytes(p.group.LDS)
		s.zeros(uint64(p.shape.lds - len(p.group.LDS)))
	}
	s.zeros(m.Gap)
}
