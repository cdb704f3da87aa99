// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"math/rand/v2"
)

// Random makes a small core of random states for tests: one or two agents of
// the given machines, queues with and without waves, several groups and XCCs,
// waves that stopped for every reason and waves that were only preempted. Equal
// numbers from r make equal cores.
func Random(r *rand.Rand, layout Layout, runtimeVersion uint32, machines ...*Machine) *Core {
	c := &Core{Layout: layout, PID: 1 + r.IntN(1<<20), RuntimeVersion: runtimeVersion, KFDMajor: 1,
		KFDMinor: 13 + r.Uint32N(6)}
	if r.IntN(3) == 0 {
		c.AgentEntrySize = agentBytesMax
	}
	if r.IntN(8) == 0 {
		c.RuntimeInfoSize, c.QueueEntrySize = 24, 72
	}
	for i := range 1 + r.IntN(2) {
		c.Agents = append(c.Agents, randomAgent(r, i, machines[r.IntN(len(machines))], runtimeVersion))
	}
	for i := range r.IntN(4) {
		o := CodeObject{Load: uint64(r.Uint32()) << 12, Unloaded: true}
		if r.IntN(2) == 0 {
			o.URI = fmt.Sprintf("file:///no/such/file%d#offset=%d&size=%d", i, r.IntN(1<<20), r.IntN(1<<20))
		} else {
			o.Image = randomBytes(r, 1+r.IntN(300))
		}
		c.CodeObjects = append(c.CodeObjects, o)
	}
	return c
}

func randomAgent(r *rand.Rand, i int, m *Machine, runtimeVersion uint32) Agent {
	a := Agent{Machine: m, GPUID: uint32(i+1)<<12 | r.Uint32N(1<<12), DeviceID: r.Uint32N(1 << 16),
		ExceptionStatus: r.Uint64(), XCCs: 1, LocationID: r.Uint32N(1 << 16), TrapHandler: 0x7f00_1000_0000 + uint64(r.Uint32N(1<<20))<<2}
	if m.Target/100 >= 904 && m.Target/100 < 1000 {
		a.XCCs = 1 + r.Uint32N(3)
	}
	a.ShaderEngines = 1 << r.IntN(min(int(m.ShaderEngine.Width), 2)+1)
	for j := range 1 + r.IntN(3) {
		a.Queues = append(a.Queues, randomQueue(r, &a, uint32(16*i+j), runtimeVersion))
	}
	return a
}

func randomQueue(r *rand.Rand, a *Agent, id, runtimeVersion uint32) Queue {
	q := Queue{ID: id, Packets: 4 << r.IntN(5), ReadID: r.Uint64N(1 << 20), QueueIn: Place(r.IntN(2)),
		Event: r.Uint32(), Payload: r.Uint64(), StackWords: [2]uint32{r.Uint32(), r.Uint32()}}
	q.WriteID = q.ReadID + 1 + r.Uint64N(uint64(q.Packets)-1)
	if r.IntN(6) == 0 {
		q.Flags = 1 << 30
	}
	engines := uint64(a.ShaderEngines)
	q.Scratch = Scratch{Waves: 16 * engines, WaveBytes: a.Machine.TmpringUnit * (1 + r.Uint64N(2))}
	for i := q.ReadID; i < min(q.WriteID, q.ReadID+3); i++ {
		q.Dispatches = append(q.Dispatches, randomDispatch(r, i))
	}
	q.Dispatches[0].Header = 1 // INVALID while it runs
	if r.IntN(5) == 0 {
		return q
	}
	slots := map[[3]int]bool{}
	for i := range 1 + r.IntN(4) {
		g := Group{XCC: r.IntN(int(a.XCCs)), Dispatch: r.IntN(len(q.Dispatches)),
			ID: [3]uint32{uint32(i) * 7, r.Uint32N(3), r.Uint32N(2)}}
		randomGroup(r, a, &g, runtimeVersion, slots)
		q.Groups = append(q.Groups, g)
	}
	return q
}

