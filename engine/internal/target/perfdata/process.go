// SPDX-License-Identifier: Apache-2.0

package perfdata

import "fmt"

const (
	maxThreads  = 1 << 20
	maxMappings = 1 << 20
	maxText     = 64 << 20 // bytes of all names
	// maxDead is how many threads are remembered after their end: a CPU may be
	// sampled in the last steps of a thread whose end is already recorded.
	maxDead = 4096
	maxComm = 256
	maxPath = 4096
	// maxAncestors bounds a search for the process that another descends from.
	maxAncestors = 1024
	// maxLineage bounds Space.Ancestors: few programs fork and go on so often.
	maxLineage = 16
)

// mappings are the current mappings of a process, or of the kernel.
type mappings struct {
	pid        int
	parent     int    // the process that forked it; 0: not known
	directory  string // the root of File.SetRoots that it has from its parent
	root       *node
	own        int // nodes that are counted in state.mapped
	space      *Space
	hasNewCode bool // executable mappings changed since space was set
	// ancestors and namespace are as in Space. The slice does not change.
	ancestors []int
	namespace uint64
}

// version returns the mappings as they are now.
func (m *mappings) version(s *state) *Space {
	if m.space == nil || m.space.root != m.root {
		s.versions++
		v := &Space{PID: m.pid, ID: s.versions, Code: s.versions, Root: s.rootOf(m), Ancestors: m.ancestors, Namespace: m.namespace, root: m.root}
		if m.space != nil && !m.hasNewCode {
			v.Code = m.space.Code
		}
		m.space, m.hasNewCode = v, false
	}
	return m.space
}

// rootOf returns the root directory of a process; "" where File.SetRoots has none for
// it or its ancestors. perf lists the processes that were there before it in any order,
// so the search waits until the process is needed.
func (s *state) rootOf(m *mappings) string {
	if len(s.file.roots) == 0 {
		return ""
	}
	for range maxAncestors {
		if dir, ok := s.file.roots[m.pid]; ok {
			return dir
		}
		parent := s.processes[m.parent]
		if m.directory != "" || m.parent == 0 || parent == nil {
			return m.directory
		}
		m = &parent.mappings
	}
	return ""
}

type process struct {
	mappings
	threads int
}

type thread struct {
	pid, tid int
	comm     string
	process  *process
	isDead   bool
}

// state is the state of processes and of the kernel after the records up to now.
type state struct {
	file      *File
	processes map[int]*process
	threads   map[int]*thread
	dead      []*thread // oldest first
	kernel    mappings
	symbols   mappings
	texts     map[string]string
	textBytes int
	mapped    int
	versions  uint64
	batches   int
	last      *thread // of the sample before
	problems  sentences
	// mappedHook sees every mapping, for tests.
	mappedHook func(r *record, pid, tid int, m *Mapping)
}

func newState(f *File) state {
	return state{
		file: f, processes: map[int]*process{}, threads: map[int]*thread{}, texts: map[string]string{},
		kernel: mappings{pid: -1}, symbols: mappings{pid: -1},
	}
}

func (s *state) problem(r *record, area uint16, format string, args ...any) {
	if s.problems.list.HasRoom(maxProblems) {
		s.problems.add("%s: %v: %s", s.file.place(int(area), r.offset), r.kind, fmt.Sprintf(format, args...))
	}
}

// text returns a name, stored once. It is empty where there are too many.
func (s *state) text(b []byte) string {
	if t, ok := s.texts[string(b)]; ok {
		return t
	}
	if s.textBytes += len(b) + 16; s.textBytes > maxText {
		s.problems.add("more than %d bytes of different names: further ones are left out", maxText)
		return ""
	}
	t := string(b)
	s.texts[t] = t
	return t
}

// place sets the name of a sample's thread and the mappings of its process.
func (s *state) place(sample *Sample) {
	t := s.last
	if t == nil || t.tid != sample.TID || t.pid != sample.PID {
		if t = s.threads[sample.TID]; t == nil || t.pid != sample.PID {
			if sample.PID == 0 && sample.TID == 0 {
				sample.Comm = "swapper" // the idle task, which no record announces
			}
			if p := s.processes[sample.PID]; p != nil {
				sample.Space = p.version(s)
			}
			return
		}
		s.last = t
	}
	sample.Comm = t.comm
	if sample.PID == 0 && sample.TID == 0 && sample.Comm == "" {
		sample.Comm = "swapper"
	}
	sample.Space = t.process.version(s)
}

