// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// The names of the event of samples, whose weights are nanoseconds of wall-clock time.
const (
	WallEvent    = "wall"   // all threads have samples
	RunningEvent = "on-cpu" // threads that wait have none
)

// errEnough ends a recording without an error.
var errEnough = errors.New("enough")

// session is a recording of one or more processes.
type session struct {
	files     Options
	options   trace.RecordOptions
	file      io.WriteSeeker
	out       *perfdata.Writer
	mask      uint64   // the registers of a sample, as perf's
	order     []uint32 // and as PerfSample has them
	registers sdk.Registers
	values    []byte
	raw       []byte
	rawStack  []byte
	runtimes  Runtimes                // nil: frames of language runtimes are left out
	writer    *perfdata.RuntimeWriter // of their stacks
	recorded  trace.Recorded
	processes []*recorder // that have not ended
	first     int         // the process that errors are about
}

// recorder samples a process of a recording.
type recorder struct {
	*session
	pid     int
	started uint64 // tells processes of one ID apart
	copied  *copied
	names   map[int]*threadName
	mapped  []mapping // already written
	moment  uint64

	// For frames of language runtimes: whether Runtimes.Prepare was called, for which mappings and
	// code; and those that were found at this moment, by thread.
	isPrepared   bool
	preparedMaps []byte
	preparedCode []mapping
	found        []perfdata.RuntimeFrame
	stacks       map[int]*perfdata.RuntimeStack
}

// threadName is the name of a thread when it was last read.
type threadName struct {
	name  string
	reads int // how often it was read
	// call is the system call in which it was seen last, if hasCall.
	call    uint64
	hasCall bool
}

// Record stops the threads of a process repeatedly, and writes the copies as a recording of
// perf: a sample of every thread at every moment, with registers and stack. Its weight is the
// time since the previous moment. The recording ends, complete, when the process ends or may no
// longer be stopped, and so do the others of options.Others, and those that they start where
// options.Children is set. Frames of language runtimes are found by runtimes; nil: they are left out.
func Record(ctx context.Context, pid int, file io.WriteSeeker, files Options, runtimes Runtimes, options trace.RecordOptions) (trace.Recorded, error) {
	r := &session{
		files: files, options: options, file: file, runtimes: runtimes, writer: perfdata.NewRuntimeWriter(),
		recorded: trace.Recorded{Roots: map[int]string{}},
	}
	if runtimes != nil {
		defer runtimes.Close()
	}
	if err := r.beginAll(pid); err != nil {
		return r.recorded, err
	}
	err := r.sampleAll(ctx)
	if err == nil && r.recorded.Samples == 0 {
		r.isNothing()
	}
	if runtimes != nil {
		r.recorded.Problems = append(r.recorded.Problems, runtimes.Problems()...)
	}
	return r.recorded, errors.Join(err, r.out.Close())
}

// beginAll begins with the first process, and with the others as far as they can be recorded.
func (s *session) beginAll(pid int) error {
	first, err := s.add(pid)
	if err != nil {
		return err
	}
	s.recorded.PID, s.first = first.pid, first.pid
	s.recorded.Root = s.recorded.Roots[first.pid]
	for _, other := range s.options.Others {
		if _, err := s.add(other); err != nil {
			s.problem("%v: it is not recorded", err)
		}
	}
	return nil
}

// add begins with a process.
func (s *session) add(pid int) (*recorder, error) {
	state, err := readStatus(fmt.Sprintf("/proc/%d", pid))
	if isGone(err) || pid <= 0 {
		return nil, ended(pid)
	}
	if err != nil {
		return nil, err
	}
	r := &recorder{session: s, pid: state.leader, started: state.started, names: map[int]*threadName{}}
	if err := r.begin(); err != nil {
		return nil, err
	}
	s.processes = append(s.processes, r)
	return r, nil
}

// begin reads the state of a process that is needed before it is stopped. With the first process
// it writes the part of the recording before the samples.
func (r *recorder) begin() error {
	if err := r.again(); err != nil {
		return err
	}
	c := r.copied
	var set *sdk.RegisterSet
	if c.description != nil {
		set = c.description.RegisterSet(sdk.PerfSample, "", 0)
	}
	if set == nil || order.Uint16([]byte{1, 0}) != 1 {
		return fmt.Errorf("process %d: no architecture says which registers are in samples of its machine (%v)", c.pid, elf.Machine(c.machine.elf))
	}
	mask, inOrder := sampled(set)
	if r.out != nil && mask != r.mask {
		return fmt.Errorf("process %d: its registers are others than process %d has: record it by itself", c.pid, r.first)
	}
	if hasOwnMounts(c) {
		// An open folder can still be reached when the process has ended.
		root, err := unix.Open(c.dir()+"/root", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("process %d: its root directory: %w", c.pid, err)
		}
		r.recorded.Roots[c.pid] = fmt.Sprintf("/proc/self/fd/%d", root)
	}
	if r.out != nil {
		return nil
	}
	r.mask, r.order = mask, inOrder
	return r.beginFile()
}

