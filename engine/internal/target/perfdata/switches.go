// SPDX-License-Identifier: Apache-2.0

package perfdata

// SwitchKind is the kind of a Switch.
type SwitchKind uint8

// The kinds.
const (
	// SwitchIn: the thread runs from then on (SWITCH, SWITCH_CPU_WIDE).
	SwitchIn SwitchKind = iota
	// SwitchOut: the thread does not run any more.
	SwitchOut
	// SwitchPreempt is SwitchOut of a thread that would have run on.
	SwitchPreempt
	// SwitchExit: the thread ends (EXIT).
	SwitchExit
	// SwitchStart: the thread begins (FORK).
	SwitchStart
	// SwitchLost: records were lost before (LOST, LOST_SAMPLES), or are not written from then on,
	// or up to then (THROTTLE, UNTHROTTLE). It has no thread.
	SwitchLost
)

// Switch is a record that says when a thread runs.
type Switch struct {
	// Before is how many samples of the batch come before it.
	Before int
	Kind   SwitchKind
	// IsWide: the record is of a whole CPU (SWITCH_CPU_WIDE).
	IsWide bool
	TID    int // -1: not known
	Time   uint64
}

// maxSwitches bounds the switches of a batch.
const maxSwitches = 4096

// KeepSwitches makes the Reader deliver Batch.Switches. Call it before Next. Batches may have
// switches and no samples then.
func (r *Reader) KeepSwitches() { r.keepsSwitches = true }

// HasSwitches reports whether the recording has records of switches.
func (f *File) HasSwitches() bool { return f.counts[recordSwitch]+f.counts[recordSwitchWide] > 0 }

// switchOf reads a record that says when a thread runs.
func (f *File) switchOf(r *record) (s Switch, ok bool) {
	s.TID = -1
	s.Time, _ = f.attrs.time(r, f.order)
	switch r.kind {
	case recordLost, recordLostSamples, recordThrottle, recordUnthrottle:
		s.Kind = SwitchLost
		return s, true
	case recordExit:
		d := fields{b: f.attrs.body(r, f.order), order: f.order}
		d.u64() // the processes
		s.Kind, s.TID = SwitchExit, int(int32(d.u32()))
		return s, !d.isShort
	case recordFork:
		d := fields{b: f.attrs.body(r, f.order), order: f.order}
		d.u64() // the processes
		s.Kind, s.TID = SwitchStart, int(int32(d.u32()))
		return s, !d.isShort
	case recordSwitch, recordSwitchWide:
		s.IsWide = r.kind == recordSwitchWide
	default:
		return s, false
	}
	switch {
	case r.misc&miscSwitchOut == 0:
	case r.misc&miscSwitchPreempt != 0:
		s.Kind = SwitchPreempt
	default:
		s.Kind = SwitchOut
	}
	s.TID = f.attrs.thread(r, f.order)
	return s, s.TID >= 0
}
