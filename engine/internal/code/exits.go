// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// exitBytes is about how much memory the exits of a function take.
const exitBytes = 200

// Exits are the addresses of the object at which code goes on without a call.
type Exits struct {
	Start, End uint64   // of the code that was read
	Jumps      []uint64 // to other code
	Slots      []uint64 // words that have the target of a jump
	IsOpen     bool     // it may go on elsewhere too
}

// exitAnswers are the answers about exits, by address. The cache has its own lock; Object.mu guards
// the rest.
type exitAnswers struct {
	known  cache[uint64, *Exits]
	unused map[uint64]bool // addresses whose exits nothing has needed
	guess  Foresight
}

// Exits asks the plugin where the code at an address of the object goes on; nil where the
// plugin does not know. The answer is remembered.
func (o *Object) Exits(ctx context.Context, address uint64) (*Exits, error) {
	return o.ExitsAhead(ctx, address, func() []uint64 { return nil })
}

// ExitsAhead is Exits. Where the plugin is asked, next returns other addresses whose exits will
// probably be needed, and it is asked about those too.
func (o *Object) ExitsAhead(ctx context.Context, address uint64, next func() []uint64) (*Exits, error) {
	o.resolver() // whose symbols bound functions
	o.mu.Lock()
	defer o.mu.Unlock()
	answers := &o.code.exits
	if answers.unused[address] {
		delete(answers.unused, address)
		answers.guess.Used()
	}
	if e, ok := answers.known.find(address); ok {
		return e, nil
	}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	query, bounds, ok := o.exitsQuery(address)
	if !ok {
		remember(o, &answers.known, address, nil, exitBytes)
		return nil, nil
	}
	list := []exitsRequest{{address, bounds}}
	queries := []sdk.CodeRange{query}
	if most := min(answers.guess.Next(), o.machine.ahead.most()-1); most > 0 {
		list, queries = o.nextExits(list, queries, next(), most)
		answers.guess.Requested(len(list) - 1)
	}
	rules, beside, err := o.machine.askBeside(ctx, o.askFunctions, queries)
	for i, a := range beside {
		if a.rules != nil {
			o.keepExits(list[i+1], &queries[i+1], a.rules)
			answers.addUnused(list[i+1].address)
		}
	}
	if err != nil {
		return nil, err
	}
	return o.keepExits(list[0], &queries[0], rules), nil
}

// addUnused records that nothing has needed the exits at an address.
func (a *exitAnswers) addUnused(address uint64) {
	if a.unused == nil || len(a.unused) >= maxUnused {
		a.unused = map[uint64]bool{}
	}
	a.unused[address] = true
}

// exitsRequest is an address whose exits are asked for, and the code there.
type exitsRequest struct {
	address uint64
	bounds  Bounds
}

// nextExits adds questions about other addresses to one.
func (o *Object) nextExits(list []exitsRequest, queries []sdk.CodeRange, next []uint64, most int) ([]exitsRequest, []sdk.CodeRange) {
	left := maxAheadCode
	for _, address := range next {
		_, isKnown := o.code.exits.known.find(address)
		if isKnown || slices.ContainsFunc(list, func(a exitsRequest) bool { return a.address == address }) {
			continue
		}
		query, bounds, ok := o.exitsQuery(address)
		if !ok || len(query.Code) > left {
			continue
		}
		left -= len(query.Code)
		list, queries = append(list, exitsRequest{address, bounds}), append(queries, query)
		if len(list) > most {
			break
		}
	}
	return list, queries
}

// exitsQuery returns the question where the code at an address goes on; ok is false where the
// code is not there.
func (o *Object) exitsQuery(address uint64) (query sdk.CodeRange, bounds Bounds, ok bool) {
	if bounds = o.bounds(address); !bounds.IsKnown {
		bounds = Bounds{Start: address, End: o.codeWindow(address).End}
	}
	if !bounds.isReadable() {
		return query, bounds, false
	}
	query, _ = o.codeRange(bounds, address, true) // as much as is there
	query.Exits = true
	return query, bounds, address-bounds.Start < uint64(len(query.Code))
}

// keepExits remembers the exits of an answer by addresses of the object, and returns them.
func (o *Object) keepExits(request exitsRequest, query *sdk.CodeRange, rules *sdk.FrameRules) (e *Exits) {
	if rules.Exits != nil {
		base := o.base(request.bounds.Start)
		e = &Exits{Start: request.bounds.Start, End: request.bounds.Start + uint64(len(query.Code)), IsOpen: rules.Exits.Open}
		for _, a := range rules.Exits.Jumps {
			e.Jumps = append(e.Jumps, a+base)
		}
		for _, a := range rules.Exits.Slots {
			e.Slots = append(e.Slots, a+base)
		}
	}
	remember(o, &o.code.exits.known, request.address, e, exitBytes)
	return e
}

// linkageSlots are the sections in which a dynamic linker writes, once, where
// functions of other objects are.
var linkageSlots = []string{".got", ".got.plt"}

// IsLinkageSlot reports whether an address of the object is in one of linkageSlots, or in a PE
// file's table of imports.
func (o *Object) IsLinkageSlot(address uint64) bool {
	if o.isLaid() || o.File == nil {
		return false
	}
	if o.File.IsPE() {
		return o.File.PE().IsImportSlot(address)
	}
	return slices.ContainsFunc(linkageSlots, func(name string) bool {
		s := o.File.Section(name)
		return s != nil && address-s.Address < s.Size
	})
}

// linkageCode begins the names of the sections whose code jumps to the address in a linkage
// slot: .plt, .plt.got, .plt.sec.
const linkageCode = ".plt"

// IsLinkageCode reports whether an address of the object is in such a section.
func (o *Object) IsLinkageCode(address uint64) bool {
	if o.isLaid() || o.File == nil {
		return false
	}
	return slices.ContainsFunc(o.File.Sections(), func(s *object.Section) bool {
		return strings.HasPrefix(s.Name, linkageCode) && address-s.Address < s.Size
	})
}
