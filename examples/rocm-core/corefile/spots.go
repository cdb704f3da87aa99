// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Spot is a number in a file that a reader has to check: a length, a count, an offset, an
// address, or a word whose bits have such numbers.
type Spot struct {
	Name   string
	Offset int
	Size   int // bytes: 2, 4 or 8
	Value  uint64
}

// Lies returns wrong values of the spot: zero, one, the neighbours of the true value,
// halves and doubles, and the largest ones.
func (s *Spot) Lies() []uint64 {
	mask := ^uint64(0) >> (64 - 8*s.Size)
	v := s.Value
	list := []uint64{0, 1, v + 1, v - 1, v + 4, v - 4, v / 2, 2 * v, v ^ 1<<30, v ^ 1<<31, mask, mask >> 1, mask - 7}
	if s.Size == 8 {
		list = append(list, 1<<32, v|1<<63, v^1<<47)
	}
	for i := range list {
		list[i] &= mask
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(x uint64) bool { return x == v })
}

// Put writes v over the spot of a file's bytes.
func (s *Spot) Put(file []byte, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	copy(file[s.Offset:s.Offset+s.Size], b[:])
}

// spotter collects the spots of a file.
type spotter struct {
	f    *File
	file []byte
	list []Spot
}

// Spots returns every number of a written file that a reader has to check. file
// has the bytes that Bytes returned.
func (f *File) Spots(file []byte) []Spot {
	s := &spotter{f: f, file: file}
	s.elf()
	if f.noteSegment >= 0 && f.raw == nil {
		s.note(int(f.segments[f.noteSegment].start) + f.noteAt)
	}
	s.runtime()
	for i, q := range f.im.queues {
		s.queue(fmt.Sprintf("queue[%d]", i), q)
	}
	return s.list
}

// at adds consecutive numbers from offset on. Each name ends in its size, as in
// "e_phnum:2"; a name "-" is passed over.
func (s *spotter) at(offset int, prefix string, names ...string) int {
	for _, n := range names {
		size := int(n[len(n)-1] - '0')
		n = n[:len(n)-2]
		if n != "-" && offset >= 0 && offset+size <= len(s.file) {
			var b [8]byte
			copy(b[:], s.file[offset:offset+size])
			s.list = append(s.list, Spot{prefix + "." + n, offset, size, binary.LittleEndian.Uint64(b[:])})
		}
		offset += size
	}
	return offset
}

// mapped adds numbers of the process's memory, if the file has them.
func (s *spotter) mapped(address uint64, prefix string, names ...string) {
	for i := range s.f.segments[:len(s.f.segments)-s.f.missing] {
		x := &s.f.segments[i]
		if x.Type == 1 && address >= x.Vaddr && address-x.Vaddr < x.Filesz {
			s.at(int(x.start+address-x.Vaddr), prefix, names...)
		}
	}
}

func (s *spotter) elf() {
	s.at(16, "ehdr", "e_type:2", "e_machine:2", "-:4", "-:8", "e_phoff:8", "e_shoff:8", "e_flags:4",
		"e_ehsize:2", "e_phentsize:2", "e_phnum:2", "e_shentsize:2", "e_shnum:2", "e_shstrndx:2")
	for i := range s.f.segments {
		s.at(ehdrBytes+i*phdrBytes, fmt.Sprintf("phdr[%d]", i), "p_type:4", "p_flags:4", "p_offset:8",
			"p_vaddr:8", "-:8", "p_filesz:8", "p_memsz:8", "p_align:8")
	}
}

