// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// maxOTLP is the largest size of a message of Protocol Buffers.
const maxOTLP = math.MaxInt32

// WriteOTLP writes the profile as a message ProfilesData of OpenTelemetry
// (opentelemetry/proto/profiles/v1development/profiles.proto), which is not compressed.
//
// Every process is a resource, and has a profile for each value that its samples have.
// Samples that differ only in their time are merged. Locations are as in WritePprof, and also
// have the kind of their code, and marks of guesses.
func (r *Profile) WriteOTLP(w io.Writer) error {
	for message, err := range r.otlpMessages(maxOTLP) {
		if err != nil {
			return err
		}
		if size := message.size(); size > maxOTLP {
			return fmt.Errorf("%s: the profile has %d bytes as one message of OTLP, expected at most %d", r.p.Path, size, maxOTLP)
		}
		if err := message.write(w); err != nil {
			return err
		}
	}
	return nil
}

// OTLPRequests are the messages that carry the profile to a collector: each is both a
// ProfilesData and an ExportProfilesServiceRequest, complete in itself, and has at most limit
// bytes. A sample that is larger alone is a message by itself.
func (r *Profile) OTLPRequests(limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for message, err := range r.otlpMessages(limit) {
			var request encoded
			if err == nil {
				request = make(encoded, 0, message.size())
				err = message.write(&request)
			}
			if !yield(request, err) || err != nil {
				return
			}
		}
	}
}

// otlpMessages are the messages with all samples. WriteOTLP writes a single one.
func (r *Profile) otlpMessages(limit int) iter.Seq2[*otlpMessage, error] {
	return func(yield func(*otlpMessage, error) bool) {
		b := r.newOTLP()
		message := newOTLPMessage(b, limit)
		for _, i := range b.order() {
			if message.add(&b.sums[i]) {
				continue
			}
			if !yield(message, message.finish()) {
				return
			}
			message = newOTLPMessage(b, limit)
			message.add(&b.sums[i])
		}
		yield(message, message.finish())
	}
}

// otlpBuilder has the contents of messages, each thing once.
type otlpBuilder struct {
	r     *Profile
	pprof *pprofBuilder

	attributes  []otlpAttribute
	attributeOf map[otlpAttribute]uint32
	mappings    []otlpMapping
	locations   []otlpLocation
	stacks      *stackNumbers

	processes []int // PIDs, by first appearance
	groups    []otlpGroup
	groupOf   map[otlpIdentity]uint32
	sums      []otlpSum
	sumOf     map[otlpKey]uint32

	periods []int64       // by value, for weights
	windows [2]otlpWindow // of samples of the CPU, and of accelerators
}

// otlpIdentity is the differences between samples of one stack.
type otlpIdentity struct {
	pid, tid            int
	comm, state, launch string
}

// otlpGroup is an otlpIdentity in the form of messages.
type otlpGroup struct {
	process    uint32 // index of processes
	attributes []uint32
}

// otlpKey is a sample of one of the profile's values.
type otlpKey struct {
	stack uint32 // its number in stacks
	group uint32
	value int32
}

// otlpSum is a merged sample, with the sum of its values.
type otlpSum struct {
	otlpKey
	index uint32 // of one of the stacks of that number
	sum   int64
}

// otlpWindow is the time from the first sample to the last, by their clock.
type otlpWindow struct {
	first, last uint64
	isKnown     bool
}

func (w *otlpWindow) add(t uint64) {
	if !w.isKnown {
		*w = otlpWindow{t, t, true}
	}
	w.first, w.last = min(w.first, t), max(w.last, t)
}

