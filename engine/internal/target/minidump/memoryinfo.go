// SPDX-License-Identifier: Apache-2.0

package minidump

// MemoryInfo is MINIDUMP_MEMORY_INFO: the result of VirtualQuery for a range of pages.
type MemoryInfo struct {
	Base, AllocationBase       uint64
	AllocationProtect, Protect uint32 // PAGE_*
	Size                       uint64
	State                      uint32 // MEM_COMMIT, MEM_RESERVE or MEM_FREE
	Type                       uint32 // MEM_PRIVATE, MEM_MAPPED or MEM_IMAGE
}

// MemCommit is the state of pages that are there.
const MemCommit = 0x1000

const (
	memoryInfoSize = 48
	pageExecutable = 0xf0 // PAGE_EXECUTE and PAGE_EXECUTE_*
	pageReadable   = 0xee // all except PAGE_EXECUTE, PAGE_NOACCESS
	pageWritable   = 0xcc // PAGE_READWRITE, PAGE_WRITECOPY and PAGE_EXECUTE_ of both
	pageNoAccess   = 0x1
	pageGuard      = 0x100
	memImage       = 0x1000000 // MEM_IMAGE
)

// IsMapped reports whether there is memory.
func (m *MemoryInfo) IsMapped() bool { return m.State == MemCommit }

// IsExecutable reports whether there is memory that may be executed.
func (m *MemoryInfo) IsExecutable() bool { return m.IsMapped() && m.Protect&pageExecutable != 0 }

func (d *Dump) readMemoryInfo(s *Stream) {
	e := d.described(s, 16, count64, memoryInfoSize, maxRanges)
	d.MemoryInfo = make([]MemoryInfo, 0, e.count)
	for i := range e.count {
		r := e.entry(i)
		m := MemoryInfo{
			Base: r.u64(0), AllocationBase: r.u64(8), AllocationProtect: r.u32(16), Size: r.u64(24),
			State: r.u32(32), Protect: r.u32(36), Type: r.u32(40),
		}
		if m.Base+m.Size < m.Base && m.Base+m.Size != 0 {
			d.problem(s, e.where(i), "region %d has %d bytes at %#x, which is beyond the last address", i, m.Size, m.Base)
		}
		d.MemoryInfo = append(d.MemoryInfo, m)
	}
}