func (s *spotter) note(offset int) {
	runtime, agent, queue := s.f.im.core.entrySizes()
	offset = s.at(offset, "note", "namesz:4", "descsz:4", "type:4", "name:8", "version:8", "kfd_major:4", "kfd_minor:4",
		"runtime_info_size:8", "agents:4", "agent_size:4", "queues:4", "queue_size:4")
	s.at(offset, "note.runtime", "r_debug:8", "runtime_state:4", "ttmp_setup:4")
	offset += int(runtime)
	for i := range s.f.im.core.Agents {
		s.at(offset, fmt.Sprintf("note.agent[%d]", i), "-:8", "lds_base:8", "lds_limit:8", "scratch_base:8",
			"scratch_limit:8", "-:8", "-:8", "gpu_id:4", "-:4", "-:4", "-:4", "-:4", "-:4", "-:4", "-:4",
			"gfx_target_version:4", "simd_count:4", "max_waves_per_simd:4", "array_count:4",
			"simd_arrays_per_engine:4", "num_xcc:4", "capability:4", "debug_prop:4")
		offset += int(agent)
	}
	for i := range s.f.im.queues {
		s.at(offset, fmt.Sprintf("note.queue[%d]", i), "exception_status:8", "ring_base_address:8",
			"write_pointer_address:8", "read_pointer_address:8", "ctx_save_restore_address:8", "queue_id:4",
			"gpu_id:4", "ring_size:4", "queue_type:4", "ctx_save_restore_area_size:4")
		offset += int(queue)
	}
}

func (s *spotter) runtime() {
	s.mapped(s.f.im.rdebug, "r_debug", "r_version:8", "r_map:8", "-:8", "r_state:4")
	for i := range s.f.im.objects {
		s.mapped(s.f.im.objects[i].link, fmt.Sprintf("link_map[%d]", i), "l_addr:8", "l_name:8", "-:8", "l_next:8")
	}
}

func (s *spotter) queue(name string, q *QueuePlan) {
	s.mapped(q.Queue, name+".amd_queue", "-:8", "base_address:8", "-:8", "size:4", "-:4", "-:8", "-:8", "-:8",
		"write_dispatch_id:8")
	s.mapped(q.Queue+readIDOffset, name+".amd_queue", "read_dispatch_id:8", "-:4", "compute_tmpring_size:4",
		"-:8", "-:8", "scratch_backing_memory_location:8", "scratch_backing_memory_byte_size:8")
	for i := range q.queue.Dispatches {
		d := &q.queue.Dispatches[i]
		s.mapped(q.Ring+d.ID%uint64(q.queue.Packets)*packetBytes, fmt.Sprintf("%s.packet[%d]", name, i),
			"header:2", "setup:2", "group_x:2", "group_y:2", "group_z:2", "-:2", "grid_x:4", "grid_y:4", "grid_z:4",
			"private:4", "lds:4", "kernel_object:8", "kernarg:8", "-:8", "completion_signal:8")
	}
	for i := range q.xccs {
		s.xcc(fmt.Sprintf("%s.xcc[%d]", name, i), q, i)
	}
}

func (s *spotter) xcc(name string, q *QueuePlan, i int) {
	x, base := &q.xccs[i], q.Save+uint64(i)*q.AreaSize
	s.mapped(base, name+".header", "control_stack_offset:4", "control_stack_size:4", "wave_state_offset:4",
		"wave_state_size:4", "debug_offset:4", "debug_size:4", "err_payload_addr:8", "err_event_id:4")
	control := base + q.boundary - 4*uint64(len(x.control))
	for j := range x.control {
		s.mapped(control+4*uint64(j), name, fmt.Sprintf("control[%d]:4", j))
	}
	end := base + q.boundary + x.records
	for j := range x.waves {
		s.wave(fmt.Sprintf("%s.wave[%d]", name, j), q, &x.waves[j], end)
		end -= x.waves[j].bytes
	}
}

// wave adds the registers of the record that ends at end.
func (s *spotter) wave(name string, q *QueuePlan, p *wavePlan, end uint64) {
	m := q.machine
	end -= m.Gap
	if p.isFirst {
		end -= uint64(p.shape.lds)
	}
	ttmps := end - 64
	hwregs := ttmps - 4*uint64(m.HwregWords)
	if m.TTMPsInSGPRs {
		hwregs = end - 4*uint64(m.HwregWords)
		ttmps = hwregs - 64
	}
	for _, n := range []uint64{4, 5, 6, 7, 8, 9, 10, 11} {
		s.mapped(ttmps+4*n, name, fmt.Sprintf("ttmp%d:4", n))
	}
	s.mapped(hwregs+4, name, "pc:8")
	for i, r := range m.Hwregs {
		if r == ExecLo || r == Status || r == TrapSts || r == Mode || r == FlatScratchLo {
			s.mapped(hwregs+4*uint64(i), name, fmt.Sprintf("hwreg[%d]:4", i))
		}
	}
}
