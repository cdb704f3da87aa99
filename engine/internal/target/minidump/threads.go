// SPDX-License-Identifier: Apache-2.0

package minidump

// Thread is MINIDUMP_THREAD, with the information of other streams about the thread.
type Thread struct {
	ID            uint32
	Name          string // from ThreadNames
	SuspendCount  uint32
	PriorityClass uint32
	Priority      uint32
	TEB           uint64 // the address of its thread environment block on Windows, of its TLS elsewhere
	Stack         Range
	BackingStore  Range   // of IA-64 and of dumps that have a ThreadExList
	Context       Context // its registers
	Info          *ThreadInfo
}

// ThreadInfo is MINIDUMP_THREAD_INFO. Times are in 100 ns; creation and exit count from
// 1601.
type ThreadInfo struct {
	ID                                         uint32
	DumpFlags, DumpError, ExitStatus           uint32
	CreateTime, ExitTime, KernelTime, UserTime uint64
	StartAddress, Affinity                     uint64
}

const (
	threadSize     = 48
	threadExSize   = 64
	threadInfoSize = 64
	threadNameSize = 12
)

func (d *Dump) readThreads(s *Stream, size int) {
	if d.Threads != nil {
		d.problem(s, 0, "there is a list of threads before it, this one is not read")
		return
	}
	e := d.counted(s, size, maxThreads)
	d.Threads = make([]Thread, 0, e.count)
	for i := range e.count {
		r := e.entry(i)
		t := Thread{
			ID: r.u32(0), SuspendCount: r.u32(4), PriorityClass: r.u32(8), Priority: r.u32(12), TEB: r.u64(16),
			Stack: r.descriptor(24),
		}
		if size == threadExSize {
			t.BackingStore = r.descriptor(48)
		}
		t.Context = d.context(s, e.where(i), r.location(40), "thread", i)
		d.Threads = append(d.Threads, t)
	}
}

// descriptor reads a MINIDUMP_MEMORY_DESCRIPTOR.
func (r record) descriptor(offset int) Range {
	l := r.location(offset + 8)
	return Range{Start: r.u64(offset), Size: l.size, Offset: l.offset}
}

func (d *Dump) readThreadNames(s *Stream) {
	e := d.counted(s, threadNameSize, maxThreads)
	for i := range e.count {
		r := e.entry(i)
		d.threadNames = append(d.threadNames, threadName{r.u32(0), d.name(s, r.u64(4), true, "thread name", i)})
	}
}

// threadName is MINIDUMP_THREAD_NAME.
type threadName struct {
	id   uint32
	name string
}

func (d *Dump) readThreadInfo(s *Stream) {
	e := d.described(s, 12, count32, threadInfoSize, maxThreads)
	for i := range e.count {
		r := e.entry(i)
		d.threadInfos = append(d.threadInfos, ThreadInfo{
			ID: r.u32(0), DumpFlags: r.u32(4), DumpError: r.u32(8), ExitStatus: r.u32(12),
			CreateTime: r.u64(16), ExitTime: r.u64(24), KernelTime: r.u64(32), UserTime: r.u64(40),
			StartAddress: r.u64(48), Affinity: r.u64(56),
		})
	}
}

// join adds the information of other streams to the threads, and joins the memory of all
// lists.
func (d *Dump) join() {
	byID := make(map[uint32]*Thread, len(d.Threads))
	for i := range d.Threads {
		if t := &d.Threads[i]; byID[t.ID] == nil {
			byID[t.ID] = t
		}
	}
	for _, n := range d.threadNames {
		if t := byID[n.id]; t != nil && t.Name == "" {
			t.Name = n.name
		}
	}
	for i := range d.threadInfos {
		if t := byID[d.threadInfos[i].ID]; t != nil && t.Info == nil {
			t.Info = &d.threadInfos[i]
		}
	}
	d.threadNames, d.threadInfos = nil, nil
	d.joinMemory()
}