func randomDispatch(r *rand.Rand, id uint64) Dispatch {
	return Dispatch{ID: id, Dimensions: 1 + uint16(r.IntN(3)),
		Group: [3]uint16{uint16(1 + r.IntN(1024)), uint16(1 + r.IntN(4)), 1},
		Grid:  [3]uint32{r.Uint32(), r.Uint32N(9), r.Uint32N(9)}, PrivateBytes: r.Uint32N(1024), LDSBytes: r.Uint32N(65536),
		Entry: 0x7f00_0000_0000 + uint64(r.Uint32N(1<<20))<<8, Arguments: r.Uint64() >> 16 &^ 7, Completion: r.Uint64() >> 16 &^ 63}
}

func randomGroup(r *rand.Rand, a *Agent, g *Group, runtimeVersion uint32, slots map[[3]int]bool) {
	m, lanes := a.Machine, a.Machine.Lanes()
	g.Lanes = lanes[r.IntN(len(lanes))]
	g.LDS = randomBytes(r, r.IntN(3)*r.IntN(700))
	isUnset := m.SPIUnset && runtimeVersion >= 10 && r.IntN(8) == 0
	for range 1 + r.IntN(4) {
		w := randomWave(r, m, g.Lanes)
		w.NoTTMPs = isUnset
		w.ShaderEngine = r.IntN(int(a.ShaderEngines))
		w.ScratchSlot = r.IntN(16)
		slot := [3]int{g.XCC, w.ShaderEngine, w.ScratchSlot}
		if !slots[slot] {
			slots[slot] = true
			w.HasScratch = r.IntN(4) != 0
			if w.HasScratch {
				w.Scratch = randomBytes(r, r.IntN(int(m.TmpringUnit)+1))
			}
		}
		g.Waves = append(g.Waves, w)
	}
}

func randomWave(r *rand.Rand, m *Machine, lanes int) Wave {
	w := Wave{PC: r.Uint64N(1<<47) &^ 3, Exec: r.Uint64(), VCC: r.Uint64(), M0: r.Uint32(), Noise: r.Uint32(),
		XNACKMask: r.Uint64(), FlatScratch: r.Uint64(), Mode: r.Uint32() & 0x07f0_07ff,
		// Neither priv, halt, skip_export nor no_vgprs.
		Status: r.Uint32() &^ (1<<5 | 1<<13 | 1<<18 | 1<<24), StatePriv: r.Uint32() &^ (1 << 14)}
	if lanes == 32 {
		w.Exec &= 0xffff_ffff
	}
	if m.HasFlatAddress {
		w.FlatScratch = 0
	}
	sgprs := m.AliasEnd - m.Aliases
	if m.FixedSGPRs == 0 {
		sgprs = 10 + r.IntN(sgprs-9)
	}
	w.SGPRs = randomWords(r, sgprs)
	w.VGPRs = randomWords(r, lanes*(1+r.IntN(9)))
	if m.Accumulation != NoAccumulation {
		w.AGPRs = randomWords(r, 64*r.IntN(7))
	}
	if m.SharedVGPRs.Width != 0 && lanes == 64 && r.IntN(4) == 0 {
		w.SharedVGPRs = randomWords(r, 32*8)
	}
	if r.IntN(3) == 0 {
		w.ID = 1 + r.Uint64N(1<<40)
	}
	if r.IntN(4) == 0 {
		w.Events = randomWords(r, 1+r.IntN(2))
	}
	randomStop(r, m, &w)
	return w
}

func randomStop(r *rand.Rand, m *Machine, w *Wave) {
	w.Stopped = r.IntN(3) != 0
	if w.Stopped {
		w.SavedHalt = r.IntN(4) == 0
		if r.IntN(2) == 0 {
			w.TrapID = uint8(r.IntN(16))
		}
	} else {
		w.Halted = r.IntN(4) == 0
	}
	for range r.IntN(4) {
		if e := Exception(r.IntN(int(numExceptions))); m.Has(e) {
			w.Exceptions = append(w.Exceptions, e)
			if r.IntN(4) == 0 {
				w.Masked = append(w.Masked, e)
			}
		}
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func randomWords(r *rand.Rand, n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = r.Uint32()
	}
	return w
}
