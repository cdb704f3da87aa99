// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// exitWindow is how much code is read of a function that nothing bounds.
const exitWindow = 4096

// exitBytes is about what the exits of a function take.
const exitBytes = 200

// Exits is where code goes on to without a call, by addresses of the object.
type Exits struct {
	Start, End uint64   // of what was read
	Jumps      []uint64 // to other code
	Slots      []uint64 // words that hold where a jump leads
	IsOpen     bool     // it may go on elsewhere too
}

// Exits asks the plugin where the code at an address of the object goes on to; nil
// where the plugin does not say. The answer is remembered.
func (o *Object) Exits(ctx context.Context, address uint64) (*Exits, error) {
	o.resolver() // whose symbols bound functions
	o.mu.Lock()
	defer o.mu.Unlock()
	if e, ok := o.left[address]; ok {
		return e, nil
	}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	e, err := o.askExits(ctx, address)
	if err != nil {
		return nil, err
	}
	if o.left == nil {
		o.left = map[uint64]*Exits{}
	}
	if len(o.left) < maxKept {
		o.left[address] = e
		o.bytes.Add(exitBytes)
		o.library.bytes.Add(exitBytes)
	}
	return e, nil
}

func (o *Object) askExits(ctx context.Context, address uint64) (*Exits, error) {
	bounds := o.bounds(address)
	if !bounds.IsKnown {
		bounds = Bounds{Start: address, End: min(o.codeWindow(address).End, address+exitWindow)}
	}
	if bounds.End <= bounds.Start || bounds.End-bounds.Start > maxFunctionCode {
		return nil, nil
	}
	code := make([]byte, bounds.End-bounds.Start)
	n, _ := o.readCode(bounds.Start, code)
	if address-bounds.Start >= uint64(n) {
		return nil, nil
	}
	base := o.base(bounds.Start)
	rules, err := o.askRules(ctx, sdk.CodeRange{
		PC: address - base, Start: bounds.Start - base, Code: code[:n],
		Bounded: bounds.IsKnown && n == len(code), Name: bounds.Name, Exact: true, Exits: true,
	})
	if err != nil || rules.Exits == nil {
		return nil, err
	}
	e := &Exits{Start: bounds.Start, End: bounds.Start + uint64(n), IsOpen: rules.Exits.Open}
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

// IsLinkageSlot says whether an address of the object is in one of them, or in a PE file's
// table of imports.
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

// linkageCode begins the names of the sections whose code jumps to where a linkage slot
// says: .plt, .plt.got, .plt.sec.
const linkageCode = ".plt"

// IsLinkageCode says whether an address of the object is in one of them.
func (o *Object) IsLinkageCode(address uint64) bool {
	if o.isLaid() || o.File == nil {
		return false
	}
	return slices.ContainsFunc(o.File.Sections(), func(s *object.Section) bool {
		return strings.HasPrefix(s.Name, linkageCode) && address-s.Address < s.Size
	})
}
