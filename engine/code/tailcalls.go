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

// A chainKey is what a chain of tail calls leads from and to, by where the functions are
// entered.
type chainKey struct{ from, to uint64 }

// callCache remembers what debug information says of calls. What cannot be read is kept
// as what is not there.
type callCache struct {
	mu     sync.RWMutex
	calls  map[uint64]Call // by return address
	chains map[chainKey][]dwarf.TailCall
	byName *symtab.Globals // nil until they are needed
}

// Bytes that what is kept takes, about.
const (
	callBytes     = 100
	chainBytes    = 80
	tailCallBytes = 56
)

// Call is the call with a return address, an address of the object, by its
// DW_TAG_call_site. The answer is remembered. Guard as Evaluate of a walk does.
func (o *Object) Call(returnPC uint64) (Call, error) {
	c := &o.called
	c.mu.RLock()
	call, isKnown := c.calls[returnPC]
	c.mu.RUnlock()
	d := o.DWARF()
	if isKnown || d == nil {
		return call, nil
	}
	site, err := d.CallSite(returnPC)
	if err != nil {
		return Call{}, err
	}
	call = Call{Site: site}
	if !site.IsZero() {
		if call.Callee, err = site.Callee(); err != nil {
			return Call{}, err
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

// TailCalls are the tail calls by which one function of the object led to another, the
// first one first, where there is one way; else there are none. from and to are where
// the functions are entered. The answer is remembered. Guard as Evaluate of a walk does.
func (o *Object) TailCalls(from, to uint64) []dwarf.TailCall {
	c, key := &o.called, chainKey{from, to}
	c.mu.RLock()
	chain, isKnown := c.chains[key]
	c.mu.RUnlock()
	if isKnown {
		return chain
	}
	chain = o.findTailCalls(from, to)
	c.mu.Lock()
	if c.chains == nil {
		c.chains = map[chainKey][]dwarf.TailCall{}
	}
	isKept := len(c.chains) < maxKept
	if isKept {
		c.chains[key] = chain
	}
	c.mu.Unlock()
	if isKept {
		o.grow(chainBytes + len(chain)*tailCallBytes)
	}
	return chain
}

func (o *Object) findTailCalls(from, to uint64) []dwarf.TailCall {
	d := o.DWARF()
	if d == nil {
		return nil
	}
	first, err := d.FunctionFrom(from)
	if err != nil || first.IsZero() {
		return nil
	}
	last, err := d.FunctionFrom(to)
	if err != nil || last.IsZero() {
		return nil
	}
	chain, err := d.TailChain(first, last, o.global)
	if err != nil {
		return nil
	}
	return chain
}

// global is where the object has the function of a linkage name.
func (o *Object) global(name string) (address uint64, ok bool) {
	c := &o.called
	c.mu.Lock()
	isNew := c.byName == nil
	if isNew {
		c.byName = o.resolver().Globals()
	}
	g := c.byName
	c.mu.Unlock()
	if isNew {
		o.grow(g.MemorySize())
	}
	return g.Address(name)
}

func (c *callCache) forget() (bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes = len(c.calls) * callBytes
	for _, chain := range c.chains {
		bytes += chainBytes + len(chain)*tailCallBytes
	}
	if c.byName != nil {
		bytes += c.byName.MemorySize()
	}
	c.calls, c.chains, c.byName = nil, nil, nil
	return bytes
}
