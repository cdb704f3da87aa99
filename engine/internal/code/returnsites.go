// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/sdk"
)

// A CallSite describes the instruction before an address.
type CallSite struct {
	IsAfterCall bool
	IsDirect    bool  // the call names its target
	Target      int64 // of a direct call, relative to the address after it
}

const siteBytes = 48 // about how much memory a CallSite takes in a map

// addressAnswers are answers about addresses of an object: of debug information, and of the
// plugin about call sites. Each has its own lock.
type addressAnswers struct {
	sites     cache[uint64, CallSite]           // by return address
	behind    cache[uint64, []cfi.RegisterRule] // by return address
	calls     cache[nameKey, *Call]             // by return address
	called    cache[calledFunction, error]      // why a call is none of a function
	variables cache[nameKey, *Variables]        // nil where no function is described
	functions cache[uint64, dwarf.Entry]
	lanes     cache[uint64, *LaneAttributes]
	byName    namedFunctions
	data      dataSymbols
}

// forget empties the caches, and returns how much memory they took. Symbols of data stay.
func (a *addressAnswers) forget() int {
	return a.sites.forget() + a.behind.forget() + a.calls.forget() + a.called.forget() + a.variables.forget() + a.functions.forget() + a.lanes.forget() + a.byName.forget()
}

// KnownSite returns the remembered call site before an address of the object.
func (o *Object) KnownSite(address uint64) (s CallSite, ok bool) {
	return o.answers.sites.find(address)
}

// KeepSite remembers the call site before an address of the object.
func (o *Object) KeepSite(address uint64, s CallSite) {
	keep(o, &o.answers.sites, address, s, siteBytes)
}

// DescribedSite returns the call that returns to an address of the object by debug information,
// for code that is not there.
func (o *Object) DescribedSite(pc uint64) CallSite {
	r := o.DWARF()
	if r == nil {
		return CallSite{}
	}
	described, err := r.CallSite(pc)
	if err != nil || described.IsZero() {
		return CallSite{}
	}
	site := CallSite{IsAfterCall: true}
	if callee, err := described.Callee(); err == nil && !callee.IsZero() {
		if entry, ok, err := callee.EntryPC(); err == nil && ok {
			site.IsDirect, site.Target = true, int64(entry-pc) //nolint:gosec // it wraps, as addresses do
		}
	}
	return site
}

// CodeBefore reads the code before an address of the object: len(code) bytes. It is false where
// not all of them are there.
func (o *Object) CodeBefore(address uint64, code []byte) bool {
	n, _ := o.readCode(address-uint64(len(code)), code)
	return n == len(code)
}

// A Classifier asks a plugin about several addresses in one call.
type Classifier struct {
	request sdk.ClassifyReturnRequest
}

// Add asks about an address with the code before it.
func (c *Classifier) Add(pc uint64, code []byte) {
	if len(c.request.Offsets) == 0 {
		c.request.Offsets = []uint32{0}
	}
	c.request.PCs = append(c.request.PCs, pc)
	c.request.Code = append(c.request.Code, code...)
	c.request.Offsets = append(c.request.Offsets, uint32(len(c.request.Code)))
}

// Ask returns the call sites before the addresses, in their order.
func (c *Classifier) Ask(ctx context.Context, m *Machine) ([]CallSite, error) {
	if len(c.request.PCs) == 0 {
		return nil, nil
	}
	answer, err := m.Plugin.ClassifyReturn(ctx, &c.request)
	if err != nil {
		return nil, fmt.Errorf("checking return addresses: %w", err)
	}
	sites := make([]CallSite, len(c.request.PCs))
	for i, pc := range c.request.PCs {
		switch answer.Classes[i] {
		case sdk.AfterDirectCall:
			sites[i] = CallSite{IsAfterCall: true, IsDirect: true, Target: int64(answer.Targets[i] - pc)}
		case sdk.AfterIndirectCall:
			sites[i] = CallSite{IsAfterCall: true}
		}
	}
	return sites, nil
}

// isAfterCall reports whether a call of the object, which begins at an address or behind it, ends
// right before pc.
func (o *Object) isAfterCall(ctx context.Context, pc, begins uint64) bool {
	code := make([]byte, min(uint64(o.machine.Description.MaxInstruction), pc-begins))
	if !o.CodeBefore(pc, code) {
		return false
	}
	var c Classifier
	c.Add(pc, code)
	sites, err := c.Ask(ctx, o.machine)
	return err == nil && sites[0].IsAfterCall
}

// Continuation returns the segment of JIT code that begins at a return address that follows no
// call: frames of Erlang return to such code, which nothing calls. It is nil for other return
// addresses. find finds segments.
func Continuation(ctx context.Context, find func(address uint64) *Segment, pc uint64) *Segment {
	s := find(pc)
	if s == nil || s.Start != pc || s.Module.Code.memory.jit == nil {
		return nil
	}
	if f, ok := s.Module.Code.memory.jit.Functions.Function(s.Address); ok && f.Start != s.Address {
		return nil // other JIT code ends here, which was made over a part of the function
	}
	before := find(pc - 1)
	if before == nil || before.Module.Code.machine == nil {
		return s
	}
	o, address := before.Module.Code, before.ObjectAddress(pc)
	site, ok := o.KnownSite(address)
	if !ok {
		site.IsAfterCall = o.isAfterCall(ctx, address, before.Address)
		if !site.IsAfterCall {
			o.KeepSite(address, site)
		}
	}
	if site.IsAfterCall {
		return nil
	}
	return s
}
