// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file chooses the events of a profile: which are shown, under which name, and which of
// them comes first.

// eventSynonyms are perf's other names of generic events.
var eventSynonyms = map[string]string{
	"cpu-cycles": "cycles", "branch-instructions": "branches", "faults": "page-faults", "cs": "context-switches", "migrations": "cpu-migrations",
	"idle-cycles-frontend": "stalled-cycles-frontend", "idle-cycles-backend": "stalled-cycles-backend",
}

// processorTime are the events that say where the time of processors went.
var processorTime = map[string]bool{"cpu-clock": true, "task-clock": true, "cycles": true}

// eventParts are the parts of an event's name.
type eventParts struct {
	pmu, event, modifiers string
	letters               string // the modifiers in alphabetical order
}

// eventModifiers are the letters behind an event's name in perf's command line.
const eventModifiers = "ukhIGHpPSDWebRMX"

// partsOfEvent divides a name: "cpu_core/cycles:Pu/", "cpu_core/cycles/Pu" or "cycles:Pu".
func partsOfEvent(name string) (parts eventParts) {
	parts.event = name
	if first, last := strings.IndexByte(name, '/'), strings.LastIndexByte(name, '/'); first > 0 && first < last && areModifiers(name[last+1:]) {
		parts.pmu, parts.event, parts.modifiers = name[:first], name[first+1:last], name[last+1:]
	}
	if i := strings.LastIndexByte(parts.event, ':'); i > 0 && i+1 < len(parts.event) && areModifiers(parts.event[i+1:]) {
		parts.event, parts.modifiers = parts.event[:i], parts.event[i+1:]+parts.modifiers
	}
	letters := []byte(parts.modifiers)
	slices.Sort(letters)
	parts.letters = string(letters)
	return parts
}

func areModifiers(text string) bool { return strings.Trim(text, eventModifiers) == "" }

// general is the name that an event's synonyms share.
func general(name string) string {
	if synonym, ok := eventSynonyms[name]; ok {
		return synonym
	}
	return name
}

// eventNames are the names of a profile's events by which they are found.
type eventNames struct {
	shown   []string // by event, from event -1 on; "": it has no sample and no name
	parts   []eventParts
	meaning []string // general names
}

// eventMatches are tests for whether a name means an event, the most exact first. Each takes the
// index of the event's names, and the name with its parts.
var eventMatches = []func(names *eventNames, i int, name string, parts *eventParts) bool{
	func(n *eventNames, i int, name string, _ *eventParts) bool { return n.shown[i] == name },
	func(n *eventNames, i int, _ string, parts *eventParts) bool {
		return n.parts[i].event == parts.event && n.parts[i].pmu == parts.pmu && n.hasModifiers(i, parts)
	},
	func(n *eventNames, i int, _ string, parts *eventParts) bool {
		return n.parts[i].event == parts.event && parts.pmu == "" && n.hasModifiers(i, parts)
	},
	func(n *eventNames, i int, _ string, parts *eventParts) bool {
		return n.meaning[i] == general(parts.event) && (parts.pmu == "" || n.parts[i].pmu == parts.pmu) && n.hasModifiers(i, parts)
	},
}

// hasModifiers reports whether an event has the modifiers that were named, if any were.
func (n *eventNames) hasModifiers(i int, parts *eventParts) bool {
	return parts.letters == "" || n.parts[i].letters == parts.letters
}