// thread returns a thread, a new one where it is unknown or belonged to another
// process; nil where there are too many.
func (s *state) thread(pid, tid int) *thread {
	t := s.threads[tid]
	if t != nil && t.pid == pid {
		t.isDead = false
		return t
	}
	if t != nil {
		s.forget(t)
	}
	if len(s.threads) >= maxThreads {
		s.problems.add("more than %d threads: further ones have no name and no mappings", maxThreads)
		return nil
	}
	p := s.processes[pid]
	if p == nil {
		p = &process{mappings: mappings{pid: pid}}
		s.processes[pid] = p
	}
	p.threads++
	t = &thread{pid: pid, tid: tid, process: p}
	s.threads[tid] = t
	return t
}

// end marks a thread as dead, and forgets the ones that have been dead for long.
func (s *state) end(t *thread) {
	if t.isDead {
		return
	}
	t.isDead = true
	s.dead = append(s.dead, t)
	if len(s.dead) > maxDead {
		if old := s.dead[0]; old.isDead && s.threads[old.tid] == old {
			s.forget(old)
		}
		s.dead[0] = nil
		s.dead = s.dead[1:]
	}
}

// forget removes a thread, and its process with the last one.
func (s *state) forget(t *thread) {
	delete(s.threads, t.tid)
	if s.last == t {
		s.last = nil
	}
	p := t.process
	if p.threads--; p.threads <= 0 && s.processes[p.pid] == p {
		s.mapped -= p.own
		delete(s.processes, p.pid)
	}
}

// changesKernel reports whether a record changes the mappings of the kernel.
func (s *state) changesKernel(r *record) bool {
	switch r.kind {
	case recordKsymbol:
		return true
	case recordMmap, recordMmap2:
		b := s.file.attrs.body(r, s.file.order)
		return len(b) >= 4 && (s.file.order.u32(b) == ^uint32(0) || Mode(r.misc&miscModeMask) == ModeKernel)
	}
	return false
}

// apply reads a record of threads or mappings.
func (s *state) apply(r *record, area uint16) {
	switch r.kind {
	case recordMmap, recordMmap2, recordComm, recordFork, recordExit, recordKsymbol, recordNamespaces:
	default:
		return
	}
	body := s.file.attrs.body(r, s.file.order)
	d := fields{b: body, order: s.file.order}
	switch r.kind {
	case recordMmap, recordMmap2:
		s.mmap(r, area, &d)
	case recordKsymbol:
		s.ksymbol(r, area, &d)
	case recordComm:
		pid, tid := int(int32(d.u32())), int(int32(d.u32()))
		name := s.text(clip(textBytes(d.b), maxComm))
		if d.isShort {
			break
		}
		if t := s.thread(pid, tid); t != nil {
			t.comm = name
			if r.misc&miscCommExec != 0 {
				s.reset(&t.process.mappings, nil)
				t.process.ancestors = nil
			}
		}
	case recordFork:
		pid, ppid, tid, ptid := int(int32(d.u32())), int(int32(d.u32())), int(int32(d.u32())), int(int32(d.u32()))
		if !d.isShort {
			s.fork(r, pid, ppid, tid, ptid)
		}
	case recordNamespaces:
		s.namespaces(&d)
	case recordExit:
		pid, _, tid := int(int32(d.u32())), d.u32(), int(int32(d.u32()))
		if t := s.threads[tid]; !d.isShort && t != nil && t.pid == pid {
			s.end(t)
		}
	}
	if d.isShort {
		s.problem(r, area, "its %d bytes are too few", len(r.data))
	}
}

func clip(b []byte, most int) []byte { return b[:min(len(b), most)] }

// fork adds a thread, with the name of the thread that created it. A new process
// gets the mappings of its parent, too.
func (s *state) fork(r *record, pid, ppid, tid, ptid int) {
	if old := s.threads[tid]; old != nil && (pid != ppid || old.isDead) {
		s.forget(old) // the number is reused
	}
	t := s.thread(pid, tid)
	if t == nil {
		return
	}
	if parent := s.threads[ptid]; parent != nil && parent.pid == ppid {
		t.comm = parent.comm
	}
	if pid == ppid {
		return
	}
	t.process.parent, t.process.directory = ppid, ""
	t.process.ancestors = []int{ppid}
	if parent := s.processes[ppid]; parent != nil { // which may be forgotten
		t.process.directory = s.rootOf(&parent.mappings)
		t.process.ancestors = append(t.process.ancestors, parent.ancestors[:min(len(parent.ancestors), maxLineage-1)]...)
		t.process.namespace = parent.namespace
	}
	var root *node // for a process that was already running perf writes a fork, and its mappings follow
	if parent := s.processes[ppid]; parent != nil && r.misc&miscForkExec == 0 {
		root = parent.root
	}
	s.reset(&t.process.mappings, root)
}

