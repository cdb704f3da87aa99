// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/trace"
)

// setDeadlocks sets the deadlocks, for the text and as IDs of threads.
func (h *Head) setDeadlocks(list []trace.Deadlock) {
	h.deadlocks = list
	for i := range list {
		var ids []string
		for k := range list[i].Links {
			ids = append(ids, list[i].Links[k].Thread.ID)
		}
		h.Target.Deadlocks = append(h.Target.Deadlocks, ids)
	}
}

// maxDeadlocks is how many deadlocks the text describes.
const maxDeadlocks = 4

// deadlocks writes the deadlocks, each in a line.
func (t *text) deadlocks(list []trace.Deadlock) {
	for i := range list[:min(len(list), maxDeadlocks)] {
		t.printf("%s %s\n", t.warn("deadlock:"), list[i].String())
	}
	if n := len(list) - maxDeadlocks; n > 0 {
		t.printf("%s %d more\n", t.warn("deadlock:"), n)
	}
}

// maxWaits is how many different waits of the threads of a group the text lists.
const maxWaits = 8

// waits writes what the threads of a group wait for: each object once, with its threads where
// they wait for several. Of several objects without a name and an owner only the kind is written.
func (t *text) waits(g *group) {
	texts, waiting := textsOfWaits(g.threads, false)
	if len(texts) > 1 {
		texts, waiting = textsOfWaits(g.threads, true)
	}
	for i, text := range texts {
		ids := waiting[text]
		switch {
		case i == maxWaits:
			t.printf("  %s\n", t.faint(fmt.Sprintf("and for %d other objects", len(texts)-i)))
			return
		case g.count == 1:
			t.printf("  waits for %s\n", text)
		case ids.count == g.count:
			t.printf("  wait for %s\n", text)
		case ids.count == 1:
			t.printf("  %s waits for %s\n", ids.String(), text)
		default:
			t.printf("  %s wait for %s\n", ids.String(), text)
		}
	}
}

// textsOfWaits returns the texts of what threads wait for, in the order of the threads, and the
// threads of each. isShort leaves out addresses that are all that is known.
func textsOfWaits(threads []member, isShort bool) (texts []string, waiting map[string]*idList) {
	waiting = map[string]*idList{}
	for i := range threads {
		m := &threads[i]
		if m.wait == nil {
			continue
		}
		w := *m.wait
		if isShort && w.Owner == nil && w.Name == "" && w.Readers == 0 && w.Why == "" {
			w.HasAddress = false
		}
		text := w.Text(m.Thread)
		if waiting[text] == nil {
			waiting[text] = &idList{}
			texts = append(texts, text)
		}
		waiting[text].add(m.ID)
	}
	return texts, waiting
}
