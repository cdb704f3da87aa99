// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// targetCheck looks for one kind of contradiction in an answer to OpenTarget that is valid.
type targetCheck struct {
	severity Severity
	fix      string
	each     func(v *verifier, t *Target, a *sdk.OpenTargetAnswer, found func(format string, args ...any))
}

// targetChecks are made of every answer to OpenTarget about a sample target.
var targetChecks = []targetCheck{
	{Warning, "Set Kind: it names such cores in the output.", kindOfTarget},
	{Error, "A wave's agent and queue are its dispatch's: name the same, or leave them out.", wavesOfDispatches},
	{Error, "Count groups in work-groups, from 0 on, and Grid and Group in work-items.", groupsOfGrids},
	{Error, "Number the waves of a work-group from 0 on, each once.", wavesOfGroups},
	{Error, "Give addresses of the default address space, or offsets in FileSpace, at which the core has the bytes.", placesInMemory},
	{Warning, "Give the PC among Registers, or say in Problem why the thread cannot be walked.", pcsOfThreads},
	{Warning, "Set the Has member beside it: without it the value is not used.", halfKnown},
	{Warning, "Name in WaitFunctions where the process waits for a dispatch: without them no Signal is looked for.", signalsWaitedFor},
	{Warning, "Name one of the description's Processors with one of its lane counts, or say in Problem why the thread's state could not be read.", processorsOfThreads},
	{Warning, "A thread that runs was only interrupted to be dumped: set one of both.", crashedAndRunning},
}

func kindOfTarget(_ *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	if a.Kind == "" && len(a.Threads)+len(a.Objects)+len(a.Agents) > 0 {
		found("Kind is empty beside %d threads and %d code objects", len(a.Threads), len(a.Objects))
	}
}

func wavesOfDispatches(_ *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	queues, agents := map[string]string{}, map[string]string{} // of dispatches, of queues
	for _, d := range a.Dispatches {
		queues[d.ID] = d.Queue
	}
	for _, q := range a.Queues {
		agents[q.ID] = q.Agent
	}
	for i := range a.Threads {
		w := &a.Threads[i].Wave
		queue := w.Queue
		if q := queues[w.Dispatch]; q != "" {
			if queue != "" && q != queue {
				found("Threads[%d].Wave.Queue is %s, and its dispatch %s is of queue %s", i, queue, w.Dispatch, q)
				return
			}
			queue = q
		}
		if agent := agents[queue]; agent != "" && w.Agent != "" && agent != w.Agent {
			found("Threads[%d].Wave.Agent is %s, and its queue %s is of agent %s", i, w.Agent, queue, agent)
			return
		}
	}
}

// dispatches are the dispatches of an answer, by their IDs.
func dispatches(a *sdk.OpenTargetAnswer) map[string]*sdk.TargetDispatch {
	list := map[string]*sdk.TargetDispatch{}
	for i := range a.Dispatches {
		list[a.Dispatches[i].ID] = &a.Dispatches[i]
	}
	return list
}

func groupsOfGrids(_ *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	for i := range a.Dispatches {
		d := &a.Dispatches[i]
		for axis := range d.Grid {
			if d.Grid[axis] != 0 && d.Group[axis] > d.Grid[axis] {
				found("Dispatches[%d].Group has %d work-items on axis %d, its Grid %d", i, d.Group[axis], axis, d.Grid[axis])
				return
			}
		}
	}
	known := dispatches(a)
	for i := range a.Threads {
		w := &a.Threads[i].Wave
		d := known[w.Dispatch]
		for axis := range w.Group {
			if d == nil || !w.HasGroup || d.Grid[axis] == 0 || d.Group[axis] == 0 {
				continue
			}
			if groups := (uint64(d.Grid[axis]) + uint64(d.Group[axis]) - 1) / uint64(d.Group[axis]); uint64(w.Group[axis]) >= groups {
				found("Threads[%d].Wave.Group[%d] is %d, and its dispatch %s has %d groups there", i, axis, w.Group[axis], w.Dispatch, groups)
				return
			}
		}
	}
}

func wavesOfGroups(_ *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	known, seen := dispatches(a), map[string]int{}
	for i := range a.Threads {
		th := &a.Threads[i]
		w := &th.Wave
		if !w.HasInGroup {
			continue
		}
		if d := known[w.Dispatch]; d != nil && th.Lanes > 0 && !slices.Contains(d.Group[:], 0) {
			items := uint64(d.Group[0]) * uint64(d.Group[1]) % (1 << 32) * uint64(d.Group[2])
			if waves := (items + uint64(th.Lanes) - 1) / uint64(th.Lanes); uint64(w.InGroup) >= waves {
				found("Threads[%d].Wave.InGroup is %d, and a work-group of dispatch %s has %d waves of %d lanes", i, w.InGroup, w.Dispatch, waves, th.Lanes)
				return
			}
		}
		if !w.HasGroup || w.Dispatch == "" {
			continue
		}
		key := fmt.Sprint(w.Dispatch, w.Group, w.InGroup)
		if j, ok := seen[key]; ok && !areApart(&a.Threads[j], th) {
			found("Threads[%d] and Threads[%d] are both wave %d of group %v of dispatch %s", j, i, w.InGroup, w.Group, w.Dispatch)
			return
		}
		seen[key] = i
	}
}