// beginFile writes the part of the recording before the samples.
func (s *session) beginFile() error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	s.out = perfdata.NewWriter(s.file, perfdata.WriterOptions{
		Event: s.event(), Arch: unix.ByteSliceToString(name.Machine[:]), OSRelease: unix.ByteSliceToString(name.Release[:]), Hostname: unix.ByteSliceToString(name.Nodename[:]),
		WallClock: uint64(time.Now().UnixNano()), Clock: now(), ClockID: unix.CLOCK_MONOTONIC, //nolint:gosec // after 1970
		Registers: s.mask, HasRaw: !s.options.OnlyRunning || s.runtimes != nil,
	})
	return nil
}

// sampled returns the registers of a perf register set: as the bits of sample_regs_user, and as
// numbers in the order of these bits.
func sampled(set *sdk.RegisterSet) (mask uint64, inOrder []uint32) {
	for bit := range uint32(64) {
		i := slices.IndexFunc(set.Fields, func(f sdk.RegisterField) bool { return f.Offset == bit })
		if i >= 0 {
			mask |= 1 << bit
			inOrder = append(inOrder, set.Fields[i].Register)
		}
	}
	return mask, inOrder
}

// now returns the time of samples.
func now() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // there is always one
	return uint64(t.Nano())                         //nolint:gosec // since the boot
}

// again begins anew with a process that executes another program now.
func (r *recorder) again() error {
	pid := r.pid
	c, s, err := inspect(pid, &r.files)
	if err != nil {
		return err
	}
	if c.undescribed != nil {
		return fmt.Errorf("process %d: %w", pid, c.undescribed)
	}
	c.isSample, c.wanted, c.hasWaits = true, r.wants, !r.options.OnlyRunning
	if err := c.prepare(isNeverLost); err != nil {
		return s.deny(pid, err)
	}
	r.copied, r.mapped, r.isPrepared = c, nil, false
	return nil
}

// isNeverLost is isLost for callers that need no code of a process.
func isNeverLost(*mapping) bool { return false }

func (s *session) problem(format string, args ...any) {
	s.recorded.Problems = append(s.recorded.Problems, fmt.Sprintf(format, args...))
}

// sample takes the samples of one moment.
func (r *recorder) sample() error {
	for attempt := 1; ; attempt++ {
		err := r.stop()
		switch {
		case err == nil:
			r.write()
			return r.hasRoom()
		case !isThere(r.pid):
			return ended(r.pid)
		case attempt == maxAttempts:
			return err
		case !isGone(err) && !errors.Is(err, ErrEnded) && !errors.Is(err, errChanged):
			s, e := readStatus(fmt.Sprintf("/proc/%d", r.pid))
			if e != nil {
				return err
			}
			return s.deny(r.pid, err)
		}
		time.Sleep(time.Millisecond << attempt)
		if err := r.again(); err != nil && attempt+1 == maxAttempts {
			return err
		}
	}
}

// stop copies the threads. Copied code is kept as long as the mappings are the same.
func (r *recorder) stop() error {
	c := r.copied
	c.pieces = c.pieces[:0]
	c.buffer.used = 0
	r.prepareRuntimes()
	if err := c.copyStopped(isNeverLost); err != nil {
		return err
	}
	r.recorded.Stopped += c.stopped
	r.recorded.Longest = max(r.recorded.Longest, c.longest)
	return nil
}

// write writes the samples of one moment.
func (r *recorder) write() {
	moment, c := now(), r.copied
	weight := uint64(r.options.Every) //nolint:gosec // not negative
	if r.moment > 0 {
		weight = moment - r.moment
	}
	r.moment = moment
	r.writeMappings(moment)
	seen := make(map[int]*threadName, len(c.threads))
	for _, th := range c.threads {
		if th.isLeftOut {
			seen[th.id] = r.names[th.id]
			r.countWaiting(th)
			continue
		}
		if !th.isStopped || len(th.registers) == 0 {
			continue
		}
		name := r.writeName(th.id, moment)
		seen[th.id] = name
		r.registers = sdk.Registers{}
		r.decode(th, &r.registers)
		r.writeSample(th, name, moment, weight)
	}
	r.names = seen // IDs of threads that have ended may be reused
}

