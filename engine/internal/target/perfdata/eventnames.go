// SPDX-License-Identifier: Apache-2.0

package perfdata

// The types of events that have names of their own (enum perf_type_id).
const (
	typeHardware   = 0
	typeSoftware   = 1
	typeTracepoint = 2
)

// hardwareNames and softwareNames are perf's names of the events of enum
// perf_hw_id and perf_sw_ids, by number.
var (
	hardwareNames = [...]string{
		"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "bus-cycles",
		"stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles",
	}
	softwareNames = [...]string{
		"cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults", "major-faults",
		"alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches",
	}
)

// pmuShift is the place in attr.config of the number of the PMU, where a generic event is of one of
// several (PERF_PMU_TYPE_SHIFT).
const pmuShift = 32

// Meaning returns perf's name of a generic event, without its PMU and its modifiers; "" of other
// events.
func (a *Attr) Meaning() string {
	names, config := softwareNames[:], a.Config
	switch a.Type {
	case typeHardware:
		names, config = hardwareNames[:], a.Config&(1<<pmuShift-1)
	case typeSoftware:
	default:
		return ""
	}
	if config < uint64(len(names)) {
		return names[config]
	}
	return ""
}

// PMU returns the number of the PMU that a generic event is of; 0 where there is one for all
// processors.
func (a *Attr) PMU() uint32 {
	if a.Type != typeHardware {
		return 0
	}
	return uint32(a.Config >> pmuShift)
}

// nameEvents names the events that the recording does not name: mostly in pipes of
// before Linux 4.17.
func (f *File) nameEvents() {
	for i := range f.attrs.list {
		if a := &f.attrs.list[i]; a.Name == "" {
			a.Name = a.Meaning()
		}
	}
}

// readEventType reads HEADER_EVENT_TYPE, with which perf named events until
// Linux 3.10: a name and a tracepoint's number or value of attr.config.
func (f *File) readEventType(r *record) {
	d := fields{b: r.data[recordHeader:], order: f.order}
	config, name := d.u64(), text(d.b)
	if d.isShort || name == "" {
		return
	}
	for i := range f.attrs.list {
		if a := &f.attrs.list[i]; a.Config == config && a.Type == typeTracepoint && a.Name == "" {
			a.Name = name
		}
	}
}
