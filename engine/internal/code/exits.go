// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
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

// Exits asks the plugin where the code at an address of the object goes on; nil where the
// plugin does not know. The answer is remembered.
func (o *Object) Exits(ctx context.Context, address uint64) (*Exits, error) {
	o.resolver() // whose symbols bound functions
	o.mu.Lock()
	defer o.mu.Unlock()
	if e, ok := o.code.exits.find(address); ok {
		return e, nil
	}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	e, err := o.askExits(ctx, address)
	if err != nil {
		return nil, err
	}
	remember(o, &o.code.exits, address, e, exitBytes)
	return e, nil
}

func (o *Object) askExits(ctx context.Context, address uint64) (*Exits, error) {
	bounds := o.bounds(address)
	if !bounds.IsKnown {
		bounds = Bounds{Start: address, End: o.codeWindow(address).End}
	}
	if !bounds.isReadable() {
		return nil, nil
	}
	query, _ := o.codeRange(bounds, address, true) // as much as is there
	n := uint64(len(query.Code))
	if address-bounds.Start >= n {
		return nil, nil
	}
	query.Exits = true
	rules, err := o.askRules(ctx, query)
	if err != nil || rules.Exits == nil {
		return nil, err
	}
	base := o.base(bounds.Start)
	e := &Exits{Start: bounds.Start, End: bounds.Start + n, IsOpen: rules.Exits.Open}
	for _, a := range rules.Exits.Jumps {
		e.Jumps = append(e.Jumps, a+base)
	}
	for _, a := range rules.Exits.Slots {
		e.Slots = append(e.Slots, a+base)
	}
	return e, nil
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
