// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/typelayout"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// open asks a plugin about its runtime in a module.
func (x *Process) open(ctx context.Context, found recognised) (*instance, error) {
	m := found.module
	machine := m.Code.Machine()
	if machine == nil {
		return nil, fmt.Errorf("nothing here reads the registers of %s", m.Arch)
	}
	i := &instance{owner: x, runtime: found.runtime, about: found.runtime.Description(), module: m, machine: machine}
	err := object.Guard(func() error {
		i.request = i.newRequest()
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer, err := found.runtime.OpenRuntime(ctx, x.engine, i.request)
	if err != nil {
		return nil, err
	}
	i.answer = answer
	for _, p := range answer.Problems {
		i.problem("%s", p)
	}
	i.takeCode()
	x.openLocks(i, answer.Locks)
	return i, nil
}

// newRequest describes the runtime's module in the process.
func (i *instance) newRequest() *sdk.OpenRuntimeRequest {
	m, d, file := i.module, i.machine.Description, i.module.Object
	req := &sdk.OpenRuntimeRequest{
		Runtime: handles.Add(1), Object: m.Code.Handle(), Path: m.Path, BuildID: file.BuildID(),
		Machine: file.Machine(), AddressBits: d.AddressBits, ByteOrder: d.ByteOrder,
		PC: d.PC, SP: d.SP, FP: d.FP, ReturnAddress: d.ReturnAddress,
	}
	debug := m.Code.DWARF()
	req.HasDebugInfo = debug != nil
	if sized, ok := i.owner.process.State().(target.Sized); ok {
		req.MemorySize = sized.MemorySize()
	}
	for _, s := range m.Segments {
		req.Segments = append(req.Segments, sdk.RuntimeSegment{Address: s.Address, Size: s.Size, Start: s.Start})
	}
	slices.SortFunc(req.Segments, func(a, b sdk.RuntimeSegment) int { return cmp.Compare(a.Address, b.Address) })
	for _, s := range file.SyntheticSections() {
		req.Sections = append(req.Sections, sdk.SectionInfo{Name: s.Name, Type: uint32(s.Type), Flags: uint64(s.Flags), Address: s.Address, Size: s.Size})
	}
	for _, place := range m.Code.Places(i.about.Symbols) {
		address, ok := m.Start(place.Address)
		req.Symbols = append(req.Symbols, sdk.SymbolPlace{IsKnown: place.IsKnown && ok, Address: address, Size: place.Size})
	}
	req.Types = typelayout.Of(debug, i.about.Types)
	var err error
	if req.Constants, err = typelayout.Constants(debug, i.about.Constants); err != nil {
		i.problem("%v", err)
	}
	mayExecute := func(th *trace.Thread) bool { return th.Arch == m.Arch && th.Wave == nil && th.Goroutine == nil }
	for _, th := range i.owner.process.ThreadList().Where(mayExecute) {
		req.Threads = append(req.Threads, sdk.RuntimeThread{Thread: th.Handle, ID: th.ID, Name: th.Name})
	}
	return req
}

// takeCode takes the ranges of code that can be the runtime's: code in no module, and in the
// runtime's own. Another module has rows and names of its own.
func (i *instance) takeCode() {
	var kept []sdk.RuntimeCode
	for _, c := range i.answer.Code {
		if other := i.otherModule(&c); other != "" {
			i.problem("its code from %#x to %#x is not used: it is in %s", c.Start, c.End, other)
			continue
		}
		kept = append(kept, c)
	}
	i.code.ranges = kept
	for _, m := range i.owner.process.Loaded() {
		isIn := func(s trace.Segment) bool {
			return slices.ContainsFunc(kept, func(c sdk.RuntimeCode) bool { return c.Start < s.Start+s.Size && s.Start < c.End })
		}
		if i.isOwn(m) && slices.ContainsFunc(m.Segments, isIn) {
			i.code.modules = append(i.code.modules, m)
		}
	}
}

// isOwn reports whether a module has the runtime's file. A runtime may map its code a second time,
// where calls reach it.
func (i *instance) isOwn(m *code.Module) bool {
	return m == i.module || m.Object != nil && m.Path != "" && m.Path == i.module.Path
}

// otherModule returns the path of a module, which has a file, and whose segments of code share
// addresses with a range of the runtime's; "" where there is none.
func (i *instance) otherModule(c *sdk.RuntimeCode) string {
	for _, m := range i.owner.process.Loaded() {
		if i.isOwn(m) || m.Object == nil || m.Path == "" {
			continue
		}
		for k := range m.Segments {
			if s := &m.Segments[k]; s.Executable && c.Start < s.Start+s.Size && s.Start < c.End {
				return m.Path
			}
		}
	}
	return ""
}

// hasThread reports whether the runtime may know frames of a thread.
func (i *instance) hasThread(handle uint64) bool {
	if len(i.answer.Threads) == 0 {
		return true
	}
	_, has := slices.BinarySearch(i.answer.Threads, handle)
	return has
}
