// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"
	"sort"

	"github.com/unwindd/unwindd/engine/object"
)

// historyVersions is the first ID of a History's Spaces; the IDs of a Reader's count
// from 1.
const historyVersions = 1 << 62

// History has the mappings of some processes, and their threads' names, in the
// course of a recording. It does not change.
type History struct {
	spaces map[int][]moment[*Space]
	names  map[threadID][]moment[string]
}

// moment is a value and the time from which on it is valid.
type moment[T any] struct {
	start uint64
	value T
}

type threadID struct{ pid, tid int }

// History returns the mappings and names of processes over a recording. Its Spaces have
// IDs of their own, different from any Reader's. An error means that the file was
// truncated while it was mapped.
func (f *File) History(pids []int) (*History, error) {
	h := &History{spaces: map[int][]moment[*Space]{}, names: map[threadID][]moment[string]{}}
	for _, pid := range pids {
		h.spaces[pid] = nil
	}
	r := f.Reader()
	r.state.versions = historyVersions
	err := object.Guard(func() error {
		time := uint64(0)
		for {
			area, ok := r.next(&r.current)
			if !ok {
				return r.changed
			}
			if t, ok := f.attrs.time(&r.current, f.order); ok {
				time = max(time, t)
			}
			if r.current.kind != recordSample {
				r.state.apply(&r.current, area)
				h.note(&r.state, &r.current, time)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return h, nil
}

// note adds the changes that an applied record made.
func (h *History) note(s *state, r *record, time uint64) {
	d := fields{b: s.file.attrs.body(r, s.file.order), order: s.file.order}
	pid, second, third := int(int32(d.u32())), int(int32(d.u32())), int(int32(d.u32()))
	spaces, wanted := h.spaces[pid]
	if !wanted {
		return
	}
	var tid int
	switch r.kind {
	case recordMmap, recordMmap2, recordComm:
		tid = second
	case recordFork: // pid, ppid, tid
		tid = third
	default:
		return
	}
	if p := s.processes[pid]; p != nil {
		if v := p.version(s); len(spaces) == 0 || spaces[len(spaces)-1].value.Code != v.Code {
			h.spaces[pid] = append(spaces, moment[*Space]{time, v})
		}
	}
	id := threadID{pid, tid}
	if t := s.threads[tid]; t != nil && t.pid == pid {
		if names := h.names[id]; len(names) == 0 || names[len(names)-1].value != t.comm {
			h.names[id] = append(names, moment[string]{time, t.comm})
		}
	}
}

// Space returns the mappings of a process at a time; nil where they are unknown.
func (h *History) Space(pid int, time uint64) *Space {
	return valueAt(h.spaces[pid], time)
}

// Spaces returns the successive mappings of a process, one for each change of its
// executable mappings.
func (h *History) Spaces(pid int) []*Space {
	var all []*Space
	for _, m := range h.spaces[pid] {
		all = append(all, m.value)
	}
	return all
}

// Comm returns the name of a thread at a time; "" where it is unknown.
func (h *History) Comm(pid, tid int, time uint64) string {
	return valueAt(h.names[threadID{pid, tid}], time)
}

// valueAt returns the value at a time.
func valueAt[T any](moments []moment[T], time uint64) (value T) {
	if i := sort.Search(len(moments), func(i int) bool { return moments[i].start > time }); i > 0 {
		value = moments[i-1].value
	}
	return value
}
