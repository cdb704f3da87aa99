package code

import (
	"sync"

	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/symbol/symtab"
)

// A Call is what debug information says of a call.
type Call struct {
	Site   dwarf.CallSite // the zero CallSite: nothing
	Callee dwarf.Entry    // the zero Entry where it is not named
}

// callCache remembers what debug information says of calls, and where functions are by
// their names.
type callCache struct {
	mu    sync.RWMutex
	calls map[uint64]Call // by return address
	// Where functions are by their names: all, and those that other code objects see;
	// nil until they are needed.
	named, exported *symtab.Addresses
}

const callBytes = 100 // about what a Call takes in a map

// Call is the call with a return address, an address of the object, by its
// DW_TAG_call_site (DWARF 5, 3.4). The answer is remembered. It is called inside
// object.Guard.
func (o *Object) Call(returnPC uint64) (Call, error) {
	c := &o.called
	c.mu.RLock()
	call, isKnown := c.calls[returnPC]
	c.mu.RUnlock()
	if isKnown {
		return call, nil
	}
	if d := o.DWARF(); d != nil {
		var err error
		if call.Site, err = d.CallSite(returnPC); err != nil {
			return Call{}, err
		}
		if !call.Site.IsZero() {
			if call.Callee, err = call.Site.Callee(); err != nil {
				return Call{}, err
			}
		}
	}
	c.mu.Lock()
	if c.calls == nil {
		c.calls = map[uint64]Call{}
	}
	isKept := len(c.calls) < maxKept
	if isKept {
		c.calls[returnPC] = call
	}
	c.mu.Unlock()
	if isKept {
		o.grow(callBytes)
	}
	return call, nil
}

// Named is where the object has the function of a name in its symbol tables; isExported
// leaves out those that other code objects do not see. isSure is false where several
// have the name, or where the program chooses one when it starts. It is called inside
// object.Guard.
func (o *Object) Named(name string, isExported bool) (address uint64, isSure, ok bool) {
	r, c := o.resolver(), &o.called
	if r == nil || isExported && !o.File.MayExport(name) {
		return 0, false, false
	}
	kept := &c.named
	if isExported {
		kept = &c.exported
	}
	c.mu.Lock()
	a, isNew := *kept, *kept == nil
	if isNew {
		a = r.Addresses(isExported)
		*kept = a
	}
	c.mu.Unlock()
	if isNew {
		o.grow(a.MemorySize())
	}
	return a.Of(name)
}

func (c *callCache) forget() (bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes = len(c.calls) * callBytes
	for _, a := range []*symtab.Addresses{c.named, c.exported} {
		if a != nil {
			bytes += a.MemorySize()
		}
	}
	c.calls, c.named, c.exported = nil, nil, nil
	return bytes
}
