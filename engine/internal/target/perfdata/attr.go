// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"
	"math/bits"
)

// SampleType is the set of fields that samples have (perf_event_attr.sample_type).
type SampleType uint64

// The bits of SampleType (enum perf_event_sample_format).
const (
	SampleIP SampleType = 1 << iota
	SampleTID
	SampleTime
	SampleAddr
	SampleRead
	SampleCallchain
	SampleID
	SampleCPU
	SamplePeriod
	SampleStreamID
	SampleRaw
	SampleBranchStack
	SampleRegsUser
	SampleStackUser
	SampleWeight
	SampleDataSrc
	SampleIdentifier
	SampleTransaction
	SampleRegsIntr
	SamplePhysAddr
	SampleAux
	SampleCgroup
	SampleDataPageSize
	SampleCodePageSize
	SampleWeightStruct
)

// The bits of read_format (enum perf_event_read_format).
const (
	formatTotalTimeEnabled = 1 << iota
	formatTotalTimeRunning
	formatID
	formatGroup
	formatLost
)

// The bits of branch_sample_type that are read (enum perf_branch_sample_type).
const (
	branchCallStack = 1 << 11
	branchHWIndex   = 1 << 17
	branchCounters  = 1 << 19

	// branchLayout are the bits that decide which fields a sample has.
	branchLayout = branchHWIndex | branchCounters
)

// AttrFlags are the one-bit members of struct perf_event_attr, the first of them
// in bit 0 whatever the byte order of the file is. precise_ip has bits 15 and 16.
type AttrFlags uint64

// The flags that decide how records are read.
const (
	FlagFreq         AttrFlags = 1 << 10 // SamplePeriod is a frequency
	FlagEnableOnExec AttrFlags = 1 << 12 // of a program that perf starts
	FlagSampleIDAll  AttrFlags = 1 << 18 // records other than SAMPLE have an id
	FlagNoUserChains AttrFlags = 1 << 22 // chains end where user mode begins
	FlagMmap2        AttrFlags = 1 << 23
	FlagCommExec     AttrFlags = 1 << 24 // COMM records mark an exec
	FlagUseClockID   AttrFlags = 1 << 25
	FlagBuildID      AttrFlags = 1 << 34 // MMAP2 records may have build IDs
)

// Attr is an event that was recorded (struct perf_event_attr).
type Attr struct {
	// Name is the event's name as given to perf; "" where the file has none.
	Name             string
	Type             uint32 // PERF_TYPE_*, or a PMU's number
	Config           uint64
	SamplePeriod     uint64 // events for each sample, or samples a second with FlagFreq
	SampleType       SampleType
	ReadFormat       uint64
	Flags            AttrFlags
	Config1          uint64
	Config2          uint64
	BranchSampleType uint64
	SampleRegsUser   uint64 // mask of the registers in Sample.Registers
	SampleStackUser  uint32 // bytes of stack that were requested
	ClockID          int32  // of Sample.Time, with FlagUseClockID
	SampleRegsIntr   uint64

	layout layout
}

// HasBranches reports whether samples have records of branches that are no calls of the stack.
func (a *Attr) HasBranches() bool {
	return a.SampleType&SampleBranchStack != 0 && a.BranchSampleType&branchCallStack == 0
}

// minAttr is PERF_ATTR_SIZE_VER0.
const minAttr = 64

// readAttr reads a perf_event_attr. Members beyond its end are zero.
func readAttr(order endian, b []byte) (Attr, error) {
	if len(b) < minAttr {
		return Attr{}, fmt.Errorf("an attribute of %d bytes, expected %d at least", len(b), minAttr)
	}
	f := fields{b: b, order: order}
	a := Attr{Type: f.u32()}
	if size := f.u32(); size >= minAttr && uint64(size) < uint64(len(b)) {
		f.b = b[8:size]
	}
	a.Config = f.u64()
	a.SamplePeriod = f.u64()
	a.SampleType = SampleType(f.u64())
	a.ReadFormat = f.u64()
	flags := f.u64()
	if order {
		// Compilers for big-endian machines put the first member into the highest bit.
		precise := flags >> (64 - 17) & 3
		flags = bits.Reverse64(flags)&^(3<<15) | precise<<15
	}
	a.Flags = AttrFlags(flags)
	f.bytes(8) // wakeup_events, bp_type
	a.Config1 = f.u64()
	a.Config2 = f.u64()
	a.BranchSampleType = f.u64()
	a.SampleRegsUser = f.u64()
	a.SampleStackUser = f.u32()
	a.ClockID = int32(f.u32())
	a.SampleRegsIntr = f.u64()
	a.layout = newLayout(&a)
	return a, nil
}

// layout has the offsets of a record's time and event id: from its start in samples,
// from its end in other records. 0 stands for a field that is absent.
type layout struct {
	sampleTime, sampleID int
	tailTime, tailID     int
	tail                 int // size of struct sample_id
}

