// SPDX-License-Identifier: Apache-2.0

package minidump

// Handle is MINIDUMP_HANDLE_DESCRIPTOR, of either version: an object that the process
// had open.
type Handle struct {
	Handle                    uint64
	Type, Object              string // names; "" where it has none
	Attributes, GrantedAccess uint32
	HandleCount, PointerCount uint32
	// Infos are details of an object of its type, each as bytes in the mapped file.
	Infos []HandleInfo
}

// HandleInfo is MINIDUMP_HANDLE_OBJECT_INFORMATION.
type HandleInfo struct {
	Type uint32 // MINIDUMP_HANDLE_OBJECT_INFORMATION_TYPE
	Data []byte
}

const (
	handleSize      = 32
	handle2Size     = 40
	handleInfoSize  = 12
	maxHandleInfos  = 16
	handleDataStart = 16
)

func (d *Dump) readHandles(s *Stream) {
	e := d.described(s, handleDataStart, count32, handleSize, maxHandles)
	d.Handles = make([]Handle, 0, e.count)
	for i := range e.count {
		r := e.entry(i)
		h := Handle{
			Handle: r.u64(0), Attributes: r.u32(16), GrantedAccess: r.u32(20), HandleCount: r.u32(24), PointerCount: r.u32(28),
			Type:   d.name(s, uint64(r.u32(8)), true, "the type of handle", i),
			Object: d.name(s, uint64(r.u32(12)), true, "the name of handle", i),
		}
		if e.size >= handle2Size {
			h.Infos = d.handleInfos(s, uint64(r.u32(32)), i)
		}
		d.Handles = append(d.Handles, h)
	}
}

// handleInfos follows a list in which each entry has the offset of the next one.
func (d *Dump) handleInfos(s *Stream, offset uint64, index int) []HandleInfo {
	var list []HandleInfo
	for offset != 0 {
		if len(list) == maxHandleInfos {
			d.problem(s, offset, "handle %d has more than %d records, those are read", index, maxHandleInfos)
			return list
		}
		header := d.part(s, offset, location{handleInfoSize, offset}, "a record of handle", index)
		if len(header.b) < handleInfoSize {
			return list
		}
		data := d.part(s, offset, location{uint64(header.u32(8)), offset + handleInfoSize}, "a record of handle", index)
		list = append(list, HandleInfo{header.u32(4), data.b})
		offset = uint64(header.u32(0))
	}
	return list
}