// newOTLP merges the samples.
func (r *Profile) newOTLP() *otlpBuilder {
	b := &otlpBuilder{
		r: r, pprof: &pprofBuilder{r: r}, attributeOf: map[otlpAttribute]uint32{},
		groupOf: map[otlpIdentity]uint32{}, sumOf: map[otlpKey]uint32{},
	}
	b.attribute(otlpAttribute{})
	b.pprof.begin()
	b.locate()
	values := make([][]int32, len(r.p.Events)+1) // by event, from event -1 on
	for i := range r.values {
		v := &r.values[i]
		values[v.event+1] = append(values[v.event+1], int32(i))
		period := int64(0)
		if r.valueOf[v.event+1] == i {
			period = r.periodOf(v)
		}
		b.periods = append(b.periods, period)
	}
	g := otlpGroups{b: b, last: make(map[trace.ProfileSample]uint32), processOf: map[int]uint32{}}
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		if !r.isRequested(s) {
			continue
		}
		if s.Time != 0 { // some samples of accelerators have none
			b.window(s.Event).add(s.Time)
		}
		group, stack := g.group(s), b.stacks.number(s.Stack)
		for _, v := range values[s.Event+1] {
			n := r.values[v].amount(s)
			if n == 0 && int(v) != r.valueOf[s.Event+1] {
				continue // other values are not in messages
			}
			b.add(otlpKey{stack, group, v}, s.Stack, n)
		}
	}
	return b
}

func (b *otlpBuilder) add(key otlpKey, stack uint32, n uint64) {
	i, ok := b.sumOf[key]
	if !ok {
		i = uint32(len(b.sums))
		b.sumOf[key] = i
		b.sums = append(b.sums, otlpSum{otlpKey: key, index: stack})
	}
	sum := &b.sums[i].sum
	*sum = int64(min(add(uint64(*sum), n), math.MaxInt64))
}

// window is the window of an event's clock.
func (b *otlpBuilder) window(event int16) *otlpWindow {
	if b.r.isOfDevice(event) {
		return &b.windows[1]
	}
	return &b.windows[0]
}

// order is the order of sums in messages: by process, then by value.
func (b *otlpBuilder) order() []uint32 {
	list := make([]uint32, len(b.sums))
	for i := range list {
		list[i] = uint32(i)
	}
	slices.SortFunc(list, func(i, j uint32) int {
		x, y := &b.sums[i], &b.sums[j]
		return cmp.Or(cmp.Compare(b.groups[x.group].process, b.groups[y.group].process), cmp.Compare(x.value, y.value), cmp.Compare(i, j))
	})
	return list
}

// otlpGroups finds the groups of samples.
type otlpGroups struct {
	b         *otlpBuilder
	last      map[trace.ProfileSample]uint32 // by the members of a sample that matter
	processOf map[int]uint32
}

// group is the group of a sample.
func (g *otlpGroups) group(s *trace.ProfileSample) uint32 {
	key := trace.ProfileSample{Thread: s.Thread, State: s.State, Launch: s.Launch}
	group, ok := g.last[key]
	if !ok {
		group = g.find(s)
		g.last[key] = group
	}
	return group
}

// find is group without the cache.
func (g *otlpGroups) find(s *trace.ProfileSample) uint32 {
	b, t := g.b, &g.b.r.p.Threads[s.Thread]
	id := otlpIdentity{pid: max(t.PID, -1), tid: max(t.TID, -1), comm: oneLine(t.Comm), launch: s.Launch.String()}
	if s.State > 0 && int(s.State) < len(b.r.p.States) {
		id.state = oneLine(b.r.p.States[s.State].Name)
	}
	group, ok := b.groupOf[id]
	if ok {
		return group
	}
	process, ok := g.processOf[id.pid]
	if !ok {
		process = uint32(len(b.processes))
		g.processOf[id.pid] = process
		b.processes = append(b.processes, id.pid)
	}
	added := otlpGroup{process: process}
	if id.tid >= 0 {
		added.attributes = append(added.attributes, b.attribute(otlpAttribute{key: otlpThreadID, number: int64(id.tid), isNumber: true}))
	}
	for _, a := range []otlpAttribute{{key: otlpThreadName, text: id.comm}, {key: otlpState, text: id.state}, {key: otlpLaunch, text: id.launch}} {
		if a.text != "" {
			added.attributes = append(added.attributes, b.attribute(a))
		}
	}
	group = uint32(len(b.groups))
	b.groupOf[id] = group
	b.groups = append(b.groups, added)
	return group
}