// pidNamespace is the index of the PID namespace in a NAMESPACES record (enum of
// perf_event_open(2), NR_NAMESPACES).
const pidNamespace = 3

// namespaces reads NAMESPACES: the device and the inode of each namespace of a process.
func (s *state) namespaces(d *fields) {
	pid, tid, count := int(int32(d.u32())), int(int32(d.u32())), d.u64()
	for i := range min(count, pidNamespace+1) {
		d.u64()
		if inode := d.u64(); i == pidNamespace && !d.isShort {
			if t := s.thread(pid, tid); t != nil {
				t.process.namespace = inode
			}
		}
	}
}

// reset replaces all mappings of a process.
func (s *state) reset(m *mappings, root *node) {
	s.mapped -= m.own
	m.own = 0
	if m.root != root {
		m.root, m.hasNewCode = root, true
	}
}

// add adds a mapping over the ones before.
func (s *state) add(m *mappings, what *Mapping) {
	if s.mapped >= maxMappings {
		s.problems.add("more than %d mappings at a time: further ones are left out", maxMappings)
		return
	}
	before := m.root.len()
	if what.HasNoFile() {
		what.Replaced = m.root.replaced(what)
		if old := (&Space{root: m.root}).Find(what.Start); old != nil && old.isSameMemory(what) {
			what.PID, what.IsEarlier = old.PID, old.IsEarlier // its rights changed
		}
	}
	root, code := m.root.insert(what)
	m.root, m.hasNewCode = root, m.hasNewCode || code
	s.count(m, root.len()-before)
}

func (s *state) count(m *mappings, change int) {
	change = max(change, -m.own)
	m.own += change
	s.mapped += change
}

// mmap reads MMAP and MMAP2.
func (s *state) mmap(r *record, area uint16, d *fields) {
	pid, tid := int(int32(d.u32())), int(int32(d.u32()))
	m := &Mapping{Start: d.u64(), PID: pid}
	time, ok := s.file.attrs.time(r, s.file.order)
	m.IsEarlier = !ok || time == 0
	size := d.u64()
	m.Offset = d.u64()
	if r.kind == recordMmap2 {
		union := fields{b: d.bytes(24), order: d.order}
		m.Prot, m.Flags = d.u32(), d.u32()
		m.Executable = m.Prot&4 != 0
		if r.misc&miscMmapBuildID != 0 && len(union.b) > 0 {
			if n := int(union.b[0]); n > 0 && n <= 20 {
				m.BuildID = append([]byte(nil), union.b[4:4+n]...)
			}
		} else {
			m.Major, m.Minor, m.Inode, m.Generation = union.u32(), union.u32(), union.u64(), union.u64()
		}
	} else if r.misc&miscMmapData == 0 {
		m.Prot, m.Executable = 4, true
	}
	if d.isShort {
		return
	}
	path := textBytes(d.b)
	if len(path) > maxPath {
		s.problem(r, area, "a path of %d bytes, expected %d at most", len(path), maxPath)
		path = path[:maxPath]
	}
	m.End = m.Start + size
	if size == 0 {
		return
	}
	if m.End < m.Start {
		s.problem(r, area, "%d bytes from %#x on are beyond the last address", size, m.Start)
		return
	}
	m.Path = s.text(path)
	if m.BuildID == nil {
		m.BuildID = s.file.buildIDs[m.Path]
	}
	if s.mappedHook != nil {
		s.mappedHook(r, pid, tid, m)
	}
	switch mode := Mode(r.misc & miscModeMask); {
	case mode == ModeGuestKernel, mode == ModeGuestUser:
		// A guest's addresses are not the host's.
	case mode == ModeKernel || pid == -1:
		s.add(&s.kernel, m)
	default:
		if t := s.thread(pid, tid); t != nil {
			s.add(&t.process.mappings, m)
		}
	}
}

// ksymbolUnregister is PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER.
const ksymbolUnregister = 1

// ksymbol reads KSYMBOL: a function that the kernel generated, or removed.
func (s *state) ksymbol(r *record, area uint16, d *fields) {
	start, size := d.u64(), uint64(d.u32())
	d.u16() // type
	flags := d.u16()
	if d.isShort {
		return
	}
	end := start + size
	if size == 0 || end < start {
		s.problem(r, area, "%d bytes from %#x on", size, start)
		return
	}
	m := &s.symbols
	if flags&ksymbolUnregister != 0 {
		before := m.root.len()
		below, rest, _ := m.root.clear(start, end)
		m.root, m.hasNewCode = merge(below, rest), true
		s.count(m, m.root.len()-before)
		return
	}
	name := s.text(clip(textBytes(d.b), maxPath))
	s.add(m, &Mapping{Start: start, End: end, Path: name, Prot: 4, Executable: true})
}