// writeMappings writes the mappings with code that are new.
func (r *recorder) writeMappings(moment uint64) {
	c := r.copied
	if r.mapped == nil {
		r.out.Comm(c.pid, c.pid, moment, r.nameOf(c.pid), true)
	}
	for i := range c.maps {
		m := &c.maps[i]
		if old := find(r.mapped, m.start); m.flags&elf.PF_X == 0 || old != nil && *old == *m {
			continue
		}
		w := perfdata.Mapping{Start: m.start, End: m.end, Offset: m.offset, Prot: uint32(elfRights(m.flags)), Flags: 2, Inode: m.inode, Path: m.path}
		_, _ = fmt.Sscanf(m.device, "%x:%x", &w.Major, &w.Minor)
		switch {
		case m.path == "":
			w.Path = "//anon"
		case m.path == object.VDSOName:
			w.BuildID = r.vdsoID(m)
		case isMemory(c.pid, m):
		case m.isDeleted():
			w.Path = fmt.Sprintf("/proc/%d/map_files/%x-%x", c.pid, m.start, m.end)
			if _, err := os.Stat(w.Path); err != nil {
				w.Path = strings.TrimSuffix(m.path, deletedSuffix)
			}
		}
		r.out.Map(c.pid, moment, &w)
	}
	r.mapped = c.maps
}

// isMemory reports whether a mapping is of memory without a file, which has a name: its code is
// what a runtime made. A file in memory may be an ELF file, whose code is that of a module.
func isMemory(pid int, m *mapping) bool {
	if !perfdata.IsMemory(m.path) {
		return false
	}
	if !strings.HasPrefix(m.path, perfdata.MemFile) {
		return true
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.start, m.end))
	if err != nil {
		return true
	}
	defer f.Close()
	var magic [4]byte
	n, _ := f.ReadAt(magic[:], 0)
	return string(magic[:n]) != elf.ELFMAG
}

// elfRights returns the protection of a mapping as mmap(2) takes it.
func elfRights(flags elf.ProgFlag) (prot int) {
	for flag, bit := range map[elf.ProgFlag]int{elf.PF_R: unix.PROT_READ, elf.PF_W: unix.PROT_WRITE, elf.PF_X: unix.PROT_EXEC} {
		if flags&flag != 0 {
			prot |= bit
		}
	}
	return prot
}

// vdsoID returns the build ID of the process's vDSO, or nil.
func (r *recorder) vdsoID(m *mapping) []byte {
	c := copied{lead: r.copied.lead}
	if m.end-m.start > maxVDSO {
		return nil
	}
	c.copy(m.start, m.end)
	if len(c.pieces) == 0 {
		return nil
	}
	o, err := object.New(object.VDSOName, c.pieces[0].data)
	if err != nil {
		return nil
	}
	defer o.Close()
	return o.BuildID()
}

// writeName writes the name of a thread if it is new. As threads usually get their names soon
// after their start, later it is read less often.
func (r *recorder) writeName(id int, moment uint64) *threadName {
	n := r.names[id]
	if n == nil {
		n = &threadName{}
	}
	if n.reads++; n.reads > 4 && n.reads%64 != 0 {
		return n
	}
	if name := r.nameOf(id); name != "" && name != n.name {
		n.name = name
		r.out.Comm(r.copied.pid, id, moment, name, false)
	}
	return n
}

func (r *recorder) nameOf(id int) string {
	data, err := readFile(fmt.Sprintf("/proc/%d/task/%d/comm", r.copied.pid, id), nil)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

// writeSample writes the sample of a thread.
func (r *recorder) writeSample(th *tracee, name *threadName, moment, weight uint64) {
	d := r.copied.description
	s := perfdata.Sample{PID: r.copied.pid, TID: th.id, Time: moment, Period: weight, Raw: r.rawOf(th, name)}
	s.IP, _ = r.registers.Uint64(d.PC, d.ByteOrder)
	sp, _ := r.registers.Uint64(d.SP, d.ByteOrder)
	s.Registers.ABI = perfdata.Registers64
	if r.copied.machine.class != elf.ELFCLASS64 {
		s.Registers.ABI = perfdata.Registers32
	}
	r.values = r.values[:0]
	for _, register := range r.order {
		value, _ := r.registers.Uint64(register, d.ByteOrder)
		r.values = order.AppendUint64(r.values, value)
	}
	s.Registers.Values = r.values
	for i := range r.copied.pieces {
		if p := &r.copied.pieces[i]; sp >= p.address && sp < p.end() {
			s.Stack = p.data[sp-p.address:]
			break
		}
	}
	r.out.Sample(&s)
	r.recorded.Samples++
}
