// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
)

// A RecordType is the type of a record: the kernel's (enum perf_event_type) and,
// from 64 on, those of perf (enum perf_user_event_type).
type RecordType uint32

// The types that are read.
const (
	recordMmap        RecordType = 1
	recordLost        RecordType = 2
	recordComm        RecordType = 3
	recordExit        RecordType = 4
	recordFork        RecordType = 7
	recordSample      RecordType = 9
	recordMmap2       RecordType = 10
	recordLostSamples RecordType = 13
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

// String is the name without PERF_RECORD_.
func (t RecordType) String() string {
	if uint64(t) < uint64(len(recordNames)) && recordNames[t] != "" {
		return recordNames[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// The bits of misc that are read. Their meaning depends on the type.
const (
	miscModeMask    = 7
	miscMmapData    = 1 << 13
	miscCommExec    = 1 << 13
	miscForkExec    = 1 << 13 // the parent's mappings are not those of the child
	miscMmapBuildID = 1 << 14
	miscBuildIDSize = 1 << 15 // of build_id_event: the size stands behind the ID
)

// A record is one of an area. data is the whole record with its header; it is
// shorter than the header says where the area ends within it, and isCut is true.
type record struct {
	kind  RecordType
	misc  uint16
	isCut bool
	at    uint64 // in its area
	data  []byte
}

// An area is bytes that hold records one after the other.
type area struct {
	data   []byte
	start  uint64 // where the records begin
	isPipe bool   // tracing data follows its record
	name   string // of the file beside that with the header; "" of that one
	packed uint64 // compressed records
	// isLater says that the file follows another of the same recording.
	isLater bool
	// isUnpacked says that the bytes were compressed in a file.
	isUnpacked bool
	order      endian

	mapping *object.Mapping // that data is of; nil: it is no file
}

const recordHeader = 8

// next reads the record at an offset, and says where the next one is. done is
// true where none can be read; err then says why, or is nil at the end. A record
// that is not whole is the last.
func (a *area) next(at uint64, r *record) (next uint64, done bool, err error) {
	size := uint64(len(a.data))
	if at >= size {
		return at, true, nil
	}
	rest := a.data[at:]
	if len(rest) < recordHeader {
		return at, true, fmt.Errorf("the file ends %d bytes into a record's header", len(rest))
	}
	length := uint64(a.order.u16(rest[6:]))
	*r = record{kind: RecordType(a.order.u32(rest)), misc: a.order.u16(rest[4:]), at: at}
	if length < recordHeader {
		return at, true, fmt.Errorf("a record (%v) of %d bytes, expected %d at least: what comes after it cannot be read", r.kind, length, recordHeader)
	}
	if length > uint64(len(rest)) {
		r.data, r.isCut = rest, true
		return size, false, fmt.Errorf("the file ends %d bytes into a record (%v) of %d bytes", len(rest), r.kind, length)
	}
	r.data = rest[:length:length]
	next = at + length
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
