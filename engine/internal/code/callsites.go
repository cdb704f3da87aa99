// SPDX-License-Identifier: Apache-2.0

package code

import (
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/symtab"
)

// A Call is a call as debug information describes it.
type Call struct {
	Site   dwarf.CallSite // the zero CallSite: it is not described
	Callee dwarf.Entry    // the zero Entry where it is not named
}

// calledFunction is a function that a call site may have called: the callee that it names, or the
// zero Entry, and the function that is active.
type calledFunction struct{ callee, function dwarf.Entry }

const calledBytes = 150 // about how much memory an answer about a calledFunction takes in a map

// Checked returns what check returns about a call of a function, whose call site names callee: nil,
// or an error for which isKept holds. It is asked once. It is called inside object.Guard.
func (o *Object) Checked(callee, function dwarf.Entry, check func() error, isKept func(error) bool) error {
	key := calledFunction{callee, function}
	if err, isKnown := o.answers.called.find(key); isKnown {
		return err
	}
	err := check()
	if err == nil || isKept(err) {
		keep(o, &o.answers.called, key, err, calledBytes)
	}
	return err
}

// namedFunctions are the addresses of functions by name: of all, and of the functions that other
// code objects see. mu guards them; nil until they are needed.
type namedFunctions struct {
	mu            sync.Mutex
	all, exported *symtab.Addresses
}

const callBytes = 100 // about how much memory a Call takes in a map

// Call returns the call with a return address, an address of the object, by its DW_TAG_call_site
// (DWARF 5, 3.4): in one of several functions with the same code, which dwarf.Reader.Equals gave,
// or for the zero Entry in the function that is there. The answer is remembered. It is called
// inside object.Guard.
func (o *Object) Call(returnPC uint64, function dwarf.Entry) (Call, error) {
	key := nameKey{address: returnPC, function: function}
	known, isKnown := o.answers.calls.find(key)
	if isKnown {
		return *known, nil
	}
	var call Call
	if d := o.DWARF(); d != nil {
		var err error
		if call.Site, err = d.CallSiteIn(returnPC, function); err != nil {
			return Call{}, err
		}
		if !call.Site.IsZero() {
			if call.Callee, err = call.Site.Callee(); err != nil {
				return Call{}, err
			}
		}
	}
	keep(o, &o.answers.calls, key, &call, callBytes)
	return call, nil
}

// Named returns the address of the function of a name in the object's symbol tables; isExported
// leaves out functions that other code objects do not see. isSure is false where several have the
// name, or where the program chooses one when it starts. It is called inside object.Guard.
func (o *Object) Named(name string, isExported bool) (address uint64, isSure, ok bool) {
	r, n := o.resolver(), &o.answers.byName
	if r == nil || isExported && !o.File.MayExport(name) {
		return 0, false, false
	}
	kept := &n.all
	if isExported {
		kept = &n.exported
	}
	n.mu.Lock()
	a, isNew := *kept, *kept == nil
	if isNew {
		a = r.Addresses(isExported)
		*kept = a
	}
	n.mu.Unlock()
	if isNew {
		o.grow(a.MemorySize())
	}
	return a.Of(name)
}

// forget empties the lists, and returns how much memory they took.
func (n *namedFunctions) forget() (bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range []*symtab.Addresses{n.all, n.exported} {
		if a != nil {
			bytes += a.MemorySize()
		}
	}
	n.all, n.exported = nil, nil
	return bytes
}
