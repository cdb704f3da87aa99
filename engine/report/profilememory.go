// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// maxMemoryLines is how many kinds of accesses to memory a summary lists.
const maxMemoryLines = 5

// memoryAccessJSON is a kind of accesses to memory in JSON.
type memoryAccessJSON struct {
	Event     string `json:"event"`
	Operation string `json:"operation,omitempty"`
	Level     string `json:"level,omitempty"`
	Snoop     string `json:"snoop,omitempty"`
	TLB       string `json:"tlb,omitempty"`
	Locked    bool   `json:"locked,omitempty"`
	Samples   uint64 `json:"samples"`
	Latency   uint64 `json:"latency"`
}

// memory writes where samples of perf mem found their data.
func (t *summary) memory() {
	list := t.r.requestedMemory()
	var all uint64
	for i := range list {
		all += list[i].Samples
	}
	if all == 0 {
		return
	}
	t.printf("memory: %s with a place of their data\n", plural(int(min(all, 1<<62)), "sample", "samples")) //nolint:gosec // bounded
	for i := range list {
		if i == maxMemoryLines {
			t.printf("  %s more\n", plural(len(list)-i, "kind", "kinds"))
			break
		}
		m := &list[i]
		t.printf("  %8d  %s  %s", m.Samples, percent(m.Samples, all)[1:], memoryText(m))
		if m.Latency > 0 {
			t.printf(", %d of latency on average", m.Latency/m.Samples)
		}
		t.printf("\n")
	}
}

// memoryText describes a kind of accesses.
func memoryText(m *trace.DataAccess) string {
	parts := []string{m.Operation, m.Level}
	if m.Snoop != "" && m.Snoop != "none" {
		parts = append(parts, "snoop "+m.Snoop)
	}
	if m.TLB != "" {
		parts = append(parts, "TLB "+m.TLB)
	}
	if m.Locked {
		parts = append(parts, "locked")
	}
	var known []string
	for _, p := range parts {
		if p != "" {
			known = append(known, p)
		}
	}
	if len(known) == 0 {
		return "unknown"
	}
	return strings.Join(known, ", ")
}

// requestedMemory returns the accesses of events that are shown.
func (r *Profile) requestedMemory() (list []trace.DataAccess) {
	for _, m := range r.p.Memory {
		if r.isRequested(&trace.ProfileSample{Event: int16(m.Event)}) { //nolint:gosec // an index of events
			list = append(list, m)
		}
	}
	return list
}

// writeMemoryJSON writes the member memory, where there is one.
func (r *Profile) writeMemoryJSON(b output) error {
	list := r.requestedMemory()
	if len(list) == 0 {
		return nil
	}
	out := make([]memoryAccessJSON, len(list))
	for i, m := range list {
		out[i] = memoryAccessJSON{r.p.Events[m.Event].Name, m.Operation, m.Level, m.Snoop, m.TLB, m.Locked, m.Samples, m.Latency}
	}
	b.put(",\n\"memory\":")
	return compactJSON(b, out)
}
