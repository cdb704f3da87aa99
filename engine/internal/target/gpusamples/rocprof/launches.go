// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"math"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

// apis are the arrays of calls that may launch, the most telling ones first.
var apis = []string{"hip_api", "hsa_api", markers}

// markers is the array of calls by which a program only marks its progress.
const markers = "marker_api"

// maxAncestors bounds the nesting of calls.
const maxAncestors = 8

// The members of a call (save_buffer_tracing_api_record).
const (
	callKind = iota
	callOperation
	callThread
	callID
	callAncestor
	callStart
	callEnd
)

var callFields = []field{
	{path: "kind"}, {path: "operation"}, {path: "thread_id"}, {path: "correlation_id.internal"}, {path: "correlation_id.ancestor"},
	{path: "start_timestamp"}, {path: "end_timestamp"},
}

// call is a call of an API. Its ID is the correlation ID of the operations in it; ancestor
// is the ID of the call that it is nested in; 0: none.
type call struct {
	ancestor        uint64
	start, end      uint64
	kind, operation uint32
	thread          int32 // -1: unknown
	rank            int8  // index of its array in apis
	state           callState
}

// callState is how far a call is known.
type callState uint8

const (
	callUnknown   callState = iota
	callKnown               // a record describes it
	callAmbiguous           // several records describe it differently
)

// launches are the launches of a process. Millions of calls may have launched nothing: only
// calls of dispatches are kept, and the calls that they are nested in.
type launches struct {
	process       *process
	first         int              // in facts
	byCorrelation map[uint64]int32 // in facts
	byThread      map[int]int32    // of dispatches without a correlation ID
	arrays        []callArray
	calls         []call          // of the launches from first on
	others        map[uint64]call // the calls that these are nested in
	isLate        bool            // a dispatch came behind calls
}

// callArray is the place of an array of calls.
type callArray struct{ offset, rank int }

// add returns the index of the launch of a correlation ID, or of a thread.
func (l *launches) add(correlation uint64, thread int) int {
	if correlation == 0 && thread < 0 {
		return -1
	}
	i, known := l.byThread[thread]
	if correlation > 0 {
		i, known = l.byCorrelation[correlation]
	}
	if known {
		return int(i)
	}
	facts := &l.process.file.facts
	i = int32(len(facts.Launches)) //nolint:gosec // bounded by keep
	if correlation > 0 {
		l.byCorrelation[correlation] = i
		l.isLate = l.isLate || len(l.arrays) > 0
	} else {
		l.byThread[thread] = i
	}
	facts.Launches = append(facts.Launches, gpusamples.Launch{PID: -1, TID: thread})
	l.calls = append(l.calls, l.others[correlation])
	return int(i)
}

// call returns the call of a correlation ID; its state is callUnknown where there is none.
func (l *launches) call(id uint64) call {
	if i, ok := l.byCorrelation[id]; ok {
		return l.calls[int(i)-l.first]
	}
	return l.others[id]
}

// read reads an array of calls. Dispatches are before calls, as a rule.
func (l *launches) read(r *jsontext.Reader, rank int) error {
	r.Next()
	l.arrays = append(l.arrays, callArray{r.At, rank})
	if len(l.byCorrelation) == 0 {
		return r.Skip()
	}
	return l.scan(r, rank, func(id uint64) bool { _, ok := l.byCorrelation[id]; return ok })
}

// scan adds the calls that are wanted.
func (l *launches) scan(r *jsontext.Reader, rank int, isWanted func(id uint64) bool) error {
	return l.process.each(r, l.process.file.newRecords(callFields, maxRecord), func(v *values, _ int) error {
		id, ok := v.number(callID)
		if !ok || !isWanted(id) {
			return nil
		}
		c := call{thread: int32(id31(v.number(callThread))), rank: int8(rank), state: callKnown} //nolint:gosec // of 31 bits; there are few
		kind, _ := v.number(callKind)
		operation, _ := v.number(callOperation)
		c.kind, c.operation = uint32(min(kind, math.MaxUint32)), uint32(min(operation, math.MaxUint32)) //nolint:gosec // bounded
		c.ancestor, _ = v.number(callAncestor)
		c.start, _ = v.number(callStart)
		c.end, _ = v.number(callEnd)
		return l.addCall(id, c)
	})
}

// addCall adds a call.
func (l *launches) addCall(id uint64, c call) error {
	before := l.call(id)
	isDifferent := before != c
	switch {
	case before.state == callUnknown:
	case before.rank < c.rank || !isDifferent || before.rank == c.rank && before.state == callAmbiguous:
		return nil
	case before.rank == c.rank:
		l.process.problem("the call of correlation ID %d is described twice, and differently: neither is used", id)
		c.state = callAmbiguous
	}
	if i, ok := l.byCorrelation[id]; ok {
		l.calls[int(i)-l.first] = c
		return nil
	}
	if _, again := l.others[id]; !again {
		if err := l.process.file.account(128); err != nil {
			return err
		}
	}
	l.others[id] = c
	return nil
}

// isCall reports whether exactly one call has a correlation ID.
func (l *launches) isCall(id uint64) bool { return l.call(id).state == callKnown }

// find finds the calls that were not known to be wanted when they were read.
func (l *launches) find() {
	missing := map[uint64]bool{}
	want := func(id uint64) {
		if id > 0 && l.call(id).state == callUnknown {
			missing[id] = true
		}
	}
	for _, id := range l.process.undescribed {
		want(id)
	}
	if l.isLate {
		for id := range l.byCorrelation {
			want(id)
		}
	}
	for range maxAncestors {
		for i := range l.calls {
			want(l.calls[i].ancestor)
		}
		for _, c := range l.others {
			want(c.ancestor)
		}
		if len(missing) == 0 {
			return
		}
		for _, a := range l.arrays {
			l.scanAgain(a, func(id uint64) bool { return missing[id] })
		}
		wanted := len(missing)
		for id := range missing {
			if l.call(id).state != callUnknown {
				delete(missing, id)
			}
		}
		if len(missing) == wanted {
			return
		}
		clear(missing)
	}
}

// scanAgain scans an array that was read before, without adding its problems again.
func (l *launches) scanAgain(a callArray, isWanted func(id uint64) bool) {
	f := l.process.file
	said, abandoned := f.problems, f.abandoned
	_ = l.scan(f.reader(a.offset), a.rank, isWanted) // a truncated text is a problem already
	f.problems, f.abandoned = said, abandoned
}

// resolve sets the call of each launch: the outermost one.
func (l *launches) resolve() {
	facts := &l.process.file.facts
	for _, i := range l.byThread {
		facts.Launches[i].PID = l.process.pid
	}
	for id, i := range l.byCorrelation {
		launch := &facts.Launches[i]
		launch.PID = l.process.pid
		c := l.call(id)
		if c.state != callKnown {
			continue
		}
		for range maxAncestors {
			outer := l.call(c.ancestor)
			if outer.state != callKnown || apis[outer.rank] == markers {
				break
			}
			c = outer
		}
		if c.thread >= 0 {
			launch.TID = int(c.thread)
		}
		launch.API = l.process.texts.operation(c.kind, c.operation)
		launch.Time, launch.HasTime = c.start, c.start > 0
		if launch.HasEnd = launch.HasTime && c.end >= c.start; launch.HasEnd {
			launch.End = c.end
		}
	}
	l.calls, l.others, l.byCorrelation, l.byThread = nil, nil, nil, nil
}
