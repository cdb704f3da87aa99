// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
)

// Mode is the mode that a CPU was in.
type Mode uint8

// The modes (PERF_RECORD_MISC_CPUMODE_MASK).
const (
	ModeUnknown Mode = iota
	ModeKernel
	ModeUser
	ModeHypervisor
	ModeGuestKernel
	ModeGuestUser
)

// IsGuest reports whether a CPU ran a virtual machine's code.
func (m Mode) IsGuest() bool { return m == ModeGuestKernel || m == ModeGuestUser }

// Sample is a SAMPLE record. Fields that the event does not record are zero, except
// PID, TID and CPU, which then are -1.
type Sample struct {
	Event   int // index in File.Attrs; -1 where it is not known
	PID     int
	TID     int
	CPU     int
	Mode    Mode
	Time    uint64 // nanoseconds, of the event's clock
	IP      uint64
	Address uint64 // of PERF_SAMPLE_ADDR
	// DataSource is the memory that the instruction accessed, and Latency the cost of that as the
	// processor weighs it, mostly in its cycles.
	DataSource DataSource
	Latency    uint64
	// Period is how many events the sample stands for: 1 where the file only has the
	// frequency of samples. The values of PERF_SAMPLE_READ are skipped: a sample of a
	// group counts for its leader.
	Period    uint64
	Registers Registers // of user mode
	// Stack is the copied part of the user's stack, from its stack pointer on.
	Stack []byte
	Chain Chain
	// Calls are the calls of the user's stack as the CPU recorded them; none where the
	// event records no branches, or branches of another type.
	Calls Calls
	// Raw is the data of a tracepoint (PERF_SAMPLE_RAW), which a Tracepoint describes. Like the
	// stack it is a part of the file.
	Raw []byte
	// Comm is the thread's name at that time; "" where it is unknown.
	Comm string
	// Space has the mappings of the process at that time; nil for an unknown
	// process.
	Space *Space
	// Offset is the record's offset, in the file or in its unpacked records.
	Offset       uint64
	IsCompressed bool
	// Problem names the first field that could not be read, and the reason.
	Problem string
}

// The values of Registers.ABI (enum perf_sample_regs_abi).
const (
	RegistersNone = 0 // there was no user mode: a kernel thread
	Registers32   = 1
	Registers64   = 2
)

// Registers are the registers of a sample, as sdk.RegisterSet.DecodeSample takes
// them.
type Registers struct {
	ABI  uint64
	Mask uint64
	// Values are eight bytes for each bit of Mask, the lowest first, in the byte
	// order of the file.
	Values []byte
}

// Context is the part of the system that an address of a call chain belongs to.
type Context uint8

// The contexts (enum perf_callchain_context).
const (
	ContextUnknown Context = iota // of no marker, or of one that is not known
	ContextHypervisor
	ContextKernel
	ContextUser
	ContextGuest
	ContextGuestKernel
	ContextGuestUser
	// ContextUserDeferred is the cookie of a CALLCHAIN_DEFERRED record, which follows
	// with the chain when the thread is in user mode again. A Sample has it where the
	// recording has no such record.
	ContextUserDeferred
)

// IsGuest reports whether an address is a virtual machine's.
func (c Context) IsGuest() bool {
	return c == ContextGuest || c == ContextGuestKernel || c == ContextGuestUser
}

// contexts are the markers. Every value from maxContext on is a marker.
var contexts = map[uint64]Context{
	contextMarker(32):   ContextHypervisor,
	contextMarker(128):  ContextKernel,
	contextMarker(512):  ContextUser,
	contextMarker(640):  ContextUserDeferred,
	contextMarker(2048): ContextGuest,
	contextMarker(2176): ContextGuestKernel,
	contextMarker(2560): ContextGuestUser,
}

func contextMarker(n uint64) uint64 { return -n }

const maxContext = ^uint64(4095) + 1

// Chain is a call chain as the kernel wrote it: addresses, innermost first,
// with markers of contexts among them.
type Chain struct {
	raw   []byte
	order endian
}

// Len returns the number of words, markers included.
func (c Chain) Len() int { return len(c.raw) / 8 }

// At returns a word. From -4095 on it is a marker.
func (c Chain) At(i int) uint64 { return c.order.u64(c.raw[8*i:]) }