// find returns the events that a name means, as indices of names.
func (n *eventNames) find(name string) (found []int) {
	parts := partsOfEvent(name)
	for _, isMatch := range eventMatches {
		for i := range n.shown {
			if n.shown[i] != "" && isMatch(n, i, name, &parts) {
				found = append(found, i)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// eventChoice is the events that a profile is written of.
type eventChoice struct {
	p *trace.Profile
	// samples and weights are the amounts of each event, from event -1 on.
	samples []int
	weights []uint64
	names   eventNames
	chosen  []bool
	// first and last are the times of samples by the recording's clock; last is 0 without any.
	first, last uint64
}

// chooseEvents chooses the named events, or all. It returns the profile with the events of
// several PMUs that count the same joined, unless one is named with its PMU.
func chooseEvents(p *trace.Profile, requested []string) (*eventChoice, error) {
	c := &eventChoice{p: p}
	c.count()
	c.nameEvents()
	isSplit := make([]bool, len(c.samples))
	c.chosen = make([]bool, len(c.samples))
	for i := range c.chosen {
		c.chosen[i] = len(requested) == 0 && c.names.shown[i] != ""
	}
	for _, name := range requested {
		found := c.names.find(name)
		if len(found) == 0 {
			return nil, c.unknownEvent(name)
		}
		for _, i := range found {
			c.chosen[i] = true
			isSplit[i] = isSplit[i] || partsOfEvent(name).pmu != ""
		}
	}
	c.join(isSplit)
	return c, nil
}

// count counts the samples of events.
func (c *eventChoice) count() {
	c.samples, c.weights = make([]int, len(c.p.Events)+1), make([]uint64, len(c.p.Events)+1)
	c.first, c.last = math.MaxUint64, 0
	for i := range c.p.Samples {
		s := &c.p.Samples[i]
		if s.Time != 0 && (s.Event < 0 || !c.p.Events[s.Event].OtherClock) {
			c.first, c.last = min(c.first, s.Time), max(c.last, s.Time)
		}
		c.samples[s.Event+1] += int(s.Count()) //nolint:gosec // 65,536 at most
		c.weights[s.Event+1] = add(c.weights[s.Event+1], s.Total())
	}
}

// nameEvents finds the names of events.
func (c *eventChoice) nameEvents() {
	n := len(c.samples)
	c.names = eventNames{make([]string, n), make([]eventParts, n), make([]string, n)}
	for i := range n {
		name := c.shownName(i)
		c.names.shown[i], c.names.meaning[i] = name, general(name)
		if i == 0 {
			c.names.parts[i].event = name
			continue
		}
		e := &c.p.Events[i-1]
		parts := partsOfEvent(oneLine(e.Name))
		if parts.pmu == "" {
			parts.pmu = oneLine(e.PMU)
		}
		c.names.parts[i], c.names.meaning[i] = parts, general(parts.event)
		if e.Meaning != "" {
			c.names.meaning[i] = e.Meaning
		}
	}
}

// shownName is a name that no other event has. The unknown event has the name "" where it has
// no sample.
func (c *eventChoice) shownName(i int) string {
	if i == 0 {
		if c.samples[0] == 0 {
			return ""
		}
		return unknownEvent
	}
	name := oneLine(c.p.Events[i-1].Name)
	same := 1
	for _, e := range c.p.Events[:i-1] {
		if oneLine(e.Name) == name {
			same++
		}
	}
	if same > 1 || name == "" || name == unknownEvent {
		name += fmt.Sprintf("#%d", same)
	}
	return name
}

// unknownEvent is the error for a name that no event has.
func (c *eventChoice) unknownEvent(name string) error {
	names := slices.DeleteFunc(append(slices.Clone(c.names.shown[1:]), c.names.shown[0]), func(name string) bool { return name == "" })
	return fmt.Errorf("%s: no event %s, expected one of: %s", c.p.Path, name, strings.Join(names, ", "))
}

// joinKey is equal for events that count the same.
type joinKey struct {
	meaning, letters string
	like             trace.ProfileEvent
}

// join joins chosen events of different PMUs that count the same into the first of them.
func (c *eventChoice) join(isSplit []bool) {
	into := make([]int16, len(c.samples))
	for i := range into {
		into[i] = int16(i) - 1 //nolint:gosec // events are numbered by int16
	}
	var events []trace.ProfileEvent
	for _, group := range c.joinable(isSplit) {
		if len(group) < 2 {
			continue
		}
		if events == nil {
			events = slices.Clone(c.p.Events)
		}
		first := group[0]
		name := c.joinedName(group)
		c.names.shown[first], events[first-1].Name, events[first-1].PMU = name, name, ""
		for _, i := range group[1:] {
			into[i], c.chosen[i] = into[first], false
			c.samples[first] += c.samples[i]
			c.weights[first] = add(c.weights[first], c.weights[i])
		}
	}
	if events == nil {
		return
	}
	joined := *c.p
	joined.Events, joined.Samples = events, slices.Clone(c.p.Samples)
	for i := range joined.Samples {
		s := &joined.Samples[i]
		s.Event = into[s.Event+1]
	}
	c.p = &joined
}

// joinable are groups of chosen events that count the same, each by a PMU of its own.
func (c *eventChoice) joinable(isSplit []bool) (groups [][]int) {
	index := map[joinKey]int{}
	for i := 1; i < len(c.samples); i++ {
		parts := &c.names.parts[i]
		if !c.chosen[i] || isSplit[i] || parts.pmu == "" {
			continue
		}
		key := joinKey{c.names.meaning[i], parts.letters, c.p.Events[i-1]}
		key.like.Name, key.like.PMU, key.like.Meaning = "", "", ""
		g, ok := index[key]
		if !ok {
			g = len(groups)
			index[key] = g
			groups = append(groups, nil)
		}
		if !slices.ContainsFunc(groups[g], func(j int) bool { return c.names.parts[j].pmu == parts.pmu }) {
			groups[g] = append(groups[g], i)
		}
	}
	return groups
}

// joinedName is the name of events that are joined: the one without a PMU, unless another event
// has it.
func (c *eventChoice) joinedName(group []int) string {
	parts := &c.names.parts[group[0]]
	name := parts.event
	if slices.ContainsFunc(group, func(i int) bool { return c.names.parts[i].event != name }) {
		name = c.names.meaning[group[0]]
	}
	if parts.modifiers != "" {
		name += ":" + parts.modifiers
	}
	unique := name
	for n := 2; c.isTaken(unique, group); n++ {
		unique = fmt.Sprintf("%s#%d", name, n)
	}
	return unique
}

// isTaken reports whether an event that is not in a group has a name.
func (c *eventChoice) isTaken(name string, group []int) bool {
	for i, shown := range c.names.shown {
		if shown == name && !slices.Contains(group, i) {
			return true
		}
	}
	return false
}

// order is the chosen events that have samples, as they are shown: the first is the one that says
// where the time of processors went, or else threads off them, or else the heaviest, by samples
// where units differ; the others are in the order of the recording, and an unknown event comes last. empty are the chosen ones without samples.
func (c *eventChoice) order() (shown, empty []int16) {
	for i := range c.chosen {
		event := int16(i) //nolint:gosec // events are numbered by int16
		if i == len(c.p.Events) {
			event = -1
		}
		switch {
		case !c.chosen[event+1]:
		case c.samples[event+1] == 0:
			empty = append(empty, event)
		default:
			shown = append(shown, event)
		}
	}
	best := 0
	for i := range shown {
		if c.isBefore(shown[i], shown[best]) {
			best = i
		}
	}
	if best > 0 {
		first := shown[best]
		shown = slices.Insert(slices.Delete(shown, best, best+1), 0, first)
	}
	return shown, empty
}

// isBefore reports whether an event has more to say at first than another one.
func (c *eventChoice) isBefore(a, b int16) bool {
	if x, y := c.rank(a), c.rank(b); x != y {
		return x < y
	}
	if unitOf(c.p, a) != unitOf(c.p, b) {
		return c.samples[a+1] > c.samples[b+1]
	}
	return c.weights[a+1] > c.weights[b+1]
}

// rank is 0 for the time of processors, 1 for the time off them, and 2 for all else.
func (c *eventChoice) rank(event int16) int {
	switch {
	case event < 0 || c.p.Events[event].Device:
		return 2
	case processorTime[c.names.meaning[event+1]]:
		return 0
	case c.p.Events[event].Name == trace.OffCPUEvent:
		return 1
	}
	return 2
}

// unitOf is the unit of an event's weights.
func unitOf(p *trace.Profile, event int16) string {
	if event < 0 {
		return "count"
	}
	return p.Events[event].Unit
}

// seconds is the time from the first sample to the last; 0: it is not known.
func (c *eventChoice) seconds() float64 {
	if c.first >= c.last {
		return 0
	}
	return float64(c.last-c.first) / 1e9
}