// areApart reports whether two threads are groups of lanes of one wave: each lane is in one of
// them alone.
func areApart(a, b *sdk.TargetThread) bool {
	if len(a.LaneStates) == 0 || len(b.LaneStates) == 0 {
		return false
	}
	return !slices.ContainsFunc(a.LaneStates, func(l sdk.LaneState) bool {
		return slices.ContainsFunc(b.LaneStates, func(other sdk.LaneState) bool { return l.Lane == other.Lane })
	})
}

// placesInMemory reads the ends of everything that an answer says is in memory.
func placesInMemory(v *verifier, t *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	if t.Engine == nil {
		return
	}
	p := places{v: v, t: t, found: found}
	for i := range a.Threads[:min(len(a.Threads), maxTargetThreads)] {
		th := &a.Threads[i]
		if !p.registers(fmt.Sprintf("Threads[%d]", i), th.Saved) || !p.memory(fmt.Sprintf("Threads[%d].", i), th.Memory) {
			return
		}
		for j := range th.LaneStates {
			l, where := &th.LaneStates[j], fmt.Sprintf("Threads[%d].LaneStates[%d]", i, j)
			if !p.registers(where, l.Saved) || !p.memory(where+".", l.Memory) {
				return
			}
		}
	}
	if !p.memory("", a.Memory) {
		return
	}
	for i := range a.Objects {
		if o := &a.Objects[i]; o.Path == "" && !p.has(fmt.Sprintf("Objects[%d]", i), o.Into, o.MemoryAddress, o.Size) {
			return
		}
	}
}

// places looks whether a target has the bytes that an answer gives places of.
type places struct {
	v     *verifier
	t     *Target
	found func(format string, args ...any)
}

// has reads the ends of a place, and reports whether they are there.
func (p *places) has(what string, space locexpr.AddressSpace, address, size uint64) bool {
	for _, at := range []uint64{address, address + size - 1} {
		if n, err := p.t.Engine.ReadMemory(p.v.ctx, sdk.MemoryRange{Space: space, Address: at, Lane: -1}, make([]byte, 1)); n != 1 || err != nil {
			p.found("%s: the target does not have the %#x bytes at %#x", what, size, address)
			return false
		}
	}
	return true
}

func (p *places) registers(what string, saved []sdk.SavedRegisters) bool {
	for i, s := range saved {
		info, _ := p.v.desc.Register(s.First)
		if !p.has(fmt.Sprintf("%s.Saved[%d]", what, i), s.Into, s.Address, uint64(s.Count)*uint64((info.Bits+7)/8)) {
			return false
		}
	}
	return true
}

func (p *places) memory(what string, memory []sdk.SpaceMemory) bool {
	for i, m := range memory {
		if !p.has(fmt.Sprintf("%sMemory[%d]", what, i), m.Into, m.Address, m.Size) {
			return false
		}
	}
	return true
}

func pcsOfThreads(v *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	pc := v.desc.PC
	for i := range a.Threads {
		th := &a.Threads[i]
		_, has := th.Registers.Get(pc)
		if pc != sdk.NoRegister && !has && th.Problem == "" {
			found("Threads[%d], %s, has neither its PC among Registers nor a Problem", i, th.ID)
			return
		}
	}
}

func halfKnown(_ *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	for i := range a.Threads {
		th := &a.Threads[i]
		for _, half := range []struct {
			when           bool
			member, beside string
		}{
			{th.Stop.Address != 0 && !th.Stop.HasAddress, "Stop.Address", "Stop.HasAddress"},
			{th.Stop.TrapID != 0 && !th.Stop.HasTrapID, "Stop.TrapID", "Stop.HasTrapID"},
			{th.Stop.IsPCExact && !th.Stop.HasPCExact, "Stop.IsPCExact", "Stop.HasPCExact"},
			{th.Wave.Group != [3]uint32{} && !th.Wave.HasGroup, "Wave.Group", "Wave.HasGroup"},
			{th.Wave.InGroup != 0 && !th.Wave.HasInGroup, "Wave.InGroup", "Wave.HasInGroup"},
			{th.Wave.Cluster != [3]uint32{} && !th.Wave.HasCluster, "Wave.Cluster", "Wave.HasCluster"},
		} {
			if half.when {
				found("Threads[%d].%s is set and %s is not", i, half.member, half.beside)
				return
			}
		}
	}
}

func signalsWaitedFor(_ *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	if len(a.WaitFunctions) > 0 {
		return
	}
	if i := slices.IndexFunc(a.Dispatches, func(d sdk.TargetDispatch) bool { return d.Signal != 0 }); i >= 0 {
		found("Dispatches[%d].Signal is %#x, and WaitFunctions is empty", i, a.Dispatches[i].Signal)
	}
}

func processorsOfThreads(v *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	for i := range a.Threads {
		th := &a.Threads[i]
		if len(v.desc.Processors) == 0 || th.Processor == "" || th.Problem != "" {
			continue
		}
		p, ok := v.desc.Processor(th.Processor)
		switch {
		case !ok:
			found("Threads[%d].Processor %q is none of the description's", i, th.Processor)
			return
		case th.Lanes != 0 && !slices.Contains(p.Lanes, th.Lanes):
			found("Threads[%d].Lanes is %d, and threads of %s have %v", i, th.Lanes, p.Name, p.Lanes)
			return
		}
	}
}

func crashedAndRunning(_ *verifier, _ *Target, a *sdk.OpenTargetAnswer, found func(string, ...any)) {
	if i := slices.IndexFunc(a.Threads, func(th sdk.TargetThread) bool { return th.HasCrashed && th.IsRunning }); i >= 0 {
		found("Threads[%d], %s, has crashed and is running", i, a.Threads[i].ID)
	}
}