// All yields the addresses, each with its context. The first of each context is the
// instruction pointer; the others are return addresses.
func (c Chain) All() iter.Seq2[Context, uint64] {
	return func(yield func(Context, uint64) bool) {
		context := ContextUnknown
		for i := range c.Len() {
			v := c.At(i)
			if v >= maxContext {
				context = contexts[v]
				continue
			}
			if !yield(context, v) {
				return
			}
		}
	}
}

// Has reports whether the chain has an address of a context.
func (c Chain) Has(context Context) bool {
	for each := range c.All() {
		if each == context {
			return true
		}
	}
	return false
}

// Calls are the calls that a thread was in, innermost first, as the CPU recorded
// them: PERF_SAMPLE_BRANCH_STACK with PERF_SAMPLE_BRANCH_CALL_STACK, which perf record
// --call-graph lbr requests. A CPU records the 8 to 32 innermost.
type Calls struct {
	raw   []byte
	order endian
}

// branchSize is the size of struct perf_branch_entry.
const branchSize = 24

// Len returns the number of calls.
func (c Calls) Len() int { return len(c.raw) / branchSize }

// From returns the address of a call instruction.
func (c Calls) From(i int) uint64 { return c.order.u64(c.raw[branchSize*i:]) }

// To returns the address that a call went to.
func (c Calls) To(i int) uint64 { return c.order.u64(c.raw[branchSize*i+8:]) }

// decode reads a SAMPLE record, whose fields are in the order of their bits, except
// the first (perf_event.h at PERF_RECORD_SAMPLE).
func (f *File) decode(r *record, s *Sample) {
	*s = Sample{PID: -1, TID: -1, CPU: -1, Mode: Mode(r.misc & miscModeMask), Offset: r.offset, Period: 1}
	index, reason := f.attrs.eventOf(r, f.order)
	s.Event = index
	var a *Attr
	switch {
	case index >= 0:
		a = &f.attrs.list[index]
	case f.attrs.areAlike && len(f.attrs.list) > 0:
		a = &f.attrs.list[0]
		s.Problem = reason
	default:
		s.Problem = reason
		return
	}
	if a.Flags&FlagFreq == 0 && a.SamplePeriod > 0 {
		s.Period = a.SamplePeriod
	}
	d := sampleFields{fields: fields{b: r.data[min(recordHeader, len(r.data)):], order: f.order}}
	field := d.sample(a, s)
	if field == "" && len(s.Raw) > 0 && a.IsOffCPUTime() {
		field = s.readOffCPU(f.order)
	}
	if field != "" {
		s.Problem = fmt.Sprintf("%s of the sample goes beyond its record of %d bytes", field, len(r.data))
		if r.isCut {
			s.Problem = fmt.Sprintf("the file ends %d bytes into the sample, before its %s", len(r.data), field)
		}
	} else if s.Problem == "" && r.isCut {
		s.Problem = fmt.Sprintf("the file ends %d bytes into the sample", len(r.data))
	}
	if len(f.deferred) > 0 {
		f.mergeDeferred(s)
	}
	if d.excess > 0 && s.Problem == "" {
		s.Problem = fmt.Sprintf("its stack says that %d bytes were copied, which is more than it has", d.excess)
	}
}

// sampleFields reads the fields of a sample.
type sampleFields struct {
	fields
	excess uint64 // bytes said to be copied, where the stack has fewer
}

// words returns n words of eight bytes.
func (d *sampleFields) words(n uint64) []byte { return d.records(n, 8) }

// records returns n times size bytes.
func (d *sampleFields) records(n, size uint64) []byte {
	if n > uint64(len(d.b))/size {
		d.b, d.isShort = nil, true
		return nil
	}
	return d.bytes(n * size)
}

// registers reads the registers of a mask; there are none where the thread has no user
// mode.
func (d *sampleFields) registers(mask uint64) Registers {
	r := Registers{ABI: d.u64(), Mask: mask}
	if r.ABI == RegistersNone || d.isShort {
		return Registers{}
	}
	if r.Values = d.words(uint64(bits.OnesCount64(mask))); d.isShort {
		return Registers{}
	}
	return r
}

// branches reads the branch stack: its length, with HW_INDEX the index of its top in the
// CPU, the entries, and with COUNTERS a word for each entry.
func (d *sampleFields) branches(a *Attr, s *Sample) {
	n := d.u64()
	if a.BranchSampleType&branchHWIndex != 0 {
		d.u64()
	}
	entries := d.records(n, branchSize)
	if a.BranchSampleType&branchCounters != 0 {
		d.words(n)
	}
	if a.BranchSampleType&branchCallStack != 0 && !d.isShort {
		s.Calls = Calls{entries, d.order}
	}
}

