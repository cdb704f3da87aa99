// SPDX-License-Identifier: Apache-2.0

// Package chrometrace reads traces in Chrome's format (JSON with a list of events), as PyTorch's
// profiler (Kineto) and many others write them. Spans of a thread that lie within each other
// become stacks; kernels of accelerators are under the stack of the call that launched them.
//
// The text is read once, from front to back. Of an event a few numbers are kept; equal
// names are kept once.
package chrometrace

import (
	"bytes"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// Form is the name of the format.
const Form = "a Chrome trace"

// eventList is the member with the events.
const eventList = "traceEvents"

// Accepts reports whether a file is a trace: an object with a list of events, or such a list.
func Accepts(data []byte) bool {
	r := &jsontext.Reader{Data: data}
	switch r.Next() {
	case '[':
		first := bytes.TrimLeft(data[r.At+1:], " \t\r\n")
		end := bytes.IndexByte(first, '}')
		if len(first) == 0 || first[0] != '{' || end < 0 {
			return false
		}
		return bytes.Contains(first[:end], []byte(`"ph"`))
	case '{':
		if !bytes.Contains(data, []byte(`"`+eventList+`"`)) {
			return false
		}
		found := false
		_ = r.Object(func(name []byte) error {
			if found = string(name) == eventList; found {
				return errFound
			}
			return skip(r)
		})
		return found
	}
	return false
}

var errFound = fmt.Errorf("found")

// reader reads a trace.
type reader struct {
	*stacktree.Builder
	json   *jsontext.Reader
	event  event // that is read
	base   int64 // nanoseconds, added to times
	rank   int64 // of the process among others; -1: not known
	isList bool  // the text is a list of events

	frames             map[string]uint32 // of spans, by name
	texts              map[string]uint32 // other names
	names              []string          // by index in texts
	threads            map[threadKey]*thread
	order              []*thread // of threads, by first appearance
	comms              map[int64]string
	devices            []deviceSpan
	started            map[int64]place // ends of arrows from the CPU to accelerators, by their IDs
	ended              map[place]int64
	calling, operating launches            // by correlation ID, and by external ID
	recorded           map[uint32][]uint32 // frames of recorded stacks, by their Note
	nesting            stacktree.Nesting
	leftOut            map[string]int // events, by why they are left out
	counts             counts
}

// counts has how often something is not as it should be.
type counts struct {
	broken, noTime, badTime, negative, noLaunch, severalLaunches int
	firstBroken                                                  int
}

// threadKey identifies a thread. Words stand for negative numbers.
type threadKey struct{ pid, tid int64 }

// place is a moment of a thread.
type place struct {
	thread threadKey
	time   int64
}

// thread is a thread of a process, or a stream of an accelerator.
type thread struct {
	key   threadKey
	name  string
	spans []stacktree.Span
	open  []uint32 // spans that began and did not end, of traces with separate events for both
}

// Read reads a trace. What follows an error of the text is lost, which is a problem.
func Read(path string, data []byte) (*stacktree.File, error) {
	r := &reader{
		Builder: stacktree.NewBuilder(path, Form), json: &jsontext.Reader{Data: data}, rank: -1,
		frames: map[string]uint32{}, texts: map[string]uint32{}, threads: map[threadKey]*thread{}, comms: map[int64]string{},
		started: map[int64]place{}, ended: map[place]int64{}, leftOut: map[string]int{}, recorded: map[uint32][]uint32{},
	}
	r.isList = r.json.Next() == '['
	var err error
	if r.isList {
		err = r.readEvents()
	} else {
		err = r.json.Object(r.readMember)
	}
	if err != nil {
		r.Problem("%v: what follows is lost", err)
	}
	r.build()
	r.report()
	return r.Finish(), nil
}

// readMember reads a member of the whole trace.
func (r *reader) readMember(name []byte) error {
	switch string(name) {
	case eventList:
		return r.readEvents()
	case "baseTimeNanoseconds":
		if n, ok := r.number(); ok {
			r.base = n.integer
			return nil
		}
	case "distributedInfo":
		if r.json.Next() == '{' {
			return r.json.Object(func(name []byte) error {
				if string(name) == "rank" {
					if n, ok := r.number(); ok && n.integer >= 0 {
						r.rank = n.integer
						return nil
					}
				}
				return skip(r.json)
			})
		}
	}
	return skip(r.json)
}

// readEvents reads the list of events. One that cannot be read is left out.
func (r *reader) readEvents() error {
	return r.json.Array(func(int) error {
		if r.json.Next() == ']' && r.isList {
			return nil // Chrome's own files have a comma at the end
		}
		start := *r.json
		if err := r.readEvent(); err != nil {
			if r.counts.broken++; r.counts.broken == 1 {
				r.counts.firstBroken = start.Offset()
			}
			*r.json = start
			return skip(r.json)
		}
		r.add()
		return nil
	})
}

// report adds the problems of the whole trace.
func (r *reader) report() {
	c := &r.counts
	for _, p := range []struct {
		n    int
		text string
	}{
		{c.broken, fmt.Sprintf("events cannot be read, the first at offset %#x: they are left out", c.firstBroken)},
		{c.noTime, "spans have no duration: they are left out"},
		{c.badTime, "events have a time that is no number of microseconds: they are left out"},
		{c.negative, "spans end before they begin: they are left out"},
		{c.noLaunch, "kernels and copies have no call in the trace that launched them: they are under no stack"},
		{c.severalLaunches, "calls have the correlation ID of another call: what they launched is under no stack"},
	} {
		if p.n > 0 {
			r.Problem("%d %s", p.n, p.text)
		}
	}
	r.nesting.Report()
	r.reportLeftOut()
}

// The reasons why stacks end.
var (
	stopSpan     = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the spans of the trace end here"}
	stopNoLaunch = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the trace does not have the call that launched it"}
)
