// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"slices"
	"sync"
)

// maxEvents bounds what is remembered of a plugin's troubles.
const maxEvents = 64

// An eventLog is what happened to a plugin, for the output.
type eventLog struct {
	plugin string

	mu      sync.Mutex
	events  []event
	dropped int
}

type event struct {
	text      string
	isDeath   bool // of a process, after which it may be restarted
	isRestart bool // a process runs again
	isLasting bool // it is so as long as the plugin is used
}

// add notes an event. text continues "plugin NAME".
func (l *eventLog) add(text string) { l.note(event{text: text}) }

// died notes the death of a process.
func (l *eventLog) died(text string) { l.note(event{text: text, isDeath: true}) }

// once notes what is so from now on, unless it has been noted.
func (l *eventLog) once(text string) {
	l.mu.Lock()
	known := slices.ContainsFunc(l.events, func(e event) bool { return e.text == text })
	l.mu.Unlock()
	if !known {
		l.note(event{text: text, isLasting: true})
	}
}

// forget forgets the events so far, but for what is still so.
func (l *eventLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = slices.DeleteFunc(l.events, func(e event) bool { return !e.isLasting })
	l.dropped = 0
}

func (l *eventLog) note(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) >= maxEvents {
		l.dropped++
		return
	}
	l.events = append(l.events, e)
}

// restarted says that a process runs again after the deaths so far.
func (l *eventLog) restarted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.events {
		l.events[i].isRestart = l.events[i].isDeath
	}
}

// list is the events as sentences.
func (l *eventLog) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.events {
		s := fmt.Sprintf("plugin %s %s", l.plugin, e.text)
		if e.isRestart {
			s += "; restarted"
		}
		out = append(out, s)
	}
	if l.dropped > 0 {
		out = append(out, fmt.Sprintf("plugin %s had %d more problems", l.plugin, l.dropped))
	}
	return out
}