func newLayout(a *Attr) layout {
	words := func(mask SampleType) int { return 8 * bits.OnesCount64(uint64(a.SampleType&mask)) }
	has := func(bit SampleType) bool { return a.SampleType&bit != 0 }
	var l layout
	if has(SampleTime) {
		l.sampleTime = 8 + words(SampleIdentifier|SampleIP|SampleTID)
	}
	switch {
	case has(SampleIdentifier):
		l.sampleID = 8
	case has(SampleID):
		l.sampleID = 8 + words(SampleIP|SampleTID|SampleTime|SampleAddr)
	}
	if a.Flags&FlagSampleIDAll == 0 {
		return l
	}
	l.tail = words(SampleTID | SampleTime | SampleID | SampleStreamID | SampleCPU | SampleIdentifier)
	if has(SampleTime) {
		l.tailTime = words(SampleTime | SampleID | SampleStreamID | SampleCPU | SampleIdentifier)
	}
	switch {
	case has(SampleIdentifier):
		l.tailID = 8
	case has(SampleID):
		l.tailID = words(SampleID | SampleStreamID | SampleCPU | SampleIdentifier)
	}
	return l
}

// hasSameFields reports whether the samples of two events have the same fields.
func (a *Attr) hasSameFields(b *Attr) bool {
	return a.SampleType == b.SampleType && a.ReadFormat == b.ReadFormat && a.Flags&FlagSampleIDAll == b.Flags&FlagSampleIDAll &&
		a.BranchSampleType&branchLayout == b.BranchSampleType&branchLayout &&
		a.SampleRegsUser == b.SampleRegsUser && a.SampleRegsIntr == b.SampleRegsIntr
}

// attrs are the events of a file, and the ids by which records name them.
type attrs struct {
	list []Attr
	ids  map[uint64]int
	// common is the layout that all events share; a member is -1 where they differ.
	common   layout
	areAlike bool // the samples of all events have the same fields
	lost     int  // ids beyond maxIDs
}

const (
	maxAttrs = 1 << 14
	maxIDs   = 1 << 21
)

func (a *attrs) add(attr Attr, order endian, ids []byte) error {
	if len(a.list) >= maxAttrs {
		return fmt.Errorf("more than %d events", maxAttrs)
	}
	if len(a.list) == 0 {
		a.common, a.areAlike = attr.layout, true
		a.ids = map[uint64]int{}
	}
	index := len(a.list)
	a.list = append(a.list, attr)
	for _, p := range [][2]*int{
		{&a.common.sampleTime, &attr.layout.sampleTime}, {&a.common.sampleID, &attr.layout.sampleID},
		{&a.common.tailTime, &attr.layout.tailTime}, {&a.common.tailID, &attr.layout.tailID}, {&a.common.tail, &attr.layout.tail},
	} {
		if *p[0] != *p[1] {
			*p[0] = -1
		}
	}
	a.areAlike = a.areAlike && a.list[0].hasSameFields(&attr)
	a.addIDs(index, order, ids)
	return nil
}

func (a *attrs) addIDs(index int, order endian, ids []byte) {
	for ; len(ids) >= 8; ids = ids[8:] {
		id := order.u64(ids)
		if _, ok := a.ids[id]; ok {
			continue
		}
		if len(a.ids) >= maxIDs {
			a.lost += len(ids) / 8
			return
		}
		a.ids[id] = index
	}
}

// The reasons why the event of a record is unknown.
const (
	eventKnown      = ""
	eventNone       = "the file describes no event before it"
	eventUnknownID  = "its event id is that of no event of the file"
	eventAmbiguous  = "the events of the file have their ids at different places"
	eventIDBeyond   = "the record ends before its event id"
	eventlessSample = -1
)

// eventOf returns the index of a record's event, or eventlessSample and the reason
// where it is unknown.
func (a *attrs) eventOf(r *record, order endian) (index int, reason string) {
	switch len(a.list) {
	case 0:
		return eventlessSample, eventNone
	case 1:
		return 0, eventKnown
	}
	idOffset := a.common.sampleID
	if r.kind != recordSample {
		if idOffset = a.common.tailID; idOffset > 0 {
			idOffset = len(r.data) - idOffset
		}
		if a.common.tailID > 0 && idOffset < 8 {
			return eventlessSample, eventIDBeyond
		}
	}
	if idOffset <= 0 {
		return eventlessSample, eventAmbiguous
	}
	if idOffset+8 > len(r.data) {
		return eventlessSample, eventIDBeyond
	}
	id := order.u64(r.data[idOffset:])
	if index, ok := a.ids[id]; ok {
		return index, eventKnown
	}
	if id == 0 { // perf itself wrote the record
		return 0, eventKnown
	}
	return eventlessSample, eventUnknownID
}

// time returns the time of a record; ok is false where it has none.
func (a *attrs) time(r *record, order endian) (t uint64, ok bool) {
	sample, tail := a.common.sampleTime, a.common.tailTime
	if sample < 0 || tail < 0 {
		index, _ := a.eventOf(r, order)
		if index < 0 {
			return 0, false
		}
		sample, tail = a.list[index].layout.sampleTime, a.list[index].layout.tailTime
	}
	offset := sample
	if r.kind != recordSample {
		if tail == 0 {
			return 0, false
		}
		offset = len(r.data) - tail
	}
	if offset < 8 || offset+8 > len(r.data) {
		return 0, false
	}
	t = order.u64(r.data[offset:])
	return t, t != ^uint64(0)
}

// body returns a record other than SAMPLE without its header and its sample_id.
func (a *attrs) body(r *record, order endian) []byte {
	tail := a.common.tail
	if tail < 0 {
		index, _ := a.eventOf(r, order)
		tail = 0
		if index >= 0 {
			tail = a.list[index].layout.tail
		}
	}
	if end := len(r.data) - tail; end >= 8 {
		return r.data[8:end]
	}
	return nil
}
