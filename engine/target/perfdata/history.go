// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"
	"sort"

	"github.com/unwindd/unwindd/engine/object"
)

// historyVersions is what the IDs of a History's Spaces begin at: those of a
// Reader count from 1.
const historyVersions = 1 << 62

// A History is what some processes had mapped, and their threads' names, in the
// course of a recording. It does not change.
type History struct {
	spaces map[int][]moment[*Space]
	names  map[threadID][]moment[string]
}

// A moment is from when on something was so.
type moment[T any] struct {
	from uint64
	what T
}

type threadID struct{ pid, tid int }

// History goes over the records of a recording. Its Spaces have IDs that no
// Reader's have. The error is that the file was cut while it was mapped.
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

// note keeps what a record that was applied changed.
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
		if v := p.version(s); len(spaces) == 0 || spaces[len(spaces)-1].what.Code != v.Code {
			h.spaces[pid] = append(spaces, moment[*Space]{time, v})
		}
	}
	id := threadID{pid, tid}
	if t := s.threads[tid]; t != nil && t.pid == pid {
		if names := h.names[id]; len(names) == 0 || names[len(names)-1].what != t.comm {
			h.names[id] = append(names, moment[string]{time, t.comm})
		}
	}
}

// Space is what a process had mapped at a time; nil where nothing is known.
func (h *History) Space(pid int, time uint64) *Space {
	return at(h.spaces[pid], time)
}

// Spaces are what a process had mapped, one after the other, as far as its code
// is concerned.
func (h *History) Spaces(pid int) []*Space {
	var all []*Space
	for _, m := range h.spaces[pid] {
		all = append(all, m.what)
	}
	return all
}

// Comm is the name of a thread at a time; "" where it is not known.
func (h *History) Comm(pid, tid int, time uint64) string {
	return at(h.names[threadID{pid, tid}], time)
}

// at is what was so at a time.
func at[T any](moments []moment[T], time uint64) (what T) {
	if i := sort.Search(len(moments), func(i int) bool { return moments[i].from > time }); i > 0 {
		what = moments[i-1].what
	}
	return what
}