// skipRead skips a struct read_format.
func (d *sampleFields) skipRead(format uint64) {
	count := func(mask uint64) uint64 { return uint64(bits.OnesCount64(format & mask)) }
	const times = formatTotalTimeEnabled | formatTotalTimeRunning
	if format&formatGroup == 0 {
		d.words(1 + count(times|formatID|formatLost))
		return
	}
	n := d.u64()
	d.words(count(times))
	d.records(n, 8*(1+count(formatID|formatLost)))
}

// rest reads the fields after the stack, and goes over those that are not needed to find whether
// they are there.
func (d *sampleFields) rest(a *Attr, s *Sample) (short string) {
	t := a.SampleType
	switch {
	case t&SampleWeight != 0:
		s.Latency = d.u64()
	case t&SampleWeightStruct != 0:
		s.Latency = d.u64() & math.MaxUint32 // its first part
	}
	if t&SampleDataSrc != 0 {
		s.DataSource = DataSource(d.u64())
	}
	if t&SampleTransaction != 0 {
		d.u64()
	}
	if t&SampleRegsIntr != 0 {
		d.registers(a.SampleRegsIntr)
	}
	d.words(uint64(bits.OnesCount64(uint64(t & (SamplePhysAddr | SampleCgroup | SampleDataPageSize | SampleCodePageSize)))))
	if t&SampleAux != 0 {
		d.bytes(d.u64())
	}
	if d.isShort {
		return "what comes after STACK_USER"
	}
	return ""
}

// sample reads the fields of a sample, and returns the name of the first one that the
// record lacks.
func (d *sampleFields) sample(a *Attr, s *Sample) (short string) {
	if short := d.numbers(a, s); short != "" {
		return short
	}
	return d.lists(a, s)
}

// numbers reads the fields of a sample that are numbers, which come first.
func (d *sampleFields) numbers(a *Attr, s *Sample) (short string) {
	t := a.SampleType
	if t&SampleIdentifier != 0 {
		d.u64()
	}
	if t&SampleIP != 0 {
		s.IP = d.u64()
	}
	if d.isShort {
		return "IP"
	}
	if t&SampleTID != 0 {
		pid, tid := d.u32(), d.u32()
		if d.isShort {
			return "TID"
		}
		s.PID, s.TID = int(int32(pid)), int(int32(tid))
	}
	if t&SampleTime != 0 {
		if s.Time = d.u64(); d.isShort {
			return "TIME"
		}
	}
	if t&SampleAddr != 0 {
		s.Address = d.u64()
	}
	if t&SampleID != 0 {
		d.u64()
	}
	if t&SampleStreamID != 0 {
		d.u64()
	}
	if t&SampleCPU != 0 {
		cpu := d.u32()
		if d.u32(); d.isShort {
			return "CPU"
		}
		s.CPU = int(int32(cpu))
	}
	if t&SamplePeriod != 0 {
		period := d.u64()
		if d.isShort {
			return "PERIOD"
		}
		s.Period = period
	}
	return ""
}

// lists reads the fields of a sample that have a size of their own.
func (d *sampleFields) lists(a *Attr, s *Sample) (short string) {
	t := a.SampleType
	if t&SampleRead != 0 {
		if d.skipRead(a.ReadFormat); d.isShort {
			return "READ"
		}
	}
	if t&SampleCallchain != 0 {
		if s.Chain = (Chain{d.words(d.u64()), d.order}); d.isShort {
			return "CALLCHAIN"
		}
	}
	if t&SampleRaw != 0 {
		if s.Raw = d.bytes(uint64(d.u32())); d.isShort {
			return "RAW"
		}
	}
	if t&SampleBranchStack != 0 {
		if d.branches(a, s); d.isShort {
			return "BRANCH_STACK"
		}
	}
	if t&SampleRegsUser != 0 {
		if s.Registers = d.registers(a.SampleRegsUser); d.isShort {
			return "REGS_USER"
		}
	}
	if t&SampleStackUser != 0 {
		if size := d.u64(); size > 0 {
			stack := d.bytes(size)
			used := d.u64()
			if used > uint64(len(stack)) && !d.isShort {
				d.excess = used
				used = 0
			}
			s.Stack = stack[:min(used, uint64(len(stack)))]
		}
		if d.isShort {
			return "STACK_USER"
		}
	}
	return d.rest(a, s)
}
