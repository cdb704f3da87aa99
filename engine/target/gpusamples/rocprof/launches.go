package rocprof

import (
	"cmp"

	"github.com/unwindd/unwindd/engine/target/gpusamples"
	"github.com/unwindd/unwindd/engine/target/jsontext"
)

// apis are the arrays of calls that may launch, the ones first that say best what did.
var apis = []string{"hip_api", "hsa_api", markers}

// markers is the array of calls that only mark what the program does.
const markers = "marker_api"

// maxAncestors bounds the calls that a call is made in.
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

// A call is one of an API. Its ID is the correlation ID of what happens in it, and
// that of the call that it was made in is its ancestor; 0: none.
type call struct {
	kind, operation uint64
	ancestor        uint64
	start, end      uint64
	thread          int // -1: not told
	rank            int // of its array in apis
}

// launches are those of a process. Millions of calls may have launched nothing: only those
// that dispatches name are kept, with those that they were made in.
type launches struct {
	process       *process
	byCorrelation map[uint64]int32 // in facts
	byThread      map[int]int32    // of dispatches without a correlation ID
	arrays        []callArray
	calls         map[uint64]call
	ambiguous     map[uint64]bool // calls that are described twice, and differently
	isLate        bool            // a dispatch came behind calls
}

// A callArray is where an array of calls is.
type callArray struct{ at, rank int }

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
	return int(i)
}

// read reads an array of calls. Dispatches stand before calls, as a rule.
func (l *launches) read(r *jsontext.Reader, rank int) error {
	r.Next()
	l.arrays = append(l.arrays, callArray{r.At, rank})
	if len(l.byCorrelation) == 0 {
		return r.Skip()
	}
	return l.scan(r, rank, func(id uint64) bool { _, ok := l.byCorrelation[id]; return ok })
}

// scan keeps the calls that are wanted.
func (l *launches) scan(r *jsontext.Reader, rank int, isWanted func(id uint64) bool) error {
	return l.process.each(r, l.process.file.newRecords(callFields, maxRecord), func(v *values, _ int) error {
		id, ok := v.number(callID)
		if !ok || !isWanted(id) {
			return nil
		}
		c := call{thread: id31(v.number(callThread)), rank: rank}
		c.kind, _ = v.number(callKind)
		c.operation, _ = v.number(callOperation)
		c.ancestor, _ = v.number(callAncestor)
		c.start, _ = v.number(callStart)
		c.end, _ = v.number(callEnd)
		return l.keep(id, c)
	})
}

// keep keeps a call.
func (l *launches) keep(id uint64, c call) error {
	before, again := l.calls[id]
	if again && (before.rank < c.rank || before == c) {
		return nil
	}
	if again && before.rank == c.rank {
		if l.ambiguous == nil {
			l.ambiguous = map[uint64]bool{}
		}
		if !l.ambiguous[id] {
			l.process.problem("the call of correlation ID %d is described twice, and differently: neither is used", id)
		}
		l.ambiguous[id] = true
	}
	if !again {
		if err := l.process.file.keep(160); err != nil {
			return err
		}
	}
	l.calls[id] = c
	return nil
}

// isCall says whether a call has a correlation ID.
func (l *launches) isCall(id uint64) bool { _, ok := l.calls[id]; return ok && !l.ambiguous[id] }

// find finds the calls that were not known to be wanted when they were read.
func (l *launches) find() {
	missing := map[uint64]bool{}
	want := func(id uint64) {
		if _, known := l.calls[id]; !known && id > 0 {
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
		for _, c := range l.calls {
			want(c.ancestor)
		}
		found := len(l.calls)
		if len(missing) == 0 {
			return
		}
		for _, a := range l.arrays {
			l.scanAgain(a, func(id uint64) bool { return missing[id] })
		}
		if clear(missing); len(l.calls) == found {
			return
		}
	}
}

// scanAgain scans an array that was read before. What is wrong with its records was said
// then.
func (l *launches) scanAgain(a callArray, isWanted func(id uint64) bool) {
	f := l.process.file
	said, silenced, givenUp := len(f.problems), f.silenced, f.givenUp
	_ = l.scan(f.reader(a.at), a.rank, isWanted) // where the text is cut is known, too
	f.problems, f.silenced, f.givenUp = f.problems[:said], silenced, givenUp
}

// resolve says of launches what call made them: the outermost one, in which others may
// have been made.
func (l *launches) resolve() {
	facts := &l.process.file.facts
	for _, i := range l.byThread {
		facts.Launches[i].PID = l.process.pid
	}
	for id, i := range l.byCorrelation {
		launch := &facts.Launches[i]
		launch.PID = l.process.pid
		if !l.isCall(id) {
			continue
		}
		c := l.calls[id]
		for range maxAncestors {
			if !l.isCall(c.ancestor) || apis[l.calls[c.ancestor].rank] == markers {
				break
			}
			c = l.calls[c.ancestor]
		}
		launch.TID = cmp.Or(max(c.thread, 0), launch.TID)
		launch.API = l.process.texts.operation(c.kind, c.operation)
		launch.Time, launch.HasTime = c.start, c.start > 0
		if launch.HasEnd = launch.HasTime && c.end >= c.start; launch.HasEnd {
			launch.End = c.end
		}
	}
	l.calls, l.ambiguous = nil, nil
}
