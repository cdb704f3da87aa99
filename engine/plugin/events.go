// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"slices"
	"sync"
)

// maxEvents bounds the number of a plugin's events that are kept.
const maxEvents = 64

// eventLog has the events of a plugin, for the output.
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
	isLasting bool // it applies as long as the plugin is used
}

// add records an event. text continues "plugin NAME".
func (l *eventLog) add(text string) { l.note(event{text: text}) }

// died records the death of a process.
func (l *eventLog) died(text string) { l.note(event{text: text, isDeath: true}) }

// once records a lasting event, unless it has been recorded.
func (l *eventLog) once(text string) {
	l.mu.Lock()
	known := slices.ContainsFunc(l.events, func(e event) bool { return e.text == text })
	l.mu.Unlock()
	if !known {
		l.note(event{text: text, isLasting: true})
	}
}

// forget forgets the events so far, except lasting ones.
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

// restarted records that a process runs again after the deaths so far.
func (l *eventLog) restarted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.events {
		l.events[i].isRestart = l.events[i].isDeath
	}
}

// list returns the events as sentences.
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
