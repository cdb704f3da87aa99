// SPDX-License-Identifier: Apache-2.0

package flamepage

import (
	"cmp"
	"io"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/look"
)

// The data of a page are a header of JSON behind its length, then columns of numbers, deflated
// (RFC 1951) and in base64. Numbers are unsigned LEB128. The columns are:
//
//   - of calls, in preorder: how many levels above the call before is its caller; twice its
//     function, and 1 more for a guess;
//   - of each event's distinct stacks, the most frequent first: the call, from 1 on, less the
//     one before, zigzag;
//   - of each event's samples, by time: microseconds since the one before, where the event is
//     timed; thread, where there are several; stack; weight; base, where there is one.

// packedHeader is the header.
type packedHeader struct {
	Names   []string `json:"names"` // of functions, as their other columns
	Shorts  []string `json:"shorts"`
	Kinds   []Kind   `json:"kinds"`
	Places  []string `json:"places"`
	Modules []string `json:"modules"`
	Threads []Thread `json:"threads"`
	Calls   int      `json:"calls"`

	Events []packedEvent `json:"events"`
}

type packedEvent struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`
	Base    string `json:"base"`
	Count   int    `json:"count"`
	IsTimed bool   `json:"timed"`
	Stacks  int    `json:"stacks"`
	Samples int    `json:"samples"`
}

// packer writes columns of numbers.
type packer struct{ *look.Packer }

// writeData writes the data of a page.
func writeData(w io.Writer, p *Page) error {
	out := &packer{look.NewPacker(w)}
	events := make([]*packedSamples, len(p.Events))
	h := packedHeader{Threads: append([]Thread{}, p.Threads...), Calls: len(p.Calls), Events: []packedEvent{}}
	callers := make([]int32, len(p.Calls))
	for i := range p.Calls {
		callers[i] = p.Calls[i].Caller
	}
	numbers := look.Preorder(callers)
	for i := range p.Events {
		e := &p.Events[i]
		events[i] = packSamples(e, numbers, len(p.Threads) > 1)
		h.Events = append(h.Events, packedEvent{
			Name: e.Name, Unit: e.Unit, Base: e.Base, Count: e.Count, IsTimed: e.IsTimed,
			Stacks: len(events[i].stacks), Samples: len(e.Samples),
		})
	}
	order := functionOrder(p)
	h.functions(p, order)
	if err := out.JSON(&h); err != nil {
		return err
	}
	out.calls(p.Calls, out.Levels(callers, numbers), order)
	for _, e := range events {
		out.samples(e)
	}
	return out.Close()
}

// functions fills in the columns of functions.
func (h *packedHeader) functions(p *Page, order []int32) {
	h.Names, h.Shorts, h.Kinds = make([]string, len(order)), make([]string, len(order)), make([]Kind, len(order))
	h.Places, h.Modules = make([]string, len(order)), make([]string, len(order))
	for i, place := range order {
		f := &p.Functions[i]
		h.Names[place], h.Shorts[place], h.Kinds[place], h.Places[place], h.Modules[place] = f.Name, f.Short, f.Kind, f.Place, f.Module
	}
}

// functionOrder is the place of each function in the page: the ones with the most calls come
// first, so that their numbers are short.
func functionOrder(p *Page) []int32 {
	counts := make([]int, len(p.Functions))
	for i := range p.Calls {
		counts[p.Calls[i].Function]++
	}
	list := make([]int32, len(counts))
	for i := range list {
		list[i] = int32(i)
	}
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(counts[b], counts[a]) })
	return inverse(list)
}

func inverse(list []int32) []int32 {
	places := make([]int32, len(list))
	for place, i := range list {
		places[i] = int32(place)
	}
	return places
}

// calls writes the functions of calls, which are listed in preorder.
func (p *packer) calls(calls []Call, list, order []int32) {
	for _, i := range list {
		key := uint64(order[calls[i].Function]) * 2
		if calls[i].IsGuess {
			key++
		}
		p.Uint(key)
	}
}

// packedSamples are the samples of an event with their stacks.
type packedSamples struct {
	*Event
	order      []int32 // of samples, by time
	stacks     []int32 // calls from 1 on; 0: none
	places     []int32 // in stacks, by call from 0 on
	hasThreads bool
}

func packSamples(e *Event, numbers []int32, hasThreads bool) *packedSamples {
	s := &packedSamples{Event: e, order: make([]int32, len(e.Samples)), places: make([]int32, len(numbers)+1), hasThreads: hasThreads}
	counts := make([]int, len(numbers)+1)
	for i := range e.Samples {
		s.order[i] = int32(i)
		counts[e.Samples[i].Call+1]++
	}
	if e.IsTimed {
		slices.SortStableFunc(s.order, func(a, b int32) int { return cmp.Compare(e.Samples[a].Time, e.Samples[b].Time) })
	}
	numberOf := func(call int32) int32 {
		if call == 0 {
			return 0
		}
		return numbers[call-1]
	}
	var used []int32
	for call, n := range counts {
		if n > 0 {
			used = append(used, int32(call))
		}
	}
	slices.SortFunc(used, func(a, b int32) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(numberOf(a), numberOf(b)))
	})
	s.stacks = make([]int32, len(used))
	for place, call := range used {
		s.stacks[place], s.places[call] = numberOf(call), int32(place)
	}
	return s
}

// samples writes the columns of an event.
func (p *packer) samples(s *packedSamples) {
	last := int32(0)
	for _, n := range s.stacks {
		d := n - last
		p.Int(int64(d))
		last = n
	}
	column := func(isThere bool, number func(s *Sample) uint64) {
		for _, i := range s.order {
			if isThere {
				p.Uint(number(&s.Samples[i]))
			}
		}
	}
	before := uint64(0)
	if len(s.order) > 0 {
		before = s.Samples[s.order[0]].Time / 1000
	}
	column(s.IsTimed, func(s *Sample) uint64 {
		t := s.Time / 1000
		d := t - before
		before = t
		return d
	})
	column(s.hasThreads, func(s *Sample) uint64 { return uint64(s.Thread) })
	column(true, func(sample *Sample) uint64 { return uint64(s.places[sample.Call+1]) })
	column(true, func(s *Sample) uint64 { return s.Weight })
	column(s.Base != "", func(s *Sample) uint64 { return s.Base })
}
