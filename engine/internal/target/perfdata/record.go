// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
)

// RecordType is the type of a record: a type of the kernel (enum perf_event_type) or,
// from 64 on, of perf (enum perf_user_event_type).
type RecordType uint32

// The types that are read.
const (
	recordMmap        RecordType = 1
	recordLost        RecordType = 2
	recordComm        RecordType = 3
	recordExit        RecordType = 4
	recordThrottle    RecordType = 5
	recordUnthrottle  RecordType = 6
	recordFork        RecordType = 7
	recordSample      RecordType = 9
	recordMmap2       RecordType = 10
	recordLostSamples RecordType = 13
	recordSwitch      RecordType = 14
	recordSwitchWide  RecordType = 15
	recordNamespaces  RecordType = 16
	recordKsymbol     RecordType = 17
	recordDeferred    RecordType = 22

	recordUser        RecordType = 64 // perf's own begin here
	recordAttr        RecordType = 64
	recordEventType   RecordType = 65
	recordTracingData RecordType = 66
	recordBuildID     RecordType = 67
	recordAuxtrace    RecordType = 71
	recordEventUpdate RecordType = 78
	recordFeature     RecordType = 80
	recordCompressed  RecordType = 81
	recordCompressed2 RecordType = 83
)

var recordNames = [...]string{
	1: "MMAP", "LOST", "COMM", "EXIT", "THROTTLE", "UNTHROTTLE", "FORK", "READ", "SAMPLE", "MMAP2", "AUX", "ITRACE_START",
	"LOST_SAMPLES", "SWITCH", "SWITCH_CPU_WIDE", "NAMESPACES", "KSYMBOL", "BPF_EVENT", "CGROUP", "TEXT_POKE",
	"AUX_OUTPUT_HW_ID", "CALLCHAIN_DEFERRED",
	64: "HEADER_ATTR", "HEADER_EVENT_TYPE", "HEADER_TRACING_DATA", "HEADER_BUILD_ID", "FINISHED_ROUND", "ID_INDEX",
	"AUXTRACE_INFO", "AUXTRACE", "AUXTRACE_ERROR", "THREAD_MAP", "CPU_MAP", "STAT_CONFIG", "STAT", "STAT_ROUND",
	"EVENT_UPDATE", "TIME_CONV", "HEADER_FEATURE", "COMPRESSED", "FINISHED_INIT", "COMPRESSED2", "BPF_METADATA",
}

// String returns the name without PERF_RECORD_.
func (t RecordType) String() string {
	if uint64(t) < uint64(len(recordNames)) && recordNames[t] != "" {
		return recordNames[t]
	}
	if n := t - recordSimpleperf; n < RecordType(len(simpleperfNames)) && simpleperfNames[n] != "" {
		return simpleperfNames[n]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// The bits of misc that are read. Their meaning depends on the type.
const (
	miscModeMask      = 7
	miscMmapData      = 1 << 13
	miscCommExec      = 1 << 13
	miscForkExec      = 1 << 13 // the child does not have the parent's mappings
	miscMmapBuildID   = 1 << 14
	miscSwitchOut     = 1 << 13
	miscSwitchPreempt = 1 << 14
	miscBuildIDSize   = 1 << 15 // of build_id_event: the size is behind the ID
)

// record is a record of an area. data is the whole record with its header; where the
// area ends within it data is shorter than the header says, and isCut is true.
type record struct {
	kind   RecordType
	misc   uint16
	isCut  bool
	offset uint64 // in its area
	data   []byte
}

// area is bytes with records one after the other.
type area struct {
	data   []byte
	start  uint64 // where the records begin
	isPipe bool   // tracing data follows its record
	name   string // of a file beside the one with the header, whose name is ""
	packed uint64 // compressed records
	// isLater is true where the file follows another of the same recording.
	isLater bool
	// isUnpacked is true where the bytes were compressed in a file.
	isUnpacked bool
	order      endian

	mapping *object.Mapping // of data; nil: it is no file
}

const recordHeader = 8

// next reads the record at an offset, and returns the offset of the next one. done is
// true where none can be read; err is then the reason, or nil at the end. An incomplete
// record is the last.
func (a *area) next(offset uint64, r *record) (next uint64, done bool, err error) {
	size := uint64(len(a.data))
	if offset >= size {
		return offset, true, nil
	}
	rest := a.data[offset:]
	if len(rest) < recordHeader {
		return offset, true, fmt.Errorf("the file ends %d bytes into a record's header", len(rest))
	}
	length := uint64(a.order.u16(rest[6:]))
	*r = record{kind: RecordType(a.order.u32(rest)), misc: a.order.u16(rest[4:]), offset: offset}
	if r.kind >= recordSimpleperf {
		length, r.misc = length+uint64(r.misc)<<16, 0
	}
	if length < recordHeader {
		return offset, true, fmt.Errorf("a record (%v) of %d bytes, expected %d at least: what comes after it cannot be read", r.kind, length, recordHeader)
	}
	if length > uint64(len(rest)) {
		r.data, r.isCut = rest, true
		return size, false, fmt.Errorf("the file ends %d bytes into a record (%v) of %d bytes", len(rest), r.kind, length)
	}
	r.data = rest[:length:length]
	next = offset + length
	var follows uint64
	switch {
	case r.kind == recordAuxtrace && length >= 16:
		follows = a.order.u64(rest[8:])
	case r.kind == recordTracingData && a.isPipe && length >= 12:
		follows = uint64(a.order.u32(rest[8:]))
	}
	if follows > size-next {
		return size, false, fmt.Errorf("%d bytes follow a record (%v), of which the file has %d", follows, r.kind, size-next)
	}
	return next + follows, false, nil
}
