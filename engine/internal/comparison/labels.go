// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"maps"
	"slices"
)

// Processes calls f with the process and the labels of each target that was added, in the order of WithLabels. The map is
// f's.
func (p *Part) Processes(f func(host string, pid int64, labels map[string]string)) {
	for i := range p.records {
		r := &p.records[i]
		labels := make(map[string]string, len(r.labels)/2)
		for k := 0; k+1 < len(r.labels); k += 2 {
			labels[p.texts.list[r.labels[k]]] = p.texts.list[r.labels[k+1]]
		}
		f(p.texts.list[r.host], r.pid, labels)
	}
}

// WithLabels returns the Part with other labels, which labels returns for a target by its number. Only Result may be called of
// it, before p is changed.
func (p *Part) WithLabels(labels func(i int) map[string]string) *Part {
	records := slices.Clone(p.records)
	for i := range records {
		set := labels(i)
		records[i].labels = nil
		for _, name := range slices.Sorted(maps.Keys(set)) {
			records[i].labels = append(records[i].labels, p.texts.number(name), p.texts.number(set[name]))
		}
	}
	labelled := *p
	labelled.records = records
	return &labelled
}
