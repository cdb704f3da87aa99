// SPDX-License-Identifier: Apache-2.0

package corefile

import "encoding/binary"

// Constants of kfd_ioctl.h and kfd_sysfs.h.
const (
	noteVersion     = 1
	noteType        = 33 // NT_AMDGPU_KFD_CORE_STATE
	agentBytes      = 120
	agentBytesMax   = 128
	queueEntryBytes = 64
	runtimeBytes    = 16
	computeAQL      = 2 // KFD_IOC_QUEUE_TYPE_COMPUTE_AQL

	// Watch points (4 of them), debugging, launch overrides and modes,
	// precise memory operations, firmware that can.
	debuggable = 1<<7 | 2<<8 | 1<<15 | 1<<16 | 1<<17 | 1<<18 | 1<<29
	// The watch mask's bits 7 to 29, and dispatches always fill the ttmps.
	dispatchAlways = 7 | 29<<4 | 1<<10
)

func orDefault(v, standard uint32) uint32 {
	if v == 0 {
		return standard
	}
	return v
}

func (c *Core) entrySizes() (runtime, agent, queue uint32) {
	return orDefault(c.RuntimeInfoSize, runtimeBytes), orDefault(c.AgentEntrySize, agentBytes),
		orDefault(c.QueueEntrySize, queueEntryBytes)
}

// buildNote is the body of the note: os_driver.cpp, create_core_state_note, and
// amd_core_dump.cpp, NoteSegmentBuilder::Collect.
func (im *Image) buildNote() []byte {
	c, le := im.core, binary.LittleEndian
	runtime, agent, queue := c.entrySizes()
	if runtime < runtimeBytes || agent < agentBytes || queue < queueEntryBytes || (runtime|agent|queue)%8 != 0 {
		im.fail("entries of %d, %d and %d bytes are too short or no multiples of 8", runtime, agent, queue)
		return nil
	}
	major, minor := c.KFDMajor, c.KFDMinor
	if major|minor == 0 {
		major, minor = 1, 18
	}
	b := le.AppendUint64(nil, noteVersion)
	for _, v := range []uint32{major, minor, runtime, 0, uint32(len(c.Agents)), agent, uint32(len(im.queues)), queue} {
		b = le.AppendUint32(b, v)
	}
	start := len(b)
	b = le.AppendUint64(b, im.rdebug)
	b = le.AppendUint32(b, orDefault(c.RuntimeState, 1))
	b = le.AppendUint32(b, 1) // ttmp_setup
	b = padTo(b, start+int(runtime))
	for i := range c.Agents {
		start = len(b)
		b = padTo(c.Agents[i].entry(b, agent), start+int(agent))
	}
	for _, q := range im.queues {
		start = len(b)
		b = padTo(q.entry(b), start+int(queue))
	}
	return b
}

func padTo(b []byte, n int) []byte {
	if n < len(b) {
		return b[:n]
	}
	return append(b, make([]byte, n-len(b))...)
}

// apertures are the bases and limits of LDS, scratch and GPUVM.
func (a *Agent) apertures() [6]uint64 {
	list := [6]uint64{a.LDSBase, a.LDSLimit, a.ScratchBase, a.ScratchLimit, a.GPUVMBase, a.GPUVMLimit}
	for i, v := range [6]uint64{1 << 48, 1<<48 | 0xffff_ffff, 2 << 48, 2<<48 | 0xffff_ffff, 0x1000, 0x7fff_ffff_f000} {
		if list[i] == 0 {
			list[i] = v
		}
	}
	return list
}

// entry appends kfd_dbg_device_info_entry.
func (a *Agent) entry(b []byte, size uint32) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, a.ExceptionStatus)
	for _, v := range a.apertures() {
		b = le.AppendUint64(b, v)
	}
	for _, v := range []uint32{
		a.GPUID, a.LocationID, orDefault(a.VendorID, 0x1002), a.DeviceID, a.RevisionID,
		a.SubsystemVendorID, a.SubsystemDeviceID, a.FirmwareVersion,
		orDefault(a.Target, a.Machine.Target), orDefault(a.SIMDs, 4), orDefault(a.WavesPerSIMD, 10),
		a.engines(), 1, max(a.XCCs, 1),
		orDefault(a.Capability, debuggable), orDefault(a.DebugProperties, dispatchAlways),
	} {
		b = le.AppendUint32(b, v)
	}
	if size >= agentBytesMax {
		b = le.AppendUint32(b, a.Capability2)
		b = le.AppendUint32(b, 0)
	}
	return b
}

// entry appends kfd_queue_snapshot_entry.
func (q *QueuePlan) entry(b []byte) []byte {
	le, u := binary.LittleEndian, q.queue
	for _, v := range []uint64{u.ExceptionStatus, q.Ring, q.Queue + writeIDOffset, q.Queue + readIDOffset, q.Save} {
		b = le.AppendUint64(b, v)
	}
	for _, v := range []uint32{u.ID | u.Flags, q.agent.GPUID, u.Packets * packetBytes,
		orDefault(u.Type, computeAQL), uint32(q.AreaSize), 0} {
		b = le.AppendUint32(b, v)
	}
	return b
}
